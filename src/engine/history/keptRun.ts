/** A kept run as its file tells it: read whole, and looked through for words. */
import { readFile } from 'node:fs/promises';
import type { Message, RunEvent } from '../../protocol/run.ts';
import { parseLine, type RunLine } from './runFile.ts';
import { type RunSummary, summaryOf } from './runSummary.ts';

/** A run, read whole. */
export interface KeptRun {
  summary: RunSummary;
  /** With neighbouring text joined. The messages of a `run_end` are all that were said up to there, those of the runs before it included. */
  events: readonly RunEvent[];
  /** What this run has added to them. */
  messages: readonly Message[];
  /** So many messages of the runs before it were given to it. */
  earlier: number;
  /** Lines that cannot be read: cut by a crash, or edited by hand. */
  skippedLines: number;
  /** The process that runs it, or did. */
  pid: number;
  /** So many bytes of its file were read, up to the end of a line; a run that goes on writes behind them. */
  readTo: number;
}

/** Undefined for bytes that do not begin like the file of a run. */
export function runOf(file: string, bytes: Buffer): KeptRun | undefined {
  const lines: RunLine[] = [];
  let skippedLines = 0;
  for (const line of bytes.toString('utf8').split('\n')) {
    if (line.trim() === '') continue;
    const one = parseLine(line);
    if (one) lines.push(one);
    else skippedLines++;
  }
  const summary = summaryOf(file, lines);
  if (!summary) return undefined;
  const events: RunEvent[] = [];
  const messages: Message[] = [];
  let earlier = 0;
  for (const line of lines) {
    if (line.type === 'messages') {
      earlier = line.earlier;
      for (const message of line.messages) messages.push(message);
    } else if (line.type !== 'run' && line.type !== 'totals' && line.type !== 'title') {
      addJoined(events, line);
    }
  }
  summary.toolCalls ||= events.filter(({ type }) => type === 'tool_end').length;
  const pid = lines[0]?.type === 'run' ? lines[0].pid : 0;
  return { summary, events, messages, earlier, skippedLines, pid, readTo: bytes.lastIndexOf(0x0a) + 1 };
}

function addJoined(events: RunEvent[], event: RunEvent): void {
  const last = events.at(-1);
  if (event.type === 'text' && last?.type === 'text')
    events[events.length - 1] = { type: 'text', text: last.text + event.text };
  else events.push(event);
}

/** Looks at the raw text first: most files hold none of the words anywhere, and need not be parsed. */
export async function textHolds(file: string, words: readonly string[]): Promise<boolean> {
  const bytes = await readFile(file).catch(() => Buffer.alloc(0));
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
