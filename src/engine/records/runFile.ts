/** What is kept of a run: the lines of its file, where the file lies, and how a line is read that may be anything. */

import { join } from 'node:path';
import type { Message, RunEvent, Usage } from '../../protocol/run.ts';
import { mapStrings } from '../redact.ts';
import { cutText, maxRecordBytes } from './logFile.ts';

/** Who asked for a run. */
export type RunDoor = 'chat' | 'cli' | 'editor' | 'other';

/** The first line of a run's file. */
export interface RunHeader {
  type: 'run';
  version: 1;
  runId: string;
  /** The conversation that it belongs to; its own id where it stands alone. */
  conversation: string;
  /** The run before it in that conversation. Runs after the same one are siblings: the later took the place of the earlier. */
  after?: string;
  door: RunDoor;
  /** ISO 8601, UTC. */
  startedAt: string;
  /** The beginning of the request; `run_start` has all of it. */
  request: string;
  /** The process that runs it. */
  pid: number;
}

/** What has been added to the transcript; `earlier` is how many messages the run was given, which are kept with the runs before it. */
export interface MessagesLine {
  type: 'messages';
  earlier: number;
  messages: readonly Message[];
}

/** What a run comes to, right before its `run_end`, so that a list need not read the whole file. */
export interface TotalsLine {
  type: 'totals';
  agent: string;
  skill: string;
  provider: string;
  model: string;
  isRecording: boolean;
  usage: Usage;
}

/** The person has given the run a name; the last one counts, an empty one takes it away again. */
export interface TitleLine {
  type: 'title';
  title: string;
}

/** A `run_end` in a file has no messages: they stand in lines of their own. */
export type RunLine = RunHeader | MessagesLine | TotalsLine | TitleLine | RunEvent;

/** Characters of a request that the first line holds. */
export const maxHeaderRequest = 500;

export const runsFolder = (dataDir: string): string => join(dataDir, 'runs');

/** Nothing else may become a part of a path. */
export const isRunId = (text: string): boolean => /^[A-Za-z0-9][\w-]{0,99}$/.test(text);

/** Undefined for what is no id of a run. */
export function runPath(dataDir: string, runId: string): string | undefined {
  return isRunId(runId) ? join(runsFolder(dataDir), `${runId}.jsonl`) : undefined;
}

/** One line of a file, its newline included; what is too long to be read again is cut, and says so. */
export function lineOf(line: RunLine): string {
  const text = `${JSON.stringify(line)}\n`;
  if (text.length <= maxRecordBytes) return text;
  return `${JSON.stringify(mapStrings(line, part => cutText(part, maxKeptPart)))}\n`;
}

/** Characters that stay of each text in a line that is too long. */
const maxKeptPart = 32 * 1024;

/** The fields without which a line of this type would break who reads it; whatever else there is, is taken as it stands. */
const needed: Readonly<Record<RunLine['type'], (line: Fields) => boolean>> = {
  run: ({ runId, startedAt }) => isText(runId) && isText(startedAt),
  messages: ({ messages }) => Array.isArray(messages) && messages.every(isMessage),
  totals: ({ usage }) => isFields(usage),
  title: ({ title }) => isText(title),
  run_start: ({ text }) => isText(text),
  routed: ({ agent, skill, reason }) => isText(agent) && isText(skill) && isFields(reason),
  step: ({ detail }) => isText(detail),
  notice: ({ message }) => isText(message),
  text: ({ text }) => isText(text),
  tool_start: ({ call }) =>
    isFields(call) && isText(call['id']) && isText(call['name']) && isFields(call['input']),
  approval_request: ({ request }) =>
    isFields(request) && isText(request['callId']) && isText(request['subject']),
  approval_response: ({ decision }) => isFields(decision),
  question_request: ({ questions }) => Array.isArray(questions),
  question_response: ({ answers }) => Array.isArray(answers),
  tool_end: ({ callId, result }) => isText(callId) && isFields(result) && isText(result['content']),
  usage: ({ usage }) => isFields(usage),
  retry: ({ why }) => isText(why),
  run_end: ({ outcome }) => isText(outcome),
};

/** Undefined for a line that is none: cut by a crash, edited by hand, of a version to come. */
export function parseLine(text: string): RunLine | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (!isFields(value) || !isText(value['type']) || !Object.hasOwn(needed, value['type'])) return undefined;
    const line = value as unknown as RunLine;
    return needed[line.type](value) ? line : undefined;
  } catch {
    return undefined;
  }
}

type Fields = Readonly<Record<string, unknown>>;

const isText = (value: unknown): value is string => typeof value === 'string';

const isFields = (value: unknown): value is Fields =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

function isMessage(value: unknown): boolean {
  if (!isFields(value) || (value['role'] !== 'user' && value['role'] !== 'assistant')) return false;
  const { content } = value;
  return (
    isText(content) ||
    (Array.isArray(content) && content.every(block => isFields(block) && isText(block['type'])))
  );
}
