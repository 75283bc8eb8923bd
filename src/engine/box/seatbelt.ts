/** Writes a view of the disk as a profile of Seatbelt, the box of macOS. There, nothing is at another path than outside. */
import { basename, join } from 'node:path';
import { obeyedSources } from '../files/sensitiveNames.ts';
import type { CommandStart, EnclosedCommand } from '../tools/tool.ts';
import { writtenByTools } from './folderNames.ts';
import type { Place } from './view.ts';

/** Returns how `start` runs in the box of macOS. It reaches `port` of this machine, and without one nothing. */
export function inSeatbelt(
  program: string,
  view: readonly Place[],
  start: CommandStart,
  port?: number,
): Omit<EnclosedCommand, 'end'> & { close(): void } {
  return {
    ...start,
    program,
    args: [
      '-p',
      profileOf(view, port),
      '/bin/sh',
      '-c',
      'ulimit -c 0; exec "$@"',
      'sh',
      start.program,
      ...start.args,
    ],
    failureIn: errors => {
      const [, why] = /^sandbox-exec: (.*)/.exec(errors) ?? [];
      return (
        why && `The command was not run, since its sandbox could not be set up: ${why.replace(/\.$/, '')}.`
      );
    },
    close: () => undefined,
  };
}

/** What programs need before they begin. Everything else is refused, the network and the services of the desktop too. */
const always = [
  '(version 1)',
  '(deny default)',
  '(allow process-exec process-fork)',
  '(allow signal process-info* (target same-sandbox))',
  '(allow sysctl-read)',
  '(allow file-read-metadata)',
  '(allow file-read* (literal "/") (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom"))',
  '(allow file-write-data file-ioctl (literal "/dev/null") (literal "/dev/zero"))',
  '(allow file-read* file-write-data (subpath "/dev/fd"))',
  '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.logger"))',
  '(allow ipc-posix-sem)',
];

/** Returns the profile. Of two rules for a path, the later one counts, so the places come from the outermost to the innermost. */
export const profileOf = (view: readonly Place[], port?: number): string =>
  [
    ...always,
    ...(port === undefined ? [] : [`(allow network-outbound (remote ip "localhost:${port}"))`]),
    ...view.flatMap(rulesFor),
  ].join('\n');

function rulesFor(place: Place): string[] {
  const path = quoted(place.path);
  switch (place.kind) {
    case 'link':
      return [`(allow file-read* (literal ${path}))`];
    case 'read':
      return [`(allow file-read* (subpath ${path}))`, `(deny file-write* (subpath ${path}))`];
    case 'write':
      return [
        ...writable(quoted(place.from ?? place.path), place.path),
        // Only for the working folder itself: its rules hold for everything in it.
        ...(place.from === undefined && !place.isInWork ? namesRefusedIn(place.path) : []),
        ...(place.isHeld ? [`(deny file-write-unlink (literal ${path}))`] : []),
      ];
    default:
      return [`(deny file-read* file-write* (subpath ${path}))`];
  }
}

const writable = (path: string, place: string): string[] => [
  `(allow file-read* file-write* (subpath ${path}))`,
  ...(basename(place) === '.git' ? repositoryRules(place) : []),
];

/** Sources in one rule. */
const inRule = 50;

/** There is no layer on macOS, so what others obey is not written at all, by its name, in large or small letters. */
function namesRefusedIn(folder: string): string[] {
  const sources = obeyedSources(writtenByTools).map(anyCase);
  const start = `^${anyCase(folder.replace(/[\\^$.|?*+()[\]{}"]/g, '\\$&'))}/(.*/)?`;
  return Array.from({ length: Math.ceil(sources.length / inRule) }, (_none, at) => {
    const names = sources.slice(at * inRule, (at + 1) * inRule).join('|');
    return `(deny file-write* (regex #"${start}(${names})(/.*)?$"))`;
  });
}

const anyCase = (source: string): string =>
  source.replace(/\[\^[^\]]*\]|\[[^\]]*\]|[a-z]/gi, part => {
    if (part.startsWith('[^')) return part;
    const letters = part.replace(/[[\]]/g, '');
    return `[${letters.toLowerCase()}${letters.toUpperCase()}]`;
  });

/** A repository stays where it is, and what makes Git start programs is not made in it either. */
const repositoryRules = (folder: string): string[] => [
  `(deny file-write-unlink (literal ${quoted(folder)}))`,
  ...['config', 'config.worktree', 'hooks', 'commondir'].map(
    name => `(deny file-write* (subpath ${quoted(join(folder, name))}))`,
  ),
];

const quoted = (path: string): string => `"${path.replace(/["\\]/g, '\\$&')}"`;
