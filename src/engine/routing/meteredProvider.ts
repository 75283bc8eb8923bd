/** Counts what it costs to have a model choose the skill: against the budget, and for whoever writes it down. */
import type { RunEvent } from '../../protocol/run.ts';
import type { Budget } from '../budget.ts';
import { priceOf, usageOf } from '../providers/prices.ts';
import type { Provider, TokenCount } from '../providers/provider.ts';

const none: TokenCount = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

/** The provider, but that a question throws TelosError `budget` when a limit is reached. `report` is told what was used and what a person should know. */
export function meteredProvider(
  provider: Provider,
  budget: Budget | undefined,
  report: (event: RunEvent) => void,
): Provider {
  const warn = (messages: readonly string[]): void => {
    for (const message of messages) report({ type: 'notice', level: 'warning', message });
  };
  return {
    ...provider,
    async *streamCompletion(request, signal) {
      warn((await budget?.check()) ?? []);
      for await (const event of provider.streamCompletion(request, signal)) {
        if (event.type === 'done') {
          const usage = usageOf(event.usage ?? none, costOf(provider, event.usage));
          report({
            type: 'usage',
            round: 0,
            usage,
            routing: { provider: provider.name, model: provider.model },
          });
          warn(budget?.add(event.usage && usage) ?? []);
        }
        yield event;
      }
    },
  };
}

/** A model that does not say what it has read still costs something, unless it is the person's own. */
function costOf({ name, model }: Provider, tokens: TokenCount | undefined): number | 'unknown' {
  return tokens || name === 'ollama' ? priceOf(name, model, tokens ?? none) : 'unknown';
}
