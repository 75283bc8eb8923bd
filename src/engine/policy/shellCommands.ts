/** Reads commands from the tokens of a line: exactly for what is allowed, and generously for what is forbidden. */

import { shellText, signs } from './shellSigns.ts';
import { readLine, type ShellLine } from './shellWords.ts';

export interface SimpleCommand {
  words: string[];
  redirections: { pattern: string; isWritten: boolean }[];
  /** True if its input is the output of the command before it. */
  isPiped: boolean;
}

const keyword =
  /^(if|then|elif|else|fi|do|done|while|until|for|in|case|esac|time|!|\ue010|\ue012|function|coproc)$/;

/** Returns the commands one after the other, whatever joins them. */
export function simpleCommands({ tokens }: ShellLine): SimpleCommand[] {
  const commands: SimpleCommand[] = [];
  let current: SimpleCommand = { words: [], redirections: [], isPiped: false };
  let redirection: string | undefined;
  for (const token of tokens) {
    if (token.kind === 'word') {
      const { text } = token;
      if (redirection !== undefined)
        current.redirections.push({ pattern: text, isWritten: /^&?>/.test(redirection) });
      else if (current.words.length > 0 || !keyword.test(text)) current.words.push(text);
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

/** Alternatives of one word. More cannot be listed one by one. */
export const mostAlternatives = 64;

/** Returns all words that the braces of one make; `any` if there are too many. */
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

/** In characters. No person writes a longer choice, so a longer text does not count as one. */
const longestChoice = 2000;

function closingBrace(pattern: string, from: number): number {
  let depth = 0;
  for (let at = from; at < pattern.length && at < from + longestChoice; at++) {
    if (pattern[at] === signs.open) depth++;
    else if (pattern[at] === signs.close && --depth === 0) return at;
  }
  return -1;
}

/** Returns the alternatives; undefined if the braces are not a choice. */
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

/**
 * Returns the words of a line in which only blanks separate words and quotes hold one together. `refused` is the first part that
 * is more than that. It can be an operator, an expansion, a glob, an escape, a comment, a control character or an unclosed quote.
 * `words` then contains the words before it.
 */
export function readWords(command: string): { words: string[]; refused?: string } {
  const { tokens, open } = readLine(command);
  const other = tokens.find(({ kind }) => kind !== 'word');
  const stop = Math.min(other?.at ?? Number.POSITIVE_INFINITY, open?.at ?? Number.POSITIVE_INFINITY);
  const words = tokens.filter(({ end }) => end <= stop).map(({ text }) => shellText(text));
  if (stop === Number.POSITIVE_INFINITY) return { words };
  return { words, refused: open?.at === stop ? open.sign : command.charAt(stop) };
}

/**
 * Returns the words of one simple command. Undefined for a line that is more than that, including an assignment before it or a
 * word of the shell. Then no rule about words fits it.
 */
export function plainWords(command: string): string[] | undefined {
  if (process.platform === 'win32' && /['%^]/.test(command)) return undefined;
  const { words, refused } = readWords(command);
  const [program] = words;
  if (refused !== undefined || !program || program.includes('=') || reserved.test(program)) return undefined;
  return words;
}

/** Returns true if the words are those of the pattern. A `*` at the end of the pattern matches any further words. */
export function wordsMatch(pattern: readonly string[], words: readonly string[]): boolean {
  const open = pattern.length > 1 && pattern.at(-1) === '*';
  const fixed = open ? pattern.slice(0, -1) : pattern;
  if (open ? words.length < fixed.length : words.length !== fixed.length) return false;
  return fixed.every((word, index) => word === words[index]);
}

/** Returns true if the pattern's words occur in `words`: after `sudo` or `env`, say, or with a path before the program. */
export function wordsOccur(pattern: readonly string[], words: readonly string[]): boolean {
  const open = pattern.length > 1 && pattern.at(-1) === '*';
  const fixed = open ? pattern.slice(0, -1) : pattern;
  return words.some(
    (word, at) =>
      (word === fixed[0] || word.endsWith(`/${fixed[0]}`)) &&
      (open || at + fixed.length === words.length) &&
      fixed.every((wanted, index) => index === 0 || words[at + index] === wanted),
  );
}

/**
 * Returns every word sequence in a line that could be a command, read generously. It is for rules that forbid, for which a wrong
 * guess is harmless: text within quotes, substitutions and comments counts as well. What `readWords` takes is among them, word
 * for word. The actions inside a program or a script cannot be seen here.
 */
export function looseCommands(command: string): string[][] {
  const found = new Map<string, string[]>();
  const add = (words: string[]): void => {
    if (words.length > 0) found.set(words.join('\0'), words);
  };
  for (const words of wordsIn(command, 0)) add(words);
  for (const words of wordsIn(withoutQuotes(command), 0))
    add(words.flatMap(word => word.split(/\s+/)).filter(word => word !== '' && !/^\w+=/.test(word)));
  return [...found.values()];
}

/** Substitutions within substitutions, and texts within texts, that are looked into. */
const deepestText = 8;

/** Returns the words of every command in a line, also of those in its substitutions, in texts that it contains and in comments. */
function wordsIn(command: string, depth: number): string[][] {
  const line = readLine(command);
  const own = simpleCommands(line).flatMap(({ words }) => {
    const begin = words.findIndex(word => !/^[A-Za-z_]\w*\+?=/.test(word));
    const rest = begin < 0 ? [] : words.slice(begin);
    const hasChoice = rest.some(word => word.includes(signs.open));
    return [rest.map(shellText), ...(hasChoice ? [rest.flatMap(withoutBraces).map(shellText)] : [])];
  });
  if (depth >= deepestText) return own;
  const texts = line.tokens.filter(({ kind }) => kind === 'heredoc' || kind === 'comment');
  const others = [...line.inner, ...texts.map(({ text }) => text.replace(/^#/, ''))];
  return [...own, ...others.flatMap(text => wordsIn(text, depth + 1))];
}

/** Returns the line as if no quote and no escape in it had a meaning, so that text within quotes is read like the rest. */
const withoutQuotes = (command: string): string =>
  command
    .replace(/\\\r?\n/g, '')
    .replace(/\$(?:IFS\b|\{IFS[^}]{0,40}\})/g, ' ')
    .replace(/\$?["']|\\/g, '')
    .replace(/\$\(|[\r(){}`]/g, '\n');

/** Characters that end a piece of a path. */
const betweenPieces = /[\s;&|<>()'"`=@:,]+/;

/** Returns every piece of a line that can be a path, with its quotes and escapes and without them. */
export function piecesOf(line: string): string[] {
  const plain = line.replace(/\\(?:\r?\n)|["'\\]/g, '');
  return [...new Set([line, plain].flatMap(text => text.split(betweenPieces)))].filter(Boolean);
}

/** Words that begin a construct of the shell, not a program. */
export const reserved =
  /^(if|then|else|elif|fi|do|done|case|esac|while|until|for|in|function|select|time|coproc|!|\[\[|\{|\})$/;
