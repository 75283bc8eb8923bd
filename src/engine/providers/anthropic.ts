/** Streams model turns from Anthropic's Messages API; the only file that imports its SDK. */
import type Anthropic from '@anthropic-ai/sdk';
// The whole client has thirty more resources, which take longer to load than all of the engine.
import { APIError, BaseAnthropic } from '@anthropic-ai/sdk';
import { Messages } from '@anthropic-ai/sdk/resources/messages/messages';
import type { ContentBlock, Message } from '@telos/protocol/run';
import type { AttachedFile, CompletionRequest, Provider, StreamEvent, TokenCount } from '../core/ports.ts';
import { fetchForSdk } from '../tools/fetchOut.ts';
import { BoundThoughts } from './boundThoughts.ts';
import { anthropicThinking, thinkingTokens, thinksByBudget } from './effort.ts';
import { tokenCountIn } from './eventRequest.ts';
import {
  explainHttpFailure,
  explainLineFailure,
  limitsAt,
  ReportedError,
  type TurnFailure,
  type TurnLimits,
} from './failures.ts';
import { isCallExtras, readToolCall } from './provider.ts';
import { streamTurn, type WireReader } from './turn.ts';

export interface AnthropicOptions {
  apiKey: string;
  /** True for the token of a gateway, which takes it in place of a key. */
  isToken?: true | undefined;
  model: string;
  /** Without a trailing slash. */
  baseUrl: string;
  limits?: TurnLimits;
  /** Anthropic itself if missing. */
  house?: AnthropicHouse;
}

/** Another house that serves Anthropic's models: how its requests differ from those to Anthropic. */
export interface AnthropicHouse {
  name: string;
  /** The name as in a sentence. */
  label: string;
  /** Environment variables of its key, if it has one, and of its address, for messages. */
  keyVariable: string | undefined;
  addressVariable: string;
  /** Returns the request as this house takes it. */
  fitted(request: HouseRequest, signal: AbortSignal): Promise<HouseRequest>;
}

export interface HouseRequest {
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string;
}

const anthropic = {
  name: 'anthropic',
  label: 'Anthropic',
  keyVariable: 'ANTHROPIC_API_KEY',
  addressVariable: 'ANTHROPIC_BASE_URL',
} as const;

export function createAnthropic(options: AnthropicOptions): Provider {
  const { apiKey, isToken, model, baseUrl, house, limits = limitsAt(baseUrl) } = options;
  const { name, label } = house ?? anthropic;
  const settings = new BaseAnthropic({
    apiKey: apiKey || 'none',
    // The SDK sends a key as a token, which servers in Anthropic's format do not know as a key.
    defaultHeaders: isToken ? {} : { authorization: null, 'x-api-key': house ? null : apiKey },
    baseURL: baseUrl,
    maxRetries: 0, // turn.ts retries, so that attempts are counted once
    timeout: 2 ** 31 - 1, // turn.ts enforces the time limits
    fetch: house ? fetchAt(house) : fetchForSdk,
    // The settings below keep the SDK from reading the environment of the process, which is not ours.
    authToken: null,
    webhookKey: null,
    logLevel: 'off',
    openTelemetry: false,
  });
  const client = new Messages(settings);
  const thoughts = new BoundThoughts(isThought, thinksByBudget(model));
  return {
    name,
    model,
    streamCompletion(request, signal) {
      const exchange = thoughts.exchange(request);
      return streamTurn(
        {
          label,
          request,
          open: attemptSignal =>
            exchange.send(messages => {
              const body = toAnthropicRequest(model, { ...request, messages });
              return client.create(body, { signal: attemptSignal }).asResponse();
            }, refusalOf),
          reader: () => new AnthropicReader(exchange.note),
          explain: error => explain(error, options),
        },
        limits,
        signal,
      );
    },
  };
}

const fetchAt =
  (house: AnthropicHouse): typeof fetch =>
  async (input, init = {}) => {
    const headers = Object.fromEntries(new Headers(init.headers));
    const request = { url: String(input), headers, body: String(init.body) };
    const fitted = await house.fitted(request, init.signal ?? new AbortController().signal);
    return fetchForSdk(fitted.url, { ...init, headers: fitted.headers, body: fitted.body });
  };

const refusalOf = (error: unknown): string | undefined =>
  error instanceof APIError && error.status === 400 ? error.message : undefined;

/** Returns true for reasoning in Anthropic's format, not for the blocks in which other servers' properties are kept. */
const isThought = (block: ContentBlock): boolean =>
  block.type === 'thinking' || (block.type === 'redacted_thinking' && !isCallExtras(block));

const cached = { cache_control: { type: 'ephemeral' } } as const;

/**
 * Returns the body of a request. With tools, the answer is one round of many, so the prompt cache is used. Marked are the
 * tools, the system text and the last two user turns; four marks are allowed. At the older turn's mark this round finds the
 * content that the last one stored. A request without tools is a single question, for which storing would only cost, unless it
 * repeats the start of others.
 */
export function toAnthropicRequest(
  model: string,
  request: CompletionRequest,
): Anthropic.MessageCreateParamsStreaming {
  const { system, tools, maxTokens, effort: wanted } = request;
  const { thinking: usual, effort } =
    wanted === undefined ? {} : anthropicThinking(wanted, model, request.thinkingOff);
  // With a budget, a model may not go on with calls whose thoughts are missing.
  const thinking = usual?.type === 'enabled' && hasLostThoughts(request.messages) ? undefined : usual;
  const body = {
    model,
    max_tokens: maxTokens + (thinking && wanted !== undefined ? thinkingTokens(wanted) : 0),
    stream: true,
    ...(thinking && { thinking }),
    ...(effort && { output_config: { effort } }),
  } as const;
  const messages = withAttached(request.messages.map(toAnthropicMessage), request.attached ?? []);
  if (tools.length === 0)
    return {
      ...body,
      ...(system ? { system } : {}),
      messages: request.repeatsStart ? withCachedStart(messages) : messages,
    };
  return {
    ...body,
    ...(system ? { system: [{ type: 'text', text: system, ...cached }] } : {}),
    messages: withCachedTurns(messages),
    tools: tools.map((tool, index) => ({
      name: tool.name,
      description: tool.description,
      input_schema: tool.inputSchema as Anthropic.Tool.InputSchema,
      ...(index === tools.length - 1 ? cached : {}),
    })),
  };
}

/** Returns true if the model has not ended its turn, and what it thought before its latest calls is not there. */
function hasLostThoughts(messages: readonly Message[]): boolean {
  const { content } = messages.findLast(({ role }) => role === 'assistant') ?? {};
  if (typeof content !== 'object' || !content.some(({ type }) => type === 'tool_use')) return false;
  const last = messages.at(-1)?.content;
  const goesOn = typeof last === 'object' && last.some(({ type }) => type === 'tool_result');
  return goesOn && !content.some(isThought);
}

type Turn = Anthropic.UserMessageParam | Anthropic.AssistantMessageParam;

function toAnthropicMessage({ role, content }: Message): Turn {
  if (typeof content === 'string') return { role, content };
  // The API refuses empty text, which a model may have sent.
  const blocks = content.filter(
    block => (block.type !== 'text' || block.text !== '') && !isCallExtras(block),
  );
  // Our blocks have Anthropic's format, except for the names of image types, which the API checks.
  return { role, content: blocks as Anthropic.ContentBlockParam[] };
}

/** Puts the files before the words of the last turn: models read a document better when the question follows it. */
function withAttached(turns: Turn[], files: readonly AttachedFile[]): Turn[] {
  const last = turns.at(-1);
  if (files.length === 0 || last?.role !== 'user') return turns;
  const said: Anthropic.ContentBlockParam[] =
    typeof last.content === 'string' ? [{ type: 'text', text: last.content }] : last.content;
  const blocks = files.map(
    ({ name, mediaType, data }): Anthropic.ContentBlockParam =>
      mediaType === 'application/pdf'
        ? { type: 'document', source: { type: 'base64', media_type: mediaType, data }, title: name }
        : { type: 'image', source: { type: 'base64', media_type: mediaType, data } },
  );
  return [...turns.slice(0, -1), { role: 'user', content: [...blocks, ...said] }];
}

function withCachedTurns(turns: readonly Turn[]): Turn[] {
  const marked = turns.filter(turn => turn.role === 'user').slice(-2);
  return turns.map(turn => (turn.role === 'user' && marked.includes(turn) ? withCacheMark(turn) : turn));
}

function withCachedStart(turns: readonly Turn[]): Turn[] {
  const [first, ...rest] = turns;
  if (first?.role !== 'user' || typeof first.content === 'string' || first.content.length < 2)
    return [...turns];
  const [start, ...others] = first.content;
  return [{ role: 'user', content: [{ ...start, ...cached } as typeof start & object, ...others] }, ...rest];
}

function withCacheMark(turn: Anthropic.UserMessageParam): Anthropic.UserMessageParam {
  const content: Anthropic.ContentBlockParam[] =
    typeof turn.content === 'string' ? [{ type: 'text', text: turn.content }] : turn.content;
  const last = content.at(-1);
  if (!last || (last.type === 'text' && last.text === '')) return turn;
  return { role: 'user', content: [...content.slice(0, -1), { ...last, ...cached } as typeof last] };
}

/** A block of the answer that is passed on once it is complete. */
type OpenBlock =
  | { type: 'tool_use'; id: string; name: string; json: string }
  | { type: 'thinking'; thinking: string; signature: string }
  | { type: 'redacted_thinking'; data: string };

/** The stream's events with `error`, which the SDK's type leaves out because the SDK handles errors itself. */
type WireEvent =
  | Anthropic.RawMessageStreamEvent
  | { type: 'error'; error?: { type?: string; message?: string } };

class AnthropicReader implements WireReader {
  whole = false;
  /** By their index in the answer. Servers that imitate the format may have several open at a time. */
  readonly #blocks = new Map<number, OpenBlock>();
  #stopReason = 'end_turn';
  readonly #usage: TokenCount = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
  readonly #note: (thought: ContentBlock) => void;

  /** `note` gets each thought of the answer. */
  constructor(note: (thought: ContentBlock) => void) {
    this.#note = note;
  }

  read(data: string): StreamEvent | undefined {
    // Gateways that also speak OpenAI's format end each stream with that format's last line.
    if (this.whole || data === '[DONE]') return undefined;
    const event = JSON.parse(data) as WireEvent | null;
    switch (event?.type) {
      case 'content_block_delta':
        return this.#readDelta(event.index, event.delta);
      case 'content_block_start':
        return this.#openBlock(event.index, event.content_block);
      case 'content_block_stop':
        return this.#closeBlock(event.index);
      case 'message_start':
        this.#count(event.message?.usage);
        return undefined;
      case 'message_delta':
        this.#stopReason = event.delta?.stop_reason ?? this.#stopReason;
        this.#count(event.usage);
        return undefined;
      case 'message_stop':
        this.whole = true;
        return undefined;
      case 'error':
        throw new ReportedError(statusOfType[event.error?.type ?? ''] ?? 400, event.error?.message ?? data);
      default:
        return undefined; // the API may add events at any time
    }
  }

  /** Undefined until the server has counted the prompt. */
  get used(): TokenCount | undefined {
    const { inputTokens, cacheReadTokens, cacheWriteTokens } = this.#usage;
    return inputTokens + cacheReadTokens + cacheWriteTokens > 0 ? this.#usage : undefined;
  }

  /** Closes blocks whose end was not sent: they are as complete as the answer is. */
  end(): readonly StreamEvent[] {
    const blocks = [...this.#blocks.keys()].flatMap(index => this.#closeBlock(index) ?? []);
    const { used } = this;
    return [...blocks, { type: 'done', stopReason: this.#stopReason, ...(used && { usage: used }) }];
  }

  #openBlock(
    index: number,
    start: Anthropic.RawContentBlockStartEvent['content_block'],
  ): StreamEvent | undefined {
    const block = openBlock(start);
    if (block) this.#blocks.set(index, block);
    return start.type === 'text' && start.text ? { type: 'text', text: start.text } : undefined;
  }

  #readDelta(index: number, delta: Anthropic.RawContentBlockDelta): StreamEvent | undefined {
    const block = this.#blocks.get(index);
    switch (delta.type) {
      case 'text_delta':
        return delta.text ? { type: 'text', text: delta.text } : undefined;
      case 'input_json_delta':
        if (block?.type === 'tool_use') block.json += delta.partial_json;
        return undefined;
      case 'thinking_delta':
        if (block?.type === 'thinking') block.thinking += delta.thinking;
        return delta.thinking ? { type: 'reasoning', text: delta.thinking } : undefined;
      case 'signature_delta':
        if (block?.type === 'thinking') block.signature += delta.signature;
        return undefined;
      default:
        return undefined;
    }
  }

  #closeBlock(index: number): StreamEvent | undefined {
    const block = this.#blocks.get(index);
    this.#blocks.delete(index);
    if (!block) return undefined;
    if (block.type !== 'tool_use') {
      this.#note(block);
      return { type: 'thinking', block };
    }
    return { type: 'tool_call', call: readToolCall(block.id, block.name, block.json) };
  }

  #count(usage: Partial<Anthropic.MessageDeltaUsage> | null | undefined): void {
    const total = this.#usage;
    total.inputTokens = tokenCountIn(usage?.input_tokens ?? total.inputTokens);
    total.outputTokens = tokenCountIn(usage?.output_tokens ?? total.outputTokens);
    total.cacheReadTokens = tokenCountIn(usage?.cache_read_input_tokens ?? total.cacheReadTokens);
    total.cacheWriteTokens = tokenCountIn(usage?.cache_creation_input_tokens ?? total.cacheWriteTokens);
  }
}

function openBlock(block: Anthropic.RawContentBlockStartEvent['content_block']): OpenBlock | undefined {
  switch (block.type) {
    case 'tool_use': {
      // Some servers that speak this format send all arguments at once, in the start of the block.
      const input = block.input as object | undefined;
      const json = input && Object.keys(input).length > 0 ? JSON.stringify(input) : '';
      return { type: 'tool_use', id: block.id, name: block.name, json };
    }
    case 'thinking':
      // Servers that imitate the format leave out empty fields.
      return { type: 'thinking', thinking: block.thinking ?? '', signature: block.signature ?? '' };
    case 'redacted_thinking':
      return { type: 'redacted_thinking', data: block.data };
    default:
      return undefined;
  }
}

/** The HTTP status that corresponds to an error in the middle of a stream, by the error's type. */
const statusOfType: Readonly<Record<string, number>> = {
  authentication_error: 401,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
};

function explain(error: unknown, { apiKey, baseUrl, house }: AnthropicOptions): TurnFailure {
  const { label, keyVariable, addressVariable } = house ?? anthropic;
  const reported =
    error instanceof ReportedError || (error instanceof APIError && error.status !== undefined);
  if (!reported) return explainLineFailure(error, label, baseUrl, addressVariable);
  return explainHttpFailure({
    label,
    status: error.status ?? 0,
    reason: error instanceof APIError ? reasonOf(error) : error.message,
    headers: error instanceof APIError ? error.headers : undefined,
    address: baseUrl,
    addressVariable,
    keyVariable,
    secret: apiKey,
  });
}

function reasonOf(error: InstanceType<typeof APIError>): string {
  const message = error.apiMessage ?? error.message;
  const detail = error.errorCode ?? '';
  return detail && !message.includes(detail) ? `${message} (${detail})` : message;
}
