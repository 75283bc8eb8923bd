/** Restores files exactly as they were before a run, but only those that are still as the run left them. */

import { randomUUID } from 'node:crypto';
import { constants, lstatSync, renameSync, type Stats, unlinkSync } from 'node:fs';
import { open, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { removeLeftTemporaries, writeNew } from '../files/atomicWrite.ts';
import { temporaryPrefix } from '../files/globPattern.ts';
import { describeFileError, isInside, openFolder, PathProblem, resolvePath } from '../files/paths.ts';
import { bytesPath, hashOf, type OldFile, type WriteLine } from './changeFile.ts';

/** All writes of a run to one file. */
export interface FileHistory {
  /** Absolute and real path. */
  path: string;
  /** The file before the first write. Null if there was no file. */
  before: OldFile | null;
  /** Content that the run left there, one entry per write. */
  left: readonly WriteLine['after'][];
  /** Whether something else changed the file between two writes of the run. */
  isMixed: boolean;
  /** The topmost folders that were created for it. */
  made: readonly string[];
}

/**
 * State of a file that is to be undone. `ready`: as the run left it. `as_before`: nothing to do. The others prevent undoing:
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

/** Returns the state of a file, from its current content and the old content in `folder`. Changes nothing. */
export async function stateOf(file: FileHistory, folder: string): Promise<FileState> {
  const { before, left } = file;
  let seen: { stats: Stats; sha256: string } | 'none' | 'other';
  try {
    seen = await look(file.path, [...left, ...(before ? [before] : [])]);
  } catch (error) {
    return error instanceof PathProblem ? 'replaced' : 'unreachable';
  }
  if (seen === 'other') return 'replaced';
  if (seen === 'none') return before ? 'deleted' : 'as_before';
  if (before?.sha256 === seen.sha256) return 'as_before';
  if (!left.some(({ sha256 }) => sha256 === seen.sha256) || file.isMixed) return 'edited';
  return before && !(await oldBytes(before, folder)) ? 'not_kept' : 'ready';
}

/** Looks at the file without following any link on the way. The hash is empty if the size already rules out all of `known`. */
async function look(
  path: string,
  known: readonly { size: number }[],
): Promise<{ stats: Stats; sha256: string } | 'none' | 'other'> {
  if ((await resolvePath(path, dirname(path), dirname(path))) !== path) return 'other';
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (!stats) return 'none';
  if (!stats.isFile()) return 'other';
  const mayBeKnown = known.some(({ size }) => size === stats.size);
  return { stats, sha256: mayBeKnown ? hashOf(await readPlain(path)) : '' };
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

async function readPlain(path: string): Promise<Buffer> {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
  const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    if (!(await handle.stat()).isFile()) throw new PathProblem('special', `${path} is not a regular file.`);
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

/**
 * Restores the files. All of them are first written beside their places. Only then does each replace its file in one step, if
 * that file is still as it was found. Throws PathProblem before anything has been changed.
 */
export async function bringBack(files: readonly FileHistory[], folder: string): Promise<Undone> {
  const prepared: Prepared[] = [];
  const undone: Undone = { restored: [], removed: [], folders: [] };
  try {
    for (const file of files) prepared.push(await prepare(file, folder));
    for (const one of prepared) {
      try {
        await place(one);
      } catch (error) {
        undone.problem =
          error instanceof PathProblem ? error.message : describeFileError(error, one.file.path);
        break;
      }
      (one.file.before ? undone.restored : undone.removed).push(one.file.path);
    }
  } finally {
    for (const { file, temporary } of prepared) {
      if (temporary) await rm(join(dirname(file.path), temporary), { force: true }).catch(() => undefined);
    }
  }
  const gone = files.filter(({ path }) => undone.removed.includes(path));
  undone.folders = await removeFolders(gone);
  return undone;
}

interface Prepared {
  file: FileHistory;
  /** Name of a file beside it that contains the old bytes. */
  temporary?: string;
}

async function prepare(file: FileHistory, folder: string): Promise<Prepared> {
  const { path, before } = file;
  if (!before) return { file };
  const bytes = await oldBytes(before, folder);
  if (!bytes) throw new PathProblem('unusable', `The old content of ${path} is not stored.`);
  const temporary = `${temporaryPrefix}${randomUUID()}.tmp`;
  const { handle, anchor } = await openFolder(dirname(path));
  try {
    const now = lstatSync(join(anchor, basename(path)));
    await writeNew(join(anchor, temporary), bytes, { mode: modeFor(before, now) });
    await removeLeftTemporaries(dirname(path), temporaryPrefix, anchor);
  } catch (error) {
    await rm(join(anchor, temporary), { force: true }).catch(() => undefined);
    throw error instanceof PathProblem ? error : new PathProblem('unusable', describeFileError(error, path));
  } finally {
    await handle.close();
  }
  return { file, temporary };
}

/**
 * Returns the mode for the restored file. A write keeps the permissions but not the bits above them, such as set-user-id, so
 * those are restored. A mode that was changed since is kept.
 */
function modeFor(before: OldFile, now: Stats): number {
  const mode = now.mode & 0o7777;
  return mode === (before.mode & 0o777) ? before.mode & 0o7777 : mode;
}

async function place({ file, temporary }: Prepared): Promise<void> {
  const { handle, anchor } = await openFolder(dirname(file.path));
  const target = join(anchor, basename(file.path));
  try {
    const found = lstatSync(target, { throwIfNoEntry: false });
    const isOurs = found?.isFile() && file.left.some(({ size }) => size === found.size);
    const sha256 = isOurs ? hashOf(await readPlain(target)) : undefined;
    if (!found || !file.left.some(left => left.sha256 === sha256)) throw changedMeanwhile(file.path);
    // From here on, nothing runs in between.
    const now = lstatSync(target);
    if (now.ino !== found.ino || now.mtimeMs !== found.mtimeMs || now.size !== found.size)
      throw changedMeanwhile(file.path);
    if (temporary) renameSync(join(anchor, temporary), target);
    else unlinkSync(target);
  } finally {
    await handle.close();
  }
}

const changedMeanwhile = (path: string): PathProblem =>
  new PathProblem('unusable', `${path} was changed while the run was being undone and was not restored.`);

/** Removes the folders that are empty. Folders that contain something else stay, and so do those above them. */
async function removeFolders(files: readonly FileHistory[]): Promise<string[]> {
  const folders = new Set<string>();
  for (const { path, made } of files) {
    for (const top of made) {
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
