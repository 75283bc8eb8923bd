/** Turns text into the terms that the search index counts: words without their endings, parts of compound names, pairs of CJK signs. */
import { stem } from './searchStem.ts';
import { expectedShare, wordClass } from './searchWords.ts';

/** All terms that were ever seen, as small numbers; shared by the documents of one index. */
export class Vocabulary {
  readonly #ids = new Map<string, number>();
  readonly #terms: string[] = [];
  readonly #shares: number[] = [];
  /** Most words of a text have been seen before, and stemming costs more than looking up. */
  #spellings = new Map<string, number>();

  get size(): number {
    return this.#terms.length;
  }

  /** The term of a word in lower case, added where it is new. */
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

  /** The term of a word in lower case; undefined where no text had it. */
  find(word: string): number | undefined {
    return this.#spellings.get(word) ?? this.#ids.get(stem(word));
  }

  /** Share of all texts that would have the term, judged by the language alone; 0 to 1. */
  expectedShare(id: number): number {
    return this.#shares[id] ?? expectedShare.rare;
  }

  terms(): readonly string[] {
    return this.#terms;
  }

  /** Gives up the memory that only matters while many texts are read. */
  forgetSpellings(): void {
    this.#spellings = new Map();
  }
}

/**
 * Calls back for every word, in lower case. With `parts`, a compound (`xcodeBuild`, `e-commerce`) is given as its parts and as a
 * whole, which is right for what is searched; a request is given its words as they are written.
 */
export function eachWord(text: string, parts: boolean, take: (word: string) => void): void {
  if (!beyondAscii.test(text)) {
    // Nearly every line of a skill comes this way, so it is short.
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
const cjk = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u;

/** One Latin letter says nothing ("what's", "I'm"). */
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

/** Languages without spaces: each pair of neighbours, and a sign that stands alone. */
function eachCjk(run: string, take: (word: string) => void): void {
  const signs = [...run];
  if (signs.length === 1) take(run);
  for (let index = 1; index < signs.length; index++) take(`${signs[index - 1]}${signs[index]}`.toLowerCase());
}
