/** Fakes a model whose turns are written in the test. */

import type { CompletionRequest, Provider, StreamEvent } from '../../src/engine/providers/provider.ts';
import type { Message } from '../../src/protocol/run.ts';

/** The events of a turn. An Error among them is thrown at its place. */
export type ScriptedTurn = readonly (StreamEvent | Error)[];

export interface ScriptedProvider extends Provider {
  /** The requests, copied when they arrived. */
  requests: { messages: Message[]; tools: string[]; system: string }[];
}

/** Plays the turns one after the other, and repeats the last one. */
export function scriptedProvider(turns: readonly ScriptedTurn[]): ScriptedProvider {
  const requests: ScriptedProvider['requests'] = [];
  return {
    name: 'scripted',
    model: 'script',
    requests,
    async *streamCompletion(request: CompletionRequest, signal: AbortSignal) {
      const turn = turns[Math.min(requests.length, turns.length - 1)] ?? [];
      requests.push({
        messages: structuredClone(request.messages) as Message[],
        tools: request.tools.map(tool => tool.name),
        system: request.system,
      });
      for (const event of turn) {
        await Promise.resolve();
        signal.throwIfAborted();
        if (event instanceof Error) throw event;
        yield event;
      }
    },
  };
}

export const says = (text: string): StreamEvent => ({ type: 'text', text });

export const calls = (id: string, name: string, input: Readonly<Record<string, unknown>>): StreamEvent => ({
  type: 'tool_call',
  call: { id, name, input },
});

export const done = (stopReason = 'end_turn'): StreamEvent => ({ type: 'done', stopReason });
