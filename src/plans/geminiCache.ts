/** Keeps everything about a project with Gemini, which then reads it for a tenth of the price, and removes it at the end. */

import { createHash } from 'node:crypto';
import type {
  AttachedFile,
  CompletionRequest,
  Provider,
  StreamEvent,
  TokenCount,
} from '@telos/engine/providers';
import { answerText, fetchOut } from '@telos/engine/tools';
import type { JsonObject } from '@telos/protocol/run';

export interface GeminiOptions {
  apiKey: string;
  model: string;
  /** Address of the API in OpenAI's format, as the settings have it. */
  baseUrl?: string;
}

/** Characters that fit into the window of the models, with room for a question. */
const mostCharacters = 2_500_000;
/** Characters below which no model accepts a cache. */
const leastCharacters = 4_000;
const lifetime = '3600s';
const patienceMs = 120_000;

/** What is kept: the cache's name at Gemini and the digest of its content, or undefined for a content that it refused. */
interface Kept {
  digest: string;
  name: string | undefined;
}

/** One cache at a time. Whatever it cannot do, the usual provider does. */
export class GeminiCache {
  readonly #options: GeminiOptions;
  readonly #usual: Provider;
  #kept: Kept | undefined;

  constructor(options: GeminiOptions, usual: Provider) {
    this.#options = options;
    this.#usual = usual;
  }

  /** Returns a provider that answers from `whole`. It takes the excerpts of the request in its place where that fails. */
  holding(whole: () => string): Provider {
    const usual = this.#usual;
    const answer = (request: CompletionRequest, signal: AbortSignal) =>
      this.#answer(whole(), request, signal);
    return {
      ...usual,
      async *streamCompletion(request, signal) {
        const events = await answer(request, signal).catch(() => undefined);
        signal.throwIfAborted();
        if (events) yield* events;
        else yield* usual.streamCompletion(request, signal);
      },
    };
  }

  /** Removes the cache, which costs by the hour. Never throws. */
  async close(): Promise<void> {
    const name = this.#kept?.name;
    this.#kept = undefined;
    if (name) await this.#send('DELETE', name, undefined, AbortSignal.timeout(5_000)).catch(() => undefined);
  }

  /** Returns undefined if there is no cache of this content. Throws if Gemini does not answer. */
  async #answer(
    whole: string,
    request: CompletionRequest,
    signal: AbortSignal,
  ): Promise<StreamEvent[] | undefined> {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]);
    const name = await this.#nameFor(whole, limited);
    if (name === undefined) return undefined;
    const path = `${modelPath(this.#options.model)}:generateContent`;
    try {
      return eventsOf(await this.#send('POST', path, bodyOf(name, request), limited));
    } catch (error) {
      // It may have expired. The next question makes it again.
      this.#kept = undefined;
      throw error;
    }
  }

  async #nameFor(whole: string, signal: AbortSignal): Promise<string | undefined> {
    if (whole.length < leastCharacters || whole.length > mostCharacters) return undefined;
    const digest = createHash('sha256').update(whole).digest('hex');
    if (this.#kept?.digest === digest) return this.#kept.name;
    await this.close();
    // What was refused once would be refused again: each model has another minimum, and some have no cache.
    this.#kept = { digest, name: undefined };
    const { name } = await this.#send(
      'POST',
      'cachedContents',
      {
        model: modelPath(this.#options.model),
        displayName: `telos-${digest.slice(0, 16)}`,
        contents: [{ role: 'user', parts: [{ text: `<material>\n${whole}\n</material>` }] }],
        ttl: lifetime,
      },
      signal,
    );
    if (typeof name === 'string' && /^cachedContents\/[\w-]+$/.test(name)) this.#kept = { digest, name };
    return this.#kept?.name;
  }

  async #send(
    method: 'POST' | 'DELETE',
    path: string,
    body: object | undefined,
    signal: AbortSignal,
  ): Promise<JsonObject> {
    const { apiKey, baseUrl = 'https://generativelanguage.googleapis.com/v1beta' } = this.#options;
    const response = await fetchOut(`${baseUrl.replace(/\/+$/, '').replace(/\/openai$/, '')}/${path}`, {
      method,
      signal,
      redirect: 'error',
      headers: { 'x-goog-api-key': apiKey, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    if (!response.ok) {
      await response.body?.cancel();
      throw new Error(`Gemini answered ${response.status}.`);
    }
    return JSON.parse(await answerText(response)) as JsonObject;
  }
}

const modelPath = (model: string): string => `models/${encodeURIComponent(model.replace(/^models\//, ''))}`;

/** The rules go with the question, since a cache has its own system text. Of the material, only what changes is sent again: nothing. */
function bodyOf(name: string, { system, messages, attached = [], maxTokens }: CompletionRequest): object {
  const { content = '' } = messages.at(-1) ?? {};
  const texts =
    typeof content === 'string'
      ? [content]
      : content.flatMap(block => (block.type === 'text' ? [block.text] : []));
  const question = texts.at(-1) ?? '';
  return {
    cachedContent: name,
    contents: [{ role: 'user', parts: [...attached.map(partOf), { text: `${system}\n\n${question}` }] }],
    generationConfig: { maxOutputTokens: maxTokens },
  };
}

const partOf = ({ mediaType, data }: AttachedFile) => ({ inlineData: { mimeType: mediaType, data } });

interface GeminiAnswer {
  candidates?: { content?: { parts?: { text?: unknown }[] } }[];
  usageMetadata?: Record<string, number | undefined>;
}

/** Returns the events of an answer. Throws if it has no text. */
function eventsOf(answer: JsonObject): StreamEvent[] {
  const { candidates = [], usageMetadata = {} } = answer as GeminiAnswer;
  const text = (candidates[0]?.content?.parts ?? []).map(({ text }) => String(text ?? '')).join('');
  if (text === '') throw new Error('Gemini answered without text.');
  const cacheReadTokens = usageMetadata['cachedContentTokenCount'] ?? 0;
  const usage: TokenCount = {
    inputTokens: Math.max(0, (usageMetadata['promptTokenCount'] ?? 0) - cacheReadTokens),
    outputTokens: usageMetadata['candidatesTokenCount'] ?? 0,
    cacheReadTokens,
    cacheWriteTokens: 0,
  };
  return [
    { type: 'text', text },
    { type: 'done', stopReason: 'end_turn', usage },
  ];
}
