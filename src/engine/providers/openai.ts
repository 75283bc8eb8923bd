/** Streams model turns from OpenAI's chat completions API and compatible servers; the only file that imports OpenAI's SDK. */

import type {
  ContentBlock,
  DocumentBlock,
  ImageBlock,
  Message,
  TextBlock,
  ToolResultBlock,
  ToolUseBlock,
} from '@telos/protocol/run';
import { sentence } from '@telos/protocol/text';
import OpenAI, { APIError, AzureOpenAI } from 'openai';
import { TelosError } from '../core/errors.ts';
import type { AttachedFile, CompletionRequest, Effort, Provider } from '../core/ports.ts';
import { fetchForSdk } from '../tools/fetchOut.ts';
import { BoundThoughts } from './boundThoughts.ts';
import { isOpenaiReasoner, levelOf, openaiEffort, plainLevel, thinkingTokens } from './effort.ts';
import {
  explainHttpFailure,
  explainLineFailure,
  limitsAt,
  ReportedError,
  type TurnFailure,
  type TurnLimits,
} from './failures.ts';
import { OllamaContext } from './ollama.ts';
import { type OpenaiCompatibleName, OpenaiReader, thoughtsBefore } from './openaiReader.ts';
import { extrasIn, extrasOf } from './provider.ts';
import { streamTurn } from './turn.ts';

export interface OpenaiCompatibleOptions {
  name: OpenaiCompatibleName;
  /** Empty for a server that needs none. */
  apiKey: string;
  /** Environment variable of the key, for messages; undefined for a server that needs none. */
  keyVariable: string | undefined;
  model: string;
  /** Without a trailing slash. */
  baseUrl: string;
  /** Environment variable of the base URL, for messages. */
  baseUrlVariable: string;
  limits?: TurnLimits;
  /** Of Azure alone. */
  apiVersion?: string | undefined;
}

/** Takes the limits and efforts that models of today want. */
const usualApiVersion = '2025-04-01-preview';

const labels: Readonly<Record<OpenaiCompatibleName, string>> = {
  openai: 'OpenAI',
  gemini: 'Gemini',
  openrouter: 'OpenRouter',
  azure: 'Azure OpenAI',
  ollama: 'Ollama',
};

/** Returns the name for sentences: that of the maker, or the address of another server that speaks OpenAI's format. */
const labelOf = ({ name, baseUrl }: Pick<OpenaiCompatibleOptions, 'name' | 'baseUrl'>): string => {
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).host : '';
  return name === 'openai' && host && !/(?:^|\.)openai\.com$/.test(host) ? host : labels[name];
};

export function createOpenaiCompatible(options: OpenaiCompatibleOptions): Provider {
  const { name, apiKey, model, baseUrl, limits = limitsAt(baseUrl) } = options;
  const settings = {
    apiKey: apiKey || 'none', // the SDK requires one
    maxRetries: 0, // turn.ts retries, so that attempts are counted once
    timeout: 2 ** 31 - 1, // turn.ts enforces the time limits
    fetch: fetchWithReadableErrors,
    // The settings below keep the SDK from reading the environment of the process, which is not ours.
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    logLevel: 'off',
  } as const;
  const client =
    name === 'azure'
      ? new AzureOpenAI({
          ...settings,
          baseURL: `${baseUrl}/openai`,
          apiVersion: options.apiVersion || usualApiVersion,
        })
      : new OpenAI({ ...settings, baseURL: baseUrl });
  // OpenRouter passes the reasoning of Anthropic's models on, in blocks of its own.
  const thoughts = new BoundThoughts(
    block => name === 'openrouter' && 'reasoning_details' in (extrasIn(block, name) ?? {}),
    !/claude/i.test(model),
  );
  const context = name === 'ollama' ? new OllamaContext(baseUrl, model) : undefined;
  const habit = { thinksFirst: false };
  return {
    name,
    model,
    streamCompletion(request, signal) {
      const exchange = thoughts.exchange(request);
      return streamTurn(
        {
          label: labelOf(options),
          request,
          reader: () => new OpenaiReader(name, exchange.note, habit),
          open: attemptSignal =>
            exchange.send(async messages => {
              const body = toOpenaiRequest(name, model, { ...request, messages });
              const sent = context ? await context.fit(body, attemptSignal) : body;
              return client.chat.completions.create(sent, { signal: attemptSignal }).asResponse();
            }, refusalOf),
          explain: error => explain(error, options),
        },
        limits,
        signal,
      );
    },
  };
}

/** OpenRouter passes the words of the model's maker on in a field of its own. */
const refusalOf = (error: unknown): string | undefined =>
  error instanceof APIError && error.status === 400
    ? `${error.message} ${JSON.stringify(error.error)}`
    : undefined;

/** Returns the body of a request that asks for a stream and token counts. Without tools it has no key `tools`. */
export function toOpenaiRequest(
  name: OpenaiCompatibleName,
  model: string,
  request: CompletionRequest,
): OpenAI.ChatCompletionCreateParamsStreaming {
  const { effort, maxTokens } = request;
  const thinking = effort === undefined ? {} : chatThinking(name, model, effort);
  const limit =
    maxTokens + (effort === undefined || !('reasoning_effort' in thinking) ? 0 : thinkingTokens(effort));
  const tools = request.tools.map(({ name, description, inputSchema }) => ({
    type: 'function' as const,
    function: { name, description, parameters: inputSchema as Record<string, unknown> },
  }));
  return {
    model,
    messages: withAttached(
      toOpenaiMessages(request.system, request.messages, name) as OpenAI.ChatCompletionMessageParam[],
      request.attached ?? [],
    ),
    ...(refusesMaxTokens(name, model) ? { max_completion_tokens: limit } : { max_tokens: limit }),
    ...thinking,
    stream: true,
    stream_options: { include_usage: true },
    ...(tools.length > 0 ? { tools } : {}),
  };
}

/** Returns what sets the model's effort. OpenRouter takes it for all of its models, and in a field of its own. */
function chatThinking(name: OpenaiCompatibleName, model: string, effort: Effort): object {
  if (name === 'openrouter') {
    const level = levelOf(effort);
    const words = { off: 'none', low: 'low', medium: 'medium', high: 'high', xhigh: 'xhigh', max: 'xhigh' };
    return { reasoning: typeof effort === 'number' ? { max_tokens: effort } : { effort: words[level] } };
  }
  if ((name === 'openai' || name === 'azure') && /^(?:gpt-[34]|chatgpt-)/.test(model)) return {};
  if (isOpenaiReasoner(model)) return { reasoning_effort: openaiEffort(effort, model) };
  const level = levelOf(effort);
  return { reasoning_effort: level === 'off' ? 'none' : plainLevel(level) };
}

/** Puts the files before the words of the last message. */
function withAttached(
  messages: OpenAI.ChatCompletionMessageParam[],
  files: readonly AttachedFile[],
): OpenAI.ChatCompletionMessageParam[] {
  const last = messages.at(-1);
  if (files.length === 0 || last?.role !== 'user') return messages;
  const said: OpenAI.ChatCompletionContentPart[] =
    typeof last.content === 'string' ? [{ type: 'text', text: last.content }] : last.content;
  const parts = files.map(({ name, mediaType, data }): OpenAI.ChatCompletionContentPart => {
    const url = `data:${mediaType};base64,${data}`;
    return mediaType === 'application/pdf'
      ? { type: 'file', file: { filename: name, file_data: url } }
      : { type: 'image_url', image_url: { url } };
  });
  return [...messages.slice(0, -1), { role: 'user', content: [...parts, ...said] }];
}

/**
 * Returns true if the model accepts only the newer name of the length limit, as OpenAI's own reasoning models do.
 * Compatible servers often accept only the older name.
 */
function refusesMaxTokens(name: OpenaiCompatibleName, model: string): boolean {
  return name === 'azure' || (name === 'openai' && /^(o\d|gpt-([5-9]|\d\d))/.test(model));
}

/** Unwraps errors: Google puts them into a list, which the SDK does not read. */
async function fetchWithReadableErrors(url: string | URL | Request, init?: RequestInit): Promise<Response> {
  const response = await fetchForSdk(url, init);
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
  const label = labelOf(options);
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
    keyVariable,
    missingModelHint: name === 'ollama' ? sentence('Get it with `ollama pull {0}`.', model) : undefined,
    secret: apiKey,
  });
}

/** Returns a failure without a retry: a local server does not start by itself. */
function ollamaIsOff(baseUrl: string, cause: unknown): TurnFailure {
  const address = baseUrl.replace(/\/v1$/, '');
  const why = sentence('Ollama is not running at {0}.', address);
  const next = sentence('Start it with `ollama serve`, or set OLLAMA_BASE_URL to its address.');
  return { error: new TelosError('provider', [why, next], { cause }), again: false };
}

function reasonOf(error: InstanceType<typeof APIError>): string {
  const body = error.error as { message?: unknown; code?: unknown } | string | undefined;
  const own = typeof body === 'string' ? body : body?.message;
  const message = typeof own === 'string' ? own : error.message.replace(/^\d{3} /, '');
  const code = typeof body === 'object' && typeof body.code === 'string' ? body.code : '';
  return code && !message.includes(code) ? `${message} (${code})` : message;
}

export type OpenaiPart =
  | { type: 'text'; text: string }
  | { type: 'image_url'; image_url: { url: string } }
  | { type: 'file'; file: { filename: string; file_data: string } };

export interface OpenaiToolCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}

export type OpenaiMessage =
  | { role: 'system'; content: string }
  | { role: 'user'; content: string | OpenaiPart[] }
  | { role: 'assistant'; content: string | null; tool_calls?: OpenaiToolCall[]; reasoning_details?: unknown }
  | { role: 'tool'; tool_call_id: string; content: string };

/**
 * Returns the messages in OpenAI's format. The system text comes first, if there is one. Results of tools become separate
 * messages, directly after the calls. A user message with the images that tools returned and with the user's own content
 * follows. `provider` is the provider that the messages are sent to.
 */
export function toOpenaiMessages(
  system: string,
  messages: readonly Message[],
  provider: string,
): OpenaiMessage[] {
  const translated = messages.flatMap(message =>
    message.role === 'assistant' ? [fromAssistant(message.content, provider)] : fromUser(message.content),
  );
  return system ? [{ role: 'system', content: system }, ...translated] : translated;
}

function fromAssistant(content: string | ContentBlock[], provider: string): OpenaiMessage {
  if (typeof content === 'string') return { role: 'assistant', content };
  // Other models' reasoning is left out: it is sealed for the provider that it came from.
  const text = content
    .flatMap(block => (block.type === 'text' && block.text ? [block.text] : []))
    .join('\n\n');
  const extras = extrasOf(content, provider);
  const calls = content.flatMap(block => (block.type === 'tool_use' ? [toCall(block, extras)] : []));
  const { [thoughtsBefore]: thoughts, ...own } = (extras.get('') ?? {}) as Record<string, unknown>;
  // A template of the server finds them there, and leaves out those that its model does not want.
  const said = thoughts ? `<think>${thoughts}</think>\n\n${text}` : text;
  if (calls.length === 0) return { role: 'assistant', content: said, ...own };
  return { role: 'assistant', content: said || null, tool_calls: calls, ...own };
}

function toCall(block: ToolUseBlock, extras: ReadonlyMap<string, object>): OpenaiToolCall {
  return {
    id: block.id,
    type: 'function',
    function: { name: block.name, arguments: spacedJson(block.input) },
    ...extras.get(block.id),
  };
}

/** Returns JSON in one line with a space after commas and colons, as in the models' own training data. */
function spacedJson(value: unknown): string {
  // Line breaks in strings are escaped, so all others belong to the layout.
  return JSON.stringify(value, null, 1).replace(/,\n */g, ', ').replace(/\n */g, '');
}

function fromUser(content: string | ContentBlock[]): OpenaiMessage[] {
  if (typeof content === 'string') return [{ role: 'user', content }];
  const results = content.filter(block => block.type === 'tool_result');
  const said = content
    .filter(block => block.type !== 'tool_result')
    .flatMap(block => (isPart(block) ? [block] : []));
  const parts = [...results.flatMap(imagesOf), ...said.map(toPart)].filter(
    part => part.type !== 'text' || part.text,
  );
  const answers = results.map(toAnswer);
  if (parts.length === 0) return answers.length > 0 ? answers : [{ role: 'user', content: '' }];
  const [first] = parts;
  const single = parts.length === 1 && first?.type === 'text' ? first.text : parts;
  return [...answers, { role: 'user', content: single }];
}

function toAnswer({ tool_use_id, content, is_error }: ToolResultBlock): OpenaiMessage {
  const text =
    typeof content === 'string'
      ? content
      : content.map(block => (block.type === 'text' ? block.text : `[${block.type}, see below]`)).join('\n');
  // This format has no flag for a failed call, so the text must say so.
  const failed = is_error && !/^\s*\[?error\b/i.test(text);
  const plain = withoutTemplateTokens(text);
  return { role: 'tool', tool_call_id: tool_use_id, content: failed ? `Error: ${plain}` : plain };
}

/**
 * Breaks up template tokens with a space, which leaves them readable. Servers of local models paste texts into a template.
 * In it, such tokens end a turn or begin a system turn. A page that contains them could speak as the system.
 */
function withoutTemplateTokens(text: string): string {
  return text
    .replace(/<(\|[\w-]{1,40}\|>)/g, '< $1')
    .replace(/<(\/?(?:start_of_turn|end_of_turn|s)>|<\/?SYS>>)/g, '< $1')
    .replace(/\[(\/?INST\])/g, '[ $1');
}

const isPart = (block: ContentBlock): block is TextBlock | ImageBlock | DocumentBlock =>
  block.type === 'text' || block.type === 'image' || block.type === 'document';

/** Returns the images and documents of a tool result, with a caption. Tool messages may contain only text, so these follow them. */
function imagesOf({ tool_use_id, content }: ToolResultBlock): OpenaiPart[] {
  const images = typeof content === 'string' ? [] : content.filter(block => block.type !== 'text');
  if (images.length === 0) return [];
  return [{ type: 'text', text: `Returned by the tool call ${tool_use_id}:` }, ...images.map(toPart)];
}

function toPart(block: TextBlock | ImageBlock | DocumentBlock): OpenaiPart {
  if (block.type === 'text') return { type: 'text', text: block.text };
  const { media_type, data } = block.source;
  if (block.type === 'document')
    return { type: 'file', file: { filename: block.title, file_data: `data:${media_type};base64,${data}` } };
  return { type: 'image_url', image_url: { url: `data:${media_type};base64,${data}` } };
}
