/** Turns bytes from files, commands and servers into text for a model, and detects bytes that are not text. */
import { Characters, grouped, unseen } from '@telos/protocol/text';

const sampleSize = 8192;

export const byteCount = (count: number): string => `${grouped(count)} ${count === 1 ? 'byte' : 'bytes'}`;

/** Whether the bytes are not text in UTF-8 or a single-byte encoding: they contain a NUL or many unreadable characters. */
export function looksBinary(bytes: Buffer): boolean {
  const sample = bytes.subarray(0, sampleSize);
  if (sample.includes(0)) return true;
  const text = withoutPartialEnd(sample).toString('utf8');
  const unreadable = text.match(/[\x01-\x07\x0e-\x1a\x1c-\x1f\ufffd]/g)?.length ?? 0;
  // A short text in another encoding has a few of them. In real binary data they are a third.
  return unreadable > Math.max(8, sample.length / 10);
}

/** Returns the text shown in place of binary bytes. `size` is the whole size; `bytes` may be only the beginning. */
export function describeBinary(what: string, bytes: Buffer, size: number): string {
  const head = bytes
    .subarray(0, 64)
    .toString('hex')
    .replace(/..(?=.)/g, '$& ');
  return `[${what}: binary, ${byteCount(size)}, not shown as text. It begins with (hex) ${head}]`;
}

/** Returns the text as one word of a POSIX shell, which takes it as it is. */
export const shellWord = (text: string): string =>
  /^[\w./:@%+,-][\w./:@%+,=#-]*$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** Decodes UTF-8 and drops its byte order mark. Invalid bytes become U+FFFD. */
export const decodeUtf8 = (bytes: Buffer): string => new TextDecoder('utf-8').decode(bytes);

/** Returns the bytes without a character that was cut in two at the end. */
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

/** Returns the bytes without the rest of a character that was cut in two at the start. */
export function withoutPartialStart(bytes: Buffer): Buffer {
  let start = 0;
  while (start < 3 && start < bytes.length && (bytes[start]! & 0xc0) === 0x80) start++;
  return bytes.subarray(start);
}

/**
 * Returns the text if it has at most so many bytes. Otherwise returns its head and its tail, at whole characters, with a note
 * between them, which is given the whole size.
 */
export function cutMiddle(text: string, most: number, note: (bytes: number) => string): string {
  // No character of JavaScript has more bytes.
  if (text.length * 3 <= most) return text;
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= most) return text;
  const between = note(bytes.length);
  const half = Math.max(0, Math.floor((most - Buffer.byteLength(between)) / 2));
  const head = withoutPartialEnd(bytes.subarray(0, half));
  const tail = withoutPartialStart(bytes.subarray(bytes.length - half));
  return head.toString('utf8') + between + tail.toString('utf8');
}

/** Spaces of other widths can be seen, and people have them in names of files. */
const invisible = new Characters(`(?!\\p{Zs})${unseen.source}`);

/** Escapes characters that cannot be seen as `\u{...}`, so that a name cannot pose as another. */
export const escapeInvisible = (text: string): string =>
  invisible.replacedIn(text, character => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
