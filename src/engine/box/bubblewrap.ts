/**
 * Writes a view of the disk as arguments of bubblewrap, with the files that it opens for them. Bubblewrap is called directly: beside
 * it, the library `@anthropic-ai/sandbox-runtime` made a command take 2.5 times as much longer (3.4 times a bare one, this box twice),
 * has one configuration for a whole process, and shows all of the disk but what is named.
 */

import { randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  existsSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  rmSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { rowOf } from '../files/liveProcess.ts';
import { errorCode } from '../files/paths.ts';
import { readRegularFile, readText } from '../files/regularFile.ts';
import type { CommandStart, EnclosedCommand } from '../tools/tool.ts';
import { type BoxFinding, isolation, ownIds, ownNetwork } from './findBox.ts';
import type { Entry } from './keptSpaces.ts';
import { launched } from './kernelCalls.ts';
import { optionsFor, placesOver, type RootBase } from './rootBase.ts';
import { filterFor } from './systemCalls.ts';
import type { Place } from './view.ts';

export type Bubblewrap = Extract<BoxFinding, { kind: 'bubblewrap' }>;

/** In bytes, what a command may put into folders that are in memory. */
const memoryFolders = String(512 * 1024 * 1024);

/** The first descriptor behind the three that each process has. */
const firstInput = 3;

/**
 * Parts of `/proc` that change the whole machine. The kernel asks for no right there but the number of the user: if that is 0, no
 * namespace changes it. Bubblewrap itself covers those that hinder its own start.
 */
const changesMachine =
  process.getuid?.() === 0 ? ['/proc/sys', '/proc/acpi', '/proc/scsi', '/proc/dynamic_debug'] : [];

const systemOptions: readonly string[] = [
  ...['--proc', '/proc'],
  ...['/proc/keys', '/proc/sysrq-trigger']
    .filter(existsSync)
    .flatMap(path => ['--ro-bind', '/dev/null', path]),
  ...changesMachine.filter(existsSync).flatMap(path => ['--ro-bind', path, path]),
  ...['--dev', '/dev', '--size', memoryFolders, '--tmpfs', '/dev/shm', '--remount-ro', '/dev'],
];

/** Opens nothing, and fails at a link: what a command swaps for one while the box is made leads nowhere. */
const asPlace = 0o10000000 | (constants.O_NOFOLLOW ?? 0);

/**
 * Returns how `start` runs in the sandbox. `mask` is a file that cannot be read: it stands for each one that is hidden. `enter` leads it
 * into kept namespaces; unless one of them is the network, it has its own. `base` lies ready in that of the mounts.
 * Throws TelosError `config` if a folder of the view cannot be used.
 */
export function inBubblewrap(
  { program, features }: Bubblewrap,
  view: readonly Place[],
  mask: string,
  start: CommandStart,
  enter?: Entry & { network: boolean; base?: RootBase | undefined },
): Omit<EnclosedCommand, 'end'> & { close(): void } {
  const status = openStatus(dirname(mask));
  const files = [status];
  const base = enter?.base;
  const over = base && placesOver(base, view);
  const options = (over ?? view).flatMap(place => {
    if (!features.bindsDescriptors || place.kind === 'link' || !isChangeable(place))
      return optionsFor(place, mask);
    const file = openPlace(place.from ?? place.path, files);
    files.push(file);
    return [
      place.kind === 'read' ? '--ro-bind-fd' : '--bind-fd',
      String(firstInput + 1 + files.length),
      place.path,
    ];
  });
  const all = [
    ...isolation,
    ...(enter?.network ? [] : [ownNetwork]),
    ...(enter ? ownIds : []),
    ...(features.disablesUserNamespaces ? ['--disable-userns'] : []),
    ...(base && over ? ['--bind', base.root, '/'] : []),
    ...options,
    ...systemOptions,
    ...['--remount-ro', '/', '--chdir', start.folder, '--seccomp', String(firstInput + 1)],
    ...['--json-status-fd', String(firstInput + 2)],
  ];
  const words = [program, '--args', String(firstInput), '--', start.program, ...start.args];
  const enters = enter && launched(enter.perl, enter.spaces, firstInput + 2 + files.length, words);
  return {
    ...(enters?.() ?? { program, args: words.slice(1) }),
    ...(enters && { limited: enters }),
    env: start.env,
    folder: start.folder,
    inputs: [
      Buffer.from(all.map(option => `${option}\0`).join('')),
      filterFor(process.arch)!,
      ...(enters ? files : inPlaceOfInherited(files)),
    ],
    isOver: () => {
      const said = textOf(status);
      const [, pid] = /"child-pid": (\d+)/.exec(said) ?? [];
      return pid !== undefined && said.includes('"exit-code"') && (!rowOf(Number(pid)) || isAlone(pid));
    },
    failureIn: errors => {
      // Anybody can write what bubblewrap writes. That a command has ended is said where no command can write.
      if (textOf(status).includes('"exit-code"')) return undefined;
      const [, why] = /^(?:bwrap: |box: |(?=the program '))(.*)/.exec(errors) ?? [];
      return (
        why && `The command was not run, since its sandbox could not be set up: ${why.replace(/\.$/, '')}.`
      );
    },
    close: () => files.splice(0).forEach(file => void closeSync(file)),
  };
}

/**
 * Whether the first process of a box is ending and has nobody left: it stays until all others have ended, and then the kernel takes the
 * mounts of the box apart, which nobody need wait for.
 */
function isAlone(pid: string): boolean {
  try {
    const stat = readText(`/proc/${pid}/stat`);
    const flags = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[6]);
    return (flags & isEnding) !== 0 && readText(`/proc/${pid}/task/${pid}/children`).trim() === '';
  } catch {
    return false;
  }
}

/** The flag of a process that ends. */
const isEnding = 4;

/** Opens a file without a name, in which bubblewrap says how far it came. */
function openStatus(folder: string): number {
  const path = join(folder, `status-${randomUUID()}`);
  const file = openSync(path, 'wx+', 0o600);
  rmSync(path);
  return file;
}

function textOf(file: number): string {
  const bytes = Buffer.alloc(1000);
  return bytes.toString('utf8', 0, readSync(file, bytes, 0, bytes.length, 0));
}

let highest: number | undefined;

/**
 * Returns the files, followed by nothing readable for each further descriptor that this process hands down without knowing. Through
 * an open folder among them a command would see the disk outside of the box.
 */
function inPlaceOfInherited(files: number[]): number[] {
  highest ??= highestInherited();
  const missing = highest - (firstInput + 1) - files.length;
  if (missing <= 0) return files;
  const nothing = openSync('/dev/null', constants.O_RDONLY);
  const all = [...files, ...Array.from({ length: missing }, () => nothing)];
  files.push(nothing);
  return all;
}

/** Returns the highest descriptor that a program started here would inherit. */
function highestInherited(): number {
  const all = readdirSync('/proc/self/fd').map(Number);
  return Math.max(2, ...all.filter(isInherited));
}

function isInherited(descriptor: number): boolean {
  try {
    const [, flags = ''] =
      /^flags:\s*(\d+)/m.exec(readRegularFile(`/proc/self/fdinfo/${descriptor}`).toString('latin1')) ?? [];
    return (Number.parseInt(flags, 8) & closedAtStart) === 0;
  } catch {
    return false;
  }
}

/** The flag of a descriptor that no other program gets. */
const closedAtStart = 0o2000000;

/** Whether another command could put a link where the place is, while the box is made. */
const isChangeable = (place: Place): place is Extract<Place, { kind: 'read' | 'write' }> =>
  (place.kind === 'read' || place.kind === 'write') && place.isInWork === true;

function openPlace(path: string, files: readonly number[]): number {
  let file: number | undefined;
  try {
    file = openSync(path, asPlace);
    if (readlinkSync(`/proc/self/fd/${file}`) === path) return file;
    throw Object.assign(new Error('moved'), { code: 'ENOENT' });
  } catch (error) {
    for (const each of [...files, ...(file === undefined ? [] : [file])]) closeSync(each);
    if (errorCode(error) === undefined) throw error;
    throw new TelosError('config', [
      sentence('{0} was moved while the sandbox was being set up.', path),
      sentence('Nothing was run; try again.'),
    ]);
  }
}
