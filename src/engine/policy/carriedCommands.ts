/** Finds the commands that a command can be: behind a program that runs another one, and behind a first word that is not plain. */
import type { ReadWord } from './commandReach.ts';
import programs from './programs.json' with { type: 'json' };
import { wordsOf } from './readOnlyFlags.ts';
import { signs } from './shellSigns.ts';

/** Programs that run the program named among their words. */
const carriers = wordsOf(programs.danger.carriers);
/** Programs that do so after a word such as `run`. What `npm run` starts is a script, whose name is no program. */
const runOthers = wordsOf(programs.danger.runOthers);
/** Programs to which a line is passed as one word. */
const lineTakers = wordsOf(programs.danger.lineTakers);
/** Words of all commands behind one carrier together, so that a long line takes no long time. */
const mostCarried = 400_000;

/** Returns a program's name without its folder and ending, in small letters. */
export const programName = (word = ''): string =>
  word
    .slice(Math.max(word.lastIndexOf('/'), word.lastIndexOf('\\')) + 1)
    .replace(/\.exe$/i, '')
    .toLowerCase();

export const firstValues = (words: readonly ReadWord[]): string[] =>
  words.map(({ values: [first = ''] }) => first);

export const isOpen = (word: string): boolean => word.includes(signs.any);

const asWord = (text: string): ReadWord => ({ written: text, values: [text] });

export const isCarrier = (words: readonly ReadWord[]): boolean => carriedFrom(words) !== undefined;

/** Returns where the first word is that could be a carried program; undefined for a program that carries none. */
function carriedFrom(words: readonly ReadWord[]): number | undefined {
  const [first = '', ...texts] = firstValues(words);
  const name = programName(first);
  if (carriers.has(name)) return 1;
  const isPython = /^(?:python[\d.]*|pypy[\d.]*|py)$/.test(name);
  const isManager = runOthers.has(name);
  if (!isPython && !isManager) return undefined;
  const verb = isPython
    ? /^-[a-zA-Z]*m$/
    : /^(?:npm|pnpm|yarn)$/.test(name)
      ? /^(?:exec|x|dlx)$/
      : /^(?:run|exec|x)$/;
  const at = texts.findIndex(word => verb.test(word));
  return at < 0 ? undefined : at + 2;
}

/** Returns the command, and behind a program that runs another one everything that could be the other. Options and assignments could not. */
export function behindCarriers(words: readonly ReadWord[]): (readonly ReadWord[])[] {
  if (words.length === 0) return [];
  const from = carriedFrom(words);
  if (from === undefined) return [words];
  const behind = words.flatMap(({ written }, at) => (at >= from && !/^[-+]|^\w+=/.test(written) ? [at] : []));
  return [words, ...behind.slice(0, mostBehind(words)).map(at => words.slice(at))];
}

/** Returns how many commands are read behind a program. */
export const mostBehind = ({ length }: readonly ReadWord[]): number =>
  Math.max(8, Math.floor(mostCarried / length));

/** Returns true if not every command that could be carried is read. */
export const isCut = (words: readonly ReadWord[]): boolean =>
  isCarrier(words) && words.length > mostBehind(words);

/**
 * Returns the commands that one can be by its first word: with several values, for braces and variables, each can be the program and the
 * others its operands. `printed` is what `echo` or `which` in a substitution could put in its place.
 */
export function readingsOf(
  words: readonly ReadWord[],
  printed: readonly (readonly ReadWord[])[],
): (readonly ReadWord[])[] {
  const [first, ...rest] = words;
  if (!first) return [];
  const { values } = first;
  const own = values.length > 1 ? values.map((_, at) => [...values.slice(at).map(asWord), ...rest]) : [words];
  return values.some(isOpen) ? [...own, ...printed.map(text => [...text, ...rest])] : own;
}

/** Returns the words that a command prints as they are; none if it prints something else. */
export function wordsPrinted(words: readonly ReadWord[]): readonly ReadWord[] {
  const [program, ...operands] = words;
  const name = programName(program?.values[0]);
  if (!/^(?:echo|printf|which|command|type|whence)$/.test(name)) return [];
  const ownFlag = name === 'echo' ? /^-[neE]+$/ : /^-|%/;
  return operands.filter(({ written }) => !ownFlag.test(written));
}

/** Returns the lines that a command is given in its words. */
export function linesGiven(name: string, operands: readonly ReadWord[]): string[] {
  const texts = operands.map(({ written }) => written);
  if (name === 'git') return linesOfGit(texts);
  if (!lineTakers.has(name)) return [];
  const lines = texts.filter(text => /\s/.test(text));
  return lines.flatMap(text => [text, text.replace(/^(?:-S|-{0,2}[\w.-]+=)/, '')]);
}

/** Messages of commits are texts too, and are not run. */
function linesOfGit(texts: readonly string[]): string[] {
  const each = texts.indexOf('foreach');
  return texts.flatMap((text, at) => {
    const before = texts[at - 1] ?? '';
    const [, key = '', shell, value = ''] = /^([\w.-]+)=(!?)(.*)$/s.exec(text) ?? [];
    if (before === '-c' && value !== '') return [shell || !/^alias\./i.test(key) ? value : `git ${value}`];
    if (/^--(?:exec|\S+-filter)=/.test(text)) return [text.slice(text.indexOf('=') + 1)];
    const isRun = (each >= 0 && at > each) || /^(?:-x|--exec|--\S+-filter)$/.test(before);
    return isRun && /\s/.test(text) ? [text] : [];
  });
}
