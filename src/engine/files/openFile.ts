/** Opens a file or a folder at its real path, so that it cannot be swapped meanwhile. */

import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  realpathSync,
} from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { describeFileError, errorCode, notRegular, PathProblem } from './paths.ts';

// Without O_NONBLOCK, opening a pipe would wait for its writer forever.
const readFlags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** In bytes. A smaller file is read and written on this thread: a call to another one would take longer. */
export const smallFile = 256 * 1024;

/** Opens the regular file at the real path `path` for reading. The caller closes it. Throws PathProblem. */
export async function openRegularFile(path: string): Promise<{ handle: FileHandle; size: number }> {
  const handle = await openUnmoved(path, readFlags);
  try {
    // The facts about an open file need no disk, so a call to another thread would only take longer.
    return { handle, size: regularSize(handle.fd, path) };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/**
 * Returns the first bytes of the regular file at the real path `path`, at most `most`, and its size. For files that a model reads one by
 * one: a call to another thread takes longer than the read, but a loop over many files would block this one. Throws PathProblem.
 */
export function readRegularFile(path: string, most: number): { bytes: Buffer; size: number } {
  let fd: number | undefined;
  try {
    fd = openSync(path, readFlags | (constants.O_NOFOLLOW ?? 0));
    if (!isStillAt(fd, path)) throw movedMeanwhile(path);
    const size = regularSize(fd, path);
    // One byte more than the file's size. A read that does not fill it has reached the end, without a second read.
    const buffer = Buffer.allocUnsafe(Math.min(most, size + 1));
    let filled = 0;
    for (let isWhole = false; !isWhole && filled < buffer.length; ) {
      const wanted = buffer.length - filled;
      const count = readSync(fd, buffer, filled, wanted, filled);
      filled += count;
      isWhole = count < wanted;
    }
    return { bytes: buffer.subarray(0, filled), size };
  } catch (error) {
    throw asPathProblem(error, path);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** Returns all bytes of the regular file at the real path `path`; those of a small one were read on this thread. Throws PathProblem. */
export async function readWholeFile(path: string): Promise<Buffer> {
  const { bytes } = readRegularFile(path, smallFile + 1);
  if (bytes.length <= smallFile) return bytes;
  const { handle } = await openRegularFile(path);
  return handle.readFile().finally(() => handle.close());
}

/** Returns the size of the open file. Throws PathProblem if it is not a regular one. */
function regularSize(fd: number, path: string): number {
  const stats = fstatSync(fd);
  if (stats.isFile()) return stats.size;
  if (stats.isDirectory())
    throw new PathProblem('unusable', `${path} is a folder. List it with list_directory.`);
  throw notRegular(path);
}

/** A folder that is open until it is closed. */
export interface OpenFolder {
  fd: number;
  /** Its path, whatever is at its old path by now. */
  anchor: string;
  close(): void;
}

/**
 * Opens the folder at the real path `path`. Names below `anchor` are looked up in this very folder, even if its path leads
 * elsewhere by then. Only Linux can do that. The caller closes the folder. Throws PathProblem.
 */
export function openFolder(path: string): OpenFolder {
  const flags = constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | (constants.O_NOFOLLOW ?? 0);
  let fd: number | undefined;
  try {
    fd = openSync(path, flags);
    if (!isStillAt(fd, path)) throw movedMeanwhile(path);
  } catch (error) {
    if (fd !== undefined) closeSync(fd);
    throw asPathProblem(error, path);
  }
  const opened = fd;
  const anchor = process.platform === 'linux' ? `/proc/self/fd/${opened}` : path;
  return { fd: opened, anchor, close: () => closeSync(opened) };
}

async function openUnmoved(path: string, flags: number): Promise<FileHandle> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(path, flags | (constants.O_NOFOLLOW ?? 0));
    if (isStillAt(handle.fd, path)) return handle;
    throw movedMeanwhile(path);
  } catch (error) {
    await handle?.close();
    throw asPathProblem(error, path);
  }
}

const movedMeanwhile = (path: string): PathProblem =>
  new PathProblem('unusable', `${path} was moved while it was being opened. Nothing was done; try again.`);

/** Returns what to say of an error of the file system. */
function asPathProblem(error: unknown, path: string): PathProblem {
  if (error instanceof PathProblem) return error;
  return new PathProblem(
    'unusable',
    errorCode(error) === 'ELOOP'
      ? `${path} became a link while it was being opened. Nothing was done.`
      : describeFileError(error, path),
  );
}

/** Whether the open file is still at `path`. Between the check of a path and its opening, a parent can be swapped for a link. */
function isStillAt(fd: number, path: string): boolean {
  if (process.platform === 'linux') {
    const place = readlinkSync(`/proc/self/fd/${fd}`);
    // A file that was meanwhile replaced by a newer one of the same name is still the requested one.
    return place === path || place === `${path} (deleted)`;
  }
  const opened = fstatSync(fd, { bigint: true });
  const named = lstatSync(path, { bigint: true });
  return realpathSync.native(path) === path && opened.ino === named.ino && opened.dev === named.dev;
}
