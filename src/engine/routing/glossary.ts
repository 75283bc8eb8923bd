/** Knows words that mean the same, also in other languages: what a person says and what an author wrote often meet only in those. */
import { stem, wordClass } from './language.ts';

/** A word that may stand for another one, and how much of that one's weight it keeps, 0 to 1. */
export interface Alternative {
  word: string;
  share: number;
}

/** Languages of a request that are read beside English. */
type OtherLanguage = 'de' | 'fr' | 'es';
type Language = OtherLanguage | 'en';

const others: readonly OtherLanguage[] = ['de', 'fr', 'es'];
/** Place of a language in a concept of the data. */
const columns: Readonly<Record<Language, number>> = { en: 0, de: 1, fr: 2, es: 3 };

/** Share of an English word that another one of its concept keeps. */
const synonymShare = 0.55;
/** Share of a foreign word that its first translation keeps, and each further one. */
const translationShares = [1, 0.8] as const;
/** Share of a compound ("Einkaufsliste") that the translations of one of its parts keep. */
const partShare = 0.75;
/** Share of an unknown word that a known one keeps which is one typing mistake away. */
export const typoShare = 0.9;
/** Unknown words shorter than this are not corrected: too many words are near them. */
export const leastCorrected = 4;

interface Data {
  stops: Readonly<Record<OtherLanguage, readonly string[]>>;
  /** The words of a meaning in English, German, French and Spanish, the commonest first: "bird | vogel vögel | oiseau | pájaro". */
  concepts: readonly string[];
  /** Words that people use for one matter: a skill for the weather need not say "umbrella". */
  topics: readonly string[];
}

let loading: Promise<Glossary> | undefined;

/** Returns the glossary. It is read at the first call, since most commands never route by words. */
export function openGlossary(): Promise<Glossary> {
  loading ??= import('./glossary.json', { with: { type: 'json' } }).then(
    ({ default: data }) => new Glossary(data),
  );
  return loading;
}

export class Glossary {
  readonly #concepts: readonly (readonly (readonly string[])[])[];
  readonly #stops: Readonly<Record<OtherLanguage, ReadonlySet<string>>>;
  readonly #topics = new Map<string, number[]>();
  /** Concepts by folded word, for each language that was asked for. */
  readonly #byWord = new Map<Language, Map<string, number[]>>();

  constructor({ stops, concepts, topics }: Data) {
    for (const [topic, words] of topics.entries())
      for (const form of new Set(words.split(' ').map(stem))) {
        const known = this.#topics.get(form);
        if (known) known.push(topic);
        else this.#topics.set(form, [topic]);
      }
    this.#concepts = concepts.map(concept => concept.split(' | ').map(words => words.split(' ')));
    const set = (lines: readonly string[]): ReadonlySet<string> => new Set(lines.join(' ').split(' '));
    this.#stops = { de: set(stops.de), fr: set(stops.fr), es: set(stops.es) };
  }

  /** Returns the language whose small words a request has most of. English unless another one has more. */
  languageOf(words: readonly string[]): Language {
    let best: Language = 'en';
    let most = words.filter(
      word => wordClass(word) === 'function' && !others.some(other => this.#stops[other].has(word)),
    ).length;
    most = Math.max(most, words.filter(word => isEnglish(word)).length);
    for (const language of others) {
      const count =
        words.filter(word => this.#stops[language].has(word)).length +
        (words.some(word => marks[language].test(word)) ? 1 : 0);
      if (count > most) [best, most] = [language, count];
    }
    return most > 0 ? best : this.#languageOfMeanings(words);
  }

  /** Returns the language that knows a meaning for most words. English if none knows more than it does. */
  #languageOfMeanings(words: readonly string[]): Language {
    const known = (language: Language): number =>
      words.filter(
        word => this.#find(word, language).length > 0 || (language === 'en' && wordClass(word) !== 'rare'),
      ).length;
    return others.reduce<Language>((best, other) => (known(other) > known(best) ? other : best), 'en');
  }

  /** Returns the topics that a stem belongs to. Empty if there are none. */
  topicsOf(form: string): readonly number[] {
    return this.#topics.get(form) ?? [];
  }

  /** Whether a word says nothing in a language other than English. */
  isStop(word: string, language: Language): boolean {
    return language !== 'en' && this.#stops[language].has(word);
  }

  /** Returns the English words of the same meaning, the nearest first. Empty if there are none. */
  alternatives(word: string, language: Language): readonly Alternative[] {
    if (language === 'en') return this.#synonyms(word);
    const whole = this.#translations(word, language, 1);
    if (whole.length > 0 || language !== 'de') return whole;
    return this.#ofParts(word);
  }

  #synonyms(word: string): Alternative[] {
    const found = this.#find(word, 'en');
    return found.flatMap(concept =>
      (this.#concepts[concept]?.[0] ?? [])
        .filter(other => other !== word)
        .map(other => ({ word: other, share: synonymShare })),
    );
  }

  #translations(word: string, language: Language, share: number): Alternative[] {
    const found = this.#find(word, language);
    return found.flatMap(concept =>
      (this.#concepts[concept]?.[0] ?? []).map((other, at) => ({
        word: other,
        share: share * translationShares[at === 0 ? 0 : 1],
      })),
    );
  }

  /** Returns the translations of a German compound's two parts ("Serien-brief", "Einkauf-s-liste"). */
  #ofParts(word: string): Alternative[] {
    for (let at = word.length - 3; at >= 3; at--) {
      const end = this.#translations(word.slice(at), 'de', partShare);
      if (end.length === 0) continue;
      const start = word.slice(0, at);
      const first = this.#translations(start, 'de', partShare);
      if (first.length > 0) return [...first, ...end];
      const linked =
        start.length > 3 ? this.#translations(start.replace(/(?:s|n|en)$/, ''), 'de', partShare) : [];
      if (linked.length > 0 || word.length - at >= 5) return [...linked, ...end];
    }
    return [];
  }

  #find(word: string, language: Language): readonly number[] {
    let byWord = this.#byWord.get(language);
    if (!byWord) {
      byWord = new Map();
      for (const [at, concept] of this.#concepts.entries()) {
        for (const said of concept[columns[language]] ?? []) {
          for (const form of new Set([folded(said), rootOf(said, language)])) {
            const known = byWord.get(form);
            if (!known) byWord.set(form, [at]);
            else if (!known.includes(at)) known.push(at);
          }
        }
      }
      this.#byWord.set(language, byWord);
    }
    return byWord.get(folded(word)) ?? byWord.get(rootOf(word, language)) ?? [];
  }

  /** Returns the words of the glossary in a language, for `corrections`. */
  words(language: Language): Iterable<string> {
    this.#find('', language);
    return this.#byWord.get(language)?.keys() ?? [];
  }
}

const isEnglish = (word: string): boolean => english.test(word);
const english =
  /^(?:the|my|is|are|to|for|of|and|i|you|it|what|how|do|please|in|on|with|me|a|an|that|this|not|can|show|make|get)$/;
const marks: Readonly<Record<OtherLanguage, RegExp>> = { de: /[äöüß]/, fr: /[àâçèêëîïôœùû]/, es: /[áíóúñ]/ };

/** Returns a word without its accents. */
const folded = (word: string): string =>
  word.normalize('NFD').replace(/\p{M}/gu, '').replaceAll('ß', 'ss').replaceAll('œ', 'oe');

const suffixes: Readonly<Record<Language, RegExp>> = {
  en: /(?:ing|ers|er|ed|es|s)$/,
  de: /(?:ungen|ung|ene|enen|en|er|em|es|e|n|s|t|st|te)$/,
  fr: /(?:ements|ement|euses|eurs|ees|ee|es|ez|er|e|s|x)$/,
  es: /(?:aciones|acion|mente|ando|iendo|ados|adas|ado|ada|ar|er|ir|os|as|es|o|a|e|s|la|me|lo)$/,
};

/** Returns a word without its accents and its ending, if four letters are left. */
function rootOf(word: string, language: Language): string {
  const whole = folded(word);
  const root = whole.replace(suffixes[language], '');
  return root.length >= 4 ? root : whole;
}
