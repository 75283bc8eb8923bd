/**
 * Records folders of the user that were replaced, removed or added. A record suffices to restore the earlier state and to find
 * later edits.
 */

import { createHash } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { lstat, open, readdir, readlink } from 'node:fs/promises';
import { isAbsolute, join, resolve } from 'node:path';
import { isLink, makeOwnFolders, writeOwn } from './atomicWrite.ts';
import type { ProcessIdentity } from './liveProcess.ts';
import { readText } from './regularFile.ts';

/**
 * Contents by path below the folder, with `/`. A value is `sha256:<hex>` for a file, `sha256:<hex>+x` for an executable one,
 * `folder`, `link:<target>`, `special` or `unreadable`. An entry that is not itself a folder has the empty path.
 */
export type FolderContents = Readonly<Record<string, string>>;

/** Maximum number of names read in one folder. A longer list would not be read by anyone. */
const mostNames = 50_000;

type EntryKind = 'file' | 'folder' | 'link' | 'special';

export interface Listing {
  /** In the order of their paths. */
  entries: ReadonlyMap<string, { kind: EntryKind }>;
  /** Folders that cannot be listed. */
  unreadable: readonly string[];
  /** Whether there are more names than were read. */
  isCut: boolean;
}

/**
 * Lists the contents of `root`, which may also be a link or a file. A missing `root` gives an empty listing. A repository's
 * `.git` is one entry.
 */
export async function listFolder(root: string): Promise<Listing> {
  const entries = new Map<string, { kind: EntryKind }>();
  const unreadable: string[] = [];
  const top = await lstat(root).catch(() => undefined);
  if (top && !top.isDirectory()) entries.set('', { kind: kindOf(top) });
  const folders = top?.isDirectory() ? [''] : [];
  for (let path = folders.pop(); path !== undefined; path = folders.pop()) {
    const names = await readdir(join(root, path)).catch(() => undefined);
    if (!names) unreadable.push(path);
    for (const name of names ?? []) {
      if (entries.size >= mostNames) return { entries: sorted(entries), unreadable, isCut: true };
      const below = path ? `${path}/${name}` : name;
      // A name that is not UTF-8 cannot be looked up, but it exists.
      const stats = await lstat(join(root, below)).catch(() => undefined);
      entries.set(below, { kind: stats ? kindOf(stats) : 'special' });
      if (stats?.isDirectory() && name !== '.git') folders.push(below);
    }
  }
  return { entries: sorted(entries), unreadable, isCut: false };
}

/** Returns all contents of `root`. Returns undefined if there are too many, or if a part of them cannot be listed. */
export async function contentsOf(root: string): Promise<FolderContents | undefined> {
  const { entries, unreadable, isCut } = await listFolder(root);
  if (isCut || unreadable.length > 0) return undefined;
  const contents: [path: string, text: string][] = [];
  for (const path of entries.keys()) contents.push([path, await textOfEntry(root, path)]);
  return Object.fromEntries(contents);
}

/** Returns the value of one entry in the contents. */
async function textOfEntry(root: string, path: string): Promise<string> {
  try {
    const place = path ? join(root, path) : root;
    const stats = await lstat(place);
    if (stats.isSymbolicLink()) return `link:${await readlink(place)}`;
    if (!stats.isFile()) return stats.isDirectory() ? 'folder' : 'special';
    return fileText(await hashOfFile(place), stats.mode);
  } catch {
    return 'unreadable';
  }
}

/** Windows has no executable bit. */
export const fileText = (sha256: string, mode: number): string =>
  `sha256:${sha256}${(mode & 0o111) === 0 || process.platform === 'win32' ? '' : '+x'}`;

export interface FolderDifference {
  /** Path below the folder. A path that ends with `/` includes everything below it. */
  path: string;
  /** Change that leads from the folder to the contents. */
  change: 'added' | 'changed' | 'removed';
}

/** Returns the differences of `contents` from the current state of `root`, by path. Only files that are in both are read. */
export async function differencesTo(
  contents: FolderContents,
  root: string,
  listing: Listing,
): Promise<FolderDifference[]> {
  const found: FolderDifference[] = [];
  for (const path of listing.entries.keys()) {
    if (!Object.hasOwn(contents, path)) found.push({ path, change: 'removed' });
    else if ((await textOfEntry(root, path)) !== contents[path]) found.push({ path, change: 'changed' });
  }
  for (const path of Object.keys(contents))
    if (!listing.entries.has(path)) found.push({ path, change: 'added' });
  return found.sort((one, other) => (one.path < other.path ? -1 : 1));
}

function kindOf(stats: Stats): EntryKind {
  if (stats.isDirectory()) return 'folder';
  if (stats.isSymbolicLink()) return 'link';
  return stats.isFile() ? 'file' : 'special';
}

const sorted = <Value>(entries: Map<string, Value>): Map<string, Value> =>
  new Map([...entries].sort(([one], [other]) => (one < other ? -1 : 1)));

async function hashOfFile(path: string): Promise<string> {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
  const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const hash = createHash('sha256');
    for await (const piece of handle.createReadStream({ autoClose: false })) hash.update(piece);
    return hash.digest('hex');
  } finally {
    await handle.close();
  }
}

/** A small file that changed together with a folder. */
export interface AlongFile {
  /** Absolute path. */
  file: string;
  /** Null if there was, or is, no such file. */
  before: string | null;
  after: string | null;
  /** Name of an entry in a lock file. The texts are then those of the entry, and the rest of the file stays. */
  entry?: string;
  /** The lock file is that of ClawHub's own client. */
  isClawhub?: true;
}

export interface FolderRecord {
  format: 'telos-replaced-folder';
  version: 1;
  id: string;
  /** ISO 8601, UTC. */
  at: string;
  /** `undo`: an undo moved the folder aside although it was edited. */
  kind: 'install' | 'uninstall' | 'undo';
  agent: string;
  /** Current or former place of the folder. Absolute path. */
  target: string;
  /** Origin of the folder, in words. Missing if nothing was put there. */
  source?: string;
  /** Current place of the earlier folder, which was moved and never copied. Null if there was none. Absolute path. */
  kept: string | null;
  /** Contents that were put there. Null if nothing was, or if they are too many to compare. */
  left: FolderContents | null;
  /** Identifies the folder that was put there, as opposed to another one in its place. Null if nothing was put there. */
  identity: string | null;
  along: readonly AlongFile[];
  /** Set once the earlier state is restored. ISO 8601, UTC. */
  undoneAt?: string;
}

/** Written before a change starts and removed when it is complete. A remaining journal shows the work of a killed process. */
export interface FolderJournal {
  id: string;
  pid: number;
  owner?: Omit<ProcessIdentity, 'pid'>;
  host: string;
  at: string;
  target: string;
  /** Folder that was to be put there. Null if there was none. */
  staged: string | null;
  /** Whether `staged` is of use to nothing else. */
  isOwn: boolean;
  /** Record that this change undoes. */
  undoes?: string;
}

export const replacedFolder = (dataDir: string): string => join(dataDir, 'replaced');
export const journalFolder = (dataDir: string): string => join(dataDir, 'replacing');

const idPattern = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;
export const isFolderId = (name: string): boolean => idPattern.test(name);

export const recordFolder = (dataDir: string, id: string): string => join(replacedFolder(dataDir), id);
const recordPath = (dataDir: string, id: string): string => join(recordFolder(dataDir, id), 'record.json');

/** Throws the errors of `writeOwn`. */
export async function writeRecord(dataDir: string, record: FolderRecord): Promise<void> {
  makeOwnFolders(replacedFolder(dataDir));
  await writeOwn(recordPath(dataDir, record.id), `${JSON.stringify(record)}\n`);
}

/** Returns undefined if the record is missing or not valid, or if it lies behind a link. */
export function readRecord(dataDir: string, id: string): FolderRecord | undefined {
  const isOwn = isFolderId(id) && ![replacedFolder(dataDir), recordFolder(dataDir, id)].some(isLink);
  const value = isOwn ? readJson(recordPath(dataDir, id)) : undefined;
  const { format, version, kind, agent, at, target, kept, along } = value ?? {};
  const isRecord =
    format === 'telos-replaced-folder' &&
    version === 1 &&
    value?.['id'] === id &&
    ['install', 'uninstall', 'undo'].includes(String(kind)) &&
    typeof agent === 'string' &&
    typeof at === 'string' &&
    isPlainPath(target) &&
    (kept === null || isPlainPath(kept)) &&
    Array.isArray(along) &&
    along.every(isAlong);
  return isRecord ? (value as unknown as FolderRecord) : undefined;
}

/** Throws the errors of `writeOwn`. */
export async function writeJournal(dataDir: string, journal: FolderJournal): Promise<void> {
  await writeOwn(journalPath(dataDir, journal.id), `${JSON.stringify(journal)}\n`);
}

export function readJournal(dataDir: string, id: string): FolderJournal | undefined {
  const value = isFolderId(id) ? readJson(journalPath(dataDir, id)) : undefined;
  const isJournal =
    value?.['id'] === id &&
    typeof value['pid'] === 'number' &&
    typeof value['at'] === 'string' &&
    isPlainPath(value['target']) &&
    (value['staged'] === null || isPlainPath(value['staged']));
  return isJournal ? (value as unknown as FolderJournal) : undefined;
}

export const journalPath = (dataDir: string, id: string): string =>
  join(journalFolder(dataDir), `${id}.json`);

type Fields = Readonly<Record<string, unknown>>;

function readJson(path: string): Fields | undefined {
  if (isLink(path)) return undefined;
  try {
    const value: unknown = JSON.parse(readText(path));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Fields)
      : undefined;
  } catch {
    return undefined;
  }
}

function isAlong(value: unknown): boolean {
  const { file, before, after, entry } = (value ?? {}) as Fields;
  const isText = (text: unknown): boolean => text === null || typeof text === 'string';
  const isEntry = entry === undefined || typeof entry === 'string';
  return isPlainPath(file) && isText(before) && isText(after) && isEntry;
}

const isPlainPath = (path: unknown): path is string =>
  typeof path === 'string' && !path.includes('\0') && isAbsolute(path) && resolve(path) === path;
