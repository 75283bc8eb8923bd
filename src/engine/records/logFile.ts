/** Defines the records of the log on disk. Adds whole records, and reads files that contain broken lines. */

import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { ErrorCode, Message, RoutingModel, RunEvent, RunOutcome, Usage } from '@telos/protocol/run';
import { noUsage } from '@telos/protocol/usage';
import { appendOwnLine, jsonLine, linesFrom, readLines } from '../files/jsonLines.ts';
import { cutMiddle } from '../files/plainText.ts';
import { mapStrings } from '../redact.ts';

/** Written when a skill was chosen and starts. The first keys have the names and order of the log in the specification. */
export interface SkillStartRecord {
  /** ISO 8601 with the offset of the local zone, `2026-01-31T09:00:00.000+01:00`, so that it agrees with the day of the file. */
  ts: string;
  event: 'skill_start';
  provider: string;
  model: string;
  has_mcp: boolean;
  run_id: string;
  agent: string;
  skill: string;
  /** Process that runs the skill. Missing in older logs. */
  pid?: number;
}

/** Written when a tool call has its result. */
export interface ToolCallRecord {
  ts: string;
  event: 'tool_call';
  tool: string;
  is_error: boolean;
  run_id: string;
  call_id: string;
  /** Decision of the policy, and the rule behind it. Missing if the input was not valid. */
  policy?: { action: 'allow' | 'ask' | 'deny'; rule: string; boxed?: true };
  /** Present if a person was asked: the rule that asked, and the answer. */
  approval?: { rule: string; answer: string };
}

/** Written when a model has answered a run, or was stopped while it did. The figures are part of those at the end of the run. */
export interface ModelCallRecord extends WrittenUsage {
  ts: string;
  event: 'model_call';
  run_id: string;
  /** Of the run up to here, without the time in which a person was waited for. */
  duration_s: number;
}

export interface WrittenUsage {
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  /** In US dollars. */
  cost: number | 'unknown';
}

/** Usage of the model call that chose the skill. */
export interface WrittenRouting extends WrittenUsage {
  provider: string;
  model: string;
  /** No run followed: the caller only wanted to know which skill would be chosen. */
  alone?: true;
}

/** Written when a run is over, however it ended. `agent` and `skill` are null if none was chosen. */
export interface SkillEndRecord extends WrittenUsage {
  ts: string;
  event: 'skill_end';
  duration_s: number;
  rounds: number;
  tool_calls: number;
  error: string | null;
  /** The whole conversation, including the last answer. A very long one is cut and contains a note about it. */
  messages: readonly Message[];
  run_id: string;
  agent: string | null;
  skill: string | null;
  outcome: RunOutcome;
  /** Already included in the sums of this record. */
  routing?: WrittenRouting;
  /** Set if the record is not a run but a single question to a model. Its text is not written. */
  call?: WrittenCall;
}

export interface WrittenCall {
  /** Where the question came from: about a project's context or, in logs of earlier versions, through the editor. */
  door: 'editor' | 'context';
  provider: string;
  model: string;
}

export type LogRecord = SkillStartRecord | ToolCallRecord | ModelCallRecord | SkillEndRecord;

/** Maximum length of a record, including its newline. In bytes. */
export const maxRecordBytes = 8 * 1024 * 1024;

/** Returns the path of a day's log file. Days follow the local calendar. */
export function logPath(dataDir: string, day = new Date()): string {
  return join(dataDir, 'logs', `${dayOf(day)}.jsonl`);
}

/** Returns the day as `2026-01-31`, by the local calendar. */
export function dayOf(date: Date): string {
  const number = (value: number, digits: number): string => String(value).padStart(digits, '0');
  return [number(date.getFullYear(), 4), number(date.getMonth() + 1, 2), number(date.getDate(), 2)].join('-');
}

/** Returns the time in the format of `SkillStartRecord.ts`. */
export function localTimestamp(date: Date): string {
  const minutes = -date.getTimezoneOffset();
  if (minutes === 0) return date.toISOString();
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0');
  const local = new Date(date.getTime() + minutes * 60_000).toISOString().slice(0, -1);
  const offset = Math.abs(minutes);
  return `${local}${minutes < 0 ? '-' : '+'}${two(offset / 60)}:${two(offset % 60)}`;
}

/** Returns the days that have a log, the earliest first. Returns none if the log folder is missing. */
export function logDays(dataDir: string): { day: string; file: string }[] {
  const folder = join(dataDir, 'logs');
  if (!existsSync(folder)) return [];
  const days = readdirSync(folder).flatMap(name => /^(\d{4}-\d\d-\d\d)\.jsonl$/.exec(name)?.[1] ?? []);
  return days.sort().map(day => ({ day, file: join(folder, `${day}.jsonl`) }));
}

/**
 * Adds one record with one write, so that records of several processes never mix. Synchronous: the record is written before the
 * event is shown, even if the process ends right after it. Throws the error of the file system.
 */
export function appendRecord(file: string, record: LogRecord): void {
  appendOwnLine(file, recordLine(record));
}

/** Lengths that the strings of a too long record are cut to, tried in turn until the record fits. In bytes. */
const cutLengths = [256 * 1024, 32 * 1024, 4 * 1024];

function recordLine(record: LogRecord): string {
  const line = JSON.stringify(record);
  if (fits(line) || record.event !== 'skill_end') return line;
  let shorter = record;
  for (const length of cutLengths) {
    shorter = mapStrings(record, text => cutText(text, length));
    const cut = JSON.stringify(shorter);
    if (fits(cut)) return cut;
  }
  const ends = JSON.stringify({ ...shorter, messages: endsOf(shorter.messages) });
  return fits(ends) ? ends : JSON.stringify({ ...shorter, messages: [leftOut(shorter.messages.length)] });
}

/** Two bytes are reserved for the newlines around the line. */
const fits = (line: string): boolean => Buffer.byteLength(line) <= maxRecordBytes - 2;

/** Returns the text, without its middle if it has more bytes. */
export const cutText = (text: string, most: number): string =>
  cutMiddle(text, most, bytes => `\n[... ${bytes} bytes, of which the middle is left out of the log ...]\n`);

/** Returns the first message and as many of the last ones as fit, with a note about the rest. */
function endsOf(messages: readonly Message[]): Message[] {
  const [first, ...rest] = messages;
  if (!first) return [];
  let room = maxRecordBytes / 2 - Buffer.byteLength(JSON.stringify(first));
  let from = rest.length;
  while (from > 0) {
    room -= Buffer.byteLength(JSON.stringify(rest[from - 1]));
    if (room < 0) break;
    from--;
  }
  return [first, leftOut(from), ...rest.slice(from)];
}

const leftOut = (count: number): Message => ({
  role: 'user',
  content: `[... ${count} messages left out of the log ...]`,
});

/**
 * Reads the records of a log file, in their order. Lines that are not records (cut by a crash, edited by hand) are skipped and
 * counted. Throws the error of the file system.
 */
export async function readLog(file: string): Promise<{ records: LogRecord[]; skipped: number }> {
  const records: LogRecord[] = [];
  const skipped = await eachRecord(file, record => void records.push(record));
  return { records, skipped };
}

/** Passes the records of a log file on, like `readLog`, but keeps none: a day can have more than fits into memory. Returns the number of other lines. */
export async function eachRecord(file: string, take: (record: LogRecord) => void): Promise<number> {
  const size = statSync(file).size;
  let skipped = 0;
  for (let position = 0; position < size; ) {
    const piece = await linesFrom(file, position, size, pieceBytes, true);
    if (piece.read === 0) break;
    position += piece.read;
    const read = readLines(piece.text, parseRecord);
    skipped += read.skipped;
    read.values.forEach(take);
  }
  return skipped;
}

/** Number of bytes of a log that are in memory at a time. Longer than any record. */
const pieceBytes = 2 * maxRecordBytes;

/** Returns a number of a record, or 0 if the value is not a number. A record may have been edited by hand. */
export const figureIn = (value: unknown): number =>
  typeof value === 'number' && Number.isFinite(value) ? value : 0;

const eventNames = new Set(['skill_start', 'tool_call', 'model_call', 'skill_end']);

/** Returns undefined for a line that is not a record. A line longer than any record is not parsed. */
export function parseRecord(line: string): LogRecord | undefined {
  if (line.length > maxRecordBytes) return undefined;
  return jsonLine(line, value => {
    if (value === null || typeof value !== 'object') return undefined;
    const { ts, event } = value as { ts?: unknown; event?: unknown };
    return typeof ts === 'string' && eventNames.has(String(event)) ? mended(value as LogRecord) : undefined;
  });
}

/**
 * Replaces values that an older version did not write, or that an edit by hand has broken, with empty ones. Readers then never
 * fail on them.
 */
function mended(record: LogRecord): LogRecord {
  const run_id = textIn(record.run_id, '');
  if (record.event === 'model_call') return { ...record, run_id };
  if (record.event === 'tool_call') return { ...record, run_id, tool: textIn(record.tool, '-') };
  const [agent, skill] = [textIn(record.agent, null), textIn(record.skill, null)];
  if (record.event === 'skill_start') {
    const [provider, model] = [textIn(record.provider, '-'), textIn(record.model, '-')];
    return { ...record, run_id, provider, model, agent: agent ?? '-', skill: skill ?? '-' };
  }
  const messages = Array.isArray(record.messages) ? record.messages.filter(isMessage) : [];
  const said = textIn(record.error, null);
  const isTold = typeof record.outcome === 'string';
  const error = !isTold && said === null && !hasAnswer(messages) ? unknownEnd : said;
  return {
    ...record,
    run_id,
    agent,
    skill,
    error,
    outcome: textIn(record.outcome, error === null ? 'completed' : 'failed'),
    duration_s: figureIn(record.duration_s),
    rounds: figureIn(record.rounds),
    messages,
  };
}

/** The error of a record that says neither how its run ended nor what the model answered. */
const unknownEnd = 'This record does not say how the run ended.';

function hasAnswer(messages: readonly Message[]): boolean {
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return false;
  if (typeof last.content === 'string') return last.content.trim() !== '';
  return last.content.some(block => block.type === 'text' && block.text.trim() !== '');
}

const textIn = <Text extends string, Otherwise>(
  value: Text | null,
  otherwise: Otherwise,
): Text | Otherwise => (typeof value === 'string' ? value : otherwise);

function isMessage(value: unknown): value is Message {
  const { role, content } = (value ?? {}) as Partial<Message>;
  if (role !== 'user' && role !== 'assistant') return false;
  return typeof content === 'string' || (Array.isArray(content) && content.every(isBlock));
}

function isBlock(value: unknown): boolean {
  const { type, text, content } = (value ?? {}) as { type?: unknown; text?: unknown; content?: unknown };
  if (type === 'text') return typeof text === 'string';
  if (type !== 'tool_result') return typeof type === 'string';
  return typeof content === 'string' || (Array.isArray(content) && content.every(isBlock));
}

/** Writes the usage of choosing a skill when no run follows. A log that cannot be written breaks nothing. */
export function recordRouting(event: RunEvent, dataDir: string): void {
  if (event.type !== 'usage' || !event.routing) return;
  const { routing, usage } = event;
  appendAlone(dataDir, {
    ...alone,
    ...writtenUsage(usage),
    routing: { ...writtenRouting(routing, usage), alone: true },
  });
}

/** How a question ended that did not come from a run. */
export interface CallEnd {
  outcome: Extract<RunOutcome, 'completed' | 'cancelled' | 'budget' | 'failed'>;
  /** Kind of the error. Its message may contain words of the question. */
  error: ErrorCode | null;
  toolCalls: number;
  /** In milliseconds. */
  durationMs: number;
  /** Missing if the model was never reached. */
  usage?: Usage;
}

/**
 * Writes down a question to a model that belongs to no run, without its text. A log that cannot be written breaks
 * nothing.
 */
export function recordCall(dataDir: string, call: WrittenCall, end: CallEnd): void {
  const { outcome, error, toolCalls, durationMs, usage } = end;
  appendAlone(dataDir, {
    ...alone,
    outcome,
    error,
    tool_calls: toolCalls,
    duration_s: Math.round(durationMs) / 1000,
    ...writtenUsage(usage ?? { ...noUsage, cost: 0 }),
    rounds: usage ? 1 : 0,
    call,
  });
}

const alone: Omit<SkillEndRecord, 'ts' | 'run_id' | keyof WrittenUsage> = {
  event: 'skill_end',
  duration_s: 0,
  rounds: 0,
  tool_calls: 0,
  error: null,
  messages: [],
  agent: null,
  skill: null,
  outcome: 'completed',
};

function appendAlone(dataDir: string, record: Omit<SkillEndRecord, 'ts' | 'run_id'>): void {
  const ts = localTimestamp(new Date());
  try {
    appendRecord(logPath(dataDir), { ts, ...record, run_id: randomUUID() });
  } catch {
    // The next run reports that its log cannot be written.
  }
}

/** Reads the log on from where it stopped. A new day is a new file, which is read from its start. */
export class LogReader {
  readonly #dataDir: string;
  #file: string;
  #position: number;

  /** `from` says where to begin in the existing file: at its start or after its content. */
  constructor(dataDir: string, from: 'start' | 'end') {
    this.#dataDir = dataDir;
    this.#file = logPath(dataDir);
    this.#position = from === 'start' ? 0 : sizeOf(this.#file);
  }

  /**
   * Yields the records added since the last call, in pieces. `isNew` is true for the first piece of a file that was not read before:
   * that of a new day, or one that is shorter than it was. Throws the error of the file system.
   */
  async *readOn(): AsyncGenerator<{ records: LogRecord[]; isNew: boolean }> {
    const today = logPath(this.#dataDir);
    const size = sizeOf(today);
    let isNew = today !== this.#file || size < this.#position;
    if (isNew) this.#position = 0;
    this.#file = today;
    if (isNew && size === 0) yield { records: [], isNew };
    while (this.#position < size) {
      const { text, read } = await linesFrom(this.#file, this.#position, size, pieceBytes);
      if (read === 0) return;
      this.#position += read;
      yield { records: readLines(text, parseRecord).values, isNew };
      isNew = false;
    }
  }
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

export const writtenRouting = ({ provider, model }: RoutingModel, usage: Usage): WrittenRouting => ({
  provider,
  model,
  ...writtenUsage(usage),
});

export const writtenUsage = (usage: Usage): WrittenUsage => ({
  input_tokens: usage.inputTokens,
  output_tokens: usage.outputTokens,
  cache_read_tokens: usage.cacheReadTokens,
  cache_write_tokens: usage.cacheWriteTokens,
  cost: usage.cost,
});
