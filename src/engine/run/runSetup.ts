/** Gives the loop of a prepared run its ports. */
import type { Message } from '@telos/protocol/run';
import type { CallPolicySource, Provider, RunSpec, StreamEvent } from '../core/ports.ts';
import { ownCallIds, withoutDepth } from '../providers/provider.ts';
import type { ToolCallContext } from './callPolicy.ts';
import { definitionsOf, runWindow, type WindowedRun } from './runWindow.ts';

/** A run that is prepared. */
export type RunSetup = ToolCallContext &
  WindowedRun & {
    maxRounds?: number | undefined;
    /** Returns the words of the user since the last round. */
    mail?: (() => Promise<readonly string[]>) | undefined;
  };

/** Returns the loop's view of the run. Its tools are those that the run has at the time. */
export function specOf(setup: RunSetup): RunSpec {
  const { human, messages, maxRounds, counts, budget, mail, hooks } = setup;
  return {
    provider: withOwnIds(setup.provider, messages),
    messages,
    get tools() {
      return definitionsOf(setup);
    },
    window: runWindow(setup),
    calls: policySource(setup),
    human,
    async readWritten(text) {
      const { writtenCalls } = await import('./writtenCalls.ts');
      return writtenCalls(text, definitionsOf(setup), messages);
    },
    maxRounds,
    counts,
    priceOf: tokens => setup.priceOf(tokens),
    budget,
    mail,
    ...(hooks && { atEnd: signal => hooks.atEnd(messages, signal) }),
  };
}

/** Returns the provider, whose calls have ids that are new among the messages, and arguments that can be stored. */
const withOwnIds = (provider: Provider, messages: readonly Message[]): Provider => ({
  ...provider,
  async *streamCompletion(request, signal) {
    const renamed = ownCallIds(messages);
    for await (const event of provider.streamCompletion(request, signal)) yield shallow(renamed(event));
  },
});

const shallow = (event: StreamEvent): StreamEvent =>
  event.type === 'tool_call' ? { ...event, call: withoutDepth(event.call) } : event;

let loaded: Promise<typeof import('./callPolicy.ts')> | undefined;

function policySource(setup: RunSetup): CallPolicySource {
  const open = (): Promise<typeof import('./callPolicy.ts')> => {
    loaded ??= import('./callPolicy.ts');
    return loaded;
  };
  // Whoever waits for it gets the error.
  const load = (): void => void open().catch(() => undefined);
  return {
    open: async () => (await open()).callPolicy(setup),
    load: () => {
      if (!loaded) load();
    },
    get getReady() {
      if (loaded) return undefined;
      return () => {
        load();
        for (const tool of setup.tools) tool.getReady?.(setup.context);
      };
    },
  };
}
