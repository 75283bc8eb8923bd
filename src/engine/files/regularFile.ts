/**
 * Reads files whose content somebody else may choose. What lies behind a path can be a link to a pipe that nobody writes into, or to a
 * device without an end: only a regular file is read, and no more of it than fits.
 */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import { open } from 'node:fs/promises';

/** In bytes. No file that is read as a whole is longer. */
const mostUsual = 512 * 1024 * 1024;

// Without O_NONBLOCK, opening a pipe would wait for its writer forever.
const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/**
 * Returns the whole file. Throws the error of the file system. Throws an Error with a sentence if it is not a regular file or is
 * larger than `mostBytes`.
 */
export function readRegularFile(path: string | URL, mostBytes = mostUsual): Buffer {
  const fd = openSync(path, flags);
  try {
    check(fstatSync(fd), mostBytes);
    return readOpenFile(fd, mostBytes);
  } finally {
    closeSync(fd);
  }
}

/** Returns the whole file as UTF-8. Throws the errors of `readRegularFile`. */
export const readText = (path: string | URL, mostBytes?: number): string =>
  readRegularFile(path, mostBytes).toString('utf8');

/** Resolves with the whole file. Rejects with the errors of `readRegularFile`. */
export async function loadRegularFile(path: string, mostBytes = mostUsual): Promise<Buffer> {
  const handle = await open(path, flags);
  try {
    const stats = await handle.stat();
    check(stats, mostBytes);
    // The size of a file under /proc is 0, and another one may grow.
    return stats.size === 0 ? readOpenFile(handle.fd, mostBytes) : await handle.readFile();
  } finally {
    await handle.close();
  }
}

/** Resolves with the whole file as UTF-8. Rejects with the errors of `readRegularFile`. */
export const loadText = async (path: string, mostBytes?: number): Promise<string> =>
  (await loadRegularFile(path, mostBytes)).toString('utf8');

/** In bytes. Most files whose size the system does not say are shorter, and Node takes so few from what it has. */
const firstPiece = 4000;

/** Returns all that is left of an open file, whatever its kind. Throws an Error with a sentence once it is more than `mostBytes`. */
export function readOpenFile(fd: number, mostBytes = mostUsual): Buffer {
  const pieces: Buffer[] = [];
  let [read, filled] = [0, 0];
  let piece = Buffer.allocUnsafe(Math.min((fstatSync(fd).size || firstPiece) + 1, mostBytes + 1));
  for (;;) {
    const count = readSync(fd, piece, filled, piece.length - filled, null);
    if (count === 0) {
      const last = piece.subarray(0, filled);
      return pieces.length === 0 ? last : Buffer.concat([...pieces, last]);
    }
    filled += count;
    read += count;
    if (read > mostBytes) throw tooLarge(`more than ${mostBytes}`, mostBytes);
    if (filled < piece.length) continue;
    pieces.push(piece);
    filled = 0;
    piece = Buffer.allocUnsafe(Math.min(Math.max(read, 65_536), 16 * 1024 * 1024, mostBytes + 1 - read));
  }
}

/** Returns what a person has named, as UTF-8: a file, a pipe that a shell has made, or an open one such as standard input. */
export function readGiven(file: string | number): string {
  if (typeof file === 'number') return readOpenFile(file).toString('utf8');
  const fd = openSync(file, constants.O_RDONLY);
  try {
    return readOpenFile(fd).toString('utf8');
  } finally {
    closeSync(fd);
  }
}

function check(stats: Stats, mostBytes: number): void {
  if (stats.isDirectory()) throw Object.assign(new Error('It is a folder, not a file.'), { code: 'EISDIR' });
  if (!stats.isFile()) throw new Error('It is a pipe, a socket or a device, not a file.');
  if (stats.size > mostBytes) throw tooLarge(stats.size, mostBytes);
}

const tooLarge = (size: number | string, mostBytes: number): Error =>
  new Error(`It has ${size} bytes; the maximum is ${mostBytes}.`);
