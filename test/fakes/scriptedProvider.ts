/** Fakes a model whose turns are written in the test. A request that a real API would refuse, in any format, is refused. */

import type { CompletionRequest, Provider, StreamEvent } from '../../src/engine/core/ports.ts';
import { toAnthropicRequest } from '../../src/engine/providers/anthropic.ts';
import { toGeminiRequest } from '../../src/engine/providers/gemini.ts';
import { toOpenaiRequest } from '../../src/engine/providers/openai.ts';
import { toResponsesRequest } from '../../src/engine/providers/openaiResponses.ts';
import type { Message } from '../../src/protocol/run.ts';
import { anthropicRefusal } from './anthropicRefusal.ts';
import { chatRefusal } from './chatRefusal.ts';
import { geminiRefusal } from './geminiRefusal.ts';
import { responsesRefusal } from './responsesRefusal.ts';

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
      const refusal = refusalOf(request);
      if (refusal !== undefined) throw new Error(`The real API refuses what was sent here: ${refusal}`);
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

/** Each request repeats all before it, so of a long conversation only every fortieth message is looked at. */
const always = 40;

/** Returns why one of the formats would refuse the request, or undefined. */
function refusalOf(request: CompletionRequest): string | undefined {
  if (request.messages.length > always && request.messages.length % always > 1) return undefined;
  const sent = (body: object): unknown => JSON.parse(JSON.stringify(body));
  return (
    anthropicRefusal(sent(toAnthropicRequest('claude-haiku-4-5', request)), 0)?.message ??
    chatRefusal(sent(toOpenaiRequest('openai', 'gpt-4o', request)), 0) ??
    responsesRefusal(sent(toResponsesRequest('gpt-5.4', request))) ??
    geminiRefusal(sent(toGeminiRequest('gemini-2.5-pro', request)), 'gemini-2.5-pro')
  );
}

export const says = (text: string): StreamEvent => ({ type: 'text', text });

export const calls = (id: string, name: string, input: Readonly<Record<string, unknown>>): StreamEvent => ({
  type: 'tool_call',
  call: { id, name, input },
});

export const done = (stopReason = 'end_turn'): StreamEvent => ({ type: 'done', stopReason });
