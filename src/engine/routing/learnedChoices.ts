/** Keeps which skills a person chose for which words, in the data folder, so that the same words find them again. */

import { statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { SkillRef } from '@telos/protocol/run';
import { readText } from '../files/regularFile.ts';
import { openGlossary } from './glossary.ts';
import { eachWord, expectedShare, wordClass } from './language.ts';

/** A skill that a person chose for a request. */
export interface LearnedChoice extends SkillRef {
  /** The request's words in lower case, each once. Neither its sentence nor anything that may be a key is kept. */
  words: readonly string[];
  /** The person stayed with the skill of the conversation. This says nothing about a first request. */
  stayed?: true;
}

/** Choices that count, the latest ones, and how long a choice may be. */
const mostChoices = 400;
const mostWords = 40;
const longestName = 200;
/** Keys are longer than words, and have digits. */
const longestWord = 24;
const longestWithDigits = 5;
/** A longer file is not Telos's own, and from this length on it is rewritten with the choices that count. */
const mostBytes = 1_000_000;
const manyBytes = 200_000;
/** Requests that are less alike have nothing to do with each other. */
const leastAlike = 0.4;

/** Writes a file in one step, unless `mayPlace` says at the last moment that it may not. See `writeWhole`. */
export type WriteFile = (path: string, text: string, mayPlace?: () => boolean) => Promise<boolean>;
/** Adds a line to a file, which need not exist. Windows that do so at the same time lose nothing. */
export type AppendLine = (path: string, line: string) => void;

export class LearnedChoices {
  readonly #file: string;
  readonly #write: WriteFile;
  readonly #append: AppendLine;
  #read: { stamp: string; choices: readonly LearnedChoice[] } = { stamp: '', choices: [] };
  /** Choices of one process are kept one after the other. */
  #keeping: Promise<unknown> = Promise.resolve();

  constructor(dataDir: string, write: WriteFile, append: AppendLine) {
    this.#write = write;
    this.#append = append;
    this.#file = join(dataDir, 'routing', 'choices.jsonl');
  }

  /** Returns the choices, the latest last, those of other windows too. Empty if the file is missing or broken. */
  all(): readonly LearnedChoice[] {
    const stamp = this.#stamp();
    if (stamp !== this.#read.stamp) this.#read = { stamp, choices: this.#load() };
    return this.#read.choices;
  }

  /**
   * Keeps a choice, in place of an earlier one for the same words. Does nothing if the words say too little. Throws errors of the file
   * system.
   */
  learn(text: string, { agent, skill }: SkillRef, stayed: boolean): Promise<void> {
    const words = wordsOf(text);
    if (!words.some(isTelling)) return Promise.resolve();
    const choice: LearnedChoice = { words, agent, skill, ...(stayed && { stayed }) };
    const kept = this.#keeping.then(() => this.#keep(choice));
    this.#keeping = kept.catch(() => {});
    return kept;
  }

  /** Deletes all choices, and returns how many there were. Throws errors of the file system. */
  async forget(): Promise<number> {
    const { length } = this.all();
    await this.#keeping;
    await rm(this.#file, { force: true });
    return length;
  }

  /**
   * Returns how much the request is like one for which each skill was chosen, 0 to 1, by `agent:skill`. `running` is the skill of the
   * conversation, to which alone the choices to stay count.
   */
  async likeness(text: string, running?: SkillRef): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    const choices = this.all();
    if (choices.length === 0) return found;
    const said = new Set(wordsOf(text));
    const weightOf = await weightsFor([...said]);
    const mass = [...said].reduce((sum, word) => sum + weightOf(word), 0);
    for (const { words, agent, skill, stayed } of choices) {
      if (stayed && (running?.agent !== agent || running.skill !== skill)) continue;
      const alike = likenessOf(said, mass, words, weightOf);
      const key = `${agent}:${skill}`;
      if (alike >= leastAlike) found.set(key, Math.max(alike, found.get(key) ?? 0));
    }
    return found;
  }

  async #keep(choice: LearnedChoice): Promise<void> {
    const size = statSync(this.#file, { throwIfNoEntry: false })?.size ?? 0;
    if (size < manyBytes) return this.#append(this.#file, JSON.stringify(choice));
    const stamp = this.#stamp();
    const choices = latestFirst([...this.#load(), choice]).reverse();
    const text = choices.map(each => `${JSON.stringify(each)}\n`).join('');
    // Another window has kept one meanwhile: the next choice makes the file short again.
    if (!(await this.#write(this.#file, text, () => this.#stamp() === stamp)))
      this.#append(this.#file, JSON.stringify(choice));
  }

  #stamp(): string {
    try {
      const stat = statSync(this.#file, { throwIfNoEntry: false });
      return stat?.isFile() && stat.size <= mostBytes ? `${stat.ino} ${stat.mtimeMs} ${stat.size}` : '';
    } catch {
      return '';
    }
  }

  /** Returns the choices that count, the latest last. */
  #load(): readonly LearnedChoice[] {
    if (this.#stamp() === '') return [];
    try {
      return latestFirst(readText(this.#file).split('\n').flatMap(readChoice)).reverse();
    } catch {
      return [];
    }
  }
}

/** Returns the latest choices, at most as many as count, and of those for the same words only the latest. */
function latestFirst(choices: readonly LearnedChoice[]): LearnedChoice[] {
  const bySaid = new Map<string, LearnedChoice>();
  for (let at = choices.length - 1; at >= 0 && bySaid.size < mostChoices; at--) {
    const choice = choices[at];
    const said = choice?.words.join(' ');
    if (choice && said !== undefined && !bySaid.has(said)) bySaid.set(said, choice);
  }
  return [...bySaid.values()];
}

/** Returns the choice of a line, or nothing if it has not the form. */
function readChoice(line: string): LearnedChoice[] {
  if (!line.startsWith('{')) return [];
  let value: { [key in keyof LearnedChoice]?: unknown };
  try {
    value = JSON.parse(line);
  } catch {
    return [];
  }
  const { words, agent, skill, stayed } = value;
  if (!Array.isArray(words) || !isName(agent) || !isName(skill)) return [];
  const some = words.filter(word => typeof word === 'string' && word.length <= longestWord);
  return [{ words: some.slice(0, mostWords), agent, skill, ...(stayed === true && { stayed }) }];
}

const isName = (value: unknown): value is string => typeof value === 'string' && value.length <= longestName;

function wordsOf(text: string): readonly string[] {
  const words = new Set<string>();
  eachWord(text.slice(0, 2_000), false, word => {
    const most = /\d/.test(word) ? longestWithDigits : longestWord;
    if (word.length <= most && words.size < mostWords) words.add(word);
  });
  return [...words];
}

const isTelling = (word: string): boolean => ['ordinary', 'rare'].includes(wordClass(word));

/** Returns the information of each word by its language alone, in nats. Small words of German, French and Spanish have none either. */
async function weightsFor(said: readonly string[]): Promise<(word: string) => number> {
  const glossary = await openGlossary();
  const language = glossary.languageOf(said);
  return word => {
    const kind = wordClass(word);
    return kind === 'function' || glossary.isStop(word, language) ? 0.2 : -Math.log(expectedShare[kind]);
  };
}

/** Returns the shared words' share of all words, 0 to 1, each word by its information. `mass` is that of the request. */
function likenessOf(
  said: ReadonlySet<string>,
  mass: number,
  words: readonly string[],
  weightOf: (word: string) => number,
): number {
  let shared = 0;
  let all = mass;
  for (const word of words) {
    if (said.has(word)) shared += weightOf(word);
    else all += weightOf(word);
  }
  return all === 0 ? 0 : shared / all;
}
