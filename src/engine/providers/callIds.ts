/** Makes the ids of tool calls unique in a conversation. Some servers repeat ids, and most refuse a request with duplicates. */

import { randomUUID } from 'node:crypto';
import type { ContentBlock, Message, RedactedThinkingBlock } from '../../protocol/run.ts';
import type { StreamEvent } from './provider.ts';

const mark = 'telos-call-extras:';

/**
 * Returns a block that keeps further properties of a call. `extras` are these properties, unchanged;
 * `provider` is the name of the provider that sent them.
 */
export function callExtrasBlock(
  callId: string,
  extras: object,
  provider: string | undefined,
): RedactedThinkingBlock {
  return { type: 'redacted_thinking', data: mark + JSON.stringify([callId, extras, provider]) };
}

/**
 * Returns a block that keeps further properties of a whole message of the model. OpenRouter passes on the reasoning
 * of models that want it back.
 */
export const messageExtrasBlock = (extras: object, provider: string): RedactedThinkingBlock =>
  callExtrasBlock('', extras, provider);

/** Returns true for a block that only the server that sent it understands. */
export function isCallExtras(block: ContentBlock): boolean {
  return block.type === 'redacted_thinking' && block.data.startsWith(mark);
}

/** Returns the content of a block of extras, or undefined for any other block. */
export function callExtrasIn(
  block: ContentBlock,
): { callId: string; extras: object; provider: string | undefined } | undefined {
  if (block.type !== 'redacted_thinking' || !isCallExtras(block)) return undefined;
  const [callId, extras, provider] = JSON.parse(block.data.slice(mark.length)) as [string, object, string?];
  return { callId, extras, provider };
}

/**
 * Returns the further properties that `provider` attached to each call of a message, by the call's id. Those of the
 * message itself have the empty id. Those of other providers are left out: OpenAI refuses properties that it does not know.
 */
export function extrasOf(content: readonly ContentBlock[], provider: string): Map<string, object> {
  const found = new Map<string, object>();
  for (const block of content) {
    const attached = callExtrasIn(block);
    if (!attached) continue;
    const { callId, extras, provider: from } = attached;
    // Conversations of older versions do not name the provider.
    if (from === undefined || from === provider) found.set(callId, extras);
  }
  return found;
}

export const newCallId = (): string => `call_${randomUUID().replaceAll('-', '')}`;

/**
 * Returns a function for the events of one turn, in their order. A call gets a new id if it has none or if its id is taken. Taken
 * are the ids of calls in `messages` and of earlier calls of the turn.
 */
export function ownCallIds(messages: readonly Message[]): (event: StreamEvent) => StreamEvent {
  const taken = new Set(messages.flatMap(callIdsIn));
  // The extras of a call arrive before the call.
  const awaited = new Map<string, string>();
  const idFor = (given: string): string => {
    const id = !given || taken.has(given) ? newCallId() : given;
    taken.add(id);
    return id;
  };
  return event => {
    if (event.type === 'thinking' && event.block.type === 'redacted_thinking')
      return { ...event, block: renamed(event.block, awaited, idFor) };
    if (event.type !== 'tool_call') return event;
    const { call } = event;
    const id = awaited.get(call.id) ?? idFor(call.id);
    awaited.delete(call.id);
    return id === call.id ? event : { ...event, call: { ...call, id } };
  };
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
