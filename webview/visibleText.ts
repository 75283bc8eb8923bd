/**
 * Makes each character of a hostile text visible before a person approves it. Characters that would reorder, hide or move text on
 * the screen are shown as code points.
 */
import { beginningOf, codePointOf, endOf, unseen } from '@telos/protocol/text';

/** A part of a text. `escaped` parts represent characters that would not be seen as they are. */
export interface VisiblePart {
  readonly text: string;
  readonly escaped: boolean;
}

/** Splits the text into parts that are all visible. A line feed is marked and still breaks the line. */
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

/** Returns the visible text as one string, for names and labels. */
export function visible(text: string): string {
  return visibleParts(text)
    .map(part => part.text)
    .join('');
}

/** Returns visible prose with plain line breaks and tabs. For messages, never for text that a person approves. */
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

/** The shown parts of a long text: its beginning, the number of hidden UTF-16 units, and its end. */
export interface Excerpt {
  readonly head: string;
  readonly hidden: number;
  readonly tail: string;
}

/** Cuts the middle out of a text of more than `limit` UTF-16 units, never through a character. */
export function excerpt(text: string, limit: number): Excerpt {
  if (text.length <= limit) return { head: text, hidden: 0, tail: '' };
  const head = beginningOf(text, Math.floor(limit * 0.75));
  const tail = endOf(text, Math.ceil(limit * 0.25));
  return { head, hidden: text.length - head.length - tail.length, tail };
}
