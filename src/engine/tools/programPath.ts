/**
 * Says which program a name means: the user's, never one that a run could have put there. So a PATH is used without the folders that lie in a
 * folder of work, and without the programs that lead into one.
 */
import { accessSync, constants, readdirSync, readlinkSync, statSync } from 'node:fs';
import { basename, delimiter, dirname, isAbsolute, join, parse, sep } from 'node:path';
import { folded } from '../files/sensitiveNames.ts';
import type { ToolContext } from './tool.ts';

/** Where runs write; all absolute, and may be links. */
export type ProgramPlaces = Pick<ToolContext, 'env'> &
  Partial<Pick<ToolContext, 'workingDir' | 'packDir' | 'skillDir' | 'workFolders'>>;

/** A folder of the PATH, or a program in one, that is not used, since runs can change what is in `place`. */
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

/** The PATH without what runs can change. An empty or relative folder would mean the one of the command, and is left out as well. */
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

/** Absolute path of the program that `name` means; undefined where there is none. `endings` are those of programs on Windows. */
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

/** What Windows takes for a program, by the end of its name. */
export const programEndings = (env: Readonly<Record<string, string>>): string[] =>
  (env['PATHEXT'] || '.COM;.EXE;.BAT;.CMD').toLowerCase().split(';').filter(Boolean);

/** Windows minds no case in the names of variables. */
export function pathIn(env: Readonly<Record<string, string>>): string | undefined {
  const name = onWindows ? Object.keys(env).find(each => each.toUpperCase() === 'PATH') : 'PATH';
  return name === undefined ? undefined : env[name];
}

/** The environment with `path` for its PATH. Without any folder it is one in which nothing is found: an empty one means the current folder. */
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

/** Programs of the folders that are links into a folder of work. Windows has hardly any. */
export function linksIntoWork(folders: readonly string[], context: ProgramPlaces): LeftOut[] {
  if (onWindows) return [];
  const places = placesOf(context);
  return folders.flatMap(folder =>
    linksIn(folder).flatMap(({ name, way }) => {
      const place = placeOn(way, places);
      return place === undefined ? [] : [{ path: join(folder, name), place }];
    }),
  );
}

/** Why a program of one of `names` is not used, each in a sentence. */
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

/** Each as it is written and as it really is. A folder that holds the whole disk says nothing: then no program would be left. */
function placesOf({ workingDir, packDir, skillDir, workFolders = [] }: ProgramPlaces): Place[] {
  const written = [workingDir, packDir, skillDir, ...workFolders].filter(folder => folder !== undefined);
  const all = new Set(written.flatMap(folder => [folder, wayTo(folder).at(-1) ?? folder]));
  return [...all]
    .filter(folder => dirname(folder) !== folder)
    .map(path => ({ path, start: `${folded(path)}/` }));
}

/** The place that a way leads into or through. */
function placeOn(way: readonly string[], places: readonly Place[]): string | undefined {
  const starts = way.map(each => `${folded(each)}/`);
  return places.find(({ start }) => starts.some(each => each.startsWith(start)))?.path;
}

/**
 * The project whose own programs lie in the folder. npm puts them on the PATH, and who has worked in the project is not always known. What
 * package managers keep for the user lies in hidden folders.
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

/** Everything that the path leads over, links and folders: last what it really is, as far as it exists. */
function wayTo(path: string): string[] {
  const { root } = parse(path);
  const way: string[] = [path];
  let rest = path.slice(root.length).split(sep).filter(Boolean);
  let at = root;
  for (let links = 0; rest.length > 0; ) {
    const [part = '', ...others] = rest;
    rest = others;
    if (part === '.' || part === '..') {
      at = part === '.' ? at : dirname(at);
      continue;
    }
    const next = join(at, part);
    way.push(next);
    const target = linkTarget(next);
    if (target === undefined || ++links > mostLinks) {
      at = next;
      continue;
    }
    const start = parse(target).root;
    if (isAbsolute(target)) at = start;
    rest = [...target.slice(start.length).split(/[\\/]/).filter(Boolean), ...rest];
  }
  way.push(at);
  return way;
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

interface ProgramLink {
  name: string;
  way: readonly string[];
}

/** By folder, as long as it has not changed: a folder of the system has thousands of names. */
const knownLinks = new Map<string, { stamp: string; links: readonly ProgramLink[] }>();

function linksIn(folder: string): readonly ProgramLink[] {
  try {
    const { ino, mtimeMs } = statSync(folder);
    const stamp = `${ino} ${mtimeMs}`;
    const known = knownLinks.get(folder);
    if (known?.stamp === stamp) return known.links;
    const entries = readdirSync(folder, { withFileTypes: true }).filter(entry => entry.isSymbolicLink());
    const links = entries.map(({ name }) => ({ name, way: wayTo(join(folder, name)) }));
    knownLinks.set(folder, { stamp, links });
    return links;
  } catch {
    return [];
  }
}
