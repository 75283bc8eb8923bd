/** Reads a line of several commands whose every word is known, and writes the line that is started from what was read. */
import { readLine, type ShellToken, signs } from './shellWords.ts';

/** One program with its words. Words contain `signs` around the names of variables whose values are not known here. */
export interface Stage {
  /** Sign before it: empty for the first one, `;` also for a new line. */
  joint: '' | '|' | '&&' | '||' | ';';
  assignments: readonly (readonly [name: string, value: string])[];
  words: readonly string[];
  redirections: readonly Redirection[];
}

export interface Redirection {
  stream: '' | '1' | '2';
  sign: '>' | '>>' | '<' | '>&';
  /** A path, or the number of a stream after `>&`. */
  target: string;
}

/** In characters. */
const longestPlan = 20_000;
const mostStages = 30;

/** Words that begin a construct of the shell, not a program. */
export const reserved =
  /^(if|then|else|elif|fi|do|done|case|esac|while|until|for|in|function|select|time|coproc|!|\[\[|\{|\})$/;

/**
 * Returns the commands of a line in their order. Undefined if it has a part whose meaning only a shell would know: a pattern, a
 * substitution, a group, a loop. `values` are the variables whose values are known.
 */
export function readPlan(line: string, values: Readonly<Record<string, string>>): Stage[] | undefined {
  if (line.length > longestPlan || /[\0\r\ue000-\ue01f]/.test(line)) return undefined;
  const { tokens, inner, unread } = readLine(line);
  if (unread !== undefined || inner.length > 0) return undefined;
  const stages: Stage[] = [];
  let [joint, current]: [Stage['joint'], ShellToken[]] = ['', []];
  for (const token of tokens) {
    if (token.kind === 'heredoc') return undefined;
    if (token.kind === 'comment') continue;
    if (token.kind === 'word' || /[<>]/.test(token.text)) {
      current.push(token);
      continue;
    }
    const next = token.text === '\n' ? ';' : token.text;
    // A new line after an operator, or after another one, means nothing.
    if (current.length === 0 && token.text === '\n') continue;
    if (!/^(;|\||&&|\|\|)$/.test(next) || current.length === 0) return undefined;
    const stage = readStage(current, joint, values);
    if (!stage || stages.push(stage) > mostStages) return undefined;
    [joint, current] = [next as Stage['joint'], []];
  }
  if (current.length === 0) return joint === ';' ? stages : undefined;
  const last = readStage(current, joint, values);
  return last && [...stages, last];
}

function readStage(
  tokens: readonly ShellToken[],
  joint: Stage['joint'],
  values: Readonly<Record<string, string>>,
): Stage | undefined {
  const assignments: [string, string][] = [];
  const words: string[] = [];
  const redirections: Redirection[] = [];
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at]!;
    if (token.kind === 'operator') {
      const found = readRedirection(token, tokens[++at], values);
      if (!found) return undefined;
      redirections.push(...found);
      continue;
    }
    const text = knownText(token.text, values);
    if (text === undefined) return undefined;
    const assignment = words.length === 0 ? /^([A-Za-z_]\w*)=(.*)$/s.exec(text) : null;
    if (assignment) assignments.push([assignment[1]!, assignment[2]!]);
    else words.push(text);
  }
  const [program] = words;
  // A program in quotes is a program, but one named like a word of the shell is not worth the doubt.
  if (!program || reserved.test(program) || hasUnknown(program)) return undefined;
  return { joint, assignments, words, redirections };
}

function readRedirection(
  { text: sign, stream = '' }: ShellToken,
  target: ShellToken | undefined,
  values: Readonly<Record<string, string>>,
): Redirection[] | undefined {
  const path = target?.kind === 'word' ? knownText(target.text, values) : undefined;
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

/** Returns true for a word that contains a variable whose value is not known here. */
export const hasUnknown = (word: string): boolean => word.includes(signs.variable);

const variable = new RegExp(`${signs.variable}([^${signs.end}]*)${signs.end}`, 'g');

/** Returns the names of the variables in a word whose values are not known here. */
export const unknownIn = (word: string): string[] =>
  [...word.matchAll(variable)].map(([, name = '']) => name);

/** Returns the word with the values of known variables; undefined if a shell would make something else of it. */
function knownText(text: string, values: Readonly<Record<string, string>>): string | undefined {
  const isHome = text.startsWith(signs.tilde) && /^(\/|$)/.test(text.slice(1));
  const plain = (isHome ? (values['HOME'] ?? signs.tilde) + text.slice(1) : text)
    .replaceAll(signs.comma, ',')
    .replace(variable, (sign, name: string) => (Object.hasOwn(values, name) ? values[name]! : sign));
  return /[\0\ue000-\ue013]/.test(plain) ? undefined : plain;
}

/** Returns a word for a shell, which makes exactly that word of it. */
export const quoted = (word: string): string =>
  word
    .split(variable)
    .map((part, index) => {
      if (index % 2 === 1) return `"$${part}"`;
      if (/^[\w./:@%+,-]+$/.test(part)) return part;
      return part === '' && word !== '' ? '' : `'${part.replaceAll("'", "'\\''")}'`;
    })
    .join('');

/** Returns the line that does what the stages say. Their paths have been resolved. */
export const lineOf = (stages: readonly Stage[]): string => stages.map(textOf).join('');

function textOf({ joint, assignments, words, redirections }: Stage): string {
  const parts = [
    ...assignments.map(([name, value]) => `${name}=${quoted(value)}`),
    ...words.map(quoted),
    ...redirections.map(
      ({ stream, sign, target }) => `${stream}${sign}${sign === '>&' ? target : ` ${quoted(target)}`}`,
    ),
  ];
  return `${joint === '' ? '' : ` ${joint} `}${parts.join(' ')}`;
}
