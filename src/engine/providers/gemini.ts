/**
 * Streams model turns from Gemini's own API. Its format in place of OpenAI's keeps the signatures on what the model thought, which it
 * insists on seeing again with the results of its calls.
 */
import type {
  ContentBlock,
  DocumentBlock,
  ImageBlock,
  Message,
  TextBlock,
  ToolResultBlock,
} from '@telos/protocol/run';
import type { CompletionRequest, Provider } from '../core/ports.ts';
import { geminiThinking, isGeminiThinker, thinkingTokens } from './effort.ts';
import { explainRequest, type RefusedRequest, requestEvents } from './eventRequest.ts';
import { type HttpFailure, standardLimits, type TurnFailure, type TurnLimits } from './failures.ts';
import { GeminiReader, isSignedCall, isSignedText } from './geminiReader.ts';
import { extrasIn, extrasOf } from './provider.ts';
import { streamTurn } from './turn.ts';

export interface GeminiOptions {
  apiKey: string;
  model: string;
  /** Without a trailing slash. May be the address of Gemini's API in OpenAI's format, which ends in /openai. */
  baseUrl: string;
  limits?: TurnLimits;
  /** Gemini's own API if missing. */
  house?: GeminiHouse;
}

/** Another house that serves Gemini. */
export interface GeminiHouse {
  name: string;
  /** The name as in a sentence. */
  label: string;
  addressVariable: string;
  headers(signal: AbortSignal): Promise<Record<string, string>>;
}

type Part =
  | { text: string; thoughtSignature?: string }
  | { inlineData: { mimeType: string; data: string } }
  | { functionCall: { id?: string; name: string; args: object }; thoughtSignature?: string }
  | { functionResponse: { id?: string; name: string; response: object } };

interface Content {
  role: 'user' | 'model';
  parts: Part[];
}

export interface GeminiRequest {
  systemInstruction?: { parts: Part[] };
  contents: Content[];
  generationConfig: { maxOutputTokens: number; thinkingConfig?: object };
  tools?: object[];
}

export function createGemini(options: GeminiOptions): Provider {
  const { apiKey, model, baseUrl, house, limits = standardLimits } = options;
  const headers = house?.headers ?? (async () => ({ 'x-goog-api-key': apiKey }));
  const address = baseUrl.replace(/\/openai$/, '');
  const name = encodeURIComponent(model.replace(/^models\//, ''));
  const url = `${address}/models/${name}:streamGenerateContent?alt=sse`;
  return {
    name: house?.name ?? 'gemini',
    model,
    streamCompletion(request, signal) {
      const body = toGeminiRequest(model, request);
      return streamTurn(
        {
          label: house?.label ?? 'Gemini',
          request,
          reader: () => new GeminiReader(originOf(model)),
          open: async attemptSignal => requestEvents(url, await headers(attemptSignal), body, attemptSignal),
          explain: error => explain(error, apiKey, address, house),
        },
        limits,
        signal,
      );
    },
  };
}

/** Names who can read a signature. No other model is sent it. */
const originOf = (model: string): string => `gemini-native ${model}`;

export function toGeminiRequest(model: string, request: CompletionRequest): GeminiRequest {
  const { system, messages, tools, maxTokens, attached = [], effort } = request;
  const thinks = isGeminiThinker(model);
  const room = thinks && effort !== undefined ? thinkingTokens(effort) : 0;
  const thinkingConfig = {
    includeThoughts: true,
    ...(effort === undefined ? {} : geminiThinking(effort, model)),
  };
  const contents = toContents(messages, originOf(model));
  const last = contents.at(-1);
  if (last?.role === 'user')
    last.parts.unshift(
      ...attached.map(({ mediaType, data }) => ({ inlineData: { mimeType: mediaType, data } })),
    );
  return {
    ...(system ? { systemInstruction: { parts: [{ text: system }] } } : {}),
    contents,
    generationConfig: { maxOutputTokens: maxTokens + room, ...(thinks ? { thinkingConfig } : {}) },
    ...(tools.length > 0
      ? {
          tools: [
            {
              functionDeclarations: tools.map(({ name, description, inputSchema }) => ({
                name,
                description,
                parametersJsonSchema: inputSchema,
              })),
            },
          ],
        }
      : {}),
  };
}

/** Returns the messages with the names and ids of calls beside their results, as this format has them. */
function toContents(messages: readonly Message[], origin: string): Content[] {
  const calls = new Map<string, { name: string; id?: string }>();
  return messages.flatMap(({ role, content }): Content[] => {
    const blocks: readonly ContentBlock[] =
      typeof content === 'string' ? [{ type: 'text', text: content }] : content;
    const parts = role === 'assistant' ? fromModel(blocks, origin, calls) : fromUser(blocks, calls);
    return parts.length > 0 ? [{ role: role === 'assistant' ? 'model' : 'user', parts }] : [];
  });
}

/** Returns the parts as they came: a signature belongs to exactly the part that it was sent with. */
function fromModel(
  blocks: readonly ContentBlock[],
  origin: string,
  calls: Map<string, { name: string; id?: string }>,
): Part[] {
  const parts: Part[] = [];
  const signed = extrasOf(blocks, origin);
  let signedText: { thoughtSignature: string; length: number } | undefined;
  for (const block of blocks) {
    const extras = extrasIn(block, origin);
    if (extras && isSignedText(extras)) {
      signedText = extras;
      if (extras.length === 0) parts.push({ text: '', thoughtSignature: extras.thoughtSignature });
    } else if (block.type === 'text' && block.text) {
      const length = signedText?.length ?? 0;
      if (signedText && length > 0)
        parts.push({ text: block.text.slice(0, length), thoughtSignature: signedText.thoughtSignature });
      if (block.text.length > length) parts.push({ text: block.text.slice(length) });
      signedText = undefined;
    } else if (block.type === 'tool_use') {
      const extra = signed.get(block.id) ?? {};
      const { thoughtSignature, id } = isSignedCall(extra) ? extra : {};
      const own = id === undefined ? {} : { id };
      calls.set(block.id, { name: block.name, ...own });
      parts.push({
        functionCall: { ...own, name: block.name, args: block.input },
        ...(thoughtSignature === undefined ? {} : { thoughtSignature }),
      });
    }
  }
  return parts;
}

function fromUser(
  blocks: readonly ContentBlock[],
  calls: ReadonlyMap<string, { name: string; id?: string }>,
): Part[] {
  const results = blocks.filter(block => block.type === 'tool_result');
  const said = blocks.filter(
    block => block.type === 'text' || block.type === 'image' || block.type === 'document',
  );
  return [
    ...results.map((result): Part => {
      const call = calls.get(result.tool_use_id) ?? { name: 'unknown' };
      return { functionResponse: { ...call, response: responseOf(result) } };
    }),
    ...results.flatMap(imagesOf),
    ...said.filter(block => block.type !== 'text' || block.text !== '').map(toPart),
  ];
}

function responseOf({ content, is_error }: ToolResultBlock): object {
  const text =
    typeof content === 'string'
      ? content
      : content.map(block => (block.type === 'text' ? block.text : `[${block.type}, see below]`)).join('\n');
  return is_error ? { error: text } : { output: text };
}

/** A result may contain only text, so its images follow, with a caption. */
function imagesOf({ tool_use_id, content }: ToolResultBlock): Part[] {
  const images = typeof content === 'string' ? [] : content.filter(block => block.type !== 'text');
  return images.length === 0
    ? []
    : [{ text: `Returned by the tool call ${tool_use_id}:` }, ...images.map(toPart)];
}

const toPart = (block: TextBlock | ImageBlock | DocumentBlock): Part =>
  block.type === 'text'
    ? { text: block.text }
    : { inlineData: { mimeType: block.source.media_type, data: block.source.data } };

interface WireError {
  message?: unknown;
  details?: readonly { reason?: unknown; retryDelay?: unknown }[];
}

function explain(error: unknown, apiKey: string, address: string, house?: GeminiHouse): TurnFailure {
  return explainRequest(
    error,
    {
      label: house?.label ?? 'Gemini',
      address,
      addressVariable: house?.addressVariable ?? 'GEMINI_BASE_URL',
      keyVariable: house ? undefined : 'GEMINI_API_KEY',
      secret: apiKey,
    },
    refusalOf,
  );
}

/** Gemini says in the body what others say in the status and the headers: that a key is wrong, and how long to wait. */
function refusalOf(refused: RefusedRequest): Partial<Pick<HttpFailure, 'status' | 'reason' | 'headers'>> {
  const { error } = (refused.body ?? {}) as { error?: WireError | null };
  if (typeof error?.message !== 'string') return {};
  const details = Array.isArray(error.details) ? (error.details as NonNullable<WireError['details']>) : [];
  const isKey = details.some(detail => detail?.reason === 'API_KEY_INVALID');
  const delay = details.map(detail => detail?.retryDelay).find(value => typeof value === 'string');
  const seconds = /^(\d+(?:\.\d+)?)s$/.exec(String(delay))?.[1];
  return {
    reason: error.message,
    ...(isKey ? { status: 401 } : {}),
    ...(seconds !== undefined && !refused.headers.has('retry-after')
      ? { headers: new Headers({ 'retry-after': seconds }) }
      : {}),
  };
}
