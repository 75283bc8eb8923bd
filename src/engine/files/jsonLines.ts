/** Reads and adds JSON Lines. A line that was cut by a crash, edited by hand or written by a later version is left out and counted. */
import { closeSync, constants, fstatSync, readSync, writeSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeOwnFolders, openOwn } from './atomicWrite.ts';

/** Returns what `read` makes of the JSON of a line; undefined if the line is not JSON, or not what `read` accepts. */
export function jsonLine<Value>(
  line: string,
  read: (value: unknown) => Value | undefined,
): Value | undefined {
  try {
    return read(JSON.parse(line));
  } catch {
    return undefined;
  }
}

/** Returns the lines that `parse` accepts, in their order, and the number of other lines that are not empty. */
export function readLines<Value>(
  text: string,
  parse: (line: string) => Value | undefined,
): { values: Value[]; skipped: number } {
  const lines = text.split('\n').filter(line => line.trim() !== '');
  const values = lines.flatMap(line => parse(line) ?? []);
  return { values, skipped: lines.length - values.length };
}

/** Returns the text up to the end of its last complete line. The rest of an incomplete one may still be written. */
export const completeLines = (bytes: Buffer): string => bytes.toString('utf8', 0, completeLength(bytes));

const completeLength = (bytes: Buffer): number => bytes.lastIndexOf(0x0a) + 1;

/**
 * Returns the complete lines of a file from a position to `end`, of at most `most` bytes, and the number of their bytes. Of a line that is
 * longer, the text is left out. With `withRest`, a last line without its end is one of them. Throws the error of the file system.
 */
export async function linesFrom(
  file: string,
  position: number,
  end: number,
  most = Number.POSITIVE_INFINITY,
  withRest = false,
): Promise<{ text: string; read: number }> {
  const handle = await open(file);
  try {
    const whole = Buffer.alloc(Math.max(0, Math.min(end - position, most)));
    const { bytesRead } = await handle.read(whole, 0, whole.length, position);
    const bytes = whole.subarray(0, bytesRead);
    if (withRest && position + bytesRead === end) return { text: bytes.toString('utf8'), read: bytesRead };
    const read = completeLength(bytes);
    return { text: completeLines(bytes), read: read === 0 && bytesRead === most ? bytesRead : read };
  } finally {
    await handle.close();
  }
}

/**
 * Adds one line, or several with a newline between them, with one write. Starts a new line first if the file ends with half a line.
 * `create` is `O_CREAT` if the file may be new. Throws the errors of `openOwn` and of the file system.
 */
export function appendLine(file: string, text: string, create = 0): void {
  const handle = openOwn(file, constants.O_RDWR | constants.O_APPEND | create);
  try {
    const stats = fstatSync(handle);
    if (!stats.isFile()) throw new Error('it is not a regular file');
    const { size } = stats;
    const last = Buffer.alloc(1);
    const broken = size > 0 && readSync(handle, last, 0, 1, size - 1) === 1 && last[0] !== 0x0a;
    const line = Buffer.from(`${broken ? '\n' : ''}${text}\n`);
    const written = writeSync(handle, line);
    if (written < line.length) throw new Error(`only ${written} of ${line.length} bytes were written`);
  } finally {
    closeSync(handle);
  }
}

/** Adds a line to a file in a folder of Telos's own. Makes both if they are missing. Throws the errors of `makeOwnFolders` and `appendLine`. */
export function appendOwnLine(file: string, text: string): void {
  makeOwnFolders(dirname(file));
  appendLine(file, text, constants.O_CREAT);
}
