/** Gives every tool call of a conversation an id of its own: some servers repeat theirs, and most refuse a request with two of the same. */

import { randomUUID } from 'node:crypto';
import type { ContentBlock, Message, RedactedThinkingBlock } from '../../protocol/run.ts';
import type { StreamEvent } from './provider.ts';

const mark = 'telos-call-extras:';

/** `extras` are further properties of the call, as they came from the provider of that name. */
export function callExtrasBlock(
  callId: string,
  extras: object,
  provider: string | undefined,
): RedactedThinkingBlock {
  return { type: 'redacted_thinking', data: mark + JSON.stringify([callId, extras, provider]) };
}

/** The same for what belongs to a whole message of the model: OpenRouter hands on the reasoning of models that want it back. */
export const messageExtrasBlock = (extras: object, provider: string): RedactedThinkingBlock =>
  callExtrasBlock('', extras, provider);

/** True for a block that only the server understands from which it came. */
export function isCallExtras(block: ContentBlock): boolean {
  return block.type === 'redacted_thinking' && block.data.startsWith(mark);
}

/** Returns what a block of ours holds, and undefined for any other. */
export function callExtrasIn(
  block: ContentBlock,
): { callId: string; extras: object; provider: string | undefined } | undefined {
  if (block.type !== 'redacted_thinking' || !isCallExtras(block)) return undefined;
  const [callId, extras, provider] = JSON.parse(block.data.slice(mark.length)) as [string, object, string?];
  return { callId, extras, provider };
}

/**
 * The further properties that the provider of that name attached to each call of a message, by the call's id; under the empty one those of the
 * message itself. What another one attached is not for it: OpenAI refuses properties that it does not know.
 */
export function extrasOf(content: readonly ContentBlock[], provider: string): Map<string, object> {
  const found = new Map<string, object>();
  for (const block of content) {
    const attached = callExtrasIn(block);
    if (!attached) continue;
    const { callId, extras, provider: from } = attached;
    // Conversations of older versions do not say from whom it came.
    if (from === undefined || from === provider) found.set(callId, extras);
  }
  return found;
}

export const newCallId = (): string => `call_${randomUUID().replaceAll('-', '')}`;

/** The events of one turn; a call gets another id where a call of `messages`, or an earlier one of the turn, has its own, or where it has none. */
export async function* withOwnCallIds(
  events: AsyncIterable<StreamEvent>,
  messages: readonly Message[],
): AsyncGenerator<StreamEvent> {
  const taken = new Set(messages.flatMap(callIdsIn));
  // What is attached to a call comes before it.
  const awaited = new Map<string, string>();
  const idFor = (given: string): string => {
    const id = !given || taken.has(given) ? newCallId() : given;
    taken.add(id);
    return id;
  };
  for await (const event of events) {
    if (event.type === 'thinking' && event.block.type === 'redacted_thinking') {
      yield { ...event, block: renamed(event.block, awaited, idFor) };
    } else if (event.type === 'tool_call') {
      const { call } = event;
      const id = awaited.get(call.id) ?? idFor(call.id);
      awaited.delete(call.id);
      yield id === call.id ? event : { ...event, call: { ...call, id } };
    } else {
      yield event;
    }
  }
}

const callIdsIn = ({ content }: Message): string[] =>
  typeof content === 'string' ? [] : content.flatMap(block => (block.type === 'tool_use' ? [block.id] : []));

function renamed(
  block: RedactedThinkingBlock,
  awaited: Map<string, string>,
  idFor: (given: string) => string,
): RedactedThinkingBlock {
  const attached = callExtrasIn(block);
  if (!attached?.callId) return block;
  const { callId, extras, provider } = attached;
  const id = idFor(callId);
  awaited.set(callId, id);
  return id === callId ? block : callExtrasBlock(id, extras, provider);
}
