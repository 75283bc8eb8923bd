/** One question that somebody else puts to a model through Telos: held against the budget of the day, and written down without its words. */
import type { Usage } from '../protocol/run.ts';
import { openBudget } from './budget.ts';
import type { Config } from './config.ts';
import { TelosError } from './errors.ts';
import { type CallEnd, recordCall } from './loneRecords.ts';
import { withOwnCallIds } from './providers/callIds.ts';
import type { CompletionRequest, Provider, StreamEvent } from './providers/provider.ts';
import { meteredProvider } from './routing/meteredProvider.ts';

/**
 * Streams the answer. Throws TelosError `budget` where a limit is reached, and then asks nobody; else what the provider throws. However it
 * ends, it stands in the log; what an answer has cost that was not heard to its end nobody knows.
 */
export async function* countedCall(
  provider: Provider,
  request: CompletionRequest,
  config: Pick<Config, 'budget' | 'origins' | 'dataDir'>,
  signal: AbortSignal,
): AsyncGenerator<StreamEvent> {
  const started = performance.now();
  let usage: Usage | undefined;
  const metered = meteredProvider(provider, openBudget(config), event => {
    if (event.type === 'usage') usage = event.usage;
  });
  let heard = false;
  const end: CallEnd = { outcome: 'cancelled', error: null, toolCalls: 0, durationMs: 0 };
  try {
    const events = metered.streamCompletion(request, signal);
    for await (const event of withOwnCallIds(events, request.messages)) {
      heard ||= event.type !== 'retry';
      if (event.type === 'tool_call') end.toolCalls++;
      yield event;
    }
    end.outcome = 'completed';
  } catch (error) {
    if (!signal.aborted) {
      end.error = error instanceof TelosError ? error.code : 'internal';
      end.outcome = end.error === 'budget' ? 'budget' : 'failed';
    }
    throw error;
  } finally {
    const cost = provider.name === 'ollama' ? 0 : 'unknown';
    const used = usage ?? (heard ? { ...noTokens, cost } : undefined);
    end.durationMs = performance.now() - started;
    const { name, model } = provider;
    const whose = { door: 'editor', provider: name, model } as const;
    recordCall(config.dataDir, whose, { ...end, ...(used && { usage: used }) });
  }
}

const noTokens = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
