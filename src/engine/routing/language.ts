/** Splits texts into words, and knows from the language alone which of them say little, so that five skills are distinguished as well as two thousand. */
import { Characters } from '@telos/protocol/text';
import words from './words.json' with { type: 'json' };

/** How common a word is. `function` words are in any text, `filler` words in most requests, `ordinary` words in some. */
export type WordClass = 'function' | 'filler' | 'ordinary' | 'rare';

/** Share of all texts in which a word of the class is expected, 0 to 1. A prior: the texts of the skills outweigh it. */
export const expectedShare: Readonly<Record<WordClass, number>> = {
  function: 0.6,
  filler: 0.25,
  ordinary: 0.06,
  rare: 0.02,
};

const classes = new Map<string, WordClass>();
/** The filler and ordinary words by their first two letters, which stemming never changes. */
const byStart = new Map<string, [word: string, kind: WordClass][]>();
/** The word classes by stem, for the first two letters looked up so far. */
const ofStems = new Map<string, ReadonlyMap<string, WordClass>>();

/** Returns the class of a lower-case word. A form of a filler or ordinary word has the class of that word. */
export function wordClass(word: string): WordClass {
  if (classes.size === 0) fillClasses();
  const known = classes.get(word) ?? classOfForm(word);
  return known ?? (/^\d+(?:am|pm|st|nd|rd|th|k|h|m|s)?$/.test(word) ? 'filler' : 'rare');
}

/** Stems only the listed words with the same first letters, and only once. Stemming all would be a tenth of a cold start. */
function classOfForm(word: string): WordClass | undefined {
  const start = word.slice(0, 2);
  let stems = ofStems.get(start);
  if (!stems) {
    // If several words have one stem, the last one wins; it is of the commonest class.
    stems = new Map(byStart.get(start)?.map(([listed, kind]) => [stem(listed), kind]));
    ofStems.set(start, stems);
  }
  return stems.get(stem(word));
}

/** Fills the tables at the first lookup, so that starting the engine costs nothing. The commoner class of a word wins. */
function fillClasses(): void {
  for (const kind of ['ordinary', 'filler', 'function'] as const) {
    for (const word of words[kind].join(' ').split(' ')) {
      classes.set(word, kind);
      if (kind === 'function' && word.length < 4) continue;
      const start = word.slice(0, 2);
      const others = byStart.get(start);
      if (others) others.push([word, kind]);
      else byStart.set(start, [[word, kind]]);
    }
  }
}

let brands: ReadonlySet<string> | undefined;
let everyday: ReadonlySet<string> | undefined;
let known: ReadonlySet<string> | undefined;

/** Whether a lower-case word is one that people use every day, so that a skill of that name is not meant by it alone. */
export function isEveryday(word: string): boolean {
  everyday ??= new Set(words.everyday.join(' ').split(' '));
  return everyday.has(word) || wordClass(word) === 'ordinary' || isBrand(word);
}

/**
 * Whether a lower-case word is an ordinary one of English, German, French or Spanish. It is then no misspelling of another: "police" does not
 * mean `policy`.
 */
export function isKnown(word: string): boolean {
  known ??= new Set(words.known.join(' ').split(' '));
  const isListed = [/$/, /s$/, /es$/].some(ending => known?.has(word.replace(ending, '')));
  return isListed || wordClass(word) !== 'rare' || isEveryday(word);
}

/** Whether a lower-case word is the name of a well-known product or company. People mention these without meaning a skill. */
export function isBrand(word: string): boolean {
  brands ??= new Set(words.brands.join(' ').split(' '));
  return brands.has(word);
}

/** Returns the listed words whose first two letters are those of a word, in either order. */
export function listedWords(word: string): readonly string[] {
  if (classes.size === 0) fillClasses();
  const [a = '', b = ''] = word;
  return [...(byStart.get(a + b) ?? []), ...(byStart.get(b + a) ?? [])].map(([listed]) => listed);
}

const endings: readonly (readonly [ending: string, replacement: string, shortestRest: number])[] = [
  ['izations', '', 4],
  ['isations', '', 4],
  ['ization', '', 4],
  ['isation', '', 4],
  ['ations', 'at', 3],
  ['ation', 'at', 3],
  ['ators', 'at', 3],
  ['ator', 'at', 3],
  ['ments', '', 4],
  ['ment', '', 4],
  ['izing', '', 4],
  ['ising', '', 5],
  ['ings', '', 3],
  ['ing', '', 3],
  ['ized', '', 4],
  ['ised', '', 5],
  ['izes', '', 4],
  ['ises', '', 5],
  ['izer', '', 4],
  ['ize', '', 4],
  ['ise', '', 5],
  ['ies', 'y', 2],
  ['ied', 'y', 2],
  ['sses', 'ss', 2],
  ['ers', '', 4],
  ['er', '', 4],
  ['ors', '', 4],
  ['or', '', 4],
  ['ed', '', 3],
  ['ly', '', 4],
  ['es', '', 4],
  ['is', '', 5],
];

/** Returns a light English stem. Words of other languages may lose an ending, but the same one in request and skill. */
export function stem(word: string): string {
  if (word.length < 4 || !/^[a-z]+$/.test(word)) return word;
  let rest = word;
  for (const [ending, replacement, shortest] of endings) {
    if (!rest.endsWith(ending) || rest.length - ending.length < shortest) continue;
    const root = rest.slice(0, -ending.length);
    if (!/[aeiouy]/.test(root)) break;
    rest = root + replacement;
    break;
  }
  if (rest === word && /[^su]s$/.test(rest)) rest = rest.slice(0, -1);
  if (/([^aeiouls])\1$/.test(rest)) rest = rest.slice(0, -1);
  if (rest.length > 3 && rest.endsWith('e')) rest = rest.slice(0, -1);
  if (rest.endsWith('z')) return `${rest.slice(0, -1)}s`;
  if (rest.length < 4 || !rest.endsWith('y')) return rest;
  // A summary summarises, but a policy is no police, and a story no store.
  return rest.length > 6 ? rest.slice(0, -1) : `${rest.slice(0, -1)}i`;
}

/** All terms seen so far, as small numbers. The documents of one index share it. */
export class Vocabulary {
  readonly #ids = new Map<string, number>();
  readonly #terms: string[] = [];
  readonly #shares: number[] = [];
  /** Terms by the word as written. Most words of a text were seen before, and a lookup is cheaper than stemming. */
  #spellings = new Map<string, number>();

  /** Terms by their first letter, made at the first misspelt word. */
  #byStart: { size: number; terms: ReadonlyMap<string, readonly string[]> } | undefined;

  get size(): number {
    return this.#terms.length;
  }

  /** Returns the term of a lower-case word, and adds it if it is new. */
  add(word: string): number {
    const known = this.#spellings.get(word);
    if (known !== undefined) return known;
    const term = stem(word);
    let id = this.#ids.get(term);
    if (id === undefined) {
      id = this.#terms.length;
      this.#ids.set(term, id);
      this.#terms.push(term);
      this.#shares.push(expectedShare[wordClass(word)]);
    }
    this.#spellings.set(word, id);
    return id;
  }

  /** Returns the term of a lower-case word, or undefined if no text contained it. */
  find(word: string): number | undefined {
    return this.#spellings.get(word) ?? this.#ids.get(stem(word));
  }

  /** Returns the terms that are one typing mistake away from a word. The first letter is taken as right, or as swapped. */
  near(word: string): readonly string[] {
    const wanted = stem(word);
    if (this.#byStart?.size !== this.size)
      this.#byStart = { size: this.size, terms: startingAlike(this.#terms) };
    const { terms } = this.#byStart;
    const starts = new Set([word[0] ?? '', word[1] ?? '']);
    return [...starts].flatMap(start =>
      (terms.get(start) ?? []).filter(term => isOneEditAway(term, word) || isOneEditAway(term, wanted)),
    );
  }

  /** Returns the share of all texts that would contain the term, judged by the language alone, 0 to 1. */
  expectedShare(id: number): number {
    return this.#shares[id] ?? expectedShare.rare;
  }

  /** Returns the stem that a term stands for. */
  term(id: number): string {
    return this.#terms[id] ?? '';
  }

  /** Frees memory that is needed only while many texts are read. */
  forgetSpellings(): void {
    this.#spellings = new Map();
  }
}

function startingAlike(terms: readonly string[]): Map<string, string[]> {
  const byStart = new Map<string, string[]>();
  for (const term of terms) {
    if (term.length < 3) continue;
    const start = term[0] ?? '';
    const alike = byStart.get(start);
    if (alike) alike.push(term);
    else byStart.set(start, [term]);
  }
  return byStart;
}

/**
 * Calls `take` for every word, in lower case. With `parts`, a compound (`xcodeBuild`, `e-commerce`) is passed as its parts and as
 * a whole. This is right for texts that are searched. The words of a request are passed as written.
 */
export function eachWord(text: string, parts: boolean, take: (word: string) => void): void {
  if (!beyondAscii.test(text)) {
    // Nearly every line of a skill takes this path, so it is kept short.
    if (!compound.test(text))
      for (const word of text.toLowerCase().match(asciiWords) ?? []) takeWord(word, take);
    else for (const word of text.match(asciiWords) ?? []) eachPart(word, parts, take);
    return;
  }
  const source = text.normalize('NFKC').replace(/[’ʼ]/g, "'");
  for (const word of source.match(/[\p{L}\p{N}]+(?:-[\p{L}\p{N}]+)*/gu) ?? []) {
    if (cjk.test(word)) eachCjk(word, take);
    else eachPart(word, parts, take);
  }
}

const beyondAscii = /[\u0080-\uffff]/;
const compound = /[a-z][A-Z]|[A-Za-z0-9]-[A-Za-z0-9]/;
const asciiWords = /[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*/g;
const cjk = new Characters(
  String.raw`[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]`,
);

/** Passes a word on in lower case. A single Latin letter is skipped, since it says nothing ("what's", "I'm"). */
function takeWord(word: string, take: (word: string) => void): void {
  if (word.length > 1 || !/[a-z]/i.test(word)) take(word.toLowerCase());
}

function eachPart(compound: string, parts: boolean, take: (word: string) => void): void {
  if (!/-|[a-z\u0080-\uffff][A-Z]/.test(compound)) {
    takeWord(compound, take);
    return;
  }
  for (const word of compound.split('-')) {
    const humps = parts ? word.replace(/(\p{Ll})(\p{Lu})/gu, '$1-$2').split('-') : [];
    if (humps.length > 1) for (const hump of humps) takeWord(hump, take);
    takeWord(word, take);
  }
  if (parts && compound.includes('-')) take(compound.replaceAll('-', '').toLowerCase());
}

/** Passes each pair of neighbouring characters, or a single character alone, for languages without spaces. */
function eachCjk(run: string, take: (word: string) => void): void {
  const signs = [...run];
  if (signs.length === 1) take(run);
  for (let index = 1; index < signs.length; index++) take(`${signs[index - 1]}${signs[index]}`.toLowerCase());
}

/** Whether one letter more, one less, another one, or two neighbours swapped make one word of the other. */
export function isOneEditAway(a: string, b: string): boolean {
  if (a === b || Math.abs(a.length - b.length) > 1) return false;
  let start = 0;
  while (start < a.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const [restA, restB] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  if (restA.length <= 1 && restB.length <= 1) return true;
  return restA.length === 2 && restB.length === 2 && restA[0] === restB[1] && restA[1] === restB[0];
}
