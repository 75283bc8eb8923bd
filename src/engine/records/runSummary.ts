/** Summarizes a run from the two ends of its file, so that thousands of runs are listed at once. */

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { basename } from 'node:path';
import type { Message, RouteRule, RunEvent, RunOutcome, Usage } from '@telos/protocol/run';
import { completeLines, readLines } from '../files/jsonLines.ts';
import { isOwnerRunning } from '../files/liveProcess.ts';
import { loadRegularFile } from '../files/regularFile.ts';
import { isAddedLater, parseLine, type RunLine, type RunOrigin } from './runFile.ts';
import { joinedDeltas } from './transcript.ts';

/** Outcome of a stored run. Without an end, the run is still running, or its process has ended. */
export type StoredOutcome = RunOutcome | 'running' | 'interrupted';

export interface RunSummary {
  runId: string;
  /** Absolute path. */
  file: string;
  conversation: string;
  after?: string;
  door: RunOrigin;
  /** See `RunHeader`. */
  folder?: string;
  /** The name of the plan, or of its project's folder, and the place of the run in it, such as `US-001 · coder #2`. */
  plan?: string;
  step?: string;
  /** ISO 8601, UTC. */
  startedAt: string;
  /** Beginning of the request. */
  request: string;
  /** Name given by the person. */
  title?: string;
  /** Empty if no skill was found or none was asked for. */
  agent: string;
  skill: string;
  /** How the skill was chosen. Missing if the file does not say it, or says it too late to be read for a list. */
  rule?: RouteRule;
  provider: string;
  model: string;
  outcome: StoredOutcome;
  rounds: number;
  toolCalls: number;
  /** In milliseconds. Missing for a run without an end. */
  durationMs?: number;
  /** Missing for a run without an end. */
  usage?: Usage;
  /** Whether a recorded run answered in place of a model. */
  isRecording: boolean;
  error?: string;
  /** Set if the person has restored the conversation to before this run. */
  isAside?: true;
}

/** Returns the title of a run in a list: its name, else its place in its plan, else its request, else its skill. */
export function titleOf({
  title,
  plan,
  step,
  request,
  skill,
}: Pick<RunSummary, 'title' | 'plan' | 'step' | 'request' | 'skill'>): string {
  if (title) return title;
  if (plan !== undefined) return [plan, step].join(' · ');
  return request.replace(/\s+/g, ' ').trim() || (skill ? `Run ${skill}` : 'Untitled run');
}

/** Returns story and step, and the number of an attempt that is not the first. */
function placeOf(key: string): string {
  const attempt = /\.a(\d+)\b/.exec(key)?.[1] ?? '1';
  const place = key.replace(`.a${attempt}`, '').replaceAll('.', ' · ');
  return attempt === '1' ? place : `${place} #${attempt}`;
}

/** Bytes read from each end. */
const endBytes = 8 * 1024;
/** Limit of the search for the choice of the skill after a long request. In bytes. */
const maxHeadBytes = 1024 * 1024;

/** Returns undefined if the file does not begin like the file of a run. Throws the error of the file system. */
export function readSummary(file: string): RunSummary | undefined {
  const handle = openSync(file, 'r');
  try {
    const { size } = fstatSync(handle);
    const head = read(handle, 0, Math.min(size, 2 * endBytes));
    if (size <= head.length) return summaryOf(file, parsed(head.toString('utf8')));
    const last = lastLines(handle, size);
    let first = parsed(completeLines(head));
    const isTold = [...first, ...last].some(({ type }) => type === 'routed' || type === 'totals');
    if (!isTold) first = parsed(completeLines(read(handle, 0, Math.min(size, maxHeadBytes))));
    return summaryOf(file, [...first, ...last]);
  } finally {
    closeSync(handle);
  }
}

/**
 * Returns the lines at the end of the file. Reads further back if only what was added later follows the run's end, or if one line fills
 * the whole part.
 */
function lastLines(handle: number, size: number): RunLine[] {
  for (let length = endBytes; ; length *= 8) {
    const tail = read(handle, Math.max(0, size - length), Math.min(size, length)).toString('utf8');
    // The first line may be only the end of one.
    const lines = parsed(tail.slice(tail.indexOf('\n') + 1));
    const mayBeBefore = lines.length === 0 || lines.some(isAddedLater);
    const isFound = lines.some(({ type }) => type === 'run_end');
    if (isFound || !mayBeBefore || length >= Math.min(size, maxHeadBytes)) return lines;
  }
}

/** Summarizes the lines of a file. Some in the middle may be missing. */
export function summaryOf(file: string, lines: readonly RunLine[]): RunSummary | undefined {
  const header = lines[0];
  if (header?.type !== 'run') return undefined;
  const { runId, conversation = runId, after, door, step, folder, startedAt, request } = header;
  const summary: RunSummary = {
    runId,
    file,
    conversation,
    ...(after !== undefined && { after }),
    door,
    ...(typeof step === 'string' && { plan: basename(conversation), step: placeOf(step) }),
    ...(folder !== undefined && { folder }),
    startedAt,
    request: String(request ?? ''),
    agent: '',
    skill: '',
    provider: '',
    model: '',
    rounds: 0,
    toolCalls: 0,
    isRecording: false,
    outcome: isOwnerRunning(header) ? 'running' : 'interrupted',
  };
  for (const line of lines) addLine(summary, line);
  return summary;
}

function addLine(summary: RunSummary, line: RunLine): void {
  switch (line.type) {
    case 'routed':
    case 'totals':
      for (const name of ['agent', 'skill', 'provider', 'model'] as const)
        summary[name] = String(line[name] ?? '');
      if (line.type === 'routed') {
        summary.rule = line.reason.rule;
        break;
      }
      summary.usage = line.usage;
      summary.isRecording = line.isRecording === true;
      break;
    case 'title':
      if (line.title) summary.title = line.title;
      else delete summary.title;
      break;
    case 'set_aside':
      if (line.isAside) summary.isAside = true;
      else delete summary.isAside;
      break;
    case 'usage':
      summary.rounds = Math.max(summary.rounds, line.round);
      break;
    case 'run_end':
      summary.outcome = line.interrupted ? 'interrupted' : line.outcome;
      summary.rounds = line.rounds;
      summary.toolCalls = line.toolCalls;
      summary.durationMs = line.durationMs;
      if (line.error) summary.error = line.error.message;
      break;
    default:
  }
}

function read(handle: number, position: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  return bytes.subarray(0, readSync(handle, bytes, 0, length, position));
}

const parsed = (text: string): RunLine[] => readLines(text, parseLine).values;

/** A run, read whole. */
export interface StoredRun {
  summary: RunSummary;
  /**
   * With adjacent texts joined. The messages of a `run_end` are all messages up to there, including those of the runs before it.
   */
  events: readonly RunEvent[];
  /** Messages that this run has added. */
  messages: readonly Message[];
  /** Number of messages that the run was given from the runs before it. */
  earlier: number;
  /** Number of lines that cannot be read: cut by a crash, or edited by hand. */
  skippedLines: number;
  /** Process that runs it, or did. */
  pid: number;
  /** Bytes read from its file, up to the end of a line. A run that is still running writes after them. */
  readTo: number;
}

/** Returns undefined if the bytes do not begin like the file of a run. */
export function runOf(file: string, bytes: Buffer): StoredRun | undefined {
  const { values: lines, skipped: skippedLines } = readLines(bytes.toString('utf8'), parseLine);
  const summary = summaryOf(file, lines);
  if (!summary) return undefined;
  const events: RunEvent[] = [];
  const messages: Message[] = [];
  let earlier = 0;
  for (const line of lines) {
    if (line.type === 'messages') {
      earlier = line.earlier;
      for (const message of line.messages) messages.push(message);
    } else if (isEvent(line)) {
      addJoined(events, line);
    }
  }
  summary.toolCalls ||= events.filter(({ type }) => type === 'tool_end').length;
  const pid = lines[0]?.type === 'run' ? lines[0].pid : 0;
  return { summary, events, messages, earlier, skippedLines, pid, readTo: bytes.lastIndexOf(0x0a) + 1 };
}

/** Whether the line is what the run itself has reported. */
export const isEvent = (line: RunLine): line is RunEvent =>
  line.type !== 'run' && line.type !== 'messages' && line.type !== 'totals' && !isAddedLater(line);

function addJoined(events: RunEvent[], event: RunEvent): void {
  const joined = joinedDeltas(events.at(-1), event);
  if (joined) events[events.length - 1] = joined;
  else events.push(event);
}

/**
 * Whether the texts of a run contain all the words. Searches the raw text first: most files contain none of them and need not be
 * parsed.
 */
export async function textHolds(file: string, words: readonly string[]): Promise<boolean> {
  const bytes = await loadRegularFile(file).catch(() => Buffer.alloc(0));
  const lower = bytes.toString('utf8').toLowerCase();
  const isPlain = (word: string): boolean => /^[\w.-]+$/.test(word);
  if (words.some(word => isPlain(word) && !lower.includes(word))) return false;
  const texts = runOf(file, bytes)?.events.flatMap(textsIn).join('\n').toLowerCase() ?? '';
  return words.every(word => texts.includes(word));
}

function textsIn(event: RunEvent): string[] {
  switch (event.type) {
    case 'run_start':
    case 'text':
      return [event.text];
    case 'tool_start':
      return [event.call.name, ...Object.values(event.call.input).filter(value => typeof value === 'string')];
    case 'run_end':
      return event.error ? [event.error.message] : [];
    default:
      return [];
  }
}
