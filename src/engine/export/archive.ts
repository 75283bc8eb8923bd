/** Packs files into a .tar.gz whose bytes depend on nothing but them: not on the day, the person or the machine. */
import { gzipSync } from 'node:zlib';

export interface FileToPack {
  /** With `/`. */
  path: string;
  bytes: Buffer;
  executable: boolean;
}

const block = 512;

/** Returns the archive, with its files sorted by path. Throws a RangeError for a path that the format cannot hold. */
export function tarGz(files: readonly FileToPack[]): Buffer {
  const sorted = [...files].sort((one, other) => (one.path < other.path ? -1 : 1));
  const parts = sorted.flatMap(({ path, bytes, executable }) => [
    header(path, bytes.length, executable),
    bytes,
    Buffer.alloc((block - (bytes.length % block)) % block),
  ]);
  const packed = gzipSync(Buffer.concat([...parts, Buffer.alloc(2 * block)]), { level: 9 });
  // The name of the system that packed it.
  packed[9] = 255;
  return packed;
}

function header(path: string, size: number, executable: boolean): Buffer {
  const bytes = Buffer.alloc(block);
  const [name, prefix] = splitPath(path);
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, '0')}\0`;
  bytes.write(name, 0, 100);
  bytes.write(octal(executable ? 0o755 : 0o644, 7), 100);
  bytes.write(octal(0, 7), 108);
  bytes.write(octal(0, 7), 116);
  bytes.write(octal(size, 11), 124);
  bytes.write(octal(0, 11), 136);
  bytes.write('        ', 148);
  bytes.write('0', 156);
  bytes.write('ustar\x0000', 257);
  bytes.write(prefix, 345, 155);
  bytes.write(
    `${octal(
      bytes.reduce((sum, byte) => sum + byte, 0),
      6,
    )} `,
    148,
  );
  return bytes;
}

/** Returns the path in the two parts that the format has room for. */
function splitPath(path: string): [name: string, prefix: string] {
  if (Buffer.byteLength(path) <= 100) return [path, ''];
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)];
    if (Buffer.byteLength(prefix) <= 155 && Buffer.byteLength(name) <= 100) return [name, prefix];
  }
  throw new RangeError(`${path} is too long for an archive.`);
}
