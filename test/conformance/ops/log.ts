/** What is written into the log when the events of a run pass by. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { denyAll } from '../../../src/engine/human.ts';
import { logPath, readLog } from '../../../src/engine/records/logFile.ts';
import { record as recordRun } from '../../../src/engine/records/record.ts';
import { redactor } from '../../../src/engine/redact.ts';
import { newRun } from '../../../src/engine/run/request.ts';
import type { Message, RunEvent } from '../../../src/protocol/run.ts';
import { isRecord, type Json, texts } from '../caseFile.ts';
import type { Operations } from '../operations.ts';

export const logOperations: Operations = {
  log_path: async ({ given }, world) => ({ path: logPath(world.loadConfig(texts(given['env'])).dataDir) }),

  async log({ given, when }, world) {
    const file = logPath(world.data);
    const wasThere = existsSync(dirname(file));
    const [name, ...rest] = when['event'] as readonly Json[];
    const events = Array.from({ length: Number(given['calls'] ?? 1) }, (_, index) =>
      eventFor(String(name), rest, index),
    );
    const run = { request: {}, messages: [], earlier: 0, redact: redactor([]) };
    for await (const _event of recordRun(stream(events), run, world.data));
    const lines = (await readLog(file)).records.filter(({ event }) => event === name);
    const [record] = lines;
    const { counts } = newRun({ text: '' }, denyAll, world.loadConfig());
    return {
      context: { rounds: counts.rounds, tool_calls: counts.toolCalls },
      lines,
      line_count: lines.length,
      record,
      duration: record && 'duration_s' in record ? record.duration_s : undefined,
      creates_missing_folder: !wasThere && existsSync(dirname(file)),
    };
  },
};

async function* stream(events: readonly RunEvent[]): AsyncGenerator<RunEvent> {
  yield { type: 'run_start', runId: 'r', text: 't', startedAt: new Date().toISOString() };
  yield* events;
  if (events.at(-1)?.type !== 'run_end') yield eventFor('skill_end', [{}, [], null], 0);
}

function eventFor(name: string, rest: readonly Json[], index: number): RunEvent {
  const [first, second, third] = rest;
  if (name === 'skill_start') {
    return {
      type: 'routed',
      agent: 'a',
      skill: 's',
      description: 'd',
      reason: { rule: 'chosen' },
      provider: String(first),
      model: String(second),
      workingDir: '/w',
      hasMcp: third === true,
    };
  }
  if (name === 'tool_call') {
    return {
      type: 'tool_end',
      callId: String(index),
      name: String(first),
      result: { content: '', isError: second === true },
    };
  }
  const counts = isRecord(first) ? first : {};
  return {
    type: 'run_end',
    outcome: third === null ? 'completed' : 'failed',
    rounds: Number(counts['rounds'] ?? 0),
    toolCalls: Number(counts['tool_calls'] ?? 0),
    durationMs: Number(counts['age_s'] ?? 0) * 1000,
    messages: second as unknown as Message[],
    ...(typeof third === 'string' ? { error: { code: 'internal', message: third } } : {}),
  };
}
