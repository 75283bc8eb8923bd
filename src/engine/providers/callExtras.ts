/**
 * Some servers attach something to a tool call and want it back with the call (Gemini its sealed reasoning, without which it
 * refuses the next round). It travels through a conversation as a sealed reasoning block with a mark of ours.
 */
import type { ContentBlock, RedactedThinkingBlock } from '../../protocol/run.ts';

const mark = 'telos-call-extras:';

/** `extras` are further properties of the call, as they came. */
export function callExtrasBlock(callId: string, extras: object): RedactedThinkingBlock {
  return { type: 'redacted_thinking', data: mark + JSON.stringify([callId, extras]) };
}

/** The same for what belongs to a whole message of the model: OpenRouter hands on the reasoning of models that want it back. */
export const messageExtrasBlock = (extras: object): RedactedThinkingBlock => callExtrasBlock('', extras);

/** True for a block that only the server understands from which it came. */
export function isCallExtras(block: ContentBlock): boolean {
  return block.type === 'redacted_thinking' && block.data.startsWith(mark);
}

/** The further properties of each call of a message, by the call's id; under the empty one those of the message itself. */
export function extrasOf(content: readonly ContentBlock[]): Map<string, object> {
  const found = new Map<string, object>();
  for (const block of content) {
    if (block.type !== 'redacted_thinking' || !isCallExtras(block)) continue;
    const [callId, extras] = JSON.parse(block.data.slice(mark.length)) as [string, object];
    found.set(callId, extras);
  }
  return found;
}
