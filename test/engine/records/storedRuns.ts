/** Files of runs for tests, written line by line as a run writes them. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { ownerHere } from '../../../src/engine/files/liveProcess.ts';
import { lineOf, type RunHeader, type RunLine, runPath } from '../../../src/engine/records/runFile.ts';
import type { Message, RunEvent, RunOutcome } from '../../../src/protocol/run.ts';

export interface SampleRun {
  runId: string;
  request?: string;
  /** The model's answer. */
  answer?: string;
  startedAt?: string;
  conversation?: string;
  after?: string;
  agent?: string;
  skill?: string;
  model?: string;
  outcome?: RunOutcome;
  cost?: number | 'unknown';
  durationMs?: number;
  /** Between the choice of the skill and the answer. */
  events?: readonly RunEvent[];
  /** So many messages were said before. */
  earlier?: number;
  /** The process; one that is gone, if not said. */
  pid?: number;
  /** False for a run that came to no end. */
  ended?: boolean;
}

/** A number that no process has: Linux gives none above four million, and nothing starts with it elsewhere. */
const nobody = 2 ** 30;

export function linesOf(run: SampleRun): RunLine[] {
  const { runId, request = 'plan my day', answer = 'Here it is.', conversation = runId, after } = run;
  const { startedAt = '2026-01-02T03:04:05.000Z', agent = 'kairos', skill = 'kickoff' } = run;
  const { model = 'm1', cost = 0.01, earlier = 0, pid = nobody } = run;
  const header: RunHeader = {
    type: 'run',
    version: 1,
    runId,
    conversation,
    ...(after !== undefined && { after }),
    door: 'cli',
    startedAt,
    request: request.slice(0, 500),
    pid,
    ...(pid === process.pid && { owner: ownerHere() }),
  };
  const usage = { inputTokens: 100, outputTokens: 20, cacheReadTokens: 0, cacheWriteTokens: 0, cost };
  const messages: Message[] = [
    { role: 'user', content: request },
    { role: 'assistant', content: [{ type: 'text', text: answer }] },
  ];
  const begun: RunLine[] = [
    header,
    { type: 'run_start', runId, text: request, startedAt },
    {
      type: 'routed',
      agent,
      skill,
      description: '',
      reason: { rule: 'name' },
      provider: 'anthropic',
      model,
      workingDir: '/work',
      hasMcp: false,
    },
    ...(run.events ?? []),
    { type: 'text', text: answer },
  ];
  if (run.ended === false) return begun;
  return [
    ...begun,
    { type: 'usage', round: 1, usage },
    { type: 'messages', earlier, messages },
    { type: 'totals', agent, skill, provider: 'anthropic', model, isRecording: false, usage },
    {
      type: 'run_end',
      outcome: run.outcome ?? 'completed',
      rounds: 1,
      toolCalls: 0,
      durationMs: run.durationMs ?? 1500,
      messages: [],
    },
  ];
}

/** Returns the file's path. */
export function writeRun(dataDir: string, run: SampleRun): string {
  const file = runPath(dataDir, run.runId) ?? '';
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, linesOf(run).map(lineOf).join(''), { mode: 0o600 });
  return file;
}
