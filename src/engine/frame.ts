/** Puts a start and an end around a run, and is the one place where what went wrong becomes the run's outcome. */
import { randomUUID } from 'node:crypto';
import type { AttachedName } from '../protocol/attachment.ts';
import type { Message, RunError, RunEvent, RunOutcome } from '../protocol/run.ts';
import { Interruption, TelosError } from './errors.ts';

/** What a run fills as it goes on, so that its end can be told however it ends. */
export interface RunState {
  runId: string;
  messages: Message[];
  /** So many of the messages were said before this run. */
  earlier?: number;
  counts: { rounds: number; toolCalls: number };
}

export const newRunState = (): RunState => ({
  runId: randomUUID(),
  messages: [],
  counts: { rounds: 0, toolCalls: 0 },
});

/** Yields `run_start`, the events of `body`, and `run_end`; never throws. Who opens the run owns its state. */
export async function* framed(
  text: string,
  state: RunState,
  body: () => AsyncGenerator<RunEvent, RunOutcome>,
  signal: AbortSignal,
  attached: readonly AttachedName[] = [],
): AsyncGenerator<RunEvent, void> {
  const started = performance.now();
  yield {
    type: 'run_start',
    runId: state.runId,
    text,
    startedAt: new Date().toISOString(),
    ...(attached.length > 0 && { attached }),
  };
  let outcome: RunOutcome;
  let error: RunError | undefined;
  try {
    outcome = yield* body();
  } catch (thrown) {
    ({ outcome, error } = ending(thrown, signal));
  }
  yield {
    type: 'run_end',
    outcome,
    rounds: state.counts.rounds,
    toolCalls: state.counts.toolCalls,
    durationMs: Math.round(performance.now() - started),
    messages: state.messages,
    ...(error ? { error } : {}),
    ...(outcome === 'cancelled' && signal.reason instanceof Interruption && { interrupted: true }),
  };
}

function ending(thrown: unknown, signal: AbortSignal): { outcome: RunOutcome; error?: RunError } {
  if (signal.aborted) return { outcome: 'cancelled' };
  if (!(thrown instanceof TelosError)) {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    return { outcome: 'failed', error: { code: 'internal', message } };
  }
  const { code, message, suggestions } = thrown;
  const outcome = code === 'no_match' ? 'no_match' : code === 'budget' ? 'budget' : 'failed';
  return { outcome, error: { code, message, ...(suggestions ? { suggestions } : {}) } };
}
