/**
 * Finds the names by which programs reach files of a working folder from elsewhere: `CLAUDE.md` as a link to a plain document, a
 * `.zshrc` of the home folder that leads into it, a folder of hooks or a program that Git's settings name.
 */
import { type Dirent, lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { expandPath } from '../config.ts';
import { isInside } from '../files/paths.ts';
import { obeyedAt } from '../files/sensitiveNames.ts';
import { gitSettings } from './gitSettings.ts';

/** A name that leads to a place of the working folder, or over it. Both paths are absolute. Nothing need be at the target. */
export interface LeadingName {
  name: string;
  target: string;
  /** Who obeys what is there, whatever its name. Missing if the name tells. */
  by?: string;
}

/** Where to look. `links` are links of the working folder, and `repositories` the folders of Git that count there. Absolute. */
export interface LeadingPlaces {
  root: string;
  home: string;
  links: readonly string[];
  repositories: readonly string[];
}

/** Returns the names that lead into `root`. Reads a few folders and settings, and never throws. */
export function namesLeadingInto({ root, home, links, repositories }: LeadingPlaces): LeadingName[] {
  const atHome = isInside(root, home) ? [] : linksAtHome(home);
  const plain = [...links, ...atHome].map(name => ({ name, to: name }));
  const ofGit = repositories.flatMap(each => [
    ...[join(each, 'hooks'), each].map(to => ({ name: to, to, by: 'Git' })),
    ...linksIn(join(each, 'hooks')).map(name => ({ name, to: name, by: 'Git' })),
    ...['config', 'config.worktree'].map(name => ({
      name: join(each, name),
      to: join(each, name),
      by: 'Git',
    })),
    ...['config', 'config.worktree'].flatMap(name => named(join(each, name), home, [dirname(each), root])),
  ]);
  const ofPerson = ['.gitconfig', '.config/git/config'].flatMap(at => named(join(home, at), home, [root]));
  return [...plain, ...ofGit, ...ofPerson].flatMap(({ to, ...each }) =>
    trailOf(to)
      .filter(target => isInside(root, target) && target !== root && !isOwnPlace(target, repositories))
      .map(target => ({ ...each, target })),
  );
}

/** What lies in a repository is judged as what it is, but for a sample of a hook that a hook leads to. */
const isOwnPlace = (target: string, repositories: readonly string[]): boolean =>
  repositories.some(each => isInside(each, target) && !isLink(target) && !target.endsWith('.sample'));

/** Returns who obeys a file because such a name leads to it; undefined if none does. */
export function obeyedThrough(path: string, names: readonly LeadingName[], root: string): string | undefined {
  for (const { name, target, by } of names) {
    if (!isInside(target, path)) continue;
    if (by !== undefined) return by;
    const through = join(name, relative(target, path));
    const obeyed = obeyedAt(through, isInside(root, through) ? relative(root, through) : through);
    if (obeyed) return obeyed.kind === 'agent' ? 'agents' : obeyed.by;
  }
  return undefined;
}

const mostLinks = 40;

/** Returns each link on the way of a path, and where it ends, also if nothing is there. */
function trailOf(path: string): string[] {
  const trail: string[] = [];
  let at: string = sep;
  let rest = path.split(sep).filter(Boolean);
  while (rest.length > 0) {
    const place = join(at, rest[0] ?? '');
    rest = rest.slice(1);
    const to = linkAt(place);
    if (to === undefined) {
      at = place;
      continue;
    }
    trail.push(place);
    if (trail.length > mostLinks) return trail;
    const target = isAbsolute(to) ? to : resolve(at, to);
    [at, rest] = [sep, [...target.split(sep).filter(Boolean), ...rest]];
  }
  return [...trail, at];
}

function linkAt(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch {
    return undefined;
  }
}

const isLink = (path: string): boolean => linkAt(path) !== undefined;

/** Maximum number of names of the home folder that are looked at. */
const mostAtHome = 5000;

/** Returns the links among a person's settings: in the home folder, in its hidden folders, and in those of `.config`. */
function linksAtHome(home: string): string[] {
  const found: string[] = [];
  let names = 0;
  const look = (folder: string, depth: number): void => {
    for (const entry of entriesOf(folder)) {
      if (++names > mostAtHome) return;
      const path = join(folder, entry.name);
      if (entry.isSymbolicLink()) found.push(path);
      else if (depth > 0 && entry.isDirectory() && (folder !== home || entry.name.startsWith('.')))
        look(path, folder === home && entry.name !== '.config' ? 0 : depth - 1);
    }
  };
  look(home, 2);
  return found;
}

const linksIn = (folder: string): string[] =>
  entriesOf(folder)
    .filter(entry => entry.isSymbolicLink())
    .map(({ name }) => join(folder, name));

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** Settings that name a folder of programs, a file with settings, or a program. */
const leadsOn =
  /^(?:core\.(?:hookspath|attributesfile|fsmonitor|editor|pager|sshcommand|askpass)|include(?:if\..*)?\.path|(?:filter|diff|merge|difftool|mergetool)\..*\.(?:clean|smudge|process|textconv|command|driver|cmd|path)|alias\..*|credential\..*helper|gpg\..*program|sequence\.editor)$/s;

/** Returns the paths that settings name. A path of a program may be relative to any of the folders. */
function named(
  file: string,
  home: string,
  bases: readonly string[],
): { name: string; to: string; by: string }[] {
  const settings = gitSettings(file, home);
  const trees = settings.filter(({ name }) => name === 'core.worktree');
  const all = [...bases, ...trees.map(({ value }) => resolve(dirname(file), value))];
  return settings
    .filter(({ name }) => leadsOn.test(name))
    .flatMap(setting => {
      const isInclude = setting.name.startsWith('include');
      const isPath = isInclude || /^core\.(?:hookspath|attributesfile)$/.test(setting.name);
      const words = isPath ? [setting.value] : setting.value.replace(/^!/, '').split(/[\s"';|&()]+/);
      const from = isInclude ? [dirname(setting.file)] : all;
      return words
        .filter(word => word !== '' && (isPath || word.includes('/')))
        .flatMap(word => from.map(base => resolve(base, expandPath(word, home, base))))
        .map(to => ({ name: to, to, by: 'Git' }));
    });
}
