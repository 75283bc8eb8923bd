/** Reads files that a stranger may have laid: a pipe would never begin, a device never end. */
import { readFileSync, statSync } from 'node:fs';

/** Far more than anybody writes by hand. */
const handwrittenBytes = 4 * 1024 * 1024;

/** The text of a file of settings, without a byte order mark. Throws what `readRegularFile` throws. */
export const readSettings = (path: string): string =>
  readRegularFile(path, handwrittenBytes)
    .toString('utf8')
    .replace(/^\uFEFF/, '');

/** The whole file. Throws what the file system says, and Error with a sentence for what is no file, and for one of more than `mostBytes`. */
export function readRegularFile(path: string, mostBytes: number): Buffer {
  const stats = statSync(path);
  if (stats.isDirectory()) throw new Error('It is a folder, not a file.');
  if (!stats.isFile()) throw new Error('It is a pipe, a socket or a device, not a file.');
  if (stats.size > mostBytes)
    throw new Error(`It has ${stats.size} bytes, and at most ${mostBytes} are read.`);
  return readFileSync(path);
}
