/** Defines the lines of a stored run's file and its path, and parses lines that may contain anything. */

import { join } from 'node:path';
import type { Message, RunEvent, Usage } from '@telos/protocol/run';
import { jsonLine } from '../files/jsonLines.ts';
import type { ProcessIdentity } from '../files/liveProcess.ts';
import { mapStrings } from '../redact.ts';
import { cutText, maxRecordBytes } from './logFile.ts';

/** Door that a run was requested through. */
export type RunOrigin = 'acp' | 'chat' | 'cli' | 'discord' | 'editor' | 'mcp' | 'plan' | 'schedule' | 'other';

/** The first line of a run's file. */
export interface RunHeader {
  type: 'run';
  version: 1;
  runId: string;
  /** Conversation that the run belongs to. Its own id if it has no other. */
  conversation: string;
  /** The run before it in that conversation. Runs after the same one are siblings: the later one replaces the earlier one. */
  after?: string;
  door: RunOrigin;
  /** Key of the step in its plan, such as `US-001.a2.coder`. */
  step?: string;
  /** The folder of the call. Absolute path. Missing in runs that an older version has stored. */
  folder?: string;
  /** ISO 8601, UTC. */
  startedAt: string;
  /** Beginning of the request. `run_start` has all of it. */
  request: string;
  /** Process that runs it. What tells it from a later one with its pid is missing in runs that an older version has stored. */
  pid: number;
  owner?: Omit<ProcessIdentity, 'pid'>;
}

/**
 * Messages added to the transcript. `earlier` is the number of messages the run was given, which are stored with the runs before
 * it.
 */
export interface MessagesLine {
  type: 'messages';
  earlier: number;
  messages: readonly Message[];
}

/** Totals of a run, right before its `run_end`, so that a list need not read the whole file. */
export interface TotalsLine {
  type: 'totals';
  agent: string;
  skill: string;
  provider: string;
  model: string;
  isRecording: boolean;
  usage: Usage;
}

/** A name that the person gave the run. The last one counts; an empty one removes the name. */
export interface TitleLine {
  type: 'title';
  title: string;
}

/** The person has restored the conversation to before this run, or has undone that. The last one counts. */
export interface AsideLine {
  type: 'set_aside';
  isAside: boolean;
}

/** Lines that are added to the file of a run after its end. */
export const isAddedLater = ({ type }: RunLine): boolean => type === 'title' || type === 'set_aside';

/** A line of a run's file. A `run_end` in a file has no messages, because they are in separate lines. */
export type RunLine = RunHeader | MessagesLine | TotalsLine | TitleLine | AsideLine | RunEvent;

/** Maximum length of the request in the first line. In characters. */
export const maxHeaderRequest = 500;

export const runsFolder = (dataDir: string): string => join(dataDir, 'runs');

/** Whether the text is the id of a run. Only such a text may become part of a path. */
export const isRunId = (text: string): boolean => /^[A-Za-z0-9][\w-]{0,99}$/.test(text);

/** Returns undefined if `runId` is not the id of a run. */
export function runPath(dataDir: string, runId: string): string | undefined {
  return isRunId(runId) ? join(runsFolder(dataDir), `${runId}.jsonl`) : undefined;
}

/** Returns one line of a file, including its newline. A line too long to be read again is cut and contains a note about it. */
export function lineOf(line: RunLine): string {
  const text = `${JSON.stringify(line)}\n`;
  if (text.length <= maxRecordBytes) return text;
  return `${JSON.stringify(mapStrings(line, part => cutText(part, maxKeptPart)))}\n`;
}

/** Length that each text of a too long line is cut to. In characters. */
const maxKeptPart = 32 * 1024;

/** Checks for the fields without which a line would break its readers. All other fields are taken unchecked. */
const needed: Readonly<Record<RunLine['type'], (line: Fields) => boolean>> = {
  run: ({ runId, startedAt }) => isText(runId) && isText(startedAt),
  messages: ({ messages }) => Array.isArray(messages) && messages.every(isMessage),
  totals: ({ usage }) => isFields(usage),
  title: ({ title }) => isText(title),
  set_aside: ({ isAside }) => typeof isAside === 'boolean',
  run_start: ({ text }) => isText(text),
  routed: ({ agent, skill, reason }) => isText(agent) && isText(skill) && isFields(reason),
  step: ({ detail }) => isText(detail),
  notice: ({ message }) => isText(message),
  text: ({ text }) => isText(text),
  reasoning: ({ text }) => isText(text),
  tool_start: ({ call }) =>
    isFields(call) && isText(call['id']) && isText(call['name']) && isFields(call['input']),
  approval_request: ({ request }) =>
    isFields(request) && isText(request['callId']) && isText(request['subject']),
  approval_response: ({ decision }) => isFields(decision),
  tool_output: ({ text }) => isText(text),
  tool_progress: ({ message }) => isText(message),
  skill_event: ({ callId, event }) => isText(callId) && isFields(event) && isRunEvent(event),
  tool_end: ({ callId, result }) => isText(callId) && isFields(result) && isText(result['content']),
  usage: ({ usage }) => isFields(usage),
  retry: ({ why }) => isText(why),
  compacted: ({ summary }) => isText(summary),
  hook: ({ event, command }) => isText(event) && isText(command),
  compaction_undone: () => true,
  run_end: ({ outcome }) => isText(outcome),
};

/** Lines that are not events of a run. */
const notEvents: readonly unknown[] = ['run', 'messages', 'totals', 'title', 'set_aside'];

const isRunEvent = (value: Fields): boolean => isLine(value) && !notEvents.includes(value['type']);

function isLine(value: Fields): boolean {
  const { type } = value;
  return isText(type) && Object.hasOwn(needed, type) && needed[type as RunLine['type']](value);
}

/** Returns undefined for an invalid line: cut by a crash, edited by hand, or written by a later version. */
export const parseLine = (text: string): RunLine | undefined =>
  jsonLine(text, value => (isFields(value) && isLine(value) ? (value as unknown as RunLine) : undefined));

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
