/** Chat completions as OpenAI defined them and many servers speak them, streamed; the only file that knows OpenAI's SDK. */
import OpenAI, { APIError } from 'openai';
import { Stream } from 'openai/streaming';
import { explainHttpFailure, explainLineFailure } from './httpFailure.ts';
import { OllamaContext } from './ollamaContext.ts';
import { toOpenaiMessages } from './openaiMessages.ts';
import { type OpenaiChunk, OpenaiReader } from './openaiReader.ts';
import type { CompletionRequest, Provider } from './provider.ts';
import { standardLimits, streamTurn, type TurnFailure, type TurnLimits } from './turn.ts';

export type OpenaiCompatibleName = 'openai' | 'gemini' | 'openrouter' | 'ollama';

export interface OpenaiCompatibleOptions {
  name: OpenaiCompatibleName;
  /** Empty for a server that wants none. */
  apiKey: string;
  /** Variable of the key, for messages; undefined for a server that wants none. */
  keyVariable: string | undefined;
  model: string;
  /** Without a slash at the end. */
  baseUrl: string;
  /** Variable of the base URL, for messages. */
  baseUrlVariable: string;
  limits?: TurnLimits;
}

const labels: Readonly<Record<OpenaiCompatibleName, string>> = {
  openai: 'OpenAI',
  gemini: 'Gemini',
  openrouter: 'OpenRouter',
  ollama: 'Ollama',
};

/** A local model may have to be loaded from disk, and may think for long. */
const localLimits: TurnLimits = { ...standardLimits, firstByteMs: 300_000, idleMs: 300_000 };

export function createOpenaiCompatible(options: OpenaiCompatibleOptions): Provider {
  const { name, apiKey, model, baseUrl, limits = name === 'ollama' ? localLimits : standardLimits } = options;
  const client = new OpenAI({
    apiKey: apiKey || 'none', // the SDK insists on one
    baseURL: baseUrl,
    maxRetries: 0, // turn.ts tries again, so that tries are counted once
    timeout: 2 ** 31 - 1, // turn.ts watches the clock
    fetch: fetchWithReadableErrors,
    // What follows keeps the SDK from looking into the environment of the process, which is not ours.
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    logLevel: 'off',
  });
  const context = name === 'ollama' ? new OllamaContext(baseUrl, model) : undefined;
  return {
    name,
    model,
    streamCompletion(request, signal) {
      const body = toOpenaiRequest(name, model, request);
      return streamTurn<OpenaiChunk, OpenaiReader>(
        {
          label: labels[name],
          reader: () => new OpenaiReader(),
          async open(attemptSignal, reader) {
            const fitting = context ? await context.fit(body, attemptSignal) : body;
            const call = client.chat.completions.create(fitting, { signal: attemptSignal });
            const response = watchForSentinel(await call.asResponse(), reader, limits.lingerMs);
            return Stream.fromSSEResponse<OpenaiChunk>(response, new AbortController(), client);
          },
          explain: error => explain(error, options),
        },
        limits,
        signal,
      );
    },
  };
}

/** The body of a request, with `stream` and the token counts asked for. Without tools it has no key `tools`. */
export function toOpenaiRequest(
  name: OpenaiCompatibleName,
  model: string,
  request: CompletionRequest,
): OpenAI.ChatCompletionCreateParamsStreaming {
  const tools = request.tools.map(({ name, description, inputSchema }) => ({
    type: 'function' as const,
    function: { name, description, parameters: inputSchema as Record<string, unknown> },
  }));
  return {
    model,
    messages: toOpenaiMessages(request.system, request.messages) as OpenAI.ChatCompletionMessageParam[],
    ...(refusesMaxTokens(name, model)
      ? { max_completion_tokens: request.maxTokens }
      : { max_tokens: request.maxTokens }),
    stream: true,
    stream_options: { include_usage: true },
    ...(tools.length > 0 ? { tools } : {}),
  };
}

/** OpenAI's own reasoning models know the limit by its newer name only; compatible servers often by the older one only. */
function refusesMaxTokens(name: OpenaiCompatibleName, model: string): boolean {
  return name === 'openai' && /^(o\d|gpt-([5-9]|\d\d))/.test(model);
}

/**
 * The SDK does not tell an answer that ended with `[DONE]` from one that merely stopped coming, so the bytes are watched on
 * their way to it.
 */
function watchForSentinel(response: Response, reader: OpenaiReader, lingerMs: number): Response {
  if (!response.body) return response;
  const source = response.body.getReader();
  let tail = '';
  const watched = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await source.read();
      if (done) return controller.close();
      tail = (tail + Buffer.from(value.subarray(-32)).toString('latin1')).slice(-32);
      if (/(^|\n)data: ?\[DONE\]\s*$/.test(tail)) reader.sentinel = true;
      controller.enqueue(value);
    },
    async cancel(reason) {
      // The SDK stops reading at the last line; read to its very end, the connection can be used again.
      if (!(reader.sentinel && (await endsWithin(source, lingerMs)))) await source.cancel(reason);
    },
  });
  return new Response(watched, response);
}

async function endsWithin(
  source: ReadableStreamDefaultReader<Uint8Array>,
  milliseconds: number,
): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>(resolve => {
    timer = setTimeout(resolve, milliseconds, false);
  });
  const ended = source.read().then(
    ({ done }) => done,
    () => false,
  );
  const result = await Promise.race([ended, late]);
  clearTimeout(timer);
  return result;
}

/** Google wraps its errors into a list, in which the SDK does not look. */
async function fetchWithReadableErrors(url: string | URL | Request, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  if (response.ok) return response;
  const text = await response.text();
  return new Response(text.trim().startsWith('[') ? firstOf(text) : text, response);
}

function firstOf(text: string): string {
  try {
    return JSON.stringify((JSON.parse(text) as unknown[])[0]);
  } catch {
    return text;
  }
}

function explain(error: unknown, options: OpenaiCompatibleOptions): TurnFailure {
  const { name, apiKey, keyVariable, baseUrl, baseUrlVariable, model } = options;
  const label = labels[name];
  if (!(error instanceof APIError)) return explainLineFailure(error, label, baseUrl, baseUrlVariable);
  const status = error.status ?? statusInStream(error);
  if (status === 0) return explainLineFailure(error, label, baseUrl, baseUrlVariable);
  return explainHttpFailure({
    label,
    status,
    reason: reasonOf(error),
    headers: error.headers,
    keyHint: keyVariable ? `Set the key with “Telos: Set API Key…” or ${keyVariable}.` : '',
    missingModelHint: name === 'ollama' ? `Fetch it with \`ollama pull ${model}\`.` : undefined,
    secret: apiKey,
  });
}

/** An error in the middle of a stream has its status, if any, inside; 0 is a broken connection. */
function statusInStream(error: InstanceType<typeof APIError>): number {
  if (error.error === undefined) return 0;
  const code = Number(error.code);
  return code >= 400 && code < 600 ? code : 500;
}

function reasonOf(error: InstanceType<typeof APIError>): string {
  const body = error.error as { message?: unknown; code?: unknown } | string | undefined;
  const own = typeof body === 'string' ? body : body?.message;
  const message = typeof own === 'string' ? own : error.message.replace(/^\d{3} /, '');
  const code = typeof body === 'object' && typeof body.code === 'string' ? body.code : '';
  return code && !message.includes(code) ? `${message} (${code})` : message;
}
