/** Reads a skill for the search index: its words by place, and every line that could be what a person would say. */

import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { readText } from '../files/regularFile.ts';
import { fieldText } from '../skills/frontmatter.ts';
import { type FileSkill, noDescription } from '../skills/skillFile.ts';
import type { Glossary } from './glossary.ts';
import { eachWord, type Vocabulary } from './language.ts';

/** Place of a text in a skill. */
export type SearchField = 'name' | 'description' | 'triggers' | 'heading' | 'example' | 'body' | 'code';

/** Weight of a word by its place. A word of the name or the description says most about a skill. */
export const fieldWeights: Readonly<Record<SearchField, number>> = {
  name: 3,
  description: 3,
  triggers: 2,
  heading: 1,
  example: 1,
  body: 0.5,
  code: 0.15,
};

/** Weight of a line by its place, when the line alone represents the skill. */
export const lineWeights: Readonly<Record<SearchField, number>> = {
  name: 1,
  description: 1,
  triggers: 1,
  heading: 0.8,
  example: 1,
  body: 0.8,
  code: 0.6,
};

/** A skill as read for the index. Terms are numbers of the vocabulary. `terms` is sorted and parallel to `weights`. */
export interface SearchDocument {
  readonly terms: Uint32Array;
  /** Terms of the skill's names. */
  readonly nameTerms: readonly number[];
  /** Weights of the topics that the skill's names, description and triggers speak of. */
  readonly topics: ReadonlyMap<number, number>;
  /** Sum over the fields of weight times damped count, for each term. */
  readonly weights: Float32Array;
  /** Terms of all lines, one line after the other, each line without repetitions. */
  readonly lineTerms: Uint32Array;
  /** Start of each line in `lineTerms`, followed by the end of the last one. */
  readonly lineStarts: Uint32Array;
  readonly lineWeights: Float32Array;
}

/** Weight of a term that counts for a topic at most. */
const mostForTopic = 3;
/** Number of characters of a body, and of all triggers together, that are read for the index. */
const maxBody = 60_000;
const maxTriggerText = 20_000;
/** Number of words beyond which a field's counts are scaled down, since a long text repeats its words. */
const fieldLength: Readonly<Record<SearchField, number>> = {
  name: 4,
  description: 30,
  triggers: 30,
  heading: 40,
  example: 80,
  body: 400,
  code: 300,
};

const isTriggers =
  /^(?:triggers?|keywords?|tags|aliases|examples?|when[_-]to[_-]use|use[_-]cases|categor(?:y|ies))$/i;
const items = (value: unknown): string[] =>
  (Array.isArray(value) ? value : [value]).map(item => fieldText(item) ?? '');

/** Matches headings, and lines that end in a colon, under which authors write what a person would say. */
const exampleHeading =
  /\b(?:when|examples?|triggers?|triggering|prompts?|phrases?|usage|use cases?|ask|say|says|scenarios?|requests?|quer(?:y|ies)|natural language|interactions?|conversation|chat)\b/i;
/** Matches quoted words within a line. Only two or more count, since one is mostly a value. */
const quoted =
  /"([^"\n]{6,300})"|“([^”\n]{6,300})”|「([^」\n]{3,200})」|(?<=^|[\s(])'([^'\n]{6,300})'(?=$|[\s,.;)])/g;

/** Matches words by which a description says when the skill is called, not what it is about: "Use when the user requests …". */
const calling =
  /\b(?:used?|users?|requests?|requesting|asks?|skills?|triggers?|invoke|mentions|wants|says|needs)\b/gi;

/** Number of times each term is in a field of the current skill. An array, since a Map takes half of the time of indexing. */
interface FieldCounts {
  counts: Uint16Array;
  /** Terms with a count. */
  terms: number[];
  /** Number of words, including repeated ones. */
  length: number;
}

/** Reads skills one after the other into documents of one vocabulary. */
export class SearchReader {
  readonly #vocabulary: Vocabulary;
  readonly #glossary: Glossary;
  readonly #fields: Readonly<Record<SearchField, FieldCounts>>;
  /** Number of the line in which each term was last seen. */
  #seen = new Uint32Array(0);
  #line = 0;
  #lineTerms: number[] = [];
  #lineStarts: number[] = [0];
  #lineWeights: number[] = [];

  constructor(vocabulary: Vocabulary, glossary: Glossary) {
    this.#vocabulary = vocabulary;
    this.#glossary = glossary;
    const none = (): FieldCounts => ({ counts: new Uint16Array(0), terms: [], length: 0 });
    this.#fields = {
      name: none(),
      description: none(),
      triggers: none(),
      heading: none(),
      example: none(),
      body: none(),
      code: none(),
    };
  }

  /**
   * Reads a skill, with its file if that has not been read. `taught` are further requests that mean it. Without `withTriggers` the
   * requests of its trigger.json are left out. Never throws.
   */
  read(skill: FileSkill, taught: readonly string[] = [], withTriggers = true): SearchDocument {
    for (const name of skill.names) this.#addLine(name, 'name');
    const said = skill.synopsis ?? skill.description;
    if (said !== noDescription) this.#addText(said, 'description');
    const written = Object.entries(skill.fields).flatMap(([key, value]) =>
      isTriggers.test(key) ? items(value) : [],
    );
    let left = maxTriggerText;
    const triggers = withTriggers ? triggerQueries(skill.dir) : [];
    for (const line of [...taught, ...written, ...triggers]) {
      if (left <= 0) break;
      this.#addText(line.slice(0, left), 'triggers');
      left -= line.length;
    }
    this.#addBody(skill.body.slice(0, maxBody));
    return this.#finish();
  }

  /** Adds a text of several sentences. Each sentence is a line, and so is each quoted text. */
  #addText(text: string, field: SearchField): void {
    for (const sentence of text.split(/(?<=[.!?;:])\s+|\n+/)) this.#addLine(sentence, field);
  }

  #addBody(text: string): void {
    let fence = '';
    let underExample = false;
    let leadIn = false;
    for (const raw of text.split('\n')) {
      const line = raw.trim();
      if (!line) continue;
      const mark = /^(?:```+|~~~+)/.exec(line)?.[0] ?? '';
      if (mark && (!fence || line.startsWith(fence))) {
        fence = fence ? '' : mark.slice(0, 3);
        continue;
      }
      if (fence) {
        this.#addLine(line, underExample || leadIn ? 'body' : 'code');
        continue;
      }
      const heading = /^#{1,6}\s+(.*)$/.exec(line)?.[1];
      if (heading !== undefined) {
        underExample = exampleHeading.test(heading);
        leadIn = false;
        this.#addLine(heading, 'heading');
        continue;
      }
      const isItem = /^(?:[-*+•>|]|\d+[.)])\s*/.test(line);
      if (!isItem) leadIn = /[:：]\**$/.test(line) && exampleHeading.test(line);
      this.#addLine(line, underExample || leadIn ? 'example' : 'body');
    }
  }

  /** Adds a line: counts its words for the field, and keeps it and each of its quotes for comparison. */
  #addLine(text: string, field: SearchField): void {
    const words = this.#words(field === 'description' ? text.replace(calling, ' ') : text);
    this.#count(words, field);
    this.#keep(words, lineWeights[field]);
    if (field === 'name' || field === 'code' || !/["“「']/.test(text)) return;
    for (const match of text.matchAll(quoted)) {
      const said = this.#words(match[1] ?? match[2] ?? match[3] ?? match[4] ?? '');
      if (said.length < 2 || said.length === words.length) continue;
      this.#count(said, 'example');
      this.#keep(said, lineWeights.example);
    }
  }

  /** Returns the document of what was added, and clears the tables for the next one. */
  #finish(): SearchDocument {
    const nameTerms = this.#fields.name.terms;
    const { description, triggers } = this.#fields;
    const said = new Set([...nameTerms, ...description.terms, ...triggers.terms]);
    const sums = new Map<number, number>();
    for (const [field, { counts, terms, length }] of entriesOf(this.#fields)) {
      const scale = fieldWeights[field] / Math.max(1, 0.25 + (0.75 * length) / fieldLength[field]);
      for (const term of terms) {
        sums.set(term, (sums.get(term) ?? 0) + scale * (counts[term] ?? 0));
        counts[term] = 0;
      }
      this.#fields[field].terms = [];
      this.#fields[field].length = 0;
    }
    const terms = Uint32Array.from(sums.keys()).sort();
    const document: SearchDocument = {
      terms,
      nameTerms,
      topics: this.#topicsOf(said, sums),
      weights: Float32Array.from(terms, term => sums.get(term) ?? 0),
      lineTerms: Uint32Array.from(this.#lineTerms),
      lineStarts: Uint32Array.from(this.#lineStarts),
      lineWeights: Float32Array.from(this.#lineWeights),
    };
    this.#lineTerms = [];
    this.#lineStarts = [0];
    this.#lineWeights = [];
    return document;
  }

  #topicsOf(terms: Iterable<number>, weights: ReadonlyMap<number, number>): Map<number, number> {
    const topics = new Map<number, number>();
    for (const term of terms) {
      const weight = Math.min(weights.get(term) ?? 0, mostForTopic);
      for (const topic of this.#glossary.topicsOf(this.#vocabulary.term(term)))
        topics.set(topic, (topics.get(topic) ?? 0) + weight);
    }
    return topics;
  }

  #words(text: string): number[] {
    const words: number[] = [];
    eachWord(text, true, word => words.push(this.#vocabulary.add(word)));
    return words;
  }

  #count(words: readonly number[], name: SearchField): void {
    const field = this.#fields[name];
    if (field.counts.length < this.#vocabulary.size) {
      const wider = new Uint16Array(this.#vocabulary.size * 2);
      wider.set(field.counts);
      field.counts = wider;
    }
    for (const word of words) {
      const count = field.counts[word] ?? 0;
      if (count === 0) field.terms.push(word);
      field.counts[word] = Math.min(count + 1, 65_535);
    }
    field.length += words.length;
  }

  #keep(words: readonly number[], weight: number): void {
    if (words.length === 0) return;
    if (this.#seen.length < this.#vocabulary.size) {
      const wider = new Uint32Array(this.#vocabulary.size * 2);
      wider.set(this.#seen);
      this.#seen = wider;
    }
    this.#line++;
    for (const word of words) {
      if (this.#seen[word] === this.#line) continue;
      this.#seen[word] = this.#line;
      this.#lineTerms.push(word);
    }
    this.#lineStarts.push(this.#lineTerms.length);
    this.#lineWeights.push(weight);
  }
}

/** Characters of a request that a person types. */
const longestRequest = 200;

/**
 * Returns the requests that a skill's text gives as examples: its trigger fields and what its description quotes, then what its body
 * quotes. Each once, of two words and more.
 */
export function requestsIn(skill: FileSkill): string[] {
  const written = Object.entries(skill.fields).flatMap(([key, value]) =>
    isTriggers.test(key) ? items(value) : [],
  );
  const quotes = (text: string): string[] =>
    [...text.matchAll(quoted)].map(match => (match[1] ?? match[2] ?? match[3] ?? match[4] ?? '').trim());
  const requests = [...written, ...quotes(skill.description), ...quotes(skill.body.slice(0, maxBody))];
  return [...new Set(requests)].filter(text => /\S\s+\S/.test(text) && text.length <= longestRequest);
}

/** Characters of `evals/trigger.json` that are read at most. */
const maxTriggers = 200_000;

/**
 * Returns the requests of a skill's `evals/trigger.json` that should trigger it, without those that are kept for validation. Empty if
 * there is no such file, or it is broken.
 */
function triggerQueries(dir: string): string[] {
  const file = join(dir, 'evals', 'trigger.json');
  try {
    const stat = lstatSync(file, { throwIfNoEntry: false });
    if (!stat?.isFile() || stat.size > maxTriggers) return [];
    const cases: unknown = JSON.parse(readText(file));
    if (!Array.isArray(cases)) return [];
    return cases.flatMap((one: unknown) =>
      isTrigger(one) &&
      one.should_trigger === true &&
      one.split !== 'validation' &&
      typeof one.query === 'string'
        ? [one.query]
        : [],
    );
  } catch {
    return [];
  }
}

const isTrigger = (value: unknown): value is { query?: unknown; should_trigger?: unknown; split?: unknown } =>
  typeof value === 'object' && value !== null;

const entriesOf = (fields: Readonly<Record<SearchField, FieldCounts>>): [SearchField, FieldCounts][] =>
  Object.entries(fields) as [SearchField, FieldCounts][];
