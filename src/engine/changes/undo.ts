/** Restores files exactly as they were before a run, but only those that are still as the run left them. */

import { randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  renameSync,
  type Stats,
  symlinkSync,
  unlinkSync,
} from 'node:fs';
import { open, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { removeLeftTemporaries, writeNew } from '../files/atomicWrite.ts';
import { FolderModes } from '../files/closedFolder.ts';
import { temporaryPrefix } from '../files/globPattern.ts';
import { openFolder, smallFile } from '../files/openFile.ts';
import { describeFileError, isInside, PathProblem, resolvePath, statsAt } from '../files/paths.ts';
import { placeOver, takeAttributes } from '../files/placeFile.ts';
import { readOpenFile } from '../files/regularFile.ts';
import {
  bytesPath,
  type FileHistory,
  type FolderHistory,
  hashOf,
  type LeftFile,
  type OldFile,
} from './changeFile.ts';

/**
 * State of a file that is to be undone. `ready`: as the run left it. `as_before`: nothing to do, as it is or was as before. The others prevent undoing:
 * `edited` or `deleted` since, or `replaced` by a link, a folder or another non-file. `not_kept` means that the old content is
 * missing, `unreachable` that the file cannot be read.
 */
export type FileState =
  | 'ready'
  | 'as_before'
  | 'edited'
  | 'deleted'
  | 'replaced'
  | 'not_kept'
  | 'unreachable';

/**
 * Returns the states of files, from their current content and the old content that is kept. A file in a folder for which the run has
 * left a link counts as gone, as it left it. Changes nothing.
 */
export async function statesOf(files: readonly FileHistory[]): Promise<FileState[]> {
  const states = new Map<FileHistory, FileState>();
  const links = new Set<string>();
  const sorted = [...files].sort((one, other) => one.path.length - other.path.length);
  for (const file of sorted) {
    const isBelowLink = links.size > 0 && isBelowOne(file.path, links);
    const state = await stateOf(file, isBelowLink);
    if (state === 'ready' && file.left.at(-1)?.link !== undefined) links.add(file.path);
    states.set(file, state);
  }
  return files.map(file => states.get(file) ?? 'unreachable');
}

function isBelowOne(path: string, links: ReadonlySet<string>): boolean {
  for (let above = dirname(path); dirname(above) !== above; above = dirname(above))
    if (links.has(above)) return true;
  return false;
}

async function stateOf(file: FileHistory, isBelowLink: boolean): Promise<FileState> {
  const { before, folder, left, isMixed } = file;
  if (left.every(one => isUnchanged(one, before))) return 'as_before';
  let seen: Seen;
  try {
    seen = isBelowLink ? { kind: 'none' } : await look(file.path, [...left, before]);
  } catch (error) {
    return error instanceof PathProblem ? 'replaced' : 'unreachable';
  }
  if (isAs(seen, before) && !hasOnlyMode(file, seen)) return 'as_before';
  if (!isMixed && left.some(one => isAs(seen, one)))
    return (await isRestorable(before, folder)) ? 'ready' : 'not_kept';
  if (seen.kind === 'none') return 'deleted';
  return seen.kind === 'file' ? 'edited' : 'replaced';
}

/** Whether a write left what was there, so that it has nothing to undo, whatever is there now. */
function isUnchanged(left: LeftFile | null, before: OldFile | null): boolean {
  if (left === null || before === null) return left === before;
  if (left.link !== undefined || before.link !== undefined) return left.link === before.link;
  const isSameMode = left.mode === undefined || left.mode === before.mode;
  return left.sha256 !== undefined && left.sha256 === before.sha256 && isSameMode;
}

type Seen =
  | { kind: 'file'; stats: Stats; sha256: string }
  | { kind: 'link'; stats: Stats; link: string }
  | { kind: 'none' | 'folder' | 'special' };

/** Whether this is what is described. A mode does not count. */
function isAs(seen: Seen, what: LeftFile | OldFile | null): boolean {
  if (!what) return seen.kind === 'none';
  if ('isFolder' in what) return seen.kind === 'folder';
  if (what.link !== undefined) return seen.kind === 'link' && seen.link === what.link;
  return seen.kind === 'file' && what.sha256 !== undefined && seen.sha256 === what.sha256;
}

/** Whether the run has changed the mode alone, and the file still has that one. */
function hasOnlyMode(file: FileHistory, seen: Seen): boolean {
  const { before, left } = file;
  if (seen.kind !== 'file' || !before || left.at(-1)?.sha256 !== before.sha256) return false;
  const [mode, now] = [leftMode(file), seen.stats.mode & 0o7777];
  return now !== (before.mode & 0o7777) && (mode === undefined || now === mode);
}

/**
 * Returns the mode with which the run has left the file. A command's writes tell it. A tool's keep the permissions, but not the bits above
 * them, such as set-user-id. Undefined if a tool created the file anew after it was gone.
 */
function leftMode({ before, left }: FileHistory): number | undefined {
  let mode = before ? before.mode & 0o7777 : undefined;
  for (const one of left) {
    if (one === null || one.link !== undefined || one.isFolder) mode = undefined;
    else if (one.mode !== undefined) mode = one.mode & 0o7777;
    else if (mode !== undefined) mode &= 0o777;
  }
  return mode;
}

const isRestorable = async (before: OldFile | null, folder: string): Promise<boolean> =>
  before === null || before.link !== undefined || (await oldBytes(before, folder)) !== undefined;

/** Looks without following any link. The hash is empty if the size already rules out all of `known`. */
async function look(path: string, known: readonly ({ size: number } | null)[]): Promise<Seen> {
  const parent = dirname(path);
  if ((await resolvePath(parent, parent, parent)) !== parent) return { kind: 'special' };
  return lookIn(path, known);
}

async function lookIn(place: string, known: readonly ({ size: number } | null)[]): Promise<Seen> {
  const stats = statsAt(place);
  if (!stats) return { kind: 'none' };
  if (stats.isDirectory()) return { kind: 'folder' };
  if (stats.isSymbolicLink()) return { kind: 'link', stats, link: readlinkSync(place) };
  if (!stats.isFile()) return { kind: 'special' };
  const mayBeKnown = known.some(one => one?.size === stats.size);
  return { kind: 'file', stats, sha256: mayBeKnown ? hashOf(await readPlain(place)) : '' };
}

/** Returns undefined if the bytes are missing, or are no longer those that were kept. */
export async function oldBytes({ sha256, size }: OldFile, folder: string): Promise<Buffer | undefined> {
  if (sha256 === undefined) return undefined;
  try {
    const path = bytesPath(folder, sha256);
    if (lstatSync(path).size !== size) return undefined;
    const bytes = await readPlain(path);
    return hashOf(bytes) === sha256 ? bytes : undefined;
  } catch {
    return undefined;
  }
}

/** A small file is read on this thread: of thousands, each call to another one would take longer than the file. */
async function readPlain(path: string): Promise<Buffer> {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
  const flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
  const fd = openSync(path, flags);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw new PathProblem('special', `${path} is not a regular file.`);
    if (stats.size <= smallFile) return readOpenFile(fd);
  } finally {
    closeSync(fd);
  }
  const handle = await open(path, flags);
  try {
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

export interface Undone {
  /** Files whose old content is restored. Absolute paths. */
  restored: string[];
  /** Files that the run had created and that are now removed. */
  removed: string[];
  /** Folders that the run had created, and that were empty and are now removed. */
  folders: string[];
  /** A sentence about the error that stopped the undo. Only the paths above are undone. */
  problem?: string;
}

/** From this number of files on, no one waits until the disk has each of them. */
const mostSynced = 200;

/**
 * Restores the files and folders. Old content is first written beside its place, where that folder is still there. Only then does
 * each file replace what is in its place in one step, if that is still as it was found. Throws PathProblem before anything has been
 * changed.
 */
export async function bringBack(
  files: readonly FileHistory[],
  folders: readonly FolderHistory[] = [],
): Promise<Undone> {
  const undone: Undone = { restored: [], removed: [], folders: [] };
  const [removals, others] = [files.filter(({ before }) => !before), files.filter(({ before }) => before)];
  const isSynced = others.length <= mostSynced;
  const prepared = new Map<FileHistory, string>();
  const modes = new FolderModes();
  for (const folder of closedByRun(files, folders)) modes.open(folder);
  try {
    for (const file of others) {
      const temporary = await prepare(file, isSynced);
      if (temporary !== undefined) prepared.set(file, temporary);
    }
    try {
      // What a run created can be in the way of what was there before. Longer paths are deeper.
      for (const file of removals.sort((one, other) => other.path.length - one.path.length)) {
        await take(file);
        undone.removed.push(file.path);
      }
      undone.folders = await removeFolders(removals, folders);
      await makeFolders(folders);
      for (const file of others) {
        const temporary = prepared.get(file) ?? (await prepareAnew(file, isSynced));
        prepared.set(file, temporary);
        await place(file, temporary);
        undone.restored.push(file.path);
      }
      modes.close();
      await giveModes(folders);
    } catch (error) {
      const path = (error as NodeJS.ErrnoException).path ?? 'A file';
      undone.problem = error instanceof PathProblem ? error.message : describeFileError(error, path);
    }
  } finally {
    modes.close();
    for (const [{ path }, temporary] of prepared)
      await rm(join(dirname(path), temporary), { force: true }).catch(() => undefined);
  }
  return undone;
}

/** Returns the folders around that still have the mode with which the run left them. What a person has closed stays closed. */
function closedByRun(files: readonly FileHistory[], folders: readonly FolderHistory[]): string[] {
  const left = new Map(folders.map(({ path, after }) => [path, after]));
  const around = new Set([...files, ...folders].map(({ path }) => dirname(path)));
  return [...around].filter(folder => {
    const now = left.has(folder) ? statsAt(folder) : undefined;
    return now?.isDirectory() === true && (now.mode & 0o7777) === left.get(folder);
  });
}

/** Writes the old content beside its place. Returns the name, or undefined if that folder is not there. */
async function prepare(file: FileHistory, isSynced: boolean): Promise<string | undefined> {
  const { path, before, folder } = file;
  if (!before) return undefined;
  if (!(await isRestorable(before, folder)))
    throw new PathProblem('unusable', `The old content of ${path} is not stored.`);
  const parent = dirname(path);
  const isThere = statsAt(parent)?.isDirectory() && (await resolvePath(parent, parent, parent)) === parent;
  return isThere ? writeBeside(file, isSynced) : undefined;
}

async function prepareAnew(file: FileHistory, isSynced: boolean): Promise<string> {
  await makeFolder(dirname(file.path));
  return writeBeside(file, isSynced);
}

async function writeBeside(file: FileHistory, synced: boolean): Promise<string> {
  const { path, before, folder } = file;
  const temporary = `${temporaryPrefix}${randomUUID()}.tmp`;
  const { anchor, close } = openFolder(dirname(path));
  try {
    const place = join(anchor, temporary);
    if (before?.link !== undefined) symlinkSync(before.link, place);
    else if (before) {
      const now = lstatSync(join(anchor, basename(path)), { throwIfNoEntry: false });
      const bytes = (await oldBytes(before, folder)) ?? Buffer.alloc(0);
      const mode = modeFor(file, before, now);
      await writeNew(place, bytes, { mode, synced });
      if (now?.isFile()) await takeAttributes(place, join(anchor, basename(path)), mode);
    }
    await removeLeftTemporaries(dirname(path), temporaryPrefix, anchor);
  } catch (error) {
    await rm(join(anchor, temporary), { force: true }).catch(() => undefined);
    throw error instanceof PathProblem ? error : new PathProblem('unusable', describeFileError(error, path));
  } finally {
    close();
  }
  return temporary;
}

/** Returns the mode for the restored file: the old one, unless something else has changed it since. */
function modeFor(file: FileHistory, before: OldFile, now: Stats | undefined): number {
  const [old, left] = [before.mode & 0o7777, leftMode(file)];
  if (!now?.isFile() || left === undefined) return old;
  const mode = now.mode & 0o7777;
  return mode === left ? old : mode;
}

/** Removes what the run created, if it is still that. */
async function take(file: FileHistory): Promise<void> {
  await inPlace(file, target => unlinkSync(target));
}

/** Puts the file in its place, if there still is what the run left. */
async function place(file: FileHistory, temporary: string): Promise<void> {
  await inPlace(file, (target, anchor, isThere) => {
    const ready = join(anchor, temporary);
    if (file.before?.link !== undefined) return renameSync(ready, target);
    if (isThere) return placeOver(ready, target, lstatSync(target, { throwIfNoEntry: false }));
    // Unlike a rename, it replaces nothing that has appeared there.
    linkSync(ready, target);
    return unlinkSync(ready);
  });
}

async function inPlace(
  file: FileHistory,
  act: (target: string, anchor: string, isThere: boolean) => void,
): Promise<void> {
  const { anchor, close } = openFolder(dirname(file.path));
  const target = join(anchor, basename(file.path));
  try {
    const found = await lookIn(target, file.left);
    // A folder that the run had put there is removed by now.
    const isGone = found.kind === 'none' && file.left.some(one => one === null || one.isFolder === true);
    if (!isGone && !file.left.some(one => isAs(found, one))) throw changedMeanwhile(file.path);
    // From here on, nothing runs in between.
    const now = lstatSync(target, { throwIfNoEntry: false });
    const was = 'stats' in found ? found.stats : undefined;
    if (now?.ino !== was?.ino || now?.mtimeMs !== was?.mtimeMs || now?.size !== was?.size)
      throw changedMeanwhile(file.path);
    act(target, anchor, now !== undefined);
  } finally {
    close();
  }
}

const changedMeanwhile = (path: string): PathProblem =>
  new PathProblem('unusable', `${path} was changed while the run was being undone and was not restored.`);

/** Makes the folder and those above it. Throws PathProblem, and the error of the file system. */
async function makeFolder(path: string): Promise<void> {
  if (statsAt(path)?.isDirectory()) return;
  await makeFolder(dirname(path));
  const { anchor, close } = openFolder(dirname(path));
  try {
    mkdirSync(join(anchor, basename(path)));
  } catch (error) {
    throw new PathProblem('unusable', describeFileError(error, path));
  } finally {
    close();
  }
}

/** Makes the folders that a run removed. Throws as `makeFolder`. */
async function makeFolders(folders: readonly FolderHistory[]): Promise<void> {
  for (const { path, before, after } of folders)
    if (before !== null && after === null) await makeFolder(path);
}

/** Gives the folders that a run removed or changed their old modes. What was changed since stays. */
async function giveModes(folders: readonly FolderHistory[]): Promise<void> {
  const deepestFirst = [...folders].sort((one, other) => other.path.length - one.path.length);
  for (const { path, before, after } of deepestFirst) {
    const now = statsAt(path);
    if (before === null || !now?.isDirectory()) continue;
    const mode = now.mode & 0o7777;
    if (mode === before || (after !== null && mode !== after)) continue;
    const { fd, close } = openFolder(path);
    try {
      fchmodSync(fd, before);
    } finally {
      close();
    }
  }
}

/**
 * Removes those of the folders that the run made and that are empty, and those that were made for its files. Folders that contain
 * something else stay, and so do those above them.
 */
async function removeFolders(
  files: readonly FileHistory[],
  made: readonly FolderHistory[],
): Promise<string[]> {
  const folders = new Set(made.flatMap(({ path, before }) => (before === null ? [path] : [])));
  for (const { path, made: tops } of files) {
    for (const top of tops) {
      for (let folder = dirname(path); isInside(top, folder); folder = dirname(folder)) folders.add(folder);
    }
  }
  const removed: string[] = [];
  // Longer paths are deeper.
  for (const folder of [...folders].sort((one, other) => other.length - one.length)) {
    try {
      if ((await resolvePath(folder, folder, folder)) !== folder) continue;
      await rmdir(folder);
      removed.push(folder);
    } catch {
      // Not empty, or already removed.
    }
  }
  return removed;
}
