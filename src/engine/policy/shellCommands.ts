/** The simple commands of a line, and what the braces in a word stand for. */
import { type ShellLine, signs } from './shellWords.ts';

export interface SimpleCommand {
  words: string[];
  redirections: { pattern: string; isWritten: boolean }[];
  /** Its input is the output of the command before it. */
  isPiped: boolean;
}

const keyword =
  /^(if|then|elif|else|fi|do|done|while|until|for|in|case|esac|time|!|\ue010|\ue012|function|coproc)$/;

/** One after the other, whatever joins them. */
export function simpleCommands({ tokens }: ShellLine): SimpleCommand[] {
  const commands: SimpleCommand[] = [];
  let current: SimpleCommand = { words: [], redirections: [], isPiped: false };
  let redirection: string | undefined;
  for (const token of tokens) {
    if (token.kind === 'word') {
      const { pattern } = token;
      if (redirection !== undefined)
        current.redirections.push({ pattern, isWritten: /^&?>/.test(redirection) });
      else if (current.words.length > 0 || !keyword.test(pattern)) current.words.push(pattern);
      redirection = undefined;
    } else if (token.kind === 'operator') {
      redirection = /[<>]/.test(token.text) ? token.text : undefined;
      if (redirection !== undefined) continue;
      commands.push(current);
      current = { words: [], redirections: [], isPiped: /^\|&?$/.test(token.text) };
    }
  }
  return [...commands, current];
}

/** Of one word: so many cannot be told one by one. */
export const mostAlternatives = 64;

/** All words that the braces of one make; `any` where they are too many. */
export function withoutBraces(pattern: string): string[] {
  let done = [''];
  for (let at = 0; at < pattern.length; ) {
    const character = pattern[at]!;
    const end = character === signs.open ? closingBrace(pattern, at) : -1;
    const choice = end < 0 ? undefined : choiceIn(pattern.slice(at + 1, end));
    const values = choice?.flatMap(withoutBraces) ?? [plain(character)];
    done = done.flatMap(head => values.map(value => head + value));
    if (done.length > mostAlternatives || done[0]!.length > 4096) return [signs.any];
    at = choice === undefined ? at + 1 : end + 1;
  }
  return done;
}

const plainSigns: Readonly<Record<string, string>> = {
  [signs.open]: '{',
  [signs.comma]: ',',
  [signs.close]: '}',
};
const plain = (character: string): string => plainSigns[character] ?? character;

/** Nobody writes a longer choice; what is longer is none. */
const longestChoice = 2000;

function closingBrace(pattern: string, from: number): number {
  let depth = 0;
  for (let at = from; at < pattern.length && at < from + longestChoice; at++) {
    if (pattern[at] === signs.open) depth++;
    else if (pattern[at] === signs.close && --depth === 0) return at;
  }
  return -1;
}

/** Undefined where the braces are no choice. */
function choiceIn(inside: string): string[] | undefined {
  if (/^[^\ue010-\ue012]{1,12}\.\.[^\ue010-\ue012]{1,24}$/.test(inside)) return [signs.star];
  const parts = [''];
  let depth = 0;
  for (const character of inside) {
    if (character === signs.open) depth++;
    if (character === signs.close) depth--;
    if (character === signs.comma && depth === 0) parts.push('');
    else parts[parts.length - 1] += character;
  }
  return parts.length > 1 ? parts : undefined;
}
