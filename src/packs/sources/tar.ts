/** Reads tar archives, packed with gzip or not, entry by entry. What it does not know refuses the archive. */

import { createGunzip } from 'node:zlib';
import { TelosError } from '@telos/engine/errors';
import type { TreeEntry, TreeWriter } from './treeWriter.ts';

const block = 512;
/** Names and attributes of one entry. No honest one needs more. In bytes. */
const longestExtra = 64 * 1024;

/** Unpacks all of the archive. Throws TelosError `pack` for anything out of the ordinary, and the abort reason on abort. */
export async function unpackTar(bytes: Buffer, writer: TreeWriter, signal: AbortSignal): Promise<void> {
  const reader = new Bytes(bytes[0] === 0x1f && bytes[1] === 0x8b ? unzipped(bytes, writer) : [bytes]);
  try {
    let extra: Extra = {};
    for (;;) {
      signal.throwIfAborted();
      const header = await reader.take(block);
      if (header === undefined) throw writer.refused('its end', 'is missing, so something was cut off');
      if (header.every(byte => byte === 0)) return;
      extra = await readEntry(header, extra, reader, writer);
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof TelosError) throw error;
    throw writer.refused(
      'its content',
      `cannot be unpacked (${error instanceof Error ? error.message : String(error)})`,
    );
  }
}

async function* unzipped(bytes: Buffer, writer: TreeWriter): AsyncGenerator<Buffer> {
  const unzip = createGunzip();
  unzip.end(bytes);
  let size = 0;
  for await (const piece of unzip as AsyncIterable<Buffer>) {
    size += piece.length;
    writer.checkRatio(bytes.length, size, 'its content');
    yield piece;
  }
}

/** What earlier headers say of the next entry. */
interface Extra {
  path?: string;
  link?: string;
  size?: number;
}

async function readEntry(header: Buffer, extra: Extra, reader: Bytes, writer: TreeWriter): Promise<Extra> {
  checkSum(header, writer);
  const type = String.fromCharCode(header[156]!);
  const size = numberIn(header.subarray(124, 136), writer);
  const name = extra.path ?? nameIn(header);
  if (extra.size !== undefined && extra.size !== size)
    throw writer.refused(name, `has two sizes, ${size} and ${extra.size}`);
  if ('xgLK'.includes(type))
    return readExtra(type, await whole(size, reader, writer, name, longestExtra), extra, writer);
  const target = extra.link ?? textIn(header.subarray(157, 257));
  const executable = (numberIn(header.subarray(100, 108), writer) & 0o100) !== 0;
  if (type === '1') throw writer.refused(name, 'is a second name of another file');
  if ('346'.includes(type)) throw writer.refused(name, 'is a device or a pipe');
  const kind = kindOf(type, name);
  if (kind === undefined)
    throw writer.refused(name, `is an entry of the unknown type ${JSON.stringify(type)}`);
  const entry: TreeEntry = { path: name, kind, executable, target };
  if (kind !== 'file' && size !== 0) throw writer.refused(name, 'has content although it is not a file');
  const path = writer.admit(entry, size);
  // What is left out counts as well, so that it cannot go on without end.
  if (path === undefined) writer.count(size, name);
  const content = await whole(size, reader, writer, name);
  if (path !== undefined) await writer.write(path, content, executable);
  return {};
}

function kindOf(type: string, name: string): TreeEntry['kind'] | undefined {
  if (type === '2') return 'link';
  if (type === '5' || ('\x000'.includes(type) && name.endsWith('/'))) return 'folder';
  return '\x0007'.includes(type) ? 'file' : undefined;
}

async function whole(
  size: number,
  reader: Bytes,
  writer: TreeWriter,
  name: string,
  limit = size,
): Promise<Buffer> {
  if (size > limit) throw writer.refused(name, 'has attributes that are too long');
  const content = await reader.take(size);
  const rest = (block - (size % block)) % block;
  if (content === undefined || (await reader.take(rest)) === undefined)
    throw writer.refused(name, 'was cut off');
  return content;
}

function readExtra(type: string, bytes: Buffer, extra: Extra, writer: TreeWriter): Extra {
  if (type === 'L') return { ...extra, path: textIn(bytes) };
  if (type === 'K') return { ...extra, link: textIn(bytes) };
  const next: Extra = { ...extra };
  for (let at = 0; at < bytes.length; ) {
    const [, digits = ''] = /^(\d{1,6}) /.exec(bytes.toString('latin1', at, at + 8)) ?? [];
    const length = Number(digits);
    const record = bytes.toString('utf8', at + digits.length + 1, at + length - 1);
    const equals = record.indexOf('=');
    if (length <= digits.length + 1 || at + length > bytes.length || equals < 0)
      throw writer.refused('an attribute', 'cannot be read');
    const [key, value] = [record.slice(0, equals), record.slice(equals + 1)];
    if (type === 'g' && /^(?:path|linkpath|size)$/.test(key))
      throw writer.refused(value, 'is set for all entries at once');
    if (/^GNU\.sparse/.test(key)) throw writer.refused(next.path ?? 'an entry', 'is a file with holes');
    if (key === 'path') next.path = value;
    if (key === 'linkpath') next.link = value;
    if (key === 'size') next.size = Number(value);
    at += length;
  }
  return next;
}

function checkSum(header: Buffer, writer: TreeWriter): void {
  let sum = 8 * 32;
  for (let at = 0; at < block; at++) if (at < 148 || at >= 156) sum += header[at]!;
  if (sum !== numberIn(header.subarray(148, 156), writer))
    throw writer.refused('its content', 'is damaged or is not a tar archive');
}

function nameIn(header: Buffer): string {
  const name = textIn(header.subarray(0, 100));
  // Only the POSIX format has a prefix there. GNU keeps times in the same place.
  const isPosix = header.toString('latin1', 257, 263) === 'ustar\0';
  const prefix = isPosix ? textIn(header.subarray(345, 500)) : '';
  return prefix === '' ? name : `${prefix}/${name}`;
}

function textIn(field: Buffer): string {
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end < 0 ? field.length : end);
}

function numberIn(field: Buffer, writer: TreeWriter): number {
  const text = field
    .toString('latin1')
    .replace(/[\0 ]+$/, '')
    .trim();
  // Sizes above 8 GiB have another form, and no pack has such.
  if (!/^[0-7]*$/.test(text)) throw writer.refused('a number in it', 'cannot be read');
  return Number.parseInt(text || '0', 8);
}

/** Hands out pieces of a stream in the sizes that are asked for. */
class Bytes {
  readonly #pieces: AsyncIterator<Buffer> | Iterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(pieces: Iterable<Buffer> | AsyncIterable<Buffer>) {
    this.#pieces =
      Symbol.asyncIterator in pieces ? pieces[Symbol.asyncIterator]() : pieces[Symbol.iterator]();
  }

  /** Returns undefined if there are fewer bytes. */
  async take(size: number): Promise<Buffer | undefined> {
    const parts: Buffer[] = [];
    for (let missing = size; missing > 0; ) {
      if (this.#rest.length === 0) {
        const { value, done } = await this.#pieces.next();
        if (done) return undefined;
        this.#rest = value;
      }
      const part = this.#rest.subarray(0, missing);
      parts.push(part);
      this.#rest = this.#rest.subarray(part.length);
      missing -= part.length;
    }
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  }
}
