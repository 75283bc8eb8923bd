/**
 * Looks at the names in a working folder: which files, links and folders there are. A second look reads only the folders whose names
 * have changed since.
 */
import { readdirSync, type Stats } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { grouped } from '@telos/protocol/text';
import { takingTurns } from '../cancellation.ts';
import { temporaryPrefix } from '../files/globPattern.ts';
import { isReadable, statsAt } from '../files/paths.ts';
import { obeyedAt } from '../files/sensitiveNames.ts';
import { maxKeptFile } from './changeFile.ts';

export interface Entry {
  /** `unseen` is there, but nothing else is known of it. */
  kind: 'file' | 'link' | 'folder' | 'special' | 'unseen';
  /** The twelve bits that `chmod` takes. */
  mode: number;
  size: number;
  changedAt: number;
  ino: number;
}

interface FolderNames {
  mode: number;
  /** Identity and time of the last change, which no program can set. */
  stamp: string;
  /** Whether a change right after the look could have the same time. */
  isFresh: boolean;
  entries: Map<string, Entry>;
  /** Names of the folders in it, and of what Git has there. */
  inner: readonly string[];
  /** Whether only names that others run or obey were looked at. */
  isPart: boolean;
  /** How many names there are, looked at or not. */
  count: number;
}

export interface FolderView {
  /** By path below the working folder, with `/`. The folder itself has the empty path. */
  folders: ReadonlyMap<string, FolderNames>;
  /** Each `.git`: a folder, or a file or link that leads to one. */
  repositories: readonly string[];
  /** What is not kept, with the reason in a few words. */
  leftOut: Map<string, string>;
  /** Size of all files that are kept. In bytes. */
  size: number;
  /** Whether there are too many names, so that only those were looked at that others run or obey. */
  isPart: boolean;
}

/** Maximum size of all files of a folder that are kept. In bytes. */
const maxKeptFolder = 1024 ** 3;
/** Maximum number of names that are all looked at. To keep more would take longer than most commands. */
const mostNames = 200_000;
/** Maximum number of names among which those are looked for that others run or obey. */
const mostNamesInPart = 1_000_000;
/** Maximum number of names in a folder that was looked at before: what a command has made must not keep anyone from seeing what else it has made. */
const mostNamesAgain = 5_000_000;
/** Maximum number of names in a folder that a program fills, and could fill again. */
const mostFilled = 20_000;
/** In milliseconds. Some file systems have times of two seconds. */
const freshFor = 2500;

const filledFolder =
  /^(?:node_modules|\.venv|venv|\.tox|\.nox|site-packages|target|\.gradle|\.next|\.nuxt|\.cache|\.turbo|__pycache__|\.pnpm-store|vendor|\.terraform|Pods|DerivedData)$/;
const ownTemporary = new RegExp(
  `^${temporaryPrefix.replace('.', '\\.')}[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\\.tmp$`,
);

/** The folder cannot be looked at. The message says why, in words that follow a colon. */
export class UnseenFolder extends Error {
  /** Whether the next look would fail as well, after a long time. */
  readonly isLasting: boolean;

  constructor(message: string, isLasting = false) {
    super(message);
    this.isLasting = isLasting;
  }
}

/** Whether a name is one that some file system takes for `.git`. */
export const isGitName = (name: string): boolean => name.toLowerCase() === '.git';

export const childPath = (folder: string, name: string): string =>
  folder === '' ? name : `${folder}/${name}`;

interface Look {
  root: string;
  device: number;
  before: FolderView | undefined;
  /** The same, also where each file is looked at again. */
  signal: AbortSignal | undefined;
  folders: Map<string, FolderNames>;
  repositories: string[];
  leftOut: Map<string, string>;
  /** Files that the last look did not see, or not like this. */
  news: { path: string; size: number }[];
  names: number;
  isPart: boolean;
}

/**
 * Looks at the folder `root`, a real path. Of too many names, only those are looked at that others run or obey. `before` is what the last
 * look saw. Throws UnseenFolder for a folder with far too many names, and the abort reason.
 */
export async function lookAt(
  root: string,
  { before, signal }: { before?: FolderView | undefined; signal?: AbortSignal | undefined },
): Promise<FolderView> {
  const own = statsAt(root);
  if (!own?.isDirectory()) throw new UnseenFolder('the folder does not exist');
  const look: Look = {
    root,
    device: own.dev,
    before,
    signal,
    names: 0,
    isPart: before?.isPart ?? false,
    folders: new Map(),
    repositories: [],
    leftOut: new Map(),
    news: [],
  };
  const isWhole = await walk('', look, before || look.isPart ? Number.POSITIVE_INFINITY : mostNames);
  if (!isWhole) {
    look.isPart = true;
    look.leftOut.clear();
    await walk('', look);
  }
  const { folders, repositories, leftOut, isPart } = look;
  if (isPart) leftOut.set('', `it has more than ${grouped(mostNames)} files`);
  for (const path of before?.leftOut.keys() ?? []) {
    const folder = dirname(path) === '.' ? '' : dirname(path);
    const isSame = folders.has(folder) && folders.get(folder) === before?.folders.get(folder);
    if (isSame && !folders.has(path)) keepLeftOut(path, look);
  }
  return { folders, repositories, leftOut, size: withinLimit(look), isPart };
}

/** Walks the folder and all below it. Returns false if it has more names than `mostIn`; then nothing of it is in the view. */
async function walk(top: string, look: Look, mostIn = Number.POSITIVE_INFINITY): Promise<boolean> {
  const names = look.names;
  const [gits, files] = [look.repositories.length, look.news.length];
  const seen: string[] = [];
  const open = [top];
  const turn = takingTurns(look.signal);
  const isFilled = top !== '';
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    await turn();
    const folder = namesIn(path, look, look.isPart);
    if (!folder) continue;
    look.folders.set(path, folder);
    seen.push(path);
    look.names += folder.count;
    const most = look.before ? mostNamesAgain : mostNamesInPart;
    if (look.names > most) throw new UnseenFolder(`it has more than ${grouped(most)} files`, !look.before);
    if (look.names - names > mostIn) {
      for (const each of seen) look.folders.delete(each);
      look.repositories.length = gits;
      look.news.length = files;
      look.names = names;
      return false;
    }
    for (const name of folder.inner) {
      const below = childPath(path, name);
      if (isGitName(name)) look.repositories.push(below);
      else if (isFilled || !filledFolder.test(name)) open.push(below);
      else if (isStillFull(below, folder, look) || !(await walk(below, look, mostFilled)))
        leaveOutFull(below, look);
    }
  }
  return true;
}

/** Folders at the top of a filled one whose programs are started by their names. */
const programFolders = ['.bin', 'bin'];

/** Leaves out a folder but for the names at its top and its programs. */
function leaveOutFull(path: string, look: Look): void {
  look.leftOut.set(path, tooFull);
  for (const below of [path, ...programFolders.map(name => childPath(path, name))]) {
    const folder = namesIn(below, look, true);
    if (!folder) continue;
    look.folders.set(below, folder);
    if (below === path)
      look.repositories.push(...folder.inner.filter(isGitName).map(name => childPath(path, name)));
  }
}

const tooFull = `more than ${grouped(mostFilled)} files`;

/** Whether it is the folder that was found too full before. To count its files again would take long. */
const isStillFull = (path: string, { entries }: FolderNames, { before }: Look): boolean =>
  before?.leftOut.get(path) === tooFull && entryIn(before, path)?.ino === entries.get(basename(path))?.ino;

/** Returns what the view has at a path. */
export function entryIn(view: FolderView, path: string): Entry | undefined {
  const end = path.lastIndexOf('/');
  return view.folders.get(path.slice(0, Math.max(end, 0)))?.entries.get(path.slice(end + 1));
}

const isObeyed = (root: string, path: string): boolean =>
  isGitName(basename(path)) || obeyedAt(join(root, path), path) !== undefined;

/** Whether the view says that nothing was at the path: the folder that would hold it was looked at, or was not there either. */
export function wasAbsent(view: FolderView, path: string): boolean {
  for (let at = path; ; at = at.slice(0, at.lastIndexOf('/'))) {
    const folder = view.folders.get(at.slice(0, Math.max(at.lastIndexOf('/'), 0)));
    if (folder) {
      const entry = folder.entries.get(at.slice(at.lastIndexOf('/') + 1));
      if (entry) return at !== path && entry.kind !== 'folder' && entry.kind !== 'unseen';
      return !folder.isPart || isObeyed('/', at);
    }
    if (!at.includes('/')) return false;
  }
}

/** Returns the names in a folder. Returns undefined, and leaves the folder out, if it cannot be read. */
function namesIn(path: string, look: Look, isPart = false): FolderNames | undefined {
  const place = join(look.root, path);
  try {
    const stats = statsAt(place);
    if (!stats?.isDirectory()) return undefined;
    if (stats.dev !== look.device) {
      look.leftOut.set(path, 'another file system');
      return undefined;
    }
    const stamp = `${stats.ino} ${stats.ctimeMs} ${stats.mtimeMs}`;
    const known = look.before?.folders.get(path);
    if (known?.stamp === stamp && known.isPart === isPart && !known.isFresh) return known;
    const lookedAt = Date.now();
    const entries = new Map<string, Entry>();
    const names = readdirSync(place);
    const inside = isPart ? foldersAmong(place) : new Set<string>();
    const isLeft = (name: string): boolean =>
      ownTemporary.test(name) || (isPart && !inside.has(name) && !isObeyed(look.root, childPath(path, name)));
    for (const name of names) {
      const entry = isLeft(name) ? undefined : entryAt(join(place, name));
      if (!entry) continue;
      entries.set(name, entry);
      const was = known?.entries.get(name);
      if (entry.kind === 'file' && !(was?.ino === entry.ino && was.changedAt === entry.changedAt))
        checkFile(childPath(path, name), entry, look);
      else keepLeftOut(childPath(path, name), look);
    }
    const inner = [...entries].flatMap(([name, { kind }]) =>
      kind === 'folder' || isGitName(name) ? [name] : [],
    );
    const isFresh = stats.ctimeMs > lookedAt - freshFor;
    return {
      mode: stats.mode & 0o7777,
      stamp,
      isFresh,
      entries,
      inner,
      isPart,
      count: names.length,
    };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    look.leftOut.set(path, unreadable);
    return undefined;
  }
}

const foldersAmong = (place: string): ReadonlySet<string> =>
  new Set(
    readdirSync(place, { withFileTypes: true })
      .filter(entry => entry.isDirectory())
      .map(({ name }) => name),
  );

const unreadable = 'it cannot be read';

/** Returns undefined for a name that nothing has, such as one that is not UTF-8. */
export function entryAt(place: string): Entry | undefined {
  let stats: Stats | undefined;
  try {
    stats = statsAt(place);
  } catch {
    return { kind: 'unseen', mode: 0, size: 0, changedAt: 0, ino: 0 };
  }
  if (!stats) return undefined;
  const { size, ino, ctimeMs } = stats;
  return { kind: kindOf(stats), mode: stats.mode & 0o7777, size, changedAt: ctimeMs, ino };
}

function kindOf(stats: Stats): Entry['kind'] {
  if (stats.isFile()) return 'file';
  if (stats.isSymbolicLink()) return 'link';
  return stats.isDirectory() ? 'folder' : 'special';
}

function checkFile(path: string, { mode, size }: Entry, look: Look): void {
  if (size > maxKeptFile) look.leftOut.set(path, 'too large');
  else if ((mode & 0o444) !== 0o444 && !isReadable(join(look.root, path))) look.leftOut.set(path, unreadable);
  else look.news.push({ path, size });
}

/** What was left out for its size or its rights, and has not changed, is left out again. */
function keepLeftOut(path: string, look: Look): void {
  const why = look.before?.leftOut.get(path);
  if (why !== undefined) look.leftOut.set(path, why);
}

/** Leaves out the largest of the new files if all together would be too large. Returns the size of what is kept. */
function withinLimit({ news, before, leftOut, folders }: Look): number {
  const added = news.reduce((sum, file) => sum + file.size, 0);
  let size = before?.size ?? 0;
  if (size + added <= maxKeptFolder) return size + added;
  const isNew = new Set(news.map(({ path }) => path));
  size = 0;
  for (const [folder, { entries }] of folders)
    for (const [name, entry] of entries) {
      const path = childPath(folder, name);
      if (entry.kind === 'file' && !leftOut.has(path) && !isNew.has(path)) size += entry.size;
    }
  for (const file of news.sort((one, other) => one.size - other.size)) {
    if (size + file.size > maxKeptFolder) leftOut.set(file.path, 'the folder is too large');
    else size += file.size;
  }
  return size;
}
