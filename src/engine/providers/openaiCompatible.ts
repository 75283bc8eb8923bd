/** Chat completions as OpenAI defined them and many servers speak them, streamed; the only file that knows OpenAI's SDK. */
import OpenAI, { APIError } from 'openai';
import { TelosError } from '../errors.ts';
import { explainHttpFailure, explainLineFailure } from './httpFailure.ts';
import { OllamaContext } from './ollamaContext.ts';
import { toOpenaiMessages } from './openaiMessages.ts';
import { type OpenaiCompatibleName, OpenaiReader } from './openaiReader.ts';
import type { CompletionRequest, Provider } from './provider.ts';
import { ReportedError, streamTurn, type TurnFailure } from './turn.ts';
import { standardLimits, type TurnLimits } from './turnLimits.ts';

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
      return streamTurn(
        {
          label: labels[name],
          reader: () => new OpenaiReader(name),
          async open(attemptSignal) {
            const fitting = context ? await context.fit(body, attemptSignal) : body;
            return client.chat.completions.create(fitting, { signal: attemptSignal }).asResponse();
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
    messages: toOpenaiMessages(request.system, request.messages, name) as OpenAI.ChatCompletionMessageParam[],
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
  const reported =
    error instanceof ReportedError || (error instanceof APIError && error.status !== undefined);
  if (!reported) {
    const failure = explainLineFailure(error, label, baseUrl, baseUrlVariable);
    return name === 'ollama' && failure.refused ? ollamaIsOff(baseUrl, error) : failure;
  }
  return explainHttpFailure({
    label,
    status: error.status ?? 0,
    reason: error instanceof APIError ? reasonOf(error) : error.message,
    headers: error instanceof APIError ? error.headers : undefined,
    address: baseUrl,
    addressVariable: baseUrlVariable,
    keyHint: keyVariable ? `Set the key with “Telos: Set API Key…” or ${keyVariable}.` : '',
    missingModelHint: name === 'ollama' ? `Fetch it with \`ollama pull ${model}\`.` : undefined,
    secret: apiKey,
  });
}

/** A server of one's own does not come back by itself, so there is nothing to wait for. */
function ollamaIsOff(baseUrl: string, cause: unknown): TurnFailure {
  const address = baseUrl.replace(/\/v1$/, '');
  const message = `Ollama is not running at ${address}. Start it with \`ollama serve\`, or set OLLAMA_BASE_URL to where it runs.`;
  return { error: new TelosError('provider', message, { cause }), again: false };
}

function reasonOf(error: InstanceType<typeof APIError>): string {
  const body = error.error as { message?: unknown; code?: unknown } | string | undefined;
  const own = typeof body === 'string' ? body : body?.message;
  const message = typeof own === 'string' ? own : error.message.replace(/^\d{3} /, '');
  const code = typeof body === 'object' && typeof body.code === 'string' ? body.code : '';
  return code && !message.includes(code) ? `${message} (${code})` : message;
}
