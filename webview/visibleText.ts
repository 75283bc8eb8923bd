/**
 * Makes every character of a hostile text visible before a person says yes to it: what would reorder, hide or move
 * the text on the screen is shown as its code point.
 */
import { codePointOf, unseen } from '../src/protocol/text.ts';

/** `escaped` parts stand for characters that would not be seen as they are. */
export interface VisiblePart {
  readonly text: string;
  readonly escaped: boolean;
}

/** The text in parts that can all be seen; a line feed is marked and still breaks the line. */
export function visibleParts(text: string): VisiblePart[] {
  const parts: VisiblePart[] = [];
  let plain = '';
  for (const character of text) {
    if (!unseen.test(character)) {
      plain += character;
      continue;
    }
    if (plain) parts.push({ text: plain, escaped: false });
    plain = character === '\n' ? '\n' : '';
    parts.push({ text: nameOf(character), escaped: true });
  }
  if (plain) parts.push({ text: plain, escaped: false });
  return parts;
}

/** The same as one string, for names and labels. */
export function visible(text: string): string {
  return visibleParts(text)
    .map(part => part.text)
    .join('');
}

/** The same for prose of several lines, where a break is just a break: for messages, never for what a person says yes to. */
export function visibleLines(text: string): string {
  return text
    .split(/\r?\n/)
    .map(line => line.split('\t').map(visible).join('\t'))
    .join('\n');
}

function nameOf(character: string): string {
  if (character === '\n') return '\\n';
  if (character === '\r') return '\\r';
  if (character === '\t') return '\\t';
  return codePointOf(character);
}

/** What is shown of a long text: its beginning, how many characters are left out, and its end. */
export interface Excerpt {
  readonly head: string;
  readonly hidden: number;
  readonly tail: string;
}

/** Cuts the middle out of a text of more than `limit` UTF-16 units, never through a surrogate pair. */
export function excerpt(text: string, limit: number): Excerpt {
  if (text.length <= limit) return { head: text, hidden: 0, tail: '' };
  let headEnd = Math.floor(limit * 0.75);
  let tailStart = text.length - (limit - headEnd);
  if (/[\uD800-\uDBFF]/.test(text.charAt(headEnd - 1))) headEnd -= 1;
  if (/[\uDC00-\uDFFF]/.test(text.charAt(tailStart))) tailStart += 1;
  return { head: text.slice(0, headEnd), hidden: tailStart - headEnd, tail: text.slice(tailStart) };
}
