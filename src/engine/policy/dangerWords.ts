/** Knows by the words of one command whether it publishes, formats, raises rights, runs a download, or narrows what it deletes. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Danger } from '@telos/protocol/run';
import { behindCarriers, isOpen, programName } from './carriedCommands.ts';
import type { ReadWord } from './commandReach.ts';
import programs from './programs.json' with { type: 'json' };

/** By program: the words after it. The list is empty if the program does nothing else; an empty word is the program alone. */
type Verbs = Readonly<Record<string, readonly string[]>>;
const { formats, formatFlags, downloads } = programs.danger;
const flagsThatFormat: Readonly<Record<string, string>> = formatFlags;

export const shells = /^(?:ba|z|da|k|mk|a|fi|c|tc)?sh$/;
export const deleters = /^(?:rm|srm|shred|unlink|rmdir|rd|del|erase|ri|remove-item|trash|trash-put|rimraf)$/;
const formatters =
  /^(?:mkfs(?:\..+)?|mke2fs|mkswap|newfs\w*|wipefs|blkdiscard|fdisk|sfdisk|parted|sgdisk|diskpart|format|cryptsetup)$/;
const raising =
  /^(?:sudo|sudoedit|doas|su|pkexec|gsudo|runas|run0|runuser|gosu|su-exec|setuidgid|s6-setuidgid|chpst|dzdo|pfexec|newgrp)$/;
/** Flags of other programs that name a user. */
const asUser = /^--(?:re?uid|euid|re?gid|user|userspec|chuid|setuid)\b/;

/** Returns the words that publish, such as `npm publish`; undefined for a command that does not, or only tries. */
export const publishedBy = (name: string, texts: readonly string[]): string | undefined =>
  verbOf(programs.publish, name, texts) ??
  (/^(?:docker|podman|nerdctl)$/.test(name) && texts.includes('build') && texts.includes('--push')
    ? `${name} build --push`
    : undefined);

/** Returns true for a command that makes a new file system or destroys one, and does not only list. */
export function isFormatting(name: string, texts: readonly string[]): boolean {
  if (formatters.test(name)) return !texts.some(word => /^(?:-l|--list|-V|--version|--help)$/.test(word));
  const flag = Object.hasOwn(flagsThatFormat, name) ? flagsThatFormat[name] : undefined;
  if (flag !== undefined) return texts.some(word => new RegExp(flag).test(word));
  return verbOf(formats, name, texts) !== undefined;
}

/** Returns true for a command that runs with the rights of another user. A service of one's own manager does not. */
export function raisesRights(name: string, texts: readonly string[]): boolean {
  if (raising.test(name)) return true;
  if (name === 'systemd-run') return !texts.includes('--user');
  if (name === 'osascript') return texts.some(word => /with administrator privileges/i.test(word));
  return (
    /^(?:setpriv|capsh|chroot|nsenter|start-stop-daemon)$/.test(name) && texts.some(word => asUser.test(word))
  );
}

/**
 * Returns true for a command that runs what it fetches for this. `npx` of what is installed here is daily work, so it stays calm; so do
 * commands that only install, which run nothing by name. A launcher alone counts, so that a rule that names it has meant it.
 */
export function runsFetched(name: string, texts: readonly string[], folders: readonly string[]): boolean {
  if (texts.some(word => /^(?:--no|--no-install|--offline|--help|-h|--version)$/.test(word))) return false;
  const isSubcommand = /^(?:npm|bun)$/.test(name) && /^(?:exec|x)$/.test(texts[0] ?? '');
  if (!isSubcommand && !/^(?:npx|bunx)$/.test(name)) return verbOf(downloads, name, texts) !== undefined;
  const wanted = packageOf(isSubcommand ? texts.slice(1) : texts);
  return wanted === undefined || !folders.some(folder => isInstalled(wanted, folder));
}

/** Returns the package that `npx` looks for; empty for a line of what is installed. */
function packageOf(texts: readonly string[]): string | undefined {
  const at = texts.findIndex(word => /^(?:-p|--package)$/.test(word));
  const named = at < 0 ? texts.find(word => word.startsWith('--package=')) : texts[at + 1];
  if (named !== undefined) return named.replace('--package=', '');
  return texts.some(word => /^(?:-c|--call)\b/.test(word)) ? '' : texts.find(word => !word.startsWith('-'));
}

/** Looks for it as `npx` does: in the folder and in those above. A version can be a newer one. */
function isInstalled(wanted: string, folder: string): boolean {
  if (wanted === '' || /^\.{0,2}\//.test(wanted)) return true;
  if (isOpen(wanted) || isOpen(folder) || !/^(?:@[\w.-]+\/)?[\w.-]+$/.test(wanted)) return false;
  for (let at = folder; ; at = dirname(at)) {
    const places = [join(at, 'node_modules/.bin', wanted), join(at, 'node_modules', wanted)];
    if (places.some(place => existsSync(place))) return true;
    if (dirname(at) === at) return false;
  }
}

function verbOf(verbs: Verbs, name: string, texts: readonly string[]): string | undefined {
  const words = Object.hasOwn(verbs, name) ? verbs[name] : undefined;
  const wanted = words && new RegExp(`^(?:${words.map(one => (one ? `${one}\\b` : '$')).join('|')})`);
  if (
    !wanted ||
    texts.some(word => /^(?:--dry-run|--help|-h|--snapshot|--skip-publish)(?:=true)?$/.test(word))
  )
    return undefined;
  // Before the command of cargo, `+nightly` is a flag too.
  const own = texts.filter(word => !/^[-+]/.test(word));
  const found = wanted.exec(own.join(' '));
  // A flag with a value may be before the command.
  const later = own.slice(1).find(word => words.length > 0 && wanted.test(word) && texts[0]?.startsWith('-'));
  return found ? [name, found[0]].filter(Boolean).join(' ') : later && `${name} ${later}`;
}

/**
 * Returns true if `find` selects few of the things in a place, in each of its alternatives: by a name with at least a letter, by being
 * empty or large, or by an age of days. What is old, or is someone's, is nearly all of a home folder.
 */
export function isNarrowFind(texts: readonly string[], home: string): boolean {
  const begins = texts.flatMap((word, at) => (/^(?:-o|-or|,)$/.test(word) ? [at + 1] : []));
  const parts = [0, ...begins].map((from, at) => texts.slice(from, begins[at]));
  return parts.every(part =>
    part.some((word, at) => !isNegated(part[at - 1]) && isNarrowTest(word, part[at + 1] ?? '', home)),
  );
}

const isNegated = (word = ''): boolean => /^(?:!|-not)$/.test(word);

function isNarrowTest(test: string, value: string, home: string): boolean {
  if (/^-(?:empty|inum|samefile)$/.test(test)) return true;
  if (/^-(?:[amc]time|[amc]min)$/.test(test)) return /^-?\d{1,2}$/.test(value);
  if (test === '-size') return /^(?:0|\+\d+[MG])$/.test(value);
  if (!/^-(?:i?name|i?path|i?wholename|i?regex)$/.test(test)) return false;
  return /[^\W]/.test(value.replace(home, '').replace(/\[[^\]]*\]/g, ''));
}

/** Returns true if `chmod` takes rights from the owner, or `chown` gives everything to another. */
export function takesRights(name: string, texts: readonly string[]): boolean {
  const [given = ''] = texts.filter(word => !/^-\w*R|^--/.test(word));
  if (name === 'chown') return /^(?:root|0|nobody|65534)(?::|$)/.test(given);
  if (/^\d+$/.test(given)) return given.padStart(3, '0').at(-3) !== '7';
  return name === 'chmod' && /(?:^|,)(?:[ugo]*[ua]\w*)?(?:-[rwxXst]*[rwx]|=(?![rwxX]{3}))/.test(given);
}

/** Returns what a command makes like another place, deleting what is only there; undefined for one that deletes nothing. */
export function mirroredPlace<Word>(
  name: string,
  texts: readonly string[],
  words: readonly Word[],
): Word | undefined {
  if (texts.some(word => /^(?:-\w*n\w*|--dry-run|\/[lL])$/.test(word))) return undefined;
  const places = words.filter((_, at) => {
    const isValue =
      /^(?:-\w*[efBTM]|--(?:rsh|filter|exclude|include|exclude-from|include-from|files-from|max-delete))$/;
    const isFlag = name === 'robocopy' ? /^\/[a-z]+(?::|$)/i : /^-/;
    return !isFlag.test(texts[at] ?? '') && !isValue.test(texts[at - 1] ?? '');
  });
  if (name === 'rsync' && texts.some(word => /^--del(?:ete\S*)?$/.test(word))) return places.at(-1);
  if (name === 'robocopy' && texts.some(word => /^\/(?:mir|purge)$/i.test(word))) return places[1];
  if (name !== 'rclone') return undefined;
  return /^(?:sync|purge|delete)$/.test(texts[0] ?? '') ? places.at(-1) : undefined;
}

/** Flags of find and fd behind which a program is. */
export const acts = /^(?:-exec|-execdir|-ok|-okdir|-x|-X|--exec)/;

/** Returns true if `find` or `fd` deletes, also by a program that it runs or by a shell that is given each name. */
export function deletesFound(texts: readonly string[]): boolean {
  if (texts.includes('-delete')) return true;
  return texts.some((word, at) => {
    if (!acts.test(word)) return false;
    const behind = behindCarriers(texts.slice(at + 1).map(text => ({ written: text, values: [text] })));
    return behind.some(([first, ...rest]) => {
      const name = programName(first?.values[0]);
      return (
        deleters.test(name) ||
        (shells.test(name) &&
          rest.some(({ written }) => /\b(?:rm|shred|unlink)\b.*(?:\$|\{\})/s.test(written)))
      );
    });
  });
}

/** Returns the programs that are ended, if the command does not name each one; undefined for any other command. */
export function endedBy(name: string, operands: readonly ReadWord[]): Danger | undefined {
  const texts = operands.map(({ written }) => written);
  const named = texts.filter(word => !/^[-/]/.test(word));
  const isByName =
    /^(?:killall5?|pkill|skill|stop-process)$/.test(name) ||
    (name === 'taskkill' && texts.some(word => /^[-/]im$/i.test(word))) ||
    (name === 'fuser' && texts.some(word => /^-\w*k/.test(word)));
  if (isByName) return { kind: 'kills', values: [named.at(-1) ?? name] };
  if (name !== 'kill' || texts.some(word => /^-[lL]$/.test(word))) return undefined;
  // To xargs, the numbers come from another program. -1 is every process.
  const isChosen = operands.some(({ values }) => values.some(isOpen));
  const isEach = texts.slice(1).includes('-1') || named.length === 0;
  return isChosen || isEach ? { kind: 'kills-chosen', values: [] } : undefined;
}
