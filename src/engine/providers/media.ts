/** Knows which models take pictures and documents, and leaves out what the model of a request does not take. */
import type { ContentBlock, DocumentBlock, ImageBlock, Message } from '../../protocol/run.ts';
import { fetchOut } from '../tools/fetchOut.ts';
import type { CompletionRequest, MediaKind, Provider } from './provider.ts';

const both: readonly MediaKind[] = ['image', 'document'];

/**
 * Returns the provider, which says what its model takes. Of a request it leaves out what the model does not, and says so in its place:
 * it may be from another model's part of the conversation, or a server may have returned it. `baseUrl` is the address of its server.
 */
export function mediaAware(provider: Provider, baseUrl: string): Provider {
  let asked: Promise<readonly MediaKind[] | undefined> | undefined;
  const media = (signal: AbortSignal): Promise<readonly MediaKind[] | undefined> => {
    asked ??= provider.media ? provider.media(signal) : knownMedia(provider, baseUrl, signal);
    asked.catch(() => {
      asked = undefined;
    });
    return asked;
  };
  async function* fitted(request: CompletionRequest, signal: AbortSignal) {
    const taken = await media(signal);
    const messages = taken ? request.messages.map(each => withOnly(each, taken)) : request.messages;
    yield* provider.streamCompletion({ ...request, messages }, signal);
  }
  return {
    ...provider,
    media,
    streamCompletion: (request, signal) =>
      request.messages.some(holdsMedia)
        ? fitted(request, signal)
        : provider.streamCompletion(request, signal),
  };
}

/** Returns the kinds of files that the model takes. Undefined if nothing is known of it: then its server decides. */
async function knownMedia(
  { name, model }: Provider,
  baseUrl: string,
  signal: AbortSignal,
): Promise<readonly MediaKind[] | undefined> {
  if (name === 'ollama') return ollamaMedia(baseUrl.replace(/\/v1$/, '/api'), model, signal);
  const own = model.slice(model.lastIndexOf('/') + 1).toLowerCase();
  if (/^claude-/.test(own)) return /^claude-(?:2|instant)/.test(own) ? [] : both;
  if (/^gemini-/.test(own)) return both;
  if (/^(?:o1-(?:mini|preview)|o3-mini|gpt-3|gpt-4(?:-\d{4}|-32k|-turbo-preview)?(?:-preview)?$)/.test(own))
    return [];
  if (/^(?:gpt-4o|gpt-4\.1|gpt-4-turbo|gpt-[5-9]|o[1-9]|chatgpt-)/.test(own)) return both;
  return /^(?:deepseek-(?:chat|reasoner|v3|r1)|gpt-oss)/.test(own) ? [] : undefined;
}

/** How long Ollama may take to say what a model can, in milliseconds. */
const patienceMs = 2_000;

async function ollamaMedia(
  api: string,
  model: string,
  signal: AbortSignal,
): Promise<readonly MediaKind[] | undefined> {
  try {
    const response = await fetchOut(`${api}/show`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]),
    });
    const { capabilities } = (await response.json()) as { capabilities?: unknown };
    if (!response.ok || !Array.isArray(capabilities)) return undefined;
    return capabilities.includes('vision') ? ['image'] : [];
  } catch {
    signal.throwIfAborted();
    return undefined; // The request itself will say what is wrong.
  }
}

const isMedia = (block: { type: string }): block is ImageBlock | DocumentBlock =>
  block.type === 'image' || block.type === 'document';

const holdsMedia = ({ content }: Message): boolean =>
  typeof content !== 'string' &&
  content.some(
    block =>
      isMedia(block) ||
      (block.type === 'tool_result' && typeof block.content !== 'string' && block.content.some(isMedia)),
  );

function withOnly(message: Message, taken: readonly MediaKind[]): Message {
  const { role, content } = message;
  if (typeof content === 'string' || !holdsMedia(message)) return message;
  return {
    role,
    content: content.map((block): ContentBlock => {
      if (block.type !== 'tool_result') return named(block, taken);
      return typeof block.content === 'string'
        ? block
        : { ...block, content: block.content.map(part => named(part, taken)) };
    }),
  };
}

function named<Block extends { type: string }>(block: Block, taken: readonly MediaKind[]) {
  if (!isMedia(block) || taken.includes(block.type)) return block;
  const what = block.type === 'image' ? 'An image' : 'A PDF';
  return { type: 'text' as const, text: `[${what} was here, which this model does not take.]` };
}
