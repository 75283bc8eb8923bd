/** Tells the encoding of a file's text, so that it can be read as its author wrote it and written back in the same form. */
import { isUtf8 } from 'node:buffer';
import { looksBinary, withoutPartialEnd } from './plainText.ts';

/**
 * How a text lies in a file. `mixed`: most of it is UTF-8, and some bytes are not; they are shown as U+FFFD, and only a change
 * of the bytes around them keeps them.
 */
export interface TextForm {
  encoding: 'utf-8' | 'utf-16le' | 'utf-16be' | 'windows-1252' | 'mixed';
  /** Whether it begins with a byte order mark. */
  mark: boolean;
}

export const plainForm: TextForm = { encoding: 'utf-8', mark: false };

/** In bytes. */
const sampleSize = 8192;

/** Returns the form of the text. Returns undefined if the bytes are no text. They may end in the middle of a character. */
export function formOf(bytes: Buffer): TextForm | undefined {
  const wide = wideForm(bytes);
  if (wide) return wide;
  if (isUtf8(withoutPartialEnd(bytes)))
    return looksBinary(bytes) ? undefined : { encoding: 'utf-8', mark: startsWith(bytes, 0xef, 0xbb, 0xbf) };
  if (looksBinary(bytes) && !isSingleByte(bytes)) return undefined;
  // Where one character is UTF-8, the file is, and some of its bytes are broken.
  const isMixed = /[\u0080-\ufffc\u{10000}-\u{10ffff}]/u.test(bytes.toString('utf8'));
  return isMixed ? { encoding: 'mixed', mark: false } : { encoding: 'windows-1252', mark: false };
}

function wideForm(bytes: Buffer): TextForm | undefined {
  const mark = startsWith(bytes, 0xff, 0xfe) || startsWith(bytes, 0xfe, 0xff);
  const encoding = mark ? (bytes[0] === 0xff ? 'utf-16le' : 'utf-16be') : wideWithoutMark(bytes);
  if (!encoding) return undefined;
  const sample = wideText(bytes.subarray(0, sampleSize), encoding);
  return /[\0-\x08\x0e-\x1a\x1c-\x1f\ufffe\uffff]/.test(sample) ? undefined : { encoding, mark };
}

/** Without a mark, only text whose every second byte is mostly 0, and no other byte ever, is taken for UTF-16. */
function wideWithoutMark(bytes: Buffer): 'utf-16le' | 'utf-16be' | undefined {
  const sample = bytes.subarray(0, sampleSize);
  if (sample.length < 8) return undefined;
  const zeros = [0, 0];
  for (const [at, byte] of sample.entries()) if (byte === 0) zeros[at % 2]! += 1;
  const [even = 0, odd = 0] = zeros;
  if (even + odd < sample.length / 4 || (even > 0 && odd > 0)) return undefined;
  return odd > 0 ? 'utf-16le' : 'utf-16be';
}

const startsWith = (bytes: Buffer, ...start: number[]): boolean =>
  start.every((byte, at) => bytes[at] === byte);

/** Whether they hold no control character, and no byte that Windows-1252 leaves undefined: text with many letters above 0x7f. */
const isSingleByte = (bytes: Buffer): boolean =>
  !/[\0-\x08\x0e-\x1a\x1c-\x1f\x7f\x81\x8d\x8f\x90\x9d]/.test(bytes.toString('latin1', 0, sampleSize));

/** Returns the text without its byte order mark. What is no character becomes U+FFFD. Bytes of half a character at the end are left out. */
export function decodeText(bytes: Buffer, form: TextForm): string {
  switch (form.encoding) {
    case 'windows-1252':
      return new TextDecoder('windows-1252').decode(bytes);
    case 'utf-16le':
    case 'utf-16be':
      return wideText(form.mark ? bytes.subarray(2) : bytes, form.encoding).replace(
        /\p{Surrogate}/gu,
        '\ufffd',
      );
    default:
      return new TextDecoder('utf-8').decode(withoutPartialEnd(bytes));
  }
}

/** May end with the first half of a pair, and hold single halves. */
function wideText(bytes: Buffer, encoding: 'utf-16le' | 'utf-16be'): string {
  const even = bytes.subarray(0, bytes.length - (bytes.length % 2));
  return (encoding === 'utf-16le' ? even : Buffer.from(even).swap16())
    .toString('utf16le')
    .replace(/[\ud800-\udbff]$/, '');
}

/** The first character that the encoding does not have. */
export class Unencodable extends Error {
  readonly character: string;

  constructor(character: string) {
    super(`${character} cannot be encoded.`);
    this.character = character;
  }
}

/** Returns the bytes of the text in the form, with its byte order mark. Throws Unencodable. `mixed` is no form to write a text in. */
export function encodeText(text: string, { encoding, mark }: TextForm): Buffer {
  const whole = mark ? `\ufeff${text}` : text;
  if (encoding === 'windows-1252') return encodeSingleBytes(text);
  if (encoding === 'utf-16le') return Buffer.from(whole, 'utf16le');
  if (encoding === 'utf-16be') return Buffer.from(whole, 'utf16le').swap16();
  return Buffer.from(whole, 'utf8');
}

let singleBytes: ReadonlyMap<string, number> | undefined;

function encodeSingleBytes(text: string): Buffer {
  const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  singleBytes ??= new Map(
    [...new TextDecoder('windows-1252').decode(all)].map((character, byte) => [character, byte]),
  );
  const bytes: number[] = [];
  for (const character of text) {
    const byte = singleBytes.get(character);
    if (byte === undefined) throw new Unencodable(character);
    bytes.push(byte);
  }
  return Buffer.from(bytes);
}

/** Returns the form's name, as editors write it. */
export function formName({ encoding, mark }: TextForm): string {
  const names = {
    'utf-8': 'UTF-8',
    'utf-16le': 'UTF-16 LE',
    'utf-16be': 'UTF-16 BE',
    'windows-1252': 'Windows-1252',
    mixed: 'UTF-8 with bytes that are not',
  };
  return names[encoding] + (mark ? ' with BOM' : '');
}

/** Returns a sentence for a model that reads the text. Undefined for UTF-8, which needs none. */
export function formNote(form: TextForm): string | undefined {
  if (form.encoding === 'utf-8') return undefined;
  if (form.encoding === 'mixed')
    return '[Some bytes of this file are not UTF-8 and are shown as U+FFFD. edit_file keeps them; write_file would lose them.]';
  const guess = form.encoding === 'windows-1252' ? ' by its bytes, which may be wrong' : '';
  return `[The file is ${formName(form)}${guess}. edit_file and write_file keep that.]`;
}

/** Returns what reads the same in any form: whether every line of the text ends with CR and LF. */
export const endsLinesLikeWindows = (text: string): boolean =>
  text.includes('\r\n') && !/(?<!\r)\n/.test(text) && !/\r(?!\n)/.test(text);
