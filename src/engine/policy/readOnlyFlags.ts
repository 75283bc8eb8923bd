/** Lists the flags of each program that only looks at files, and reads flags. Every flag that is not on the list is refused. */

import { shortened } from '@telos/protocol/text';
import type { LineRange } from '../tools/fileLines.ts';
import type { ReadOnlyProgram } from '../tools/readOnlyShell.ts';
import programs from './programs.json' with { type: 'json' };

/** Says what is refused, and why. The message is for the model and for a person. */
export class Refusal extends Error {}

/** A command as its words say it. No path has been looked at. */
export interface WrittenCommand {
  /** Flags before the paths, without `--`. */
  flags: readonly string[];
  /** Patterns to search for, if they are not the value of a flag. */
  patterns: readonly string[];
  /** Paths as they are written. */
  paths: readonly string[];
  /** Tests after the paths. */
  tests: readonly string[];
  lines: LineRange;
  /** True if it shows the content of every file below its paths. */
  readsBelow: boolean;
  /** True if it goes through the folder in which it runs when no path is given. */
  goesThroughFolder?: boolean;
}

type Form = (words: readonly string[]) => Partial<WrittenCommand>;

/** Flags of a program. Long ones are written in full, because an abbreviation could mean one that is not listed. */
interface Flags {
  letters: string;
  /** Letters that take a value. */
  valueLetters?: string;
  names?: readonly string[];
  /** Names that take a value, as `--name=value` or in the next word. */
  valueNames?: readonly string[];
}

/** Returns the words of a table's lines. */
export const wordsOf = (lines: readonly string[] = []): ReadonlySet<string> =>
  new Set(lines.flatMap(line => line.split(' ')));

/** Returns the flags of a program as the table lists them, several names in each line. */
const flagsOf = ({ names, valueNames, ...letters }: Flags): Flags => ({
  ...letters,
  names: [...wordsOf(names)],
  valueNames: [...wordsOf(valueNames)],
});

export const forms: Readonly<Record<ReadOnlyProgram, Form>> = {
  pwd: words => {
    if (words[0] !== undefined) throw refused('pwd', words[0]);
    return {};
  },
  ls: words => {
    const { flags, operands } = readFlags('ls', words, lsFlags);
    return { flags, paths: orHere(operands) };
  },
  cat: words => {
    const { flags, operands } = readFlags('cat', words, { letters: 'n' });
    return { flags, paths: files('cat', operands) };
  },
  head: words => fewLines('head', words),
  tail: words => fewLines('tail', words),
  sed,
  find,
  rg,
  grep,
};

const lsFlags = flagsOf(programs.look.ls);

/** Accepts only `sed -n A,Bp FILE`, word for word. sed takes flags anywhere, and its scripts write files and run programs. */
function sed(words: readonly string[]): Partial<WrittenCommand> {
  const [flag, script = '', file, ...more] = words;
  const range = /^(\d{1,9})(?:,(\d{1,9}|\$))?p$/.exec(script);
  const fault = flag !== '-n' ? flag : !range ? script : file?.startsWith('-') ? file : more[0];
  if (fault !== undefined || !range)
    throw new Refusal(`sed is taken only as sed -n 'A,Bp' FILE, not with ${shown(fault ?? script)}.`);
  const first = Number(range[1]);
  const last = range[2] === '$' ? Number.POSITIVE_INFINITY : Math.max(first, Number(range[2] ?? first));
  return { paths: files('sed', file === undefined ? [] : [file]), lines: { first, last } };
}

function fewLines(program: 'head' | 'tail', words: readonly string[]): Partial<WrittenCommand> {
  // The old way to write the number: -20.
  const plain = words.map(word => (/^-\d{1,9}$/.test(word) ? `-n${word.slice(1)}` : word));
  const tailOnly = program === 'tail' ? 'f' : '';
  const { flags, operands } = readFlags(program, plain, {
    letters: tailOnly,
    valueLetters: 'n',
    valueNames: ['lines'],
  });
  const counts = flags.filter(flag => flag !== '-f').map(flag => flag.replace(/^(-n|--lines=)/, ''));
  const count = /^(\+?)(\d{1,9})$/.exec(counts.at(-1) ?? '10');
  if (!count || (count[1] && program === 'head')) throw refused(program, `-n ${counts.at(-1)}`);
  const number = Number(count[2]);
  const lines: LineRange =
    program === 'head'
      ? { first: 1, last: number }
      : count[1]
        ? { first: number, last: Number.POSITIVE_INFINITY }
        : { fromEnd: number };
  const paths = files(program, operands);
  if (paths[1] !== undefined) throw refused(program, paths[1], 'Give one file.');
  return { flags: flags.includes('-f') ? ['-f'] : [], paths, lines };
}

const findWithValue = wordsOf(programs.look.find.withValue);
const findAlone = wordsOf(programs.look.find.alone);

function find(words: readonly string[]): Partial<WrittenCommand> {
  const begin = words[0] === '-P' ? 1 : 0;
  const isTest = (word: string): boolean => /^[-(),!]/.test(word);
  const found = words.findIndex((word, index) => index >= begin && isTest(word));
  const end = found < 0 ? words.length : found;
  const tests = words.slice(end);
  for (let at = 0; at < tests.length; at++) {
    const test = tests[at]!;
    if (findWithValue.has(test)) {
      if (tests[++at] === undefined) throw new Refusal(`find ${test} needs a value.`);
    } else if (!findAlone.has(test)) throw refused('find', test);
  }
  return { flags: words.slice(0, begin), paths: orHere(words.slice(begin, end)), tests };
}

const rgFlags = flagsOf(programs.look.rg);

function rg(words: readonly string[]): Partial<WrittenCommand> {
  const { flags, operands } = readFlags('rg', words, rgFlags);
  if (flags.includes('--type-list')) return { flags };
  const hasPattern = flags.some(flag => /^(-e|--regexp=|--files$)/.test(flag));
  const { patterns, paths } = split('rg', operands, hasPattern);
  const readsBelow = !flags.includes('--files');
  return { flags, patterns, paths, readsBelow, goesThroughFolder: paths.length === 0 };
}

const grepFlags = flagsOf(programs.look.grep);

function grep(words: readonly string[]): Partial<WrittenCommand> {
  const { flags, operands } = readFlags('grep', words, grepFlags);
  const hasPattern = flags.some(flag => /^(-e|--regexp=)/.test(flag));
  const readsBelow = flags.some(flag => flag === '-r' || flag === '--recursive');
  const { patterns, paths } = split('grep', operands, hasPattern);
  // Without a path, grep would read standard input.
  return { flags, patterns, paths: readsBelow ? orHere(paths) : files('grep', paths), readsBelow };
}

/** Returns the flags one by one, each with its value: `-nA3` is `-n`, `-A3`. Throws Refusal. */
function readFlags(
  program: string,
  words: readonly string[],
  { letters, valueLetters = '', names = [], valueNames = [] }: Flags,
): { flags: string[]; operands: string[] } {
  const flags: string[] = [];
  const operands: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    const next = (flag: string): string => {
      const value = words[++at];
      if (value === undefined) throw new Refusal(`${program} ${shown(flag)} needs a value.`);
      return value;
    };
    if (word === '--') {
      operands.push(...words.slice(at + 1));
      break;
    }
    if (!word.startsWith('-') || word === '-') operands.push(word);
    else if (word.startsWith('--')) {
      const [, name = '', value] = /^--([^=]*)(?:=(.*))?$/s.exec(word) ?? [];
      const takes = valueNames.includes(name);
      if (takes) flags.push(`--${name}=${value ?? next(word)}`);
      else if (names.includes(name) && value === undefined) flags.push(word);
      else throw refused(program, word);
    } else {
      for (let index = 1; index < word.length; index++) {
        const letter = word[index]!;
        if (valueLetters.includes(letter)) {
          flags.push(`-${letter}${word.slice(index + 1) || next(`-${letter}`)}`);
          break;
        }
        if (!letters.includes(letter))
          throw refused(program, word.length > 2 ? `-${letter} in ${word}` : word);
        flags.push(`-${letter}`);
      }
    }
  }
  return { flags, operands };
}

function split(
  program: string,
  operands: readonly string[],
  hasPattern: boolean,
): Pick<WrittenCommand, 'patterns' | 'paths'> {
  if (hasPattern) return { patterns: [], paths: operands };
  if (operands.length === 0) throw new Refusal(`${program} needs something to look for.`);
  return { patterns: operands.slice(0, 1), paths: operands.slice(1) };
}

const orHere = (paths: readonly string[]): readonly string[] => (paths.length > 0 ? paths : ['.']);

function files(program: string, paths: readonly string[]): readonly string[] {
  if (paths.length === 0) throw new Refusal(`${program} needs a file; nothing is typed in here.`);
  return paths;
}

function refused(program: string, word: string, more = 'Only flags that look at files are.'): Refusal {
  return new Refusal(`${program} is not run with ${shown(word)}. ${more}`);
}

/** Returns as much of a word as a message needs. */
export const shown = (word: string): string => JSON.stringify(shortened(word, 80));
