/**
 * Reads and appends the journal of a plan: one line of JSON for each fact, on the disk before anything is built on it. The one
 * state of a plan that a machine keeps; all else is made of it and of git.
 */

import { constants, writeSync } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { TelosError } from '@telos/engine/errors';
import { fileProblem, jsonLine, linesFrom, readLines, readText } from '@telos/engine/files';
import type { JournalLine, PlanEvent } from '@telos/protocol/plan';
import { beginningOf, type Sentence, sentence, spoken } from '@telos/protocol/text';
import type { MachineSeal } from './machineSeal.ts';
import { sealPlace } from './sealPlace.ts';

/** A journal of a plan of a thousand stories has some megabytes. */
const mostBytes = 512 * 1024 * 1024;
/** Longest text in a line. Whole outputs are in files of their own. In characters. */
const mostText = 16 * 1024;

/**
 * Appends to a plan's journal. Open it only under the runner's lock: of two writers neither would know the other's lines. Whoever
 * only looks calls `readJournal`.
 */
export class Journal {
  readonly file: string;
  readonly #lines: JournalLine[];
  readonly #handle: FileHandle;
  #about: string | undefined;
  readonly #seal: MachineSeal | undefined;
  #size: number;
  /** Of all lines that were written here, also those of a later version. */
  #highest: number;
  #broken = false;
  #last: Promise<unknown> = Promise.resolve();
  /** What is written next, all of it at once. */
  readonly #waiting: PlanEvent[] = [];
  #next: Promise<JournalLine[]> = Promise.resolve([]);

  private constructor(
    file: string,
    handle: FileHandle,
    { lines, highest, size }: Pick<JournalText, 'lines' | 'highest'> & { size: number },
    seal: MachineSeal | undefined,
  ) {
    this.file = file;
    this.#handle = handle;
    this.#lines = lines;
    this.#highest = highest;
    this.#size = size;
    this.#seal = seal;
  }

  /**
   * Creates a missing file. Closes a last line that a crash tore. With a seal, lines without it are left out, and those that come get
   * it. Throws TelosError `config` if it cannot be read and written.
   */
  static async open(file: string, seal?: MachineSeal): Promise<Journal> {
    try {
      await seal?.ready();
      const isNew = (await stat(file).catch(() => undefined)) === undefined;
      // What came along under its name can be a pipe, of which no end would ever be read.
      const text = isNew ? '' : readText(file, mostBytes);
      const { O_RDWR, O_APPEND, O_CREAT, O_NOFOLLOW = 0 } = constants;
      const handle = await open(file, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600);
      if (isNew) await syncFolder(dirname(file));
      const size = (await handle.stat()).size;
      const journal = new Journal(file, handle, { ...journalText(text, file, seal), size }, seal);
      if (text !== '' && !text.endsWith('\n')) await journal.#write('\n');
      return journal;
    } catch (error) {
      throw unwritable(file, error);
    }
  }

  /** All facts so far, in their order. */
  get lines(): readonly JournalLine[] {
    return this.#lines;
  }

  /**
   * Resolves with the line once the disk has it. Lines keep the order of the calls; those that come while others are written go to the
   * disk together. Throws TelosError `config` if it could not be written; then the journal is as before.
   */
  append(event: PlanEvent): Promise<JournalLine> {
    const place = this.#waiting.push(event) - 1;
    if (place === 0) this.#next = this.#last.then(() => this.#appendWaiting());
    const written = this.#next;
    this.#last = written.catch(() => undefined);
    return written.then(lines => lines[place] as JournalLine);
  }

  async #appendWaiting(): Promise<JournalLine[]> {
    const events = this.#waiting.splice(0);
    const first = this.#highest + 1;
    const ts = new Date().toISOString();
    const lines = events.map(
      (event, index): JournalLine => ({ seq: first + index, ts, ...shortened(event) }),
    );
    try {
      await this.#write(lines.map(line => `${this.#sealed(JSON.stringify(line))}\n`).join(''));
    } catch (error) {
      throw unwritable(this.file, error);
    }
    this.#lines.push(...lines);
    this.#highest += lines.length;
    return lines;
  }

  #sealed(json: string): string {
    if (!this.#seal) return json;
    this.#about ??= aboutOf(this.file, sealPlace(dirname(this.file), true));
    return this.#seal.sealed(this.#about, json);
  }

  async #write(text: string): Promise<void> {
    if (this.#broken) throw new Error('an earlier line may not be on the disk');
    const bytes = Buffer.from(text);
    try {
      // It goes to the memory of the system, so no one waits for a disk yet.
      const bytesWritten = writeSync(this.#handle.fd, bytes);
      if (bytesWritten < bytes.length) throw new Error('no space is left on the disk');
    } catch (error) {
      // What a full disk took of the line is taken back, so that the next one stands on its own.
      await this.#handle.truncate(this.#size).catch(() => {
        this.#broken = true;
      });
      throw error;
    }
    // After a failed sync no one knows what the disk has, and a second one would say that all is well.
    await this.#handle.datasync().catch(error => {
      this.#broken = true;
      throw error;
    });
    this.#size += bytes.length;
  }

  async close(): Promise<void> {
    await this.#last;
    await this.#handle.close();
  }
}

const unwritable = (file: string, error: unknown): TelosError =>
  error instanceof TelosError
    ? error
    : new TelosError(
        'config',
        [
          ...closed(fileProblem(error, file)),
          sentence("The plan's steps are written there, so it stops; nothing is lost."),
          sentence('Run it again when the file can be written.'),
        ],
        { cause: error },
      );

const closed = (said: Sentence): Sentence[] =>
  spoken([said]).endsWith('.') ? [said] : [{ text: '{0}.', values: [said] }];

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY).catch(() => undefined);
  await handle?.sync().catch(() => undefined);
  await handle?.close();
}

/** Returns the event with each text at a length that a line can have. */
export function shortened<Value>(value: Value): Value {
  if (typeof value === 'string')
    return (value.length > mostText ? `${beginningOf(value, mostText)}…` : value) as Value;
  if (Array.isArray(value)) return value.map(shortened) as Value;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, shortened(part)])) as Value;
}

/**
 * Returns the facts of a journal, without a line that is still being written. With a seal, those without it are left out. A missing file
 * has none.
 */
export const readJournal = async (file: string, seal?: MachineSeal): Promise<JournalLine[]> =>
  (await lookIntoJournal(file, seal)).lines;

/** As `readJournal`, with the number of lines that this machine did not write. */
export async function lookIntoJournal(
  file: string,
  seal: MachineSeal | undefined,
): Promise<Pick<JournalText, 'lines' | 'foreign'>> {
  try {
    const text = readText(file, mostBytes);
    return journalText(text.slice(0, text.lastIndexOf('\n') + 1), file, seal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { lines: [], foreign: 0 };
    throw new TelosError('config', closed(fileProblem(error, file)));
  }
}

/** Says that a journal has lines of others, if it does. */
export const foreignLines = (count: number): string[] =>
  count === 0
    ? []
    : [
        `journal.jsonl has ${count === 1 ? 'a line that was' : `${count} lines that were`} not written on this machine. What came with a folder does not count as a plan's progress.`,
      ];

/** How often a followed journal is looked at. In milliseconds. */
const lookInterval = 100;

/** Yields the facts of a journal, those that it has and those that come, until the signal aborts. */
export async function* followJournal(
  file: string,
  signal: AbortSignal,
  seal?: MachineSeal,
): AsyncGenerator<JournalLine> {
  for (let position = 0; ; ) {
    // What was written before the abort is still reported.
    const isLast = signal.aborted;
    const size = (await stat(file).catch(() => undefined))?.size ?? 0;
    // Who throws a plan away and starts it again is followed from the new beginning.
    if (size < position) position = 0;
    if (size > position) {
      const { text, read } = await linesFrom(file, position, size);
      position += read;
      yield* journalText(text, file, seal).lines;
      if (read > 0) continue;
    }
    if (isLast) return;
    await delay(lookInterval, undefined, { signal }).catch(() => undefined);
  }
}

/** Returns the lines that are whole. One that a crash tore or that a later version wrote differently is left out. */
export const linesOf = (text: string): JournalLine[] => journalText(text, '', undefined).lines;

interface JournalText {
  lines: JournalLine[];
  /** The highest number that a line has, or 0. */
  highest: number;
  /** Lines without the seal. */
  foreign: number;
}

/** What the seal of a line is about: the plan is the folder of its journal, in its repository. */
const aboutOf = (file: string, place: string): string => `${earlierAboutOf(file)} in ${place}`;

/** As earlier versions had it, whose lines still count. */
const earlierAboutOf = (file: string): string => `journal ${basename(dirname(file))}`;

/** Returns what the seal of a line can be about. */
const aboutsOf = (file: string): string[] => [aboutOf(file, sealPlace(dirname(file))), earlierAboutOf(file)];

function journalText(text: string, file: string, seal: MachineSeal | undefined): JournalText {
  let [highest, foreign] = [0, 0];
  const abouts = seal ? aboutsOf(file) : [];
  const { values } = readLines(text, line => {
    const whole = jsonLine(line, value => (isFields(value) ? value : undefined));
    if (!whole) return undefined;
    const json = seal ? firstOpened(seal, abouts, line) : line;
    if (json === undefined) {
      foreign += 1;
      return undefined;
    }
    const { seal: _seal, ...fields } = whole;
    const { seq } = fields;
    // A number that does not grow was not written here after the line before it.
    if (!Number.isSafeInteger(seq) || Number(seq) <= highest) return undefined;
    highest = Number(seq);
    return accepted(fields);
  });
  return { lines: values, highest, foreign };
}

function firstOpened(seal: MachineSeal, abouts: readonly string[], line: string): string | undefined {
  for (const about of abouts) {
    const json = seal.opened(about, line);
    if (json !== undefined) return json;
  }
  return undefined;
}

type Fields = Readonly<Record<string, unknown>>;

const isText = (value: unknown): value is string => typeof value === 'string';
const isList = (value: unknown): value is unknown[] => Array.isArray(value);
const isNumbers = (value: unknown): boolean => isList(value) && value.every(Number.isInteger);
const isTexts = (value: unknown): boolean => isList(value) && value.every(isText);
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !isList(value);
const ofAttempt = ({ story, attempt }: Fields): boolean => isText(story) && Number.isInteger(attempt);
const ofStory = ({ story, items }: Fields): boolean =>
  isText(story) && (items === undefined || isNumbers(items));

/** Checks for the fields without which a line would break its readers. */
const needed: Readonly<Record<PlanEvent['type'], (line: Fields) => boolean>> = {
  plan_created: ({ name, goal }) => isText(name) && isText(goal),
  interview_round: ({ questions }) => isTexts(questions),
  plan_written: ({ digest }) => isText(digest),
  plan_reviewed: ({ decision, comments }) => isText(decision) && isTexts(comments),
  stories_written: ({ stories }) => isTexts(stories),
  card_accepted: ({ digest }) => isText(digest),
  runner_started: ({ base, branch, slots }) => isText(base) && isText(branch) && Number.isInteger(slots),
  away: ({ ms }) => typeof ms === 'number',
  recovered: ({ what }) => isTexts(what),
  preflight: ({ checks, problems }) => isList(checks) && checks.every(isFields) && isTexts(problems),
  attempt_started: line => ofAttempt(line) && isText(line['parent']) && Number.isInteger(line['slot']),
  job_given: line => ofAttempt(line) && isText(line['job']) && isText(line['worker']),
  step_started: ({ key, runId }) => isText(key) && isText(runId),
  step_ended: ({ key, runId, outcome, usage }) =>
    isText(key) && isText(runId) && isText(outcome) && (usage === undefined || isFields(usage)),
  snapshot: line => ofAttempt(line) && isText(line['commit']) && isText(line['tree']),
  check_ended: line => ofAttempt(line) && isText(line['name']) && isText(line['tree']),
  tamper: line => ofAttempt(line) && isList(line['findings']) && line['findings'].every(isFields),
  verdict: line =>
    ofAttempt(line) && isText(line['tree']) && isText(line['text']) && isNumbers(line['items']),
  story_passed: line => isText(line['story']) && isText(line['commit']) && isNumbers(line['items']),
  attempt_ended: line => ofAttempt(line) && isText(line['status']) && isText(line['details']),
  story_reopened: ofStory,
  story_skipped: ofStory,
  story_accepted: ofStory,
  story_failed: ofStory,
  story_split: ({ story, into }) => isText(story) && isTexts(into),
  learned: line => ofAttempt(line) && isTexts(line['notes']),
  advised: line => ofAttempt(line) && isText(line['role']) && isText(line['instructions']),
  question_parked: ({ question }) => isFields(question) && isText(question['id']) && isText(question['text']),
  question_answered: ({ id, text }) => isText(id) && isText(text),
  steered: ({ command }) => isFields(command) && isText(command['kind']),
  waiting: ({ until, why }) => isText(until) && isText(why),
  phase: ({ phase }) => isText(phase),
  finished: ({ how }) => isText(how),
};

function accepted(value: unknown): JournalLine | undefined {
  if (!isFields(value) || !Number.isInteger(value['seq']) || !isText(value['ts'])) return undefined;
  return planEvent(value) && (value as unknown as JournalLine);
}

/** Returns the event, or undefined if its readers could not do with it. */
export function planEvent(value: unknown): PlanEvent | undefined {
  if (!isFields(value)) return undefined;
  const { type } = value;
  if (!isText(type) || !Object.hasOwn(needed, type)) return undefined;
  return needed[type as PlanEvent['type']](value) ? (value as unknown as PlanEvent) : undefined;
}
