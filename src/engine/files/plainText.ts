/** Turns bytes from files, commands and servers into text that a model can read, and says when they are none. */

const sampleSize = 8192;

/** A number as people read it: `1,048,576`. */
export const grouped = (count: number): string => count.toLocaleString('en-US');

export const byteCount = (count: number): string => `${grouped(count)} ${count === 1 ? 'byte' : 'bytes'}`;

/** True for bytes that are no text in UTF-8 or a single-byte encoding: a NUL, or many unreadable characters. */
export function looksBinary(bytes: Buffer): boolean {
  const sample = bytes.subarray(0, sampleSize);
  if (sample.includes(0)) return true;
  const text = withoutPartialEnd(sample).toString('utf8');
  const unreadable = text.match(/[\x01-\x07\x0e-\x1a\x1c-\x1f\ufffd]/g)?.length ?? 0;
  // A short text in another encoding has a few of them; real binary data has a third.
  return unreadable > Math.max(8, sample.length / 10);
}

/** What is said in place of binary bytes. `size` is the whole size, of which `bytes` may be the beginning only. */
export function describeBinary(what: string, bytes: Buffer, size: number): string {
  const head = bytes
    .subarray(0, 64)
    .toString('hex')
    .replace(/..(?=.)/g, '$& ');
  return `[${what}: binary, ${byteCount(size)}, not shown as text. It begins with (hex) ${head}]`;
}

/** UTF-8 without its byte order mark; what is not UTF-8 becomes U+FFFD. */
export const decodeUtf8 = (bytes: Buffer): string => new TextDecoder('utf-8').decode(bytes);

/** The bytes without a character that was cut in two at the end. */
export function withoutPartialEnd(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) return bytes;
    if (byte >= 0xc0) {
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return length > back ? bytes.subarray(0, bytes.length - back) : bytes;
    }
  }
  return bytes;
}

/** The bytes without the rest of a character that was cut in two at the start. */
export function withoutPartialStart(bytes: Buffer): Buffer {
  let start = 0;
  while (start < 3 && start < bytes.length && (bytes[start]! & 0xc0) === 0x80) start++;
  return bytes.subarray(start);
}

/** Control, bidirectional and zero-width characters as `\u{...}`, so that a name cannot pose as something else. */
export function escapeInvisible(text: string): string {
  return text.replace(
    /[\p{Cc}\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/gu,
    character => `\\u{${character.codePointAt(0)!.toString(16)}}`,
  );
}
