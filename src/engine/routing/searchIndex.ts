/** Finds the skills that fit a request by their words, in memory, without a model. */

import { statSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import type { FileAgent } from '../skills/discover.ts';
import { type FileSkill, openSkill } from '../skills/skillFile.ts';
import type { Evidence } from './confidence.ts';
import { type Glossary, leastCorrected, openGlossary, typoShare } from './glossary.ts';
import {
  eachWord,
  expectedShare,
  isBrand,
  isKnown,
  isOneEditAway,
  listedWords,
  stem,
  Vocabulary,
  type WordClass,
  wordClass,
} from './language.ts';
import { type SearchDocument, SearchReader } from './searchDocument.ts';
import type { TaughtLines } from './teaching.ts';

/** A skill with the share of a request that it explains. */
export interface Ranked {
  agent: FileAgent;
  skill: FileSkill;
  /**
   * Share of the request's information that the skill has too, 0 to 1. Lower if the request says little. Comparable over requests
   * and over numbers of skills.
   */
  score: number;
  /** Words of the request that the skill has too, as written, rarest first, without function words. */
  words: readonly string[];
  /** Those of them that say what a request is about. */
  telling: readonly string[];
  evidence: Evidence;
}

/** A skill of the index, with its document. */
export interface IndexEntry {
  agent: FileAgent;
  skill: FileSkill;
  /** Identifies the file that was read, by path, time and size. While these stay the same, it is not read again. */
  stamp: string;
  document: SearchDocument;
}

/** A word of the request. */
interface Term {
  word: string;
  /** Information of the word, in nats. The rarer, the more. */
  weight: number;
  /** False for a function word or a filler. */
  isTelling: boolean;
  /** True for a function word. */
  isSmall: boolean;
  /** The terms that count as the word, with the share of its weight that they keep, 0 to 1. */
  forms: readonly { id: number; share: number }[];
  /** What the word is about. A skill about the same has a little of it, though none of its forms. */
  topics: readonly number[];
}

interface WeighedRequest {
  terms: readonly Term[];
  /** Information of all words together, including those that no skill has. */
  mass: number;
  /** Number of words that are more than function words and fillers. */
  telling: number;
  /** Factor for scores, 0 to 1. A request of one common word fits anything, so it is trusted less. */
  trust: number;
}

/** Number of skills that the language's own expectation of a word's rarity counts as. */
const priorSkills = 50;
/** Weight in a skill at which a word counts half of its maximum. See `fieldWeights`. */
const halfWeight = 2;
/** Share of a word that a skill about its topic has. */
const topicShare = 0.4;
/** Share from which on another word has the same meaning, so that its topics are those of the word. */
const leastMeaning = 0.8;
/** Weight of a topic in a skill from which on the skill is about it. */
const isAbout = 1.5;
/** Share of the best single line in a score, beside the words of the whole skill. Authors write what people say. */
const lineShare = 0.5;
/** Penalty of a line for words that the request does not have. 0 is none, 1 is their whole share. */
const lineLoss = 0.3;
/** Number of skills whose lines are compared: those that fit best by their words. */
const candidates = 40;
/** Information of a request that is trusted half, in nats: about two words that none of twenty skills has. */
const halfTrust = 9;
/** Different words and characters of a request that are read. A pasted text says what it is for at its beginning. */
const mostWords = 300;
const longestRequest = 20_000;
/** Factor for the skills of an agent whose name is in the request, so that it breaks a tie. */
const agentNamed = 1.25;
/**
 * Most that a skill's score gains from earlier choices of the person. Low, since the others have none: a request in the words of another
 * skill still finds that one.
 */
const mostLiked = 0.1;
/**
 * Factor for small talk. "Sounds good to me" or "cancel" alone names nothing that a skill could do. That holds even if a skill
 * has the same words.
 */
const smallTalkTrust = 0.5;
/** Work between two turns of the event loop, in milliseconds, since the extension host must answer in between. */
const sliceMs = 15;

export class SearchIndex {
  readonly #entries: readonly IndexEntry[];
  readonly #vocabulary: Vocabulary;
  /** Information of each term, in nats. */
  readonly #rarities: Float32Array;
  /** Weight of each term of the current request. All zero outside of `rank`. */
  readonly #wanted: Float32Array;
  /** Number of the request's word for which a term stands. */
  readonly #termOf: Uint16Array;
  readonly #glossary: Glossary;

  constructor(entries: readonly IndexEntry[], vocabulary: Vocabulary, glossary: Glossary) {
    this.#glossary = glossary;
    this.#termOf = new Uint16Array(vocabulary.size);
    this.#entries = entries;
    this.#vocabulary = vocabulary;
    const frequencies = new Uint32Array(vocabulary.size);
    for (const { document } of entries)
      for (const term of document.terms) frequencies[term] = (frequencies[term] ?? 0) + 1;
    this.#rarities = new Float32Array(vocabulary.size);
    for (let term = 0; term < frequencies.length; term++)
      this.#rarities[term] = this.#rarity(frequencies[term] ?? 0, vocabulary.expectedShare(term));
    this.#wanted = new Float32Array(vocabulary.size);
  }

  /**
   * Reads all skills with the lines that they were taught, in slices of about 15 ms. Documents of `previous` are reused for skills whose
   * file did not change. The trigger.json of `measured` is left out, since its requests are put to the index. Never throws.
   */
  static async build(
    agents: readonly FileAgent[],
    previous?: SearchIndex,
    taught?: TaughtLines,
    measured?: FileSkill,
  ): Promise<SearchIndex> {
    const vocabulary = previous ? previous.#vocabulary : new Vocabulary();
    const glossary = await openGlossary();
    const reader = new SearchReader(vocabulary, glossary);
    const known = new Map<string, SearchDocument>();
    if (previous) for (const { stamp, document } of previous.#entries) known.set(stamp, document);
    const entries: IndexEntry[] = [];
    let sliceEnd = performance.now() + sliceMs;
    for (const agent of agents) {
      for (const skill of agent.skills) {
        if (performance.now() > sliceEnd) {
          await setImmediate();
          sliceEnd = performance.now() + sliceMs;
        }
        const lines = taught?.of(skill.file) ?? [];
        const isMeasured = skill.file === measured?.file;
        const stamp = [stampOf(skill), ...(isMeasured ? ['measured'] : []), ...lines].join('\n');
        const document = known.get(stamp) ?? reader.read(unshared(skill), lines, !isMeasured);
        entries.push({ agent, skill, stamp, document });
      }
    }
    await setImmediate();
    vocabulary.forgetSpellings();
    return new SearchIndex(entries, vocabulary, glossary);
  }

  /**
   * Returns the skills that explain most of the request, best first. Skills that share no word with it are left out. Shadowed
   * skills count only if their agent alone is asked. `liked` is what `LearnedChoices.likeness` returns.
   */
  rank(text: string, limit: number, agentName?: string, liked?: ReadonlyMap<string, number>): Ranked[] {
    const request = this.#weigh(text);
    if (request.terms.length === 0 && !liked?.size) return [];
    const likeness = ({ agent, skill }: IndexEntry): number => liked?.get(`${agent.name}:${skill.id}`) ?? 0;
    const found: { entry: IndexEntry; score: number }[] = [];
    for (const entry of this.#entries) {
      if (!isAsked(entry, agentName)) continue;
      const score = wordScore(entry.document, request) + mostLiked * likeness(entry);
      if (score > 0) found.push({ entry, score });
    }
    found.sort((a, b) => b.score - a.score);
    found.length = Math.min(found.length, Math.max(limit, candidates));
    for (const [at, { forms, weight }] of request.terms.entries())
      for (const { id, share } of forms) {
        if (weight * share <= (this.#wanted[id] ?? 0)) continue;
        this.#wanted[id] = weight * share;
        this.#termOf[id] = at;
      }
    const lines = new Map<IndexEntry, number>();
    for (const item of found) {
      const line = this.#lineScore(item.entry.document, request);
      lines.set(item.entry, line);
      const bonus = mostLiked * likeness(item.entry);
      const score = request.trust * ((1 - lineShare) * (item.score - bonus) + lineShare * line);
      item.score = bonus + (isNamed(item.entry.agent, text) ? score * agentNamed : score);
    }
    for (const { forms } of request.terms) for (const { id } of forms) this.#wanted[id] = 0;
    found.sort((a, b) => b.score - a.score);
    return found.slice(0, limit).map(({ entry, score }) => {
      const { agent, skill, document } = entry;
      const isOn = (topic: number): boolean => (document.topics.get(topic) ?? 0) >= isAbout;
      const has = ({ forms }: Term): boolean => forms.some(({ id }) => weightIn(document, id) > 0);
      const shared = request.terms.filter(term => has(term) || term.topics.some(isOn));
      const foreign = request.terms.filter(
        ({ topics, isTelling }) => isTelling && topics.length > 0 && !topics.some(isOn),
      );
      const words = shared.filter(({ isSmall }) => !isSmall).map(({ word }) => word);
      const telling = shared.filter(term => term.isTelling && has(term)).map(({ word }) => word);
      const names = shared.filter(
        ({ word, forms }) => !isBrand(word) && forms.some(({ id }) => document.nameTerms.includes(id)),
      );
      const sum = (terms: readonly Term[]): number => terms.reduce((total, { weight }) => total + weight, 0);
      const evidence: Evidence = {
        mass: request.mass,
        inName: sum(names),
        line: request.trust * (lines.get(entry) ?? 0),
        foreign: sum(foreign),
        words: request.telling,
        found: telling.length,
        chosen: likeness(entry),
      };
      return { agent, skill, score, words, telling, evidence };
    });
  }

  #weigh(text: string): WeighedRequest {
    const said = new Set<string>();
    eachWord(text.slice(0, longestRequest), false, word => {
      if (said.size < mostWords) said.add(word);
    });
    const words = [...said];
    const language = this.#glossary.languageOf(words);
    const counted = new Set<number>();
    const terms: Term[] = [];
    let mass = 0;
    let telling = 0;
    let count = 0;
    for (const word of words) {
      if (this.#glossary.isStop(word, language)) {
        mass += this.#rarity(0, expectedShare.function);
        count++;
        continue;
      }
      const term = this.#term(word, language);
      const own = term.forms[0]?.share === 1 ? term.forms[0].id : undefined;
      if (own !== undefined && counted.has(own)) continue;
      if (own !== undefined) counted.add(own);
      count++;
      mass += term.weight;
      if (term.isTelling) telling++;
      if (term.forms.length > 0 || term.topics.length > 0) terms.push(term);
    }
    terms.sort((a, b) => b.weight - a.weight);
    const trust = mass / (mass + halfTrust);
    return { terms, mass, telling, trust: telling === 0 || count < 2 ? trust * smallTalkTrust : trust };
  }

  /** Returns a word of the request with the terms that may stand for it. */
  #term(word: string, language: ReturnType<Glossary['languageOf']>): Term {
    const kind = wordClass(word);
    // A term is judged by its first spelling ("sins"). The request's own spelling may be a commoner word ("sin").
    const most = this.#rarity(0, expectedShare[kind]);
    const unknown = this.#rarity(0, expectedShare.rare);
    const forms = new Map<number, number>();
    const add = (form: string, share: number): void => {
      const id = this.#vocabulary.find(form);
      if (id !== undefined && (forms.get(id) ?? 0) < share) forms.set(id, share);
    };
    add(word, 1);
    const id = this.#vocabulary.find(word);
    const own = id !== undefined;
    let isTelling = kind === 'ordinary' || kind === 'rare';
    let weight = Math.min(id === undefined ? unknown : (this.#rarities[id] ?? unknown), most);
    let alternatives = isTelling || language !== 'en' ? this.#glossary.alternatives(word, language) : [];
    if (alternatives.length === 0 && !own && kind === 'rare') {
      const corrected = this.#corrections(word, language);
      if (corrected.some(other => isEmpty(wordClass(other)))) {
        isTelling = false;
        weight = this.#rarity(0, expectedShare.filler);
      }
      for (const other of corrected) {
        add(other, typoShare);
        alternatives = [
          ...alternatives,
          ...this.#glossary.alternatives(other, language).map(({ word, share }) => ({
            word,
            share: share * typoShare,
          })),
        ];
      }
    }
    for (const { word: other, share } of alternatives) add(other, share);
    const meanings = alternatives.filter(({ share }) => share >= leastMeaning).map(({ word }) => word);
    const topics =
      kind === 'function'
        ? []
        : [...new Set([word, ...meanings].flatMap(one => this.#glossary.topicsOf(stem(one))))];
    // A word of another language is as telling as its translation.
    if (!own && forms.size > 0 && isTelling) {
      const best = [...forms].reduce((a, b) => (b[1] > a[1] ? b : a));
      weight = Math.min(
        weight,
        Math.max(this.#rarities[best[0]] ?? unknown, this.#rarity(0, expectedShare.ordinary)),
      );
    }
    // "Laufen" says as little as "run".
    const [nearest] = meanings;
    if (nearest !== undefined && isEmpty(wordClass(nearest))) isTelling = false;
    return {
      word,
      weight,
      isTelling,
      isSmall: kind === 'function',
      forms: [...forms].map(([id, share]) => ({ id, share })),
      topics,
    };
  }

  /** Returns the known words that are one typing mistake away from an unknown one. */
  #corrections(word: string, language: ReturnType<Glossary['languageOf']>): readonly string[] {
    if (word.length < leastCorrected || /\d/.test(word) || isKnown(word)) return [];
    const found = new Set<string>();
    for (const other of this.#glossary.words(language)) if (isOneEditAway(word, other)) found.add(other);
    if (language === 'en')
      for (const other of listedWords(word)) if (isOneEditAway(word, other)) found.add(other);
    for (const other of this.#vocabulary.near(word)) found.add(other);
    return [...found].slice(0, 6);
  }

  /** Returns minus the logarithm of the expected share of skills with the word. Skills and language together set that share. */
  #rarity(frequency: number, expected: number): number {
    return -Math.log((frequency + priorSkills * expected) / (this.#entries.length + priorSkills));
  }

  /** Returns the best line's share of the request, reduced by what else the line says. */
  #lineScore(
    { lineTerms, lineStarts, lineWeights }: SearchDocument,
    { mass, terms }: WeighedRequest,
  ): number {
    let best = 0;
    const taken = new Float64Array(terms.length);
    for (let line = 0; line < lineWeights.length; line++) {
      const start = lineStarts[line] ?? 0;
      const end = lineStarts[line + 1] ?? start;
      let shared = 0;
      for (let at = start; at < end; at++) {
        const term = lineTerms[at] ?? 0;
        const wanted = this.#wanted[term] ?? 0;
        if (wanted === 0) continue;
        // Two words in place of one of the request count once.
        const of = this.#termOf[term] ?? 0;
        if (wanted <= (taken[of] ?? 0)) continue;
        shared += wanted - (taken[of] ?? 0);
        taken[of] = wanted;
      }
      if (shared === 0) continue;
      taken.fill(0);
      const most = ((lineWeights[line] ?? 0) * shared) / mass;
      if (most <= best) continue;
      let all = 0;
      for (let at = start; at < end; at++) all += this.#rarities[lineTerms[at] ?? 0] ?? 0;
      best = Math.max(best, most * Math.min(1, shared / all) ** lineLoss);
    }
    return best;
  }
}

const isEmpty = (kind: WordClass): boolean => kind === 'function' || kind === 'filler';

/** Whether an agent's name is a whole word of the request, in any case. */
function isNamed({ name }: FileAgent, text: string): boolean {
  const at = text.toLowerCase().indexOf(name.toLowerCase());
  const isWord = (sign: string | undefined): boolean => sign !== undefined && /[\p{L}\p{N}]/u.test(sign);
  return at >= 0 && !isWord(text[at - 1]) && !isWord(text[at + name.length]);
}

function isAsked({ agent, skill }: IndexEntry, agentName: string | undefined): boolean {
  if (skill.isDisabled) return false;
  return agentName === undefined ? !skill.shadowedBy : agent.name === agentName;
}

/** Returns another Skill of the same file, which is discarded after reading. Thousands of bodies would fill the memory. */
const unshared = (skill: FileSkill): FileSkill =>
  openSkill(skill.file, skill.source, skill.id, skill.within, skill.kind);

/** Returns the request's share that the skill's words explain, 0 to 1. Each word counts more at a better place, up to a limit. */
function wordScore(document: SearchDocument, { terms, mass }: WeighedRequest): number {
  let sum = 0;
  for (const { forms, topics, weight } of terms) {
    let best = 0;
    for (const { id, share } of forms) {
      const found = weightIn(document, id);
      best = Math.max(best, (share * found) / (found + halfWeight));
    }
    for (const topic of topics) {
      const found = document.topics.get(topic) ?? 0;
      best = Math.max(best, (topicShare * found) / (found + halfWeight));
    }
    sum += weight * best;
  }
  return sum / mass;
}

function weightIn({ terms, weights }: SearchDocument, wanted: number): number {
  let low = 0;
  let high = terms.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const term = terms[middle] ?? 0;
    if (term === wanted) return weights[middle] ?? 0;
    if (term < wanted) low = middle + 1;
    else high = middle - 1;
  }
  return 0;
}

function stampOf({ id, file }: FileSkill): string {
  let stat: { mtimeMs: number; size: number } | undefined;
  try {
    stat = statSync(file, { throwIfNoEntry: false });
  } catch {
    stat = undefined; // reading the file reports the problem
  }
  return `${id}\n${file}\n${stat?.mtimeMs}\n${stat?.size}`;
}
