/** Defines the interface that every model provider implements, and makes the ids of its tool calls unique in a conversation. */

import { randomUUID } from 'node:crypto';
import type { ContentBlock, JsonObject, Message, RedactedThinkingBlock, ToolCall } from '@telos/protocol/run';
import type { Provider, StreamEvent } from '../core/ports.ts';
import { deepestJson, isDeeper } from '../jsonDepth.ts';

/** Returns the call unchanged, or without its arguments if those are nested too deeply to be used, stored or shown. */
export function withoutDepth(call: ToolCall): ToolCall {
  if (!isDeeper(call.input)) return call;
  const problem = `The arguments nest lists and objects more than ${deepestJson} levels deep. Use fewer levels.`;
  return { ...call, input: {}, problem };
}

/** A tag of a model's template that has slipped into its arguments, at their end. */
const strayTag = /(?<=[}\]"])\s*(?:<\/?[\w|:-]{1,40}>\s*)+$/;

/**
 * Returns the tool call for the model's complete text `json`. An empty text means no arguments. Arguments that are JSON in a text, or have a
 * tag behind them, or line ends in a text, can be meant in one way only. If the text cannot be read, `input` is empty and `problem` says why.
 */
export function readToolCall(id: string, name: string, json: string): ToolCall {
  if (json.trim() === '') return { id, name, input: {} };
  try {
    const read: unknown = parsed(json.replace(strayTag, ''));
    const input: unknown = typeof read === 'string' && /^\s*\{/.test(read) ? JSON.parse(read) : read;
    if (typeof input === 'object' && input !== null && !Array.isArray(input)) {
      return withoutDepth({ id, name, input: input as JsonObject });
    }
    return { id, name, input: {}, problem: 'The arguments must be one JSON object.' };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { id, name, input: {}, problem: `The arguments are not valid JSON: ${reason}` };
  }
}

/** Reads JSON, also with line ends and tabs as they are in its texts. Throws SyntaxError. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    const escaped = json.replace(/"(?:[^"\\]|\\.)*"/gs, text =>
      text.replace(/[\0-\x1f]/g, character => JSON.stringify(character).slice(1, -1)),
    );
    if (escaped === json) throw error;
    return JSON.parse(escaped);
  }
}

/**
 * Returns the provider, which sends whole characters alone. A server refuses half of one, wherever it stands, and would then refuse the
 * conversation for good. Tools, files, people and models all write them.
 */
export const wellSpoken = (provider: Provider): Provider => ({
  ...provider,
  streamCompletion: (request, signal) => provider.streamCompletion(wellFormed(request), signal),
});

/** Returns the value with U+FFFD in place of each half of a character, also in names. The same value, and the same parts, where there is none. */
function wellFormed<Value>(value: Value): Value {
  if (typeof value === 'string') return value.toWellFormed() as Value & string;
  if (typeof value !== 'object' || value === null) return value;
  const before = Object.entries(value);
  const after = before.map(([name, item]) => [name.toWellFormed(), wellFormed(item)] as const);
  if (after.every(([name, item], at) => name === before[at]![0] && item === before[at]![1])) return value;
  return (Array.isArray(value) ? after.map(([, item]) => item) : Object.fromEntries(after)) as Value;
}

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
function callExtrasIn(
  block: ContentBlock,
): { callId: string; extras: object; provider: string | undefined } | undefined {
  if (block.type !== 'redacted_thinking' || !isCallExtras(block)) return undefined;
  const [callId, extras, provider] = JSON.parse(block.data.slice(mark.length)) as [string, object, string?];
  // The text of the block hides them from a look for halves of characters.
  return { callId, extras: wellFormed(extras), provider };
}

/** Returns what `provider` attached with a block of its own. Undefined for any other block. */
export function extrasIn(block: ContentBlock, provider: string): object | undefined {
  const attached = callExtrasIn(block);
  return attached?.provider === provider ? attached.extras : undefined;
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
