/**
 * Finds the program that a name means: the user's, never one that a run could have put there. The PATH is used without
 * folders that are inside a work folder, and without programs that lead into one.
 */

import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, dirname, isAbsolute, join, parse, sep } from 'node:path';
import { shellWord } from '../files/plainText.ts';
import { folded } from '../files/sensitiveNames.ts';
import type { ToolContext } from './tool.ts';

/** Folders in which runs write. All are absolute and may be links. */
export type ProgramPlaces = Pick<ToolContext, 'env'> &
  Partial<Pick<ToolContext, 'workingDir' | 'packDir' | 'skillDir' | 'workFolders'>>;

/** A folder of the PATH, or a program in one, that is not used because runs can change `place`. */
export interface LeftOut {
  path: string;
  place: string;
}

export interface TrustedPath {
  /** Absolute, as the PATH has them. */
  folders: readonly string[];
  leftOut: readonly LeftOut[];
}

const onWindows = process.platform === 'win32';

/**
 * Returns the PATH without what runs can change. Empty and relative entries would mean the command's folder, and are left
 * out too.
 */
export function trustedPath(context: ProgramPlaces): TrustedPath {
  const places = placesOf(context);
  const folders: string[] = [];
  const leftOut: LeftOut[] = [];
  for (const folder of new Set(pathIn(context.env)?.split(delimiter).filter(isAbsolute))) {
    const way = wayTo(folder);
    const place = placeOn(way, places) ?? projectOf(way);
    if (place === undefined) folders.push(folder);
    else leftOut.push({ path: folder, place });
  }
  return { folders, leftOut };
}

/**
 * Returns the absolute path of the program that `name` means, or undefined if there is none. `endings` are those of
 * programs on Windows.
 */
export function findProgram(
  name: string,
  context: ProgramPlaces,
  endings: readonly string[] = ['.exe'],
): string | undefined {
  const places = placesOf(context);
  const names = onWindows ? [...endings.map(ending => name + ending), name] : [name];
  for (const folder of trustedPath(context).folders)
    for (const file of names.map(each => join(folder, each)))
      if (isProgram(file) && placeOn(wayTo(file), places) === undefined) return file;
  return undefined;
}

/** Returns the person's git, or undefined if there is none. */
export function findGit(places: ProgramPlaces): string | undefined {
  const program = findProgram('git', places);
  // Without the developer tools, this one only opens a window that offers them.
  const isStub = process.platform === 'darwin' && program === '/usr/bin/git';
  const tools = ['/Library/Developer/CommandLineTools', '/Applications/Xcode.app'];
  return isStub && !tools.some(path => existsSync(path)) ? undefined : program;
}

/** Returns true if a program is in a folder in which runs write, or leads into one. */
export const isOfRuns = (file: string, context: ProgramPlaces): boolean =>
  placeOn(wayTo(file), placesOf(context)) !== undefined;

/** Returns the file endings that Windows treats as programs. */
export const programEndings = (env: Readonly<Record<string, string>>): string[] =>
  (env['PATHEXT'] || '.COM;.EXE;.BAT;.CMD').toLowerCase().split(';').filter(Boolean);

/** Returns the PATH. Windows ignores case in the names of variables. */
export function pathIn(env: Readonly<Record<string, string>>): string | undefined {
  const name = onWindows ? Object.keys(env).find(each => each.toUpperCase() === 'PATH') : 'PATH';
  return name === undefined ? undefined : env[name];
}

/**
 * Returns the environment with `folders` as its PATH. Without folders it gets a PATH in which nothing is found, since an
 * empty one means the current folder.
 */
export function withPath(
  env: Readonly<Record<string, string>>,
  folders: readonly string[],
): Record<string, string> {
  const others = Object.entries(env).filter(([name]) => (onWindows ? name.toUpperCase() : name) !== 'PATH');
  const PATH = folders.join(delimiter) || (onWindows ? '' : '/dev/null');
  return {
    ...Object.fromEntries(others),
    PATH,
    ...(onWindows && { NoDefaultCurrentDirectoryInExePath: '1' }),
  };
}

/** Returns the programs in the folders that are links into a work folder. Windows has hardly any. */
function linksIntoWork(folders: readonly string[], context: ProgramPlaces): LeftOut[] {
  if (onWindows) return [];
  const places = placesOf(context);
  const key = places.map(({ start }) => start).join('\0');
  const paths: KnownPaths = { links: new Map(), targets: new Map(), starts: new Map() };
  return folders.flatMap(folder => {
    const links = linksIn(folder, paths);
    const byPlaces = intoPlaces.get(links) ?? new Map<string, LeftOut[]>();
    intoPlaces.set(links, byPlaces);
    const known = byPlaces.get(key);
    if (known) return known;
    const found = links.flatMap(({ name, starts }) => {
      const place = placeAmong(starts, places);
      return place === undefined ? [] : [{ path: join(folder, name), place }];
    });
    if (byPlaces.size >= mostPlaces) byPlaces.clear();
    byPlaces.set(key, found);
    return found;
  });
}

/** What the links of a folder lead to, by the places that were asked about: every command of a run asks about the same. */
const intoPlaces = new WeakMap<readonly ProgramLink[], Map<string, LeftOut[]>>();
/** Runs with places of their own at the same time, whose links are remembered. */
const mostPlaces = 16;

/** Returns one sentence for each program of `names` that is not used, with the reason. */
export function sentencesAbout(names: readonly string[], { leftOut }: TrustedPath): string[] {
  return names.flatMap(name =>
    leftOut.flatMap(({ path, place }) => {
      const file = join(path, name);
      return isProgram(file)
        ? [
            `${name} in ${path} was not used, because runs can change what is in ${place}. Run it by its path: ${file}`,
          ]
        : [];
    }),
  );
}

export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

interface Place {
  path: string;
  /** With a separator at its end. */
  start: string;
}

/** Returns each folder as written and as resolved. A root folder is dropped, since it would exclude every program. */
function placesOf({ workingDir, packDir, skillDir, workFolders = [] }: ProgramPlaces): Place[] {
  const written = [workingDir, packDir, skillDir, ...workFolders].filter(folder => folder !== undefined);
  const all = new Set(written.flatMap(folder => [folder, wayTo(folder).at(-1) ?? folder]));
  return [...all].filter(folder => dirname(folder) !== folder).map(path => ({ path, start: startOf(path) }));
}

/** Returns the place that a path leads into or through. */
const placeOn = (way: readonly string[], places: readonly Place[]): string | undefined =>
  placeAmong(way.map(startOf), places);

const placeAmong = (starts: readonly string[], places: readonly Place[]): string | undefined =>
  places.find(({ start }) => starts.some(each => each.startsWith(start)))?.path;

/** Returns the form of a path that is compared with the start of a place. */
const startOf = (path: string): string => `${folded(path)}/`;

/**
 * Returns the project whose own programs the folder contains. npm puts them on the PATH, and it is not always known who has
 * worked in the project. Package managers keep the user's programs in hidden folders, so those do not count.
 */
function projectOf(way: readonly string[]): string | undefined {
  for (const folder of way) {
    const project = dirname(dirname(folder));
    const isOfProject = basename(folder) === '.bin' && basename(dirname(folder)) === 'node_modules';
    if (isOfProject && !project.split(sep).some(part => part.startsWith('.'))) return project;
  }
  return undefined;
}

const mostLinks = 40;

/**
 * Returns every link and folder on the path. The last entry is the resolved path, as far as it exists. `seen` is what was found before, for
 * many paths that lead through the same folders.
 */
function wayTo(path: string, seen?: Map<string, string | undefined>): string[] {
  const { root } = parse(path);
  const way: string[] = [path];
  // The next part is the last one.
  const rest = path.slice(root.length).split(sep).reverse();
  let at = root;
  for (let links = 0; rest.length > 0; ) {
    const part = rest.pop();
    if (!part || part === '.') continue;
    if (part === '..') {
      at = dirname(at);
      continue;
    }
    const next = at.endsWith(sep) ? at + part : at + sep + part;
    way.push(next);
    const target = seen?.has(next) ? seen.get(next) : linkTarget(next);
    seen?.set(next, target);
    if (target === undefined || ++links > mostLinks) {
      at = next;
      continue;
    }
    const start = parse(target).root;
    if (isAbsolute(target)) at = start;
    rest.push(...target.slice(start.length).split(/[\\/]/).reverse());
  }
  way.push(at);
  return way;
}

function linkTarget(path: string): string | undefined {
  try {
    // To read what is not a link would throw an error, which takes far longer.
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ? targetOf(path) : undefined;
  } catch {
    return undefined;
  }
}

function targetOf(link: string): string | undefined {
  try {
    return readlinkSync(link);
  } catch {
    return undefined;
  }
}

interface ProgramLink {
  name: string;
  /** Of each link and folder on the way to the program. */
  starts: readonly string[];
}

/** Links by folder, valid while the folder is unchanged: a system folder has thousands of names. */
const knownLinks = new Map<string, { stamp: string; links: readonly ProgramLink[] }>();

function linksIn(folder: string, known: KnownPaths): readonly ProgramLink[] {
  try {
    const { dev, ino, mtimeMs } = statSync(folder);
    const stamp = `${dev} ${ino} ${mtimeMs}`;
    const before = knownLinks.get(folder);
    if (before?.stamp === stamp) return before.links;
    const names = known.links.get(stamp) ?? namesOfLinks(folder, known);
    // The same folder by another name, as /bin is on most systems.
    known.links.set(stamp, names);
    const links = names.map(name => ({ name, starts: startsOf(join(folder, name), known) }));
    knownLinks.set(folder, { stamp, links });
    return links;
  } catch {
    return [];
  }
}

/** Most links lead to another program of the folder, and its listing says which ones are links. */
function namesOfLinks(folder: string, { targets }: KnownPaths): string[] {
  const start = realpathSync.native(folder) + sep;
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = start + entry.name;
    const isLink = entry.isSymbolicLink();
    if (isLink || entry.isFile() || entry.isDirectory())
      targets.set(path, isLink ? targetOf(path) : undefined);
    return isLink ? [entry.name] : [];
  });
}

/** What one look at many folders has found of the paths that it came across. */
interface KnownPaths {
  /** The names of the links of a folder, by its stamp. */
  links: Map<string, readonly string[]>;
  targets: Map<string, string | undefined>;
  starts: Map<string, string>;
}

function startsOf(path: string, { targets, starts }: KnownPaths): string[] {
  return wayTo(path, targets).map(each => {
    const start = starts.get(each) ?? startOf(each);
    starts.set(each, start);
    return start;
  });
}

/** Number of words that are examined when a command has failed. */
const mostWords = 200;
const mostSentences = 3;

export interface CommandPrograms {
  /** The environment with the PATH that the command gets. */
  env: Record<string, string>;
  /** For a failed command: which of its programs were not used, and what to do. Undefined if there are none. */
  noteOn(command: string): string | undefined;
}

export function commandPrograms(context: ProgramPlaces): CommandPrograms {
  const { env } = context;
  const isMissing = onPosix && pathIn(env) === undefined;
  const withDefault = isMissing ? { ...env, PATH: '/usr/bin:/bin' } : env;
  const trusted = trustedPath({ ...context, env: withDefault });
  const links = linksIntoWork(trusted.folders, context);
  const front = links.length > 0 ? standIns(links, context) : undefined;
  const tainted = new Set(links.map(({ path }) => dirname(path)));
  const folders = front
    ? [front, ...trusted.folders]
    : trusted.folders.filter(folder => !tainted.has(folder));
  return {
    env: withPath(withDefault, folders),
    noteOn(command) {
      const words = new Set(
        command.split(/[\s;&|<>()'"`=]+/, mostWords).filter(word => /^[\w.+@-]+$/.test(word)),
      );
      const sentences = sentencesAbout([...words], trusted).slice(0, mostSentences);
      return sentences.length > 0 ? sentences.map(sentence => `[${sentence}]`).join('\n') : undefined;
    },
  };
}

const onPosix = process.platform !== 'win32';

let ownFolder: string | undefined;
/** Folders of stand-ins, by the scripts they contain. */
const known = new Map<string, string>();

/**
 * Returns a folder for the front of a PATH, with a stand-in program for each of the links. A stand-in runs the next program
 * of that name, or says why there is none. This keeps the rest of a folder of the user's programs in use. Returns undefined
 * if no folder can be made.
 */
function standIns(links: readonly LeftOut[], context: ProgramPlaces): string | undefined {
  const scripts = links.map(link => [basename(link.path), standIn(link, context)] as const);
  const key = JSON.stringify(scripts);
  const before = known.get(key);
  try {
    if (before !== undefined) {
      for (const [name] of scripts) accessSync(join(before, name), constants.X_OK);
      return before;
    }
    ownFolder ??= makeOwnFolder();
    const folder = join(ownFolder, String(known.size));
    mkdirSync(folder, { mode: 0o700 });
    for (const [name, script] of scripts) {
      writeFileSync(join(folder, name), script, { mode: 0o700 });
      // If nothing may be executed in this folder, a shell would continue with the next one.
      accessSync(join(folder, name), constants.X_OK);
    }
    chmodSync(folder, 0o500);
    known.set(key, folder);
    return folder;
  } catch {
    return undefined;
  }
}

function makeOwnFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'telos-programs-'));
  process.once('exit', () => {
    try {
      for (const each of known.values()) chmodSync(each, 0o700);
      rmSync(folder, { recursive: true, force: true });
    } catch {
      // The system empties its temporary folder.
    }
  });
  return folder;
}

function standIn({ path, place }: LeftOut, context: ProgramPlaces): string {
  const name = basename(path);
  const other = findProgram(name, context);
  if (other !== undefined) return `#!/bin/sh\nexec ${shellWord(other)} "$@"\n`;
  const why = `${name} in ${dirname(path)} was not used, because it leads into ${place}, which runs can change. Run it by its path: ${path}`;
  return `#!/bin/sh\necho ${shellWord(why)} >&2\nexit 127\n`;
}
