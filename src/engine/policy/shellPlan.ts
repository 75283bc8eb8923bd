/** Reads the commands of a line one by one where that needs no shell, and writes the line that is started from what was read. */
import { shellWord } from '../files/plainText.ts';
import { reserved } from './shellCommands.ts';
import { signs } from './shellSigns.ts';
import { readLine, type ShellToken } from './shellWords.ts';

/** One program with its words. Words contain `signs` around the names of variables whose values are not known here. */
export interface Stage {
  /** Sign before it: empty for the first one, `;` also for a new line. */
  joint: '' | '|' | '&&' | '||' | ';';
  assignments: readonly (readonly [name: string, value: string])[];
  words: readonly string[];
  redirections: readonly Redirection[];
  /** Lines whose output is a part of a word. */
  inner: readonly string[];
}

export interface Redirection {
  stream: '' | '1' | '2';
  sign: '>' | '>>' | '<' | '<<' | '>&';
  /** A path, the number of a stream after `>&`, or the text after `<<`. */
  target: string;
}

/** Values that are known without running anything. */
export interface Known {
  /** Values of variables. */
  values: Readonly<Record<string, string>>;
  /** Returns what a line prints; undefined if only running it can tell. */
  prints(line: string): string | undefined;
  /** Whether a line may give a value to a variable of this name. Missing if to none. */
  maySet?(name: string): boolean;
}

/** In characters. */
const longestPlan = 20_000;
const mostStages = 30;

/**
 * Returns the commands of a line in their order. Undefined if it has a part whose meaning only a shell would know: a pattern, a
 * group, a loop, a text after `<<` in which something is expanded.
 */
export function readPlan(line: string, given: Known): Stage[] | undefined {
  let known = given;
  if (line.length > longestPlan || /[\0\r\ue000-\ue01f]/.test(line)) return undefined;
  const { tokens, inner, unread } = readLine(line);
  // Other lines are inside variables, arithmetic and patterns.
  if (unread !== undefined || inner.length !== tokens.flatMap(token => token.inner ?? []).length)
    return undefined;
  const heredocs = tokens.filter(({ kind }) => kind === 'heredoc');
  if (heredocs.some(({ quoted, isOpen }) => !quoted || isOpen)) return undefined;
  const stages: Stage[] = [];
  let [joint, current]: [Stage['joint'], ShellToken[]] = ['', []];
  for (const token of tokens) {
    if (token.kind === 'comment' || token.kind === 'heredoc') continue;
    if (token.kind === 'word' || /[<>]/.test(token.text)) {
      current.push(token);
      continue;
    }
    const next = token.text === '\n' ? ';' : token.text;
    // A new line after an operator, or after another one, means nothing.
    if (current.length === 0 && token.text === '\n') continue;
    if (!/^(;|\||&&|\|\|)$/.test(next) || current.length === 0) return undefined;
    const set = stages.length === 0 && /^(?:;|&&)$/.test(next) ? valuesSet(current, known) : undefined;
    if (set) {
      known = { ...known, values: { ...known.values, ...set } };
      current = [];
      continue;
    }
    const stage = readStage(current, joint, known, heredocs);
    if (!stage || stages.push(stage) > mostStages) return undefined;
    [joint, current] = [next as Stage['joint'], []];
  }
  if (current.length === 0) return joint === ';' ? stages : undefined;
  const last = readStage(current, joint, known, heredocs);
  return last && [...stages, last];
}

/** A value that a shell leaves one word, in quotes or not. */
const plainSetting = /^([A-Za-z_]\w*)=([\w./@%+,:-]+)$/;

/** Returns the values that a command gives to variables and does nothing else, so that the commands after it need not be run with it. */
function valuesSet(tokens: readonly ShellToken[], known: Known): Record<string, string> | undefined {
  const set: Record<string, string> = {};
  for (const token of tokens) {
    if (token.kind !== 'word' || (token.inner ?? []).length > 0) return undefined;
    const text = knownText(token.text, { ...known.values, ...set });
    const [, name, value] = plainSetting.exec(text ?? '') ?? [];
    if (name === undefined || value === undefined || known.maySet?.(name) !== true) return undefined;
    set[name] = value;
  }
  return set;
}

function readStage(
  tokens: readonly ShellToken[],
  joint: Stage['joint'],
  known: Known,
  heredocs: ShellToken[],
): Stage | undefined {
  const assignments: [string, string][] = [];
  const words: string[] = [];
  const redirections: Redirection[] = [];
  const inner: string[] = [];
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at]!;
    if (token.kind === 'operator' && token.text === '<<') {
      const text = heredocs.shift()?.text;
      if (text === undefined || token.stream !== undefined) return undefined;
      redirections.push({ stream: '', sign: '<<', target: text });
      continue;
    }
    if (token.kind === 'operator') {
      const found = readRedirection(token, tokens[++at], known);
      if (!found) return undefined;
      redirections.push(...found);
      continue;
    }
    const written = withInner(token, known, inner).replaceAll(signs.star, star);
    const text = knownText(written, known.values)?.replaceAll(star, signs.star);
    if (text === undefined || (words.length === 0 && hasStar(text))) return undefined;
    const assignment = words.length === 0 ? /^([A-Za-z_]\w*)=(.*)$/s.exec(text) : null;
    if (assignment) assignments.push([assignment[1]!, assignment[2]!]);
    else words.push(text);
  }
  const [program] = words;
  // A program in quotes is a program, but one named like a word of the shell is not worth the doubt.
  if (!program || reserved.test(program) || hasUnknown(program)) return undefined;
  return { joint, assignments, words, redirections, inner };
}

/** Returns the word with what its substitutions print. One that is not known gets a sign, and is added to `inner`. */
function withInner({ text, quoted, inner = [] }: ShellToken, { prints }: Known, others: string[]): string {
  let [whole, from] = ['', 0];
  for (const { text: line, sign } of inner) {
    const value = prints(line);
    // Without quotes, a shell makes two words of what has a blank in it.
    const isKnown = value !== undefined && (quoted || !value.includes(' '));
    whole += text.slice(from, sign);
    whole += isKnown ? value : `${signs.variable}(${others.push(line) - 1})${signs.end}`;
    from = sign + 1;
  }
  return whole + text.slice(from);
}

function readRedirection(
  { text: sign, stream = '' }: ShellToken,
  target: ShellToken | undefined,
  known: Known,
): Redirection[] | undefined {
  const path = target?.kind === 'word' ? knownText(withInner(target, known, []), known.values) : undefined;
  if (path === undefined || path === '' || hasUnknown(path)) return undefined;
  if (sign === '&>' || sign === '&>>')
    return [
      { stream: '', sign: sign === '&>' ? '>' : '>>', target: path },
      { stream: '2', sign: '>&', target: '1' },
    ];
  if (stream !== '' && stream !== '1' && stream !== '2') return undefined;
  if (sign === '>&') return /^[12]$/.test(path) ? [{ stream, sign, target: path }] : undefined;
  if (sign === '<') return stream === '' ? [{ stream, sign, target: path }] : undefined;
  if (sign === '>|') return [{ stream, sign: '>', target: path }];
  return sign === '>' || sign === '>>' ? [{ stream, sign, target: path }] : undefined;
}

/** In place of the star of a pattern while the rest of its word is read. A line has none: `readPlan` refuses it. */
const star = '\ue01f';

/** Returns true for a word that a shell replaces with names of files. */
export const hasStar = (word: string): boolean => word.includes(signs.star);

/** Whether a name fits the pattern, whose stars are the sign for them. A name with a dot first needs a pattern with one. */
export function fitsStars(name: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.split(signs.star);
  const last = rest.pop() ?? '';
  let at = first.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  const isHidden = name.startsWith('.') && !first.startsWith('.');
  return !isHidden && name.startsWith(first) && name.endsWith(last) && at + last.length <= name.length;
}

/** Returns true for a word that contains a variable, or the output of a line, whose value is not known here. */
export const hasUnknown = (word: string): boolean => word.includes(signs.variable);

const variable = new RegExp(`${signs.variable}([^${signs.end}]*)${signs.end}`, 'g');

/** Returns the names of the variables in a word whose values are not known here. */
export const unknownIn = (word: string): string[] =>
  [...word.matchAll(variable)].map(([, name = '']) => name);

/** Returns the word with the values of its variables in place of their signs. One without a value is empty. */
export const withValues = (word: string, values: Readonly<Record<string, string | undefined>>): string =>
  word.replace(variable, (_, name: string) => (Object.hasOwn(values, name) ? (values[name] ?? '') : ''));

/** Returns the word with the values of known variables; undefined if a shell would make something else of it. */
function knownText(text: string, values: Readonly<Record<string, string>>): string | undefined {
  const isHome = text.startsWith(signs.tilde) && /^(\/|$)/.test(text.slice(1));
  const plain = (isHome ? (values['HOME'] ?? signs.tilde) + text.slice(1) : text)
    .replaceAll(signs.comma, ',')
    .replace(variable, (sign, name: string) => (Object.hasOwn(values, name) ? values[name]! : sign));
  return /[\0\ue000-\ue013]/.test(plain) ? undefined : plain;
}

/** Returns a word for a shell, which makes exactly that word of it. `inner` are the lines whose output is a part of it. */
export const quoted = (word: string, inner: readonly string[] = []): string =>
  word
    .split(variable)
    .map((part, index) => {
      if (index % 2 === 1)
        return part.startsWith('(') ? `"$(${inner[Number(part.slice(1, -1))]})"` : `"$${part}"`;
      return part === '' && word !== '' ? '' : shellWord(part);
    })
    .join('');

/** Returns the line that does what the stages say. Their paths have been resolved. */
export function lineOf(stages: readonly Stage[]): string {
  const texts = stages.flatMap(({ redirections }) => redirections.filter(({ sign }) => sign === '<<'));
  const bodies = texts.map(({ target }) => `\n${target}${endMark(target)}`).join('');
  return `${stages.map(textOf).join('')}${bodies}${bodies === '' ? '' : '\n'}`;
}

function textOf({ joint, assignments, words, redirections, inner }: Stage): string {
  const parts = [
    ...assignments.map(([name, value]) => `${name}=${quoted(value)}`),
    ...words.map(word => quoted(word, inner)),
    ...redirections.map(redirection => `${redirection.stream}${redirection.sign}${targetOf(redirection)}`),
  ];
  return `${joint === '' ? '' : ` ${joint} `}${parts.join(' ')}`;
}

function targetOf({ sign, target }: Redirection): string {
  if (sign === '<<') return `'${endMark(target)}'`;
  return sign === '>&' ? target : ` ${quoted(target)}`;
}

/** Returns a mark that is not a line of the text. */
function endMark(text: string): string {
  const lines = new Set(text.split('\n'));
  let mark = 'END';
  while (lines.has(mark)) mark += '_';
  return mark;
}
