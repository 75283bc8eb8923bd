/** Counts the use of a model, in the events of a run and in its budget. */
import type { ContextUse, RunEvent, Usage } from '@telos/protocol/run';
import { asMessage, type Sentence } from '@telos/protocol/text';
import type { RunSpec, TokenCount } from './ports.ts';

/** Returns the usage of one round: its token counts and its cost. */
export function usageOf({ charged: _charged, ...tokens }: TokenCount, cost: number | 'unknown'): Usage {
  return { ...tokens, cost };
}

/** Counts one question to the model. `context` says for what its prompt was used. */
export function* used(
  tokens: TokenCount | undefined,
  spec: Pick<RunSpec, 'provider' | 'counts' | 'budget' | 'priceOf'>,
  context?: ContextUse,
): Generator<RunEvent, void> {
  const usage = tokens && usageOf(tokens, spec.priceOf(tokens));
  if (usage) yield { type: 'usage', round: spec.counts.rounds, usage, ...(context && { context }) };
  // A recording asks no model, and so uses nothing.
  if (!spec.provider.recording) yield* warnings(spec.budget?.add(usage) ?? []);
}

export function* warnings(all: readonly Sentence[]): Generator<RunEvent, void> {
  for (const one of all) yield { type: 'notice', level: 'warning', ...asMessage(one) };
}
