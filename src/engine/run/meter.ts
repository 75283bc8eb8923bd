/** Counts the cost of a single model call, such as the choice of a skill, against the budget and for the log. */

import type { RunEvent, Usage } from '@telos/protocol/run';
import { asMessage, type Sentence } from '@telos/protocol/text';
import { addedUsage } from '@telos/protocol/usage';
import type { Config } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import { isCallless, isEarly } from '../core/noAnswer.ts';
import type { Budget, CompletionRequest, Provider, StreamEvent, TokenCount } from '../core/ports.ts';
import { usageOf } from '../core/usage.ts';
import { costOf } from '../providers/models.ts';
import { ownCallIds } from '../providers/provider.ts';
import { type CallEnd, recordCall, type WrittenCall } from '../records/logFile.ts';
import { routingProvider } from '../routing/routeModel.ts';
import { openBudget } from './budget.ts';
import type { Engine } from './request.ts';

const none: TokenCount = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

/**
 * Returns the provider, with a check of the budget. A call throws TelosError `budget` if a limit is reached.
 * `report` receives the usage and the notices for the person.
 */
export function meteredProvider(
  provider: Provider,
  budget: Budget | undefined,
  report: (event: RunEvent) => void,
): Provider {
  const warn = (all: readonly Sentence[]): void => {
    for (const one of all) report({ type: 'notice', level: 'warning', ...asMessage(one) });
  };
  return {
    ...provider,
    async *streamCompletion(request, signal) {
      warn((await budget?.check(provider)) ?? []);
      for await (const event of provider.streamCompletion(request, signal)) {
        if (event.type === 'done' || event.type === 'spent') {
          const usage = usageOf(event.usage ?? none, chargeOf(provider, event.usage));
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

/**
 * Returns the model that is asked which skill fits, metered. Undefined if a recording answers. Throws the errors of
 * `chooseProvider`.
 */
export async function routingModel(
  { config, models }: Pick<Engine, 'config' | 'models'>,
  budget: Budget | undefined,
  report: (event: RunEvent) => void,
): Promise<Provider | undefined> {
  const provider = await routingProvider(config, await models.choice());
  return provider && meteredProvider(provider, budget, report);
}

/** Returns the cost. It is unknown for a model that does not report its tokens, unless it runs on the person's own machine. */
function chargeOf(provider: Provider, tokens: TokenCount | undefined): number | 'unknown' {
  return tokens || provider.name === 'ollama' ? costOf(provider, tokens ?? none) : 'unknown';
}

/**
 * Streams the answer. Throws TelosError `budget` before any call if a limit is reached, otherwise the errors of the provider.
 * The call is logged however it ends, as failed if the model said nothing, refused or was cut. The cost of an answer that was not read to its end is unknown.
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
    if (event.type === 'usage') usage = addedUsage(usage, event.usage);
  });
  let heard = false;
  let isSilent = true;
  let stopReason = '';
  const end: CallEnd = { outcome: 'cancelled', error: null, toolCalls: 0, durationMs: 0 };
  try {
    const withOwnIds = ownCallIds(request.messages);
    for await (const event of metered.streamCompletion(request, signal)) {
      heard ||= event.type !== 'retry';
      if (event.type === 'tool_call') end.toolCalls++;
      if (event.type === 'done') stopReason = event.stopReason;
      isSilent &&= event.type !== 'tool_call' && !(event.type === 'text' && event.text.trim() !== '');
      yield withOwnIds(event);
    }
    const lacksCalls = end.toolCalls === 0 && isCallless(stopReason);
    const isWhole = !isSilent && !isEarly(stopReason) && !lacksCalls;
    end.outcome = isWhole ? 'completed' : 'failed';
    if (!isWhole) end.error = 'no_answer';
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
    const whose: WrittenCall = { door: 'context', provider: name, model };
    recordCall(config.dataDir, whose, { ...end, ...(used && { usage: used }) });
  }
}

const noTokens = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
