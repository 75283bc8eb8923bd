/** Reads and writes `evals/trigger.json` of a skill: requests, and whether each should run it. */

import { createHash } from 'node:crypto';
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { isInside, readRegularFile, realPlace } from '@telos/engine/files';
import { sentence } from '@telos/protocol/text';

/** A request of the file. The format is that of agentskills.io; `expect` and `split` are ours. */
export interface Trigger {
  query: string;
  shouldTrigger: boolean;
  /** For a request that should not run this skill: the one that should, by its id or as `agent:id`. */
  expect?: string;
  /** The part of the set. Requests for validation are not read by the routing itself. Undefined in a file without parts. */
  split?: 'train' | 'validation';
  /** Where the request is in the file, from 1. */
  line: number;
}

/** Far more than a person reads through. In bytes. */
const mostBytes = 1024 * 1024;
/** Of five requests, three are for training. */
const trainShare = 3 / 5;

export const triggerFileOf = (skillDir: string): string => join(skillDir, 'evals', 'trigger.json');

/**
 * Returns the requests of the skill in a folder, in their order. Undefined if it has no trigger.json.
 * Throws TelosError `config`, with the line, if the file cannot be read whole.
 */
export function readTriggers(skillDir: string): Trigger[] | undefined {
  const file = triggerFileOf(skillDir);
  if (lstatSync(file, { throwIfNoEntry: false }) === undefined) return undefined;
  refuseLinkOut(skillDir);
  const text = textOf(file);
  const cases = parsed(text, file);
  if (!Array.isArray(cases))
    throw new TelosError('config', [
      sentence('{0}:1: a list is expected: [{"query": "...", "should_trigger": true}]', file),
    ]);
  const lines = new LineFinder(text);
  const triggers = cases.map((value: unknown, index) => triggerOf(value, `entry ${index + 1}`, lines, file));
  const twice = triggers.find(
    ({ query }, index) => triggers.findIndex(other => other.query === query) !== index,
  );
  if (twice)
    throw new TelosError('config', [
      sentence('{0}:{1}: this request is in the file twice: "{2}"', file, twice.line, twice.query),
    ]);
  return triggers;
}

/** Throws TelosError `config` if a link leads the file out of the skill's folder: a pack must not choose what is read or written. */
export function refuseLinkOut(skillDir: string, file = triggerFileOf(skillDir)): void {
  if (!isInside(realPlace(skillDir) ?? skillDir, realPlace(file) ?? '/'))
    throw new TelosError('config', [
      sentence("{0} leads out of the skill's folder.", file),
      sentence('Put the file into the folder.'),
    ]);
}

/** Returns the text of a file of evals. Throws TelosError `config` if it cannot be read. */
export function textOf(file: string): string {
  try {
    return readRegularFile(file, mostBytes).toString('utf8');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new TelosError('config', [sentence('{0} cannot be read: {1}', file, reason)], { cause: error });
  }
}

/** Returns the JSON of a file's text. Throws TelosError `config` with the line where it is none. */
export function parsed(text: string, file: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    const at = /position (\d+)/.exec(error instanceof Error ? error.message : '')?.[1];
    const line = text.slice(0, at === undefined ? text.length : Number(at)).split('\n').length;
    throw new TelosError('config', [sentence('{0}:{1}: this is not JSON from here on.', file, line)], {
      cause: error,
    });
  }
}

function triggerOf(value: unknown, entry: string, lines: LineFinder, file: string): Trigger {
  const { query, should_trigger, expect, split } =
    typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  const line = lines.next(query);
  const refuse = (why: string): never => {
    throw new TelosError('config', `${file}:${line}: ${entry} ${why}`);
  };
  if (typeof query !== 'string' || query.trim() === '') return refuse('has no "query" with words in it.');
  if (typeof should_trigger !== 'boolean') return refuse('needs "should_trigger": true or false.');
  if (expect !== undefined && (typeof expect !== 'string' || should_trigger))
    return refuse(
      'has an "expect" that is not the name of another skill, which only "should_trigger": false can have.',
    );
  if (split !== undefined && split !== 'train' && split !== 'validation')
    return refuse('has a "split" other than "train" and "validation".');
  return {
    query,
    shouldTrigger: should_trigger,
    ...(expect === undefined ? {} : { expect }),
    ...(split === undefined ? {} : { split }),
    line,
  };
}

/** Finds the lines of requests that are asked for in their order in the file. */
export class LineFinder {
  readonly #text: string;
  #at = 0;
  /** Of `#at`, from 1. */
  #line = 1;

  constructor(text: string) {
    this.#text = text;
  }

  next(query: unknown): number {
    const literal = typeof query === 'string' ? JSON.stringify(query) : '';
    const found = literal === '' ? -1 : this.#text.indexOf(literal, this.#at);
    if (found < 0) return this.#line;
    this.#line += this.#text.slice(this.#at, found).split('\n').length - 1;
    // A literal has no line breaks.
    this.#at = found + literal.length;
    return this.#line;
  }
}

/**
 * Returns the text of a trigger.json with a part for each request that has none: three of five for training, the same share of both
 * kinds. The same request gets the same part each time; all else in the file is kept.
 */
export function splitText(text: string): string {
  const cases = JSON.parse(text.replace(/^\uFEFF/, '')) as {
    query: string;
    should_trigger: boolean;
    split?: string;
  }[];
  for (const kind of [true, false]) {
    const open = cases.filter(({ should_trigger, split }) => should_trigger === kind && split === undefined);
    open.sort((a, b) => (seedOf(a) < seedOf(b) ? -1 : 1));
    const train = Math.round(open.length * trainShare);
    for (const [index, one] of open.entries()) one.split = index < train ? 'train' : 'validation';
  }
  return `${JSON.stringify(cases, null, 2)}\n`;
}

const seedOf = ({ query }: { query: string }): string => createHash('sha256').update(query).digest('hex');

/** Returns the text of a trigger.json with these requests, one a line. */
export function triggerText(triggers: readonly Omit<Trigger, 'line'>[]): string {
  const entries = triggers.map(({ query, shouldTrigger, expect, split }) =>
    JSON.stringify({
      query,
      should_trigger: shouldTrigger,
      ...(expect === undefined ? {} : { expect }),
      ...(split === undefined ? {} : { split }),
    }),
  );
  return `[\n${entries.map(entry => `  ${entry}`).join(',\n')}\n]\n`;
}
