/**
 * Some servers attach something to a tool call and want it back with the call (Gemini its sealed reasoning, without which it
 * refuses the next round). It travels through a conversation as a sealed reasoning block with a mark of ours.
 */
import type { ContentBlock, RedactedThinkingBlock } from '../../protocol/run.ts';

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
