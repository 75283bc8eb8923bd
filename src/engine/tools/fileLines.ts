/** Reads some lines of a file of any size with little memory, however long its lines are. */

import type { FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import { grouped } from '@telos/protocol/text';
import { openRegularFile } from '../files/openFile.ts';
import { describeBinary, withoutPartialStart } from '../files/plainText.ts';
import { decodeText, formNote, formOf, plainForm } from '../files/textEncoding.ts';
import { writeLimit } from './tool.ts';

/** A range of lines, counted from 1; `last` may be infinite. `fromEnd` is a number of lines at the end. */
export type LineRange = { first: number; last: number } | { fromEnd: number };

const chunkSize = 64 * 1024;
const newline = 0x0a;

interface Piece {
  bytes: Buffer;
  /** The number of its first line. Undefined if the lines before it were not counted. */
  firstLine: number | undefined;
  isCut: boolean;
}

/**
 * Reads lines of the regular file at the real path `path`. Adds a note if they have more than `limit` bytes. `size` is the
 * number of bytes that were taken from the file. `checkTime` is called before each read and may throw. Throws PathProblem.
 */
export async function readFileLines(
  path: string,
  range: LineRange,
  { limit, numbered, checkTime }: { limit: number; numbered: boolean; checkTime: () => void },
): Promise<{ text: string; size: number }> {
  const { handle, size } = await openRegularFile(path);
  try {
    const wide = await wideLines(handle, size, range, numbered);
    if (wide !== undefined) return { text: wide, size };
    const { bytes, firstLine, isCut } =
      'fromEnd' in range
        ? await lastLines(handle, size, range.fromEnd, limit, checkTime)
        : await linesBetween(handle, range.first, range.last, limit, checkTime);
    const which = 'fromEnd' in range ? 'last' : 'first';
    const note = isCut
      ? `\n[Cut: these are the ${which} ${grouped(bytes.length)} bytes of what was asked for; the file has ${grouped(size)}.]\n`
      : '';
    const shown = isCut ? withoutPartialStart(bytes) : bytes;
    const form = shown.length === 0 ? plainForm : formOf(shown);
    if (!form) return { text: describeBinary(basename(path), bytes, size) + note, size: bytes.length };
    const text = decodeText(shown, form);
    const lines = numbered ? withNumbers(text, firstLine ?? 1) : text;
    return { text: lines + note + noteLine(formNote(form)), size: bytes.length };
  } finally {
    await handle.close();
  }
}

const noteLine = (note: string | undefined): string => (note === undefined ? '' : `\n${note}\n`);

/**
 * Returns the lines of a file in UTF-16, in which no byte alone ends a line, so it is read whole. Returns undefined for any other file,
 * and for one that is too large.
 */
async function wideLines(
  handle: FileHandle,
  size: number,
  range: LineRange,
  numbered: boolean,
): Promise<string | undefined> {
  const head = Buffer.alloc(Math.min(size, 8192));
  const { bytesRead } = await handle.read(head, 0, head.length, 0);
  const form = formOf(head.subarray(0, bytesRead));
  if (!form?.encoding.startsWith('utf-16') || size > writeLimit) return undefined;
  const bytes = Buffer.alloc(size);
  const whole = await handle.read(bytes, 0, size, 0);
  const lines = decodeText(bytes.subarray(0, whole.bytesRead), form).match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const first = 'fromEnd' in range ? Math.max(0, lines.length - range.fromEnd) : range.first - 1;
  const text = lines.slice(first, 'fromEnd' in range ? lines.length : range.last).join('');
  return (numbered ? withNumbers(text, first + 1) : text) + noteLine(formNote(form));
}

async function linesBetween(
  handle: FileHandle,
  first: number,
  last: number,
  limit: number,
  checkTime: () => void,
): Promise<Piece> {
  const parts: Buffer[] = [];
  const chunk = Buffer.alloc(chunkSize);
  let taken = 0;
  let line = 1;
  for (let position = 0; line <= last; ) {
    checkTime();
    const { bytesRead } = await handle.read(chunk, 0, chunkSize, position);
    if (bytesRead === 0) break;
    position += bytesRead;
    let start = line >= first ? 0 : bytesRead;
    let end = bytesRead;
    const read = chunk.subarray(0, bytesRead);
    for (let at = read.indexOf(newline); at >= 0; at = read.indexOf(newline, at + 1)) {
      line++;
      if (line === first) start = at + 1;
      if (line > last) {
        end = at + 1;
        break;
      }
    }
    const wanted = read.subarray(start, Math.max(start, end));
    parts.push(Buffer.from(wanted.subarray(0, limit - taken)));
    taken += wanted.length;
    if (taken > limit) break;
  }
  return { bytes: Buffer.concat(parts), firstLine: first, isCut: taken > limit };
}

async function lastLines(
  handle: FileHandle,
  size: number,
  count: number,
  limit: number,
  checkTime: () => void,
): Promise<Piece> {
  checkTime();
  const begin = Math.max(0, size - limit);
  const buffer = Buffer.alloc(size - begin);
  const { bytesRead } = await handle.read(buffer, 0, buffer.length, begin);
  const bytes = buffer.subarray(0, bytesRead);
  if (count === 0) return { bytes: Buffer.alloc(0), firstLine: undefined, isCut: false };
  // The newline at the very end ends a line and does not begin one.
  let at = bytes.length - 1;
  for (let found = 0; found < count; found++) {
    at = at > 0 ? bytes.lastIndexOf(newline, at - 1) : -1;
    if (at < 0) return { bytes, firstLine: undefined, isCut: begin > 0 };
  }
  return { bytes: bytes.subarray(at + 1), firstLine: undefined, isCut: false };
}

function withNumbers(text: string, first: number): string {
  if (text === '') return '';
  const lines = text.split('\n');
  const end = lines.at(-1) === '' ? lines.pop() : undefined;
  const numbered = lines.map((line, index) => `${String(first + index).padStart(6)}\t${line}`);
  return numbered.join('\n') + (end === undefined ? '' : '\n');
}
