/** Knows the programs that only compute: what their words read and write, and which of their flags do nothing else. */
import { basename } from 'node:path';
import { isSecretName } from '../redact.ts';
import { git } from './gitLook.ts';
import {
  type Computation,
  type Flags,
  grepFlags,
  type IsThere,
  type PathWord,
  Refusal,
  readFlags,
} from './readOnlyFlags.ts';
import { readWords } from './shellCommands.ts';
import { hasUnknown, unknownIn } from './shellPlan.ts';

type Form = (words: readonly string[], isThere: IsThere) => Computation;

/**
 * Returns what the words of such a program do; undefined for any other program, and for words that do more than compute.
 */
export function computation(
  [program = '', ...rest]: readonly string[],
  isThere: IsThere,
): Computation | undefined {
  const form = Object.hasOwn(forms, program) ? forms[program] : undefined;
  if (!form || !mayBeUnknown(program, rest)) return undefined;
  try {
    const { words, ...others } = form(rest, isThere);
    return { words: [program, ...words], ...others };
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

/** A value that is only printed need not be known, unless its name says that it is a secret. */
const mayBeUnknown = (program: string, words: readonly string[]): boolean =>
  !words.some(hasUnknown) ||
  (/^(echo|printf)$/.test(program) && !words.flatMap(unknownIn).some(isSecretName));

/** Returns what a line prints if nothing has to run for that: the folder it runs in, or the time in numbers. */
export function toldOutput(line: string, folder: string, now = new Date()): string | undefined {
  const { words, refused } = readWords(line);
  if (refused !== undefined) return undefined;
  if (words.join(' ') === 'pwd') return /[\0-\x1f\ue000-\ue01f]/.test(folder) ? undefined : folder;
  const [program, format = '', ...more] = words.map(word => (word === '-I' ? '+%F' : word));
  if (program !== 'date' || more.length > 0 || !/^\+(?:%[YmdHMSyjsFT]|[-_:TZ ])+$/.test(format))
    return undefined;
  return format.slice(1).replace(/%(.)/g, (_, letter: string) => numberOf(letter, now));
}

function numberOf(letter: string, now: Date): string {
  const two = (value: number): string => String(value).padStart(2, '0');
  const of = (letters: string, between: string): string =>
    [...letters].map(each => numberOf(each, now)).join(between);
  switch (letter) {
    case 'Y':
      return String(now.getFullYear());
    case 'y':
      return two(now.getFullYear() % 100);
    case 'm':
      return two(now.getMonth() + 1);
    case 'd':
      return two(now.getDate());
    case 'H':
      return two(now.getHours());
    case 'M':
      return two(now.getMinutes());
    case 'S':
      return two(now.getSeconds());
    case 's':
      return String(Math.floor(now.getTime() / 1000));
    case 'F':
      return of('Ymd', '-');
    case 'T':
      return of('HMS', ':');
    default: {
      const days =
        Date.UTC(now.getFullYear(), now.getMonth(), now.getDate()) - Date.UTC(now.getFullYear(), 0, 0);
      return String(days / 86_400_000).padStart(3, '0');
    }
  }
}

const no = (): never => {
  throw new Refusal('It can do more than compute.');
};

const reading = (path: string): string | PathWord => (path === '-' ? path : { path, use: 'read' });
const writing = (path: string): PathWord => ({ path, use: 'write' });

/** Returns the form of a program whose operands are all files to read. */
const reader =
  (program: string, flags: Flags, mostFiles = Number.POSITIVE_INFINITY): Form =>
  words => {
    const { flags: given, operands } = readFlags(program, words, flags);
    if (operands.length > mostFiles) no();
    return { words: [...given, '--', ...operands.map(reading)] };
  };

/** Returns the form of a program whose operands are all files or folders to make. */
const maker =
  (program: string, letters: string): Form =>
  words => {
    const { flags, operands } = readFlags(program, words, { letters });
    return { words: [...flags, '--', ...operands.map(writing)] };
  };

/** Reads the old way to write a number of lines as well: -20. */
const fewLines = (program: string): Form => {
  const read = reader(program, { letters: 'qv', valueLetters: 'nc', valueNames: ['lines', 'bytes'] });
  return (words, isThere) =>
    read(
      words.map(word => (/^-\d{1,9}$/.test(word) ? `-n${word.slice(1)}` : word)),
      isThere,
    );
};

const forms: Readonly<Record<string, Form>> = {
  date,
  echo: words => ({ words }),
  printf,
  jq,
  bc: reader('bc', { letters: 'lq', names: ['mathlib', 'quiet'] }),
  cat: reader('cat', { letters: 'nbsetuvAET' }),
  head: fewLines('head'),
  tail: fewLines('tail'),
  sort: reader('sort', {
    letters: 'bdfghinruVcCMsz',
    valueLetters: 'kt',
    names: [
      'numeric-sort',
      'reverse',
      'unique',
      'ignore-case',
      'human-numeric-sort',
      'version-sort',
      'stable',
    ],
    valueNames: ['key', 'field-separator'],
  }),
  // A second file would be written.
  uniq: reader('uniq', { letters: 'cduiz', valueLetters: 'fsw', names: ['count', 'repeated', 'unique'] }, 1),
  wc: reader('wc', { letters: 'lwcmL', names: ['lines', 'words', 'chars', 'bytes'] }),
  cut: reader('cut', {
    letters: 'szn',
    valueLetters: 'dfcb',
    names: ['complement', 'only-delimited'],
    valueNames: ['delimiter', 'fields', 'characters', 'output-delimiter'],
  }),
  tr: words => {
    const { flags, operands } = readFlags('tr', words, { letters: 'cCdst' });
    return operands.length > 2 ? no() : { words: [...flags, '--', ...operands] };
  },
  grep: words => {
    const { flags, operands } = readFlags('grep', words, grepFlags);
    if (flags.some(flag => /^(-r|--recursive)$/.test(flag))) no();
    const hasPattern = flags.some(flag => /^(-e|--regexp=)/.test(flag));
    const patterns = hasPattern ? [] : operands.slice(0, 1);
    const files = operands.slice(patterns.length);
    return { words: [...flags, '--', ...patterns, ...files.map(reading)] };
  },
  mkdir: maker('mkdir', 'pv'),
  touch: maker('touch', 'cam'),
  cp,
  git,
};

/** A word that is not a format would set the clock. */
function date(words: readonly string[]): Computation {
  const { flags, operands } = readFlags('date', words, {
    letters: 'uRI',
    valueLetters: process.platform === 'darwin' ? 'v' : 'dv',
    names: ['utc', 'universal', 'rfc-email', 'iso-8601'],
    valueNames: process.platform === 'darwin' ? [] : ['date', 'rfc-3339'],
  });
  return operands.every(word => word.startsWith('+')) ? { words: [...flags, ...operands] } : no();
}

/** In some shells, printf stores numbers in variables and computes what is written for a number. */
function printf(words: readonly string[]): Computation {
  const [format = '', ...values] = words[0] === '--' ? words.slice(1) : words;
  const conversions = format.replaceAll('%%', '').match(/%[^a-zA-Z]*[a-zA-Z(]?/g) ?? [];
  if (
    format.startsWith('-') ||
    hasUnknown(format) ||
    !conversions.every(one => /^%[-+ 0#]*\d*(\.\d+)?[sbcdiufgex]$/.test(one))
  )
    no();
  const isText = conversions.every(one => /[sbc]$/.test(one));
  if (!isText && values.some(value => /[^\w.,:;!? +-]/.test(value))) no();
  return { words: ['--', format, ...values] };
}

const jqFlags: Flags = {
  letters: 'rcjnseSaCMR',
  names: [
    ...['raw-output', 'compact-output', 'join-output', 'null-input', 'slurp', 'exit-status', 'sort-keys'],
    ...['ascii-output', 'color-output', 'monochrome-output', 'raw-input', 'tab'],
  ],
};
/** Words of the language that read variables, files and modules, or that tell where the input comes from. */
const jqReaches = /\$ENV|\$__|\benv\b|\binput_filename\b|\b(?:import|include|modulemeta|get_search_list)\b/;

function jq(words: readonly string[]): Computation {
  const plain: string[] = [];
  const named: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    if (/^--arg(json)?$/.test(word)) {
      const [name, value] = [words[++at], words[++at]];
      if (name === undefined || value === undefined) no();
      named.push(word, name!, value!);
    } else if (word === '--indent') named.push(word, /^\d$/.test(words[++at] ?? '') ? words[at]! : no());
    else plain.push(word);
  }
  const { flags, operands } = readFlags('jq', plain, jqFlags);
  const [program = '.', ...files] = operands;
  if (jqReaches.test(program) || program.startsWith('-') || files.includes('-')) no();
  return { words: [...flags, ...named, program, ...files.map(dashed).map(reading)] };
}

/** jq takes flags behind its files as well. */
const dashed = (path: string): string => (path.startsWith('-') ? `./${path}` : path);

/** Which name a copy gets depends on whether the last path is a folder by then, so both are looked at. */
function cp(words: readonly string[]): Computation {
  const { flags, operands } = readFlags('cp', words, {
    letters: 'nvpfrR',
    names: ['recursive', 'no-clobber'],
  });
  const [to = no(), ...others] = operands.toReversed();
  if (others.length === 0) no();
  const places = others.map(from => {
    const name = basename(from);
    return { from, to: /^\.{0,2}$/.test(name) ? [to] : [to, `${to}/${name}`] };
  });
  const sources = others.reverse().map((path): PathWord => ({ path, use: 'read' }));
  const copies = { words: [...flags, '--', ...sources, writing(to)] };
  const isDeep = flags.some(flag => /^(-r|-R|--recursive)$/.test(flag));
  return { ...copies, writes: places.flatMap(place => place.to), ...(isDeep ? { trees: places } : {}) };
}
