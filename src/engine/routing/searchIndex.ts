/** Finds the skills that fit a request by their words, in memory, without a model. */

import { statSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import type { FileAgent } from '../skills/discover.ts';
import { type FileSkill, openSkill } from '../skills/skillFile.ts';
import { eachWord, expectedShare, Vocabulary, wordClass } from './language.ts';
import { type SearchDocument, SearchReader } from './searchDocument.ts';

/** A skill with the share of a request that it explains. */
export interface Ranked {
  agent: FileAgent;
  skill: FileSkill;
  /**
   * Share of the request's information that the skill has too, 0 to 1. Lower if the request says little. Comparable over requests
   * and over numbers of skills.
   */
  score: number;
  /** Words of the request that the skill has too, as written, rarest first. */
  words: readonly string[];
}

/** A skill of the index, with its document. */
export interface IndexEntry {
  agent: FileAgent;
  skill: FileSkill;
  /** Identifies the file that was read, by path, time and size. While these stay the same, it is not read again. */
  stamp: string;
  document: SearchDocument;
}

interface Term {
  id: number;
  word: string;
  /** Information of the term, in nats. The rarer, the more. */
  weight: number;
}

interface WeighedRequest {
  terms: readonly Term[];
  /** Information of all words together, including those that no skill has. */
  mass: number;
  /** Factor for scores, 0 to 1. A request of one common word fits anything, so it is trusted less. */
  trust: number;
}

/** Number of skills that the language's own expectation of a word's rarity counts as. */
const priorSkills = 50;
/** Weight in a skill at which a word counts half of its maximum. See `fieldWeights`. */
const halfWeight = 2;
/** Share of the best single line in a score, beside the words of the whole skill. Authors write what people say. */
const lineShare = 0.5;
/** Penalty of a line for words that the request does not have. 0 is none, 1 is their whole share. */
const lineLoss = 0.3;
/** Number of skills whose lines are compared: those that fit best by their words. */
const candidates = 40;
/** Information of a request that is trusted half, in nats: about two words that none of twenty skills has. */
const halfTrust = 9;
/**
 * Factor for small talk. "Sounds good to me" or "cancel" alone names nothing that a skill could do. That holds even if a skill
 * has the same words.
 */
const smallTalkTrust = 0.5;
/** Below this score a skill is only a suggestion. */
const leastScore = 0.2;
/** Least lead over the second, as a share of the first's score. With less, the first is only a suggestion. */
const leastLead = 0.2;

/** Work between two turns of the event loop, in milliseconds, since the extension host must answer in between. */
const sliceMs = 15;

export class SearchIndex {
  readonly #entries: readonly IndexEntry[];
  readonly #vocabulary: Vocabulary;
  /** Information of each term, in nats. */
  readonly #rarities: Float32Array;
  /** Weight of each term of the current request. All zero outside of `rank`. */
  readonly #wanted: Float32Array;

  constructor(entries: readonly IndexEntry[], vocabulary: Vocabulary) {
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
   * Reads all skills, in slices of about 15 ms. Documents of `previous` are reused for skills whose file did not change. Never
   * throws.
   */
  static async build(agents: readonly FileAgent[], previous?: SearchIndex): Promise<SearchIndex> {
    const vocabulary = previous ? previous.#vocabulary : new Vocabulary();
    const reader = new SearchReader(vocabulary);
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
        const stamp = stampOf(skill);
        const document = known.get(stamp) ?? reader.read(unshared(skill));
        entries.push({ agent, skill, stamp, document });
      }
    }
    await setImmediate();
    vocabulary.forgetSpellings();
    return new SearchIndex(entries, vocabulary);
  }

  /**
   * Returns the skills that explain most of the request, best first. Skills that share no word with it are left out. Shadowed
   * skills count only if their agent alone is asked.
   */
  rank(text: string, limit: number, agentName?: string): Ranked[] {
    const request = this.#weigh(text);
    if (request.terms.length === 0) return [];
    const found: { entry: IndexEntry; score: number }[] = [];
    for (const entry of this.#entries) {
      if (!isAsked(entry, agentName)) continue;
      const score = wordScore(entry.document, request);
      if (score > 0) found.push({ entry, score });
    }
    found.sort((a, b) => b.score - a.score);
    found.length = Math.min(found.length, Math.max(limit, candidates));
    for (const { id, weight } of request.terms) this.#wanted[id] = weight;
    for (const item of found) {
      const line = this.#lineScore(item.entry.document, request.mass);
      item.score = request.trust * ((1 - lineShare) * item.score + lineShare * line);
    }
    for (const { id } of request.terms) this.#wanted[id] = 0;
    found.sort((a, b) => b.score - a.score);
    return found.slice(0, limit).map(({ entry: { agent, skill, document }, score }) => {
      const words = request.terms.filter(({ id }) => weightIn(document, id) > 0).map(({ word }) => word);
      return { agent, skill, score, words };
    });
  }

  #weigh(text: string): WeighedRequest {
    const terms: Term[] = [];
    let mass = 0;
    let isSmallTalk = true;
    const seen = new Set<string | number>();
    const unknown = this.#rarity(0, expectedShare.rare);
    eachWord(text, false, word => {
      const id = this.#vocabulary.find(word);
      if (seen.has(id ?? word)) return;
      seen.add(id ?? word);
      const kind = wordClass(word);
      // A term is judged by its first spelling ("sins"). The request's own spelling may be a commoner word ("sin").
      const most = this.#rarity(0, expectedShare[kind]);
      const weight = id === undefined ? unknown : Math.min(this.#rarities[id] ?? unknown, most);
      mass += weight;
      if (kind === 'ordinary' || kind === 'rare') isSmallTalk = false;
      if (id !== undefined) terms.push({ id, word, weight });
    });
    terms.sort((a, b) => b.weight - a.weight);
    const trust = mass / (mass + halfTrust);
    return { terms, mass, trust: isSmallTalk || seen.size < 2 ? trust * smallTalkTrust : trust };
  }

  /** Returns minus the logarithm of the expected share of skills with the word. Skills and language together set that share. */
  #rarity(frequency: number, expected: number): number {
    return -Math.log((frequency + priorSkills * expected) / (this.#entries.length + priorSkills));
  }

  /** Returns the best line's share of the request, reduced by what else the line says. */
  #lineScore({ lineTerms, lineStarts, lineWeights }: SearchDocument, mass: number): number {
    let best = 0;
    for (let line = 0; line < lineWeights.length; line++) {
      const start = lineStarts[line] ?? 0;
      const end = lineStarts[line + 1] ?? start;
      let shared = 0;
      for (let at = start; at < end; at++) shared += this.#wanted[lineTerms[at] ?? 0] ?? 0;
      const most = ((lineWeights[line] ?? 0) * shared) / mass;
      if (most <= best) continue;
      let all = 0;
      for (let at = start; at < end; at++) all += this.#rarities[lineTerms[at] ?? 0] ?? 0;
      best = Math.max(best, most * (shared / all) ** lineLoss);
    }
    return best;
  }
}

/**
 * Returns the first of a ranking if it explains enough of the request, and clearly more than the second. Returns undefined to
 * abstain.
 */
export function decide(ranking: readonly Ranked[]): Ranked | undefined {
  const [first, second] = ranking;
  if (!first || first.score < leastScore) return undefined;
  return first.score - (second?.score ?? 0) >= leastLead * first.score ? first : undefined;
}

function isAsked({ agent, skill, document }: IndexEntry, agentName: string | undefined): boolean {
  if (!document.isRoutable) return false;
  return agentName === undefined ? !skill.shadowedBy : agent.name === agentName;
}

/** Returns another Skill of the same file, which is discarded after reading. Thousands of bodies would fill the memory. */
const unshared = (skill: FileSkill): FileSkill => openSkill(skill.file, skill.source, skill.id, skill.within);

/** Returns the request's share that the skill's words explain, 0 to 1. Each word counts more at a better place, up to a limit. */
function wordScore(document: SearchDocument, { terms, mass }: WeighedRequest): number {
  let sum = 0;
  for (const { id, weight } of terms) {
    const found = weightIn(document, id);
    sum += (weight * found) / (found + halfWeight);
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
