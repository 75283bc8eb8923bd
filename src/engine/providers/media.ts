/** Knows which models take pictures and documents, and leaves out what the model of a request does not take. */
import type { ContentBlock, DocumentBlock, ImageBlock, Message } from '@telos/protocol/run';
import type { CompletionRequest, MediaKind, Provider } from '../core/ports.ts';

/** Pixels of a side of a picture that models of Anthropic take. */
const claudeSide = 8_000;
/** Characters of base64 in which the size of a picture stands. Before it, a JPEG may have a preview. */
const mostHead = 400_000;

const both: readonly MediaKind[] = ['image', 'document'];

/**
 * Returns the provider, which says what its model takes. Of a request it leaves out what the model does not, and says so in its place:
 * it may be from another model's part of the conversation, or a server may have returned it. One picture that is too large would have every
 * later request refused. `baseUrl` is the address of its server.
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
    const mostSide = /claude-/.test(provider.model) ? claudeSide : Number.POSITIVE_INFINITY;
    const messages = request.messages.map(each => withOnly(each, taken, mostSide));
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
  const own = model
    .slice(model.lastIndexOf('/') + 1)
    .toLowerCase()
    .replace(/^(?:[\w-]+\.)?anthropic\./, '');
  if (/^claude-/.test(own)) return /^claude-(?:2|instant)/.test(own) ? [] : both;
  if (/^gemini-/.test(own)) return both;
  if (/^(?:o1-(?:mini|preview)|o3-mini|gpt-3|gpt-4(?:-\d{4}|-32k|-turbo-preview)?(?:-preview)?$)/.test(own))
    return [];
  if (/^(?:gpt-4o|gpt-4\.1|gpt-4-turbo|gpt-[5-9]|o[1-9]|chatgpt-)/.test(own)) return both;
  return /^(?:deepseek-(?:chat|reasoner|v3|r1)|gpt-oss)/.test(own) ? [] : undefined;
}

async function ollamaMedia(
  api: string,
  model: string,
  signal: AbortSignal,
): Promise<readonly MediaKind[] | undefined> {
  const { ollamaCapabilities } = await import('./ollama.ts');
  const capabilities = await ollamaCapabilities(api, model, signal);
  signal.throwIfAborted();
  return capabilities && (capabilities.includes('vision') ? ['image'] : []);
}

type Media = ImageBlock | DocumentBlock;

const isMedia = (block: { type: string }): block is Media =>
  block.type === 'image' || block.type === 'document';

/** Returns the pictures and documents in a message. */
const mediaOf = ({ content }: Message): readonly Media[] =>
  typeof content === 'string'
    ? []
    : content
        .flatMap((block): readonly ContentBlock[] =>
          block.type === 'tool_result' && typeof block.content !== 'string' ? block.content : [block],
        )
        .filter(isMedia);

const holdsMedia = (message: Message): boolean => mediaOf(message).length > 0;

/** Returns the data of the pictures and documents in a message. */
export const mediaIn = (message: Message | undefined): readonly string[] =>
  message ? mediaOf(message).map(({ source }) => source.data) : [];

/** Returns the message without the pictures and documents of this data, which its server has refused. */
export const withoutMedia = (message: Message, refused: ReadonlySet<string>): Message =>
  replaced(message, block =>
    refused.has(block.source.data) ? `[${named(block)} was here, which the server refused.]` : undefined,
  );

const withOnly = (message: Message, taken: readonly MediaKind[] | undefined, mostSide: number): Message =>
  replaced(message, block => {
    if (taken && !taken.includes(block.type))
      return `[${named(block)} was here, which this model does not take.]`;
    const side =
      block.type === 'image' && mostSide < Number.POSITIVE_INFINITY ? longerSide(block.source.data) : 0;
    return side > mostSide
      ? `[An image was here whose longer side has ${side} pixels. This model takes ${mostSide} at most: make it smaller.]`
      : undefined;
  });

const named = ({ type }: Media): string => (type === 'image' ? 'An image' : 'A PDF');

/** Returns the message with the words for each picture and document in its place, where there are some. */
function replaced(message: Message, wordsFor: (block: Media) => string | undefined): Message {
  const { role, content } = message;
  if (typeof content === 'string' || !holdsMedia(message)) return message;
  const orWords = <Block extends { type: string }>(block: Block) => {
    const text = isMedia(block) ? wordsFor(block) : undefined;
    return text === undefined ? block : { type: 'text' as const, text };
  };
  return {
    role,
    content: content.map((block): ContentBlock => {
      if (block.type !== 'tool_result') return orWords(block);
      return typeof block.content === 'string' ? block : { ...block, content: block.content.map(orWords) };
    }),
  };
}

/** Returns the pixels of the longer side of a picture, from its header. 0 if that cannot be read. */
function longerSide(base64: string): number {
  const bytes = Buffer.from(base64.slice(0, mostHead), 'base64');
  const kind = bytes.toString('latin1', 0, 16);
  if (bytes.length < 30) return 0;
  if (kind.startsWith('\x89PNG')) return Math.max(bytes.readUInt32BE(16), bytes.readUInt32BE(20));
  if (kind.startsWith('GIF8')) return Math.max(bytes.readUInt16LE(6), bytes.readUInt16LE(8));
  if (/^RIFF.{4}WEBPVP8X/s.test(kind)) return 1 + Math.max(bytes.readUIntLE(24, 3), bytes.readUIntLE(27, 3));
  return kind.startsWith('\xff\xd8') ? sideOfJpeg(bytes) : 0;
}

/** Finds the segment with the size: the others before it are skipped by their lengths. */
function sideOfJpeg(bytes: Buffer): number {
  for (let at = 2; at + 9 < bytes.length && bytes[at] === 0xff; at += 2 + bytes.readUInt16BE(at + 2)) {
    const marker = bytes[at + 1]!;
    const isSize = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isSize) return Math.max(bytes.readUInt16BE(at + 5), bytes.readUInt16BE(at + 7));
  }
  return 0;
}
