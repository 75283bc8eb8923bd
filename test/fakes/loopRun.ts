/** Runs a loop between a start and an end, as a whole run does, without choosing or preparing anything. */

import { runLoop } from '../../src/engine/core/loop.ts';
import type { Run } from '../../src/engine/run/request.ts';
import { type RunSetup, specOf } from '../../src/engine/run/runSetup.ts';
import { endingOf } from '../../src/engine/run/start.ts';
import type { RunEvent } from '../../src/protocol/run.ts';

export async function* loopRun(
  run: Run,
  spec: Omit<RunSetup, 'messages' | 'counts'>,
  signal: AbortSignal,
): AsyncGenerator<RunEvent, void> {
  const { id: runId, request, messages, counts } = run;
  yield { type: 'run_start', runId, text: request.text, startedAt: new Date().toISOString() };
  let ending: ReturnType<typeof endingOf>;
  try {
    ending = { outcome: yield* runLoop(specOf(Object.assign(spec, { messages, counts })), signal) };
  } catch (error) {
    ending = endingOf(error, signal);
  }
  yield { type: 'run_end', ...ending, ...counts, durationMs: 1, messages };
}
