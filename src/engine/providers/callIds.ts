/** Gives every tool call of a conversation an id of its own: some servers repeat theirs, and most refuse a request with two of the same. */
import { randomUUID } from 'node:crypto';
import type { Message, RedactedThinkingBlock } from '../../protocol/run.ts';
import { callExtrasBlock, callExtrasIn } from './callExtras.ts';
import type { StreamEvent } from './provider.ts';

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
