/** Writes down what a model was asked without a run: which skill a request means, and questions that somebody else has put. */
import { randomUUID } from 'node:crypto';
import type { ErrorCode, RunEvent, RunOutcome, Usage } from '../protocol/run.ts';
import { noUsage, writtenRouting, writtenUsage } from './log.ts';
import {
  appendRecord,
  localTimestamp,
  logPath,
  type SkillEndRecord,
  type WrittenCall,
  type WrittenUsage,
} from './logFile.ts';

/** What the choice of a skill has used that no run follows. A log that cannot be written breaks nothing. */
export function recordRouting(event: RunEvent, dataDir: string): void {
  if (event.type !== 'usage' || !event.routing) return;
  const { routing, usage } = event;
  appendAlone(dataDir, {
    ...alone,
    ...writtenUsage(usage),
    routing: { ...writtenRouting(routing, usage), alone: true },
  });
}

/** How a question went that no run has put. */
export interface CallEnd {
  outcome: Extract<RunOutcome, 'completed' | 'cancelled' | 'budget' | 'failed'>;
  /** The kind of the error; its message may hold words of the question. */
  error: ErrorCode | null;
  toolCalls: number;
  /** Milliseconds. */
  durationMs: number;
  /** Missing where the model was never reached. */
  usage?: Usage;
}

/** A question that somebody else has put to a model through Telos, without its words. A log that cannot be written breaks nothing. */
export function recordCall(dataDir: string, call: WrittenCall, end: CallEnd): void {
  const { outcome, error, toolCalls, durationMs, usage } = end;
  appendAlone(dataDir, {
    ...alone,
    ...{ outcome, error, tool_calls: toolCalls, duration_s: Math.round(durationMs) / 1000 },
    ...writtenUsage(usage ?? { ...noUsage, cost: 0 }),
    rounds: usage ? 1 : 0,
    call,
  });
}

const alone: Omit<SkillEndRecord, 'ts' | 'run_id' | keyof WrittenUsage> = {
  ...{ event: 'skill_end', duration_s: 0, rounds: 0, tool_calls: 0, error: null, messages: [] },
  ...{ agent: null, skill: null, outcome: 'completed' },
};

function appendAlone(dataDir: string, record: Omit<SkillEndRecord, 'ts' | 'run_id'>): void {
  const ts = localTimestamp(new Date());
  try {
    appendRecord(logPath(dataDir), { ts, ...record, run_id: randomUUID() });
  } catch {
    // The next run says that its log cannot be written.
  }
}
