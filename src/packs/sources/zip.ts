/** Reads zip archives from their central directory, and refuses one whose parts disagree with it. */

import { inflateRawSync } from 'node:zlib';
import type { TelosError } from '@telos/engine/errors';
import type { TreeEntry, TreeWriter } from './treeWriter.ts';

const signatures = { local: 0x04034b50, central: 0x02014b50, end: 0x06054b50 };
const endLength = 22;
const centralLength = 46;
const localLength = 30;

interface ZipEntry {
  path: string;
  flags: number;
  method: number;
  crc: number;
  packed: number;
  size: number;
  /** File type and permissions of Unix. 0 if the archive comes from elsewhere. */
  mode: number;
  offset: number;
}

/** Unpacks all of the archive. Throws TelosError `pack` for anything out of the ordinary, and the abort reason on abort. */
export async function unpackZip(bytes: Buffer, writer: TreeWriter, signal: AbortSignal): Promise<void> {
  const { entries, start } = readDirectory(bytes, writer);
  let last = 0;
  for (const entry of [...entries].sort((one, other) => one.offset - other.offset)) {
    if (entry.offset < last) throw writer.refused(entry.path, 'shares its bytes with another entry');
    last = checkLocal(bytes, entry, start, writer);
  }
  for (const entry of entries) {
    signal.throwIfAborted();
    const kind = kindOf(entry, writer);
    const content = kind === 'folder' ? undefined : contentOf(bytes, entry, writer);
    const target = kind === 'link' ? (content?.toString('utf8') ?? '') : '';
    const executable = (entry.mode & 0o100) !== 0;
    const path = writer.admit({ path: entry.path, kind, executable, target }, entry.size);
    if (path === undefined) writer.count(entry.size, entry.path);
    if (path !== undefined && content) await writer.write(path, content, executable);
  }
}

function readDirectory(bytes: Buffer, writer: TreeWriter): { entries: ZipEntry[]; start: number } {
  const end = endOf(bytes);
  if (end === undefined) throw writer.refused('its end', 'is missing, so something was cut off');
  const [disk, ofDisk, here, count] = [4, 6, 8, 10].map(at => bytes.readUInt16LE(end + at)) as [
    number,
    number,
    number,
    number,
  ];
  const [size, start] = [bytes.readUInt32LE(end + 12), bytes.readUInt32LE(end + 16)];
  const isWhole = disk === 0 && ofDisk === 0 && here === count && count !== 0xffff && start + size === end;
  if (!isWhole) throw writer.refused('its list of files', 'is not where it says');
  const entries: ZipEntry[] = [];
  let at = start;
  while (entries.length < count) {
    if (at + centralLength > end || bytes.readUInt32LE(at) !== signatures.central)
      throw writer.refused('its list of files', 'is damaged');
    const [name, extra, comment] = [28, 30, 32].map(field => bytes.readUInt16LE(at + field)) as [
      number,
      number,
      number,
    ];
    const isOfUnix = bytes[at + 5] === 3;
    entries.push({
      path: bytes.toString('utf8', at + centralLength, at + centralLength + name),
      flags: bytes.readUInt16LE(at + 8),
      method: bytes.readUInt16LE(at + 10),
      crc: bytes.readUInt32LE(at + 16),
      packed: bytes.readUInt32LE(at + 20),
      size: bytes.readUInt32LE(at + 24),
      mode: isOfUnix ? bytes.readUInt32LE(at + 38) >>> 16 : 0,
      offset: bytes.readUInt32LE(at + 42),
    });
    at += centralLength + name + extra + comment;
  }
  if (at !== end) throw writer.refused('its list of files', 'has another length than it says');
  return { entries, start };
}

/** The end stands at the very end, behind it only its own comment. */
function endOf(bytes: Buffer): number | undefined {
  for (let at = bytes.length - endLength; at >= Math.max(0, bytes.length - endLength - 0xffff); at--)
    if (
      bytes.readUInt32LE(at) === signatures.end &&
      at + endLength + bytes.readUInt16LE(at + 20) === bytes.length
    )
      return at;
  return undefined;
}

/** Returns where the entry ends. Programs that read from the front must see the same names, methods and sizes. */
function checkLocal(bytes: Buffer, entry: ZipEntry, start: number, writer: TreeWriter): number {
  const { path, offset, packed } = entry;
  const differs = (): TelosError => writer.refused(path, 'is described in two ways');
  if (offset + localLength > start || bytes.readUInt32LE(offset) !== signatures.local) throw differs();
  const nameLength = bytes.readUInt16LE(offset + 26);
  const name = bytes.toString('utf8', offset + localLength, offset + localLength + nameLength);
  if (name !== path || bytes.readUInt16LE(offset + 8) !== entry.method) throw differs();
  // With this flag, sizes and sum follow the content, and are zero here.
  const isLater = (entry.flags & 8) !== 0;
  const stated = [14, 18, 22].map(at => bytes.readUInt32LE(offset + at));
  const listed = [entry.crc, packed, entry.size];
  if (!stated.every((value, index) => value === listed[index] || (isLater && value === 0))) throw differs();
  const end = dataStart(bytes, entry) + packed;
  if (end > start) throw differs();
  return end;
}

const dataStart = (bytes: Buffer, { offset }: ZipEntry): number =>
  offset + localLength + bytes.readUInt16LE(offset + 26) + bytes.readUInt16LE(offset + 28);

function kindOf({ path, mode }: ZipEntry, writer: TreeWriter): TreeEntry['kind'] {
  const type = mode & 0o170000;
  if (type === 0o120000) return 'link';
  if (![0, 0o100000, 0o040000].includes(type)) throw writer.refused(path, 'is a device or a pipe');
  // Told by the name alone on systems that keep no type; a backslash is refused with the name.
  return path.endsWith('/') ? 'folder' : 'file';
}

function contentOf(bytes: Buffer, entry: ZipEntry, writer: TreeWriter): Buffer {
  const { path, flags, method, packed, size, crc } = entry;
  if ((flags & 1) !== 0) throw writer.refused(path, 'is locked with a password');
  if (packed === 0xffffffff || size === 0xffffffff) throw writer.refused(path, 'is too large');
  writer.checkRatio(packed, size, path);
  writer.checkRoom(size, path);
  const start = dataStart(bytes, entry);
  const data = bytes.subarray(start, start + packed);
  const content = method === 8 ? inflated(data, size) : method === 0 ? data : undefined;
  if (content === undefined)
    throw writer.refused(
      path,
      method === 8 ? 'cannot be unpacked' : `is packed in the unknown way ${method}`,
    );
  if (content.length !== size || crcOf(content) !== crc)
    throw writer.refused(path, 'is damaged: its length or its sum differs');
  return content;
}

function inflated(data: Buffer, size: number): Buffer | undefined {
  try {
    return inflateRawSync(data, { maxOutputLength: Math.max(1, size) });
  } catch {
    return undefined;
  }
}

let table: Uint32Array | undefined;

/** Node has this only in its newer versions. */
function crcOf(bytes: Uint8Array): number {
  table ??= Uint32Array.from({ length: 256 }, (_, index) => {
    let value = index;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
    return value;
  });
  let crc = 0xffffffff;
  for (let at = 0; at < bytes.length; at++) crc = (crc >>> 8) ^ table[(crc ^ bytes[at]!) & 0xff]!;
  return (crc ^ 0xffffffff) >>> 0;
}
