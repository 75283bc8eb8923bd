/**
 * Defines the format of a recording, which is a file with a header and the turns of a model, one a line, and reads and writes it.
 * Version 1 has no digests of requests: it can be played, but says nothing about a skill that has changed since.
 */
import type { ToolCall, ToolResult } from '@telos/protocol/run';
import { asSaid, type Sentence, sentence } from '@telos/protocol/text';
import { reasonOf, TelosError } from '../core/errors.ts';
import type { StreamEvent, ToolDefinition } from '../core/ports.ts';
import { writeWhole } from '../files/atomicWrite.ts';
import { readRegularFile } from '../files/regularFile.ts';
import type { RequestDigests } from './requestDigest.ts';

/** The run that was recorded. */
export interface RecordedRun {
  agent: string;
  skill: string;
  /** The person's words. */
  request: string;
}

/** The first line of a recording, as JSON. */
export interface RecordingHeader extends RecordedRun {
  format: 'telos-recording';
  version: 1 | 2;
  provider: string;
  model: string;
  /** ISO 8601. */
  recordedAt: string;
  /** Digest of the working folder's path. Missing if the recording is made to play in any folder with the same files. */
  folder?: string;
  /** Since version 2: digest of the skill's folder without its evals. Missing for a run without a skill. */
  skillDigest?: string;
  /** The eval that was run. Missing for any other run. */
  eval?: RecordedEval;
  /** Tools of MCP servers, as they were offered. */
  serverTools?: readonly ToolDefinition[];
}

/** The run of an eval. `inputs` is the digest of what it starts from: its request and its files. */
export interface RecordedEval {
  id: string;
  configuration: string;
  run: number;
  inputs: string;
  /** How long the run took, once it has ended. */
  durationMs?: number;
}

/** Each further line of a recording: one model turn. The last event is `done`; there is no `retry`. */
export interface RecordedTurn extends Partial<RequestDigests> {
  /** Counts from 1. Since version 2. */
  turn?: number;
  /**
   * What the calls of the turn before returned, one digest for each. A null, written by hand, fits everything: a date is never
   * the same again. Missing if there were no calls.
   */
  results?: (string | null)[];
  events: StreamEvent[];
  /** What the calls of this turn returned that left the machine or asked its clock. Missing if none did. */
  tools?: TapedCall[];
}

/** How a call ended. */
export interface TapedCall {
  callId: string;
  name: string;
  result: ToolResult;
  policy?: { action: 'allow' | 'ask' | 'deny'; rule: string };
}

/** Keeps how calls ended that no replay can repeat, or says it in a replay, where nothing is reached. */
export interface RunTape {
  /** Tools of servers in a replay, in which no server is started. Undefined while a run is recorded. */
  readonly servers?: readonly ToolDefinition[];
  /** Returns how a call ended when it was recorded. Undefined if it is to be carried out. */
  endOf(call: ToolCall): Omit<TapedCall, 'callId' | 'name'> | undefined;
  keep(ended: TapedCall): void;
  keepServers(tools: readonly ToolDefinition[]): void;
}

/** Returns true for a command that only asks the clock: its answer is never the same again. */
export const asksClock = ({ name, input }: Pick<ToolCall, 'name' | 'input'>): boolean =>
  name === 'run_command' && /^\s*date(?:\s[^;&|<>$`\n()]*)?$/.test(String(input['command']));

export interface Recording {
  header: RecordingHeader;
  turns: RecordedTurn[];
}

/** Replaces the file. Throws TelosError `config` if it cannot be written. */
export async function writeRecording(file: string, lines: readonly string[]): Promise<void> {
  try {
    await writeWhole(file, `${lines.join('\n')}\n`);
  } catch (error) {
    const reason = reasonOf(error);
    throw new TelosError(
      'config',
      [
        sentence('The recording {0} could not be written: {1}.', file, reason),
        sentence('Choose another file.'),
      ],
      {
        cause: error,
      },
    );
  }
}

/** Upper bound of a recording, in bytes. A long one is a few megabytes. */
const mostBytes = 64 * 1024 * 1024;

/**
 * Returns the recording of a file. Throws TelosError `config` if it cannot be read. The message names the file, and the line if its
 * content is invalid.
 */
export const readRecording = (file: string): Recording => parseRecording(textOf(file), file);

function textOf(file: string): string {
  try {
    return readRegularFile(file, mostBytes).toString('utf8');
  } catch (error) {
    const reason = reasonOf(error);
    throw new TelosError('config', [sentence('The recording {0} could not be read: {1}', file, reason)], {
      cause: error,
    });
  }
}

function parseRecording(text: string, file: string): Recording {
  const lines = text.split(/\r?\n/);
  const broken = (line: number, what: Sentence): TelosError =>
    new TelosError('config', [asSaid(`${file}:${line}:`), what], { remedy: { kind: 'record_again' } });
  const parsed = lines.flatMap((line, index) => {
    if (line.trim() === '') return [];
    try {
      return [{ line: index + 1, value: JSON.parse(line) as unknown }];
    } catch {
      throw broken(index + 1, sentence('This line of the recording is not JSON.'));
    }
  });
  const [first, ...rest] = parsed;
  if (!first || !isHeader(first.value))
    throw broken(first?.line ?? 1, sentence('This is not the first line of a recording.'));
  if (first.value.version !== 1 && first.value.version !== 2)
    throw broken(
      first.line,
      sentence('This recording has version {0}, which is unknown.', first.value.version),
    );
  const turns = rest.map(({ line, value }) => {
    if (!isTurn(value)) throw broken(line, sentence('This line is not a complete turn of a model.'));
    return value;
  });
  return { header: first.value, turns };
}

function isHeader(value: unknown): value is RecordingHeader {
  const header = value as Partial<RecordingHeader> | null;
  return (
    header?.format === 'telos-recording' &&
    typeof header.model === 'string' &&
    typeof header.recordedAt === 'string' &&
    (header.eval === undefined || isRecordedEval(header.eval)) &&
    (header.serverTools === undefined || areAll(header.serverTools, isDefinition))
  );
}

const areAll = (value: unknown, isOne: (one: unknown) => boolean): boolean =>
  Array.isArray(value) && value.every(isOne);

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isRecordedEval = (value: unknown): boolean =>
  isRecord(value) &&
  typeof value['id'] === 'string' &&
  Number.isInteger(value['run']) &&
  ['number', 'undefined'].includes(typeof value['durationMs']);

const isDefinition = (value: unknown): boolean =>
  isRecord(value) &&
  typeof value['name'] === 'string' &&
  typeof value['description'] === 'string' &&
  isRecord(value['inputSchema']);

function isTapedCall(value: unknown): boolean {
  if (!isRecord(value) || !isRecord(value['result'])) return false;
  const { content, isError, images } = value['result'];
  const policy = value['policy'];
  return (
    typeof value['name'] === 'string' &&
    typeof content === 'string' &&
    typeof isError === 'boolean' &&
    (images === undefined || areAll(images, isRecord)) &&
    (policy === undefined || (isRecord(policy) && typeof policy['rule'] === 'string'))
  );
}

const areCounts = (usage: unknown): boolean =>
  isRecord(usage) && Object.values(usage).every(count => typeof count === 'number' && count >= 0);

function isTurn(value: unknown): value is RecordedTurn {
  const { events, results = [] } = (value ?? {}) as Partial<RecordedTurn>;
  const areResults = Array.isArray(results) && results.every(one => one === null || typeof one === 'string');
  const { tools } = (value ?? {}) as Partial<RecordedTurn>;
  if (tools !== undefined && !areAll(tools, isTapedCall)) return false;
  return areResults && Array.isArray(events) && events.every(isStreamEvent) && events.at(-1)?.type === 'done';
}

function isStreamEvent(value: unknown): value is StreamEvent {
  const event = value as Partial<Record<'text' | 'stopReason' | 'type', unknown>> & {
    usage?: unknown;
    call?: unknown;
    block?: unknown;
  };
  switch (event?.type) {
    case 'text':
    case 'reasoning':
      return typeof event.text === 'string';
    case 'done':
      return typeof event.stopReason === 'string' && (event.usage === undefined || areCounts(event.usage));
    case 'thinking':
      return typeof event.block === 'object' && event.block !== null;
    case 'tool_call':
      return isToolCall(event.call);
    default:
      return false;
  }
}

function isToolCall(value: unknown): boolean {
  const call = value as { id?: unknown; name?: unknown; input?: unknown } | null | undefined;
  return (
    typeof call?.id === 'string' &&
    typeof call.name === 'string' &&
    typeof call.input === 'object' &&
    call.input !== null &&
    !Array.isArray(call.input)
  );
}
