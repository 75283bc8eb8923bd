/**
 * Checks what Anthropic's current models bind a thinking block to: the system text, the tools and all messages before it. Whoever
 * shortens or sums up earlier messages, or changes the tools, may not send later thinking back.
 */
import { createHash } from 'node:crypto';
import { isPart, type Part, partsOf } from './refusals.ts';

interface Made {
  prefix: string;
  /** The block before it in its conversation, which must not be left out between others. */
  before: string | undefined;
}

/** Returns true for a model that refuses a thinking block with another past. Others take it, or leave it out. */
export const bindsThinking = (model: unknown): boolean =>
  /^claude-(?:opus|sonnet|haiku)-5-5|^claude-(?:fable|mythos)-5-[1-9]/.test(String(model));

/** Knows the thinking that one server has given out, by its seal: the signature, or the data of a redacted block. */
export class BoundThinking {
  readonly #made = new Map<string, Made>();
  readonly #texts = new Map<string, string>();

  /** Returns why the request would be refused, in the API's words, or undefined. */
  refusal(body: unknown): string | undefined {
    if (!isPart(body)) return undefined;
    let before: string | undefined;
    for (const [index, { content }] of partsOf(body['messages']).entries())
      for (const [at, block] of partsOf(content).entries()) {
        const seal = sealOf(block);
        if (seal === undefined) continue;
        const path = `messages.${index}.content.${at}`;
        const text = this.#texts.get(seal);
        if (text !== undefined && text !== String(block['thinking'] ?? ''))
          return `${path}: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.`;
        const made = this.#made.get(seal);
        const isMoved = before !== undefined && made?.before !== before;
        if (bindsThinking(body['model']) && (made?.prefix !== prefixOf(body, index, at) || isMoved))
          return `${path}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation. Remove the block, or set \`thinking.block_binding.prefix_mismatch_behavior\` to "drop_block".`;
        before = seal;
      }
    return undefined;
  }

  /** Notes the thinking of the answer to the request: blocks as they are sent, which come first in the answer. */
  note(body: unknown, blocks: readonly Part[]): void {
    if (!isPart(body)) return;
    const messages = partsOf(body['messages']);
    let before = messages
      .flatMap(({ content }) => partsOf(content).flatMap(block => sealOf(block) ?? []))
      .at(-1);
    for (const [at, block] of blocks.entries()) {
      const seal = sealOf(block);
      if (seal === undefined) continue;
      this.#made.set(seal, { prefix: prefixOf(body, messages.length, at), before });
      this.#texts.set(seal, String(block['thinking'] ?? ''));
      before = seal;
    }
  }
}

function sealOf(block: Part): string | undefined {
  if (block['type'] === 'thinking') return String(block['signature']);
  return block['type'] === 'redacted_thinking' ? String(block['data']) : undefined;
}

/** Returns a digest of all that comes before a block. Marks for the cache do not count, nor how a text is written down. */
function prefixOf({ system, tools, messages }: Part, index: number, at: number): string {
  const earlier = partsOf(messages)
    .slice(0, index + 1)
    .map(({ role, content }, place) => {
      const blocks = (
        typeof content === 'string' ? [{ type: 'text', text: content }] : partsOf(content)
      ) as Part[];
      return [
        role,
        (place === index ? blocks.slice(0, at) : blocks).filter(block => sealOf(block) === undefined),
      ];
    });
  const told =
    typeof system === 'string'
      ? system
      : partsOf(system)
          .map(({ text }) => text)
          .join('');
  const past = [told, tools ?? [], earlier.filter(([, blocks]) => (blocks as unknown[]).length > 0)];
  const text = JSON.stringify(past, (key, value) => (key === 'cache_control' ? undefined : value));
  return createHash('sha256').update(text).digest('hex');
}
