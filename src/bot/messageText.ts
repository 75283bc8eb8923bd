/** Writes texts as Discord shows them: divided into messages, and without what could steer or imitate. */
import { beginningOf, codePointOf, exactText, shortened, steering } from '@telos/protocol/text';

/** Characters of an answer in one message. Discord takes 2,000; the rest is for fences and the line of its state. */
export const messageLimit = 1900;

/** Longest message that Discord takes, in UTF-16 units. */
export const mostCharacters = 2000;

/** A fence of code that is open at some place. */
interface Fence {
  mark: string;
  info: string;
}

/**
 * Returns the messages of a text. Each ends at a line if it can; a line feed there is left out. A code fence that is open at the end of
 * one is closed, and opened again in the next. The messages of a longer text begin with the same ones, but for the last.
 */
export function splitMessage(text: string, limit: number = messageLimit): string[] {
  const parts: string[] = [];
  let fence: Fence | undefined;
  for (let rest = text; rest !== '' || parts.length === 0; ) {
    const { length, skipped } = cutAt(rest, limit);
    const raw = rest.slice(0, length);
    const opened = fence ? `${fence.mark}${fence.info}\n` : '';
    fence = fenceAfter(raw, fence);
    parts.push(`${opened}${raw}${fence ? `\n${fence.mark}` : ''}`);
    rest = rest.slice(length + skipped);
  }
  return parts;
}

function cutAt(text: string, limit: number): { length: number; skipped: number } {
  if (text.length <= limit) return { length: text.length, skipped: 0 };
  const line = text.lastIndexOf('\n', limit);
  if (line > 0) return { length: line, skipped: 1 };
  return { length: beginningOf(text, limit).length, skipped: 0 };
}

/** What is said of a language after a fence. A longer mark or word would not fit beside the text. */
const fenceLine = /^ {0,3}(`{3,10}|~{3,10})(?!`)[ \t]*(.*)$/;

function fenceAfter(text: string, before: Fence | undefined): Fence | undefined {
  let fence = before;
  for (const line of text.split('\n')) {
    const [, mark = '', info = ''] = fenceLine.exec(line) ?? [];
    if (mark === '') continue;
    if (!fence) fence = info.includes('`') ? undefined : { mark, info: info.slice(0, 20).trim() };
    else if (info.trim() === '' && mark.startsWith(fence.mark)) fence = undefined;
  }
  return fence;
}

const steeringCharacters = new RegExp(steering.source, 'g');

/** Returns the words of a model for a message. Only characters that steer are shown as codes; nothing in it can notify anyone. */
export const answerText = (text: string): string =>
  text.replaceAll('\r\n', '\n').replace(steeringCharacters, codePointOf);

/** Returns a text of others within our own words: on one line, as it is, without formatting, links and mentions. */
export function plainText(text: string, most = 300): string {
  const line = exactText(shortened(text.replace(/\s+/g, ' ').trim(), most));
  // A link is recognized by its colon and slashes, a mention by its sign.
  return line.replace(/[\\`*_~|>#[\]()<@:-]/g, '\\$&');
}
