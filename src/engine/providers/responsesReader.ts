/** Reads a streamed answer in the format of OpenAI's Responses API. Any field may be missing: other servers imitate it. */

import type { StreamEvent, TokenCount } from '../core/ports.ts';
import { countedTokens, tokenCountIn } from './eventRequest.ts';
import { ReportedError } from './failures.ts';
import { callExtrasBlock, newCallId, readToolCall } from './provider.ts';
import type { WireReader } from './turn.ts';

/** Reasoning as the API wants it back. */
export interface ReasoningItem {
  type: 'reasoning';
  id: string;
  summary: unknown[];
  encrypted_content: string;
}

/** Returns true for a kept item that may be sent back. */
export const isReasoningItem = (value: object): value is ReasoningItem =>
  'type' in value && value.type === 'reasoning';

interface WireItem {
  type?: string;
  id?: string;
  call_id?: unknown;
  name?: unknown;
  arguments?: unknown;
  status?: unknown;
  summary?: unknown;
  encrypted_content?: unknown;
  phase?: unknown;
  content?: readonly ({ type?: string; text?: string; refusal?: string } | null)[] | null;
}

interface WireError {
  code?: unknown;
  message?: unknown;
}

interface WireResponse {
  output?: readonly (WireItem | null)[] | null;
  error?: WireError | null;
  incomplete_details?: { reason?: string } | null;
  usage?: {
    input_tokens?: unknown;
    output_tokens?: unknown;
    input_tokens_details?: { cached_tokens?: unknown; cache_write_tokens?: unknown } | null;
  } | null;
}

interface WireEvent extends WireError {
  type?: string;
  delta?: unknown;
  arguments?: unknown;
  item_id?: string;
  output_index?: number;
  summary_index?: number;
  item?: WireItem | null;
  response?: WireResponse | null;
  error?: WireError | string | null;
}

/** A call that the model has begun. */
interface OpenCall {
  item: WireItem;
  json: string;
}

export class ResponsesReader implements WireReader {
  whole = false;
  readonly #origin: string;
  readonly #calls = new Map<string, OpenCall>();
  #hasCalls = false;
  #hasText = false;
  #hasRefused = false;
  #stopReason: string | undefined;
  #usage: TokenCount | undefined;
  #rest: StreamEvent[] = [];

  /** `origin` names who can read the reasoning. */
  constructor(origin: string) {
    this.#origin = origin;
  }

  read(data: string): StreamEvent | readonly StreamEvent[] | undefined {
    if (this.whole || data === '[DONE]') return undefined;
    const event = JSON.parse(data) as WireEvent | null;
    switch (event?.type) {
      case 'response.output_text.delta':
        return this.#text(event.delta);
      case 'response.refusal.delta':
        this.#hasRefused = true;
        return this.#text(event.delta);
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return reasoning(event.delta);
      case 'response.reasoning_summary_part.added':
        return (event.summary_index ?? 0) > 0 ? reasoning('\n\n') : undefined;
      case 'response.output_item.added':
        if (event.item?.type === 'function_call')
          this.#calls.set(keyOf(event), { item: event.item, json: textOf(event.item.arguments) });
        return undefined;
      case 'response.function_call_arguments.delta':
        this.#openCall(event).json += textOf(event.delta);
        return undefined;
      case 'response.function_call_arguments.done':
        if (event.arguments !== undefined) this.#openCall(event).json = textOf(event.arguments);
        return undefined;
      case 'response.output_item.done':
        return this.#closeItem(event);
      case 'response.incomplete':
        this.#calls.clear();
        return this.#end(event.response ?? {});
      case 'response.completed':
        return this.#end(event.response ?? {});
      case 'response.failed':
        throw reported(event.response?.error ?? {}, data);
      case 'error':
        throw reported(event.error ?? event, data);
      default:
        if (event?.error) throw reported(event.error, data);
        return undefined; // the API may add events at any time
    }
  }

  end(): readonly StreamEvent[] {
    const usual = this.#hasRefused ? 'refusal' : this.#hasCalls ? 'tool_use' : 'end_turn';
    const done: StreamEvent = { type: 'done', stopReason: this.#stopReason ?? usual };
    return [...this.#rest, this.#usage ? { ...done, usage: this.#usage } : done];
  }

  #text(delta: unknown): StreamEvent | undefined {
    const text = textOf(delta);
    if (!text) return undefined;
    this.#hasText = true;
    return { type: 'text', text };
  }

  #openCall(event: WireEvent): OpenCall {
    const key = keyOf(event);
    const call = this.#calls.get(key) ?? { item: {}, json: '' };
    this.#calls.set(key, call);
    return call;
  }

  #closeItem(event: WireEvent): StreamEvent | readonly StreamEvent[] | undefined {
    const item = event.item ?? {};
    switch (item.type) {
      case 'function_call': {
        const open = this.#calls.get(keyOf(event));
        this.#calls.delete(keyOf(event));
        // Half a call is none, even if its arguments happen to be valid.
        return item.status === 'incomplete' ? undefined : this.#call({ ...open?.item, ...item }, open?.json);
      }
      case 'reasoning':
        return this.#reasoning(item);
      case 'message':
        return this.#closeMessage(item);
      default:
        return undefined;
    }
  }

  /** Some servers send a message as a whole, without a part before it. Newer models say what it is for, and want that back. */
  #closeMessage({ content, phase }: WireItem): readonly StreamEvent[] {
    const text = this.#hasText
      ? undefined
      : this.#text((Array.isArray(content) ? content : []).map(wordsOf).join(''));
    return [...(text ? [text] : []), ...(typeof phase === 'string' ? [this.#extras({ phase })] : [])];
  }

  #call({ call_id, name, arguments: given }: WireItem, json = ''): StreamEvent {
    this.#hasCalls = true;
    const id = typeof call_id === 'string' && call_id !== '' ? call_id : newCallId();
    const own = typeof name === 'string' ? name : '';
    return { type: 'tool_call', call: readToolCall(id, own, textOf(given) || json) };
  }

  /** Without its seal, nothing can be done with the reasoning of an answer that is not stored. */
  #reasoning({ id, summary, encrypted_content }: WireItem): StreamEvent | undefined {
    if (typeof encrypted_content !== 'string' || encrypted_content === '') return undefined;
    const item: ReasoningItem = {
      type: 'reasoning',
      id: id ?? '',
      summary: Array.isArray(summary) ? summary : [],
      encrypted_content,
    };
    return this.#extras(item);
  }

  #extras(extras: object): StreamEvent {
    return { type: 'thinking', block: callExtrasBlock('', extras, this.#origin) };
  }

  /** Reads the whole answer, with which servers that leave out events end their streams too. */
  #end({ output, usage, incomplete_details }: WireResponse): StreamEvent | undefined {
    this.whole = true;
    if (usage) this.#usage = countedTokens(toTokenCount(usage));
    const reason = incomplete_details?.reason;
    if (reason) this.#stopReason = stopReasons[reason] ?? reason;
    const items = (output ?? []).filter(item => item !== null);
    const unfinished = [...this.#calls.values()].map(({ item, json }) => this.#call(item, json));
    const unsaid = this.#hasText
      ? ''
      : items
          .flatMap(({ content }) => content ?? [])
          .map(wordsOf)
          .join('');
    const calls = this.#hasCalls
      ? []
      : items.filter(({ type, status }) => type === 'function_call' && status !== 'incomplete');
    this.#rest = [...unfinished, ...calls.map(item => this.#call(item))];
    return unsaid ? { type: 'text', text: unsaid } : undefined;
  }
}

const keyOf = ({ output_index, item_id, item }: WireEvent): string =>
  String(output_index ?? item_id ?? item?.id ?? item?.call_id);

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value);

const wordsOf = (part: { text?: string; refusal?: string } | null): string =>
  part?.text ?? part?.refusal ?? '';

function reasoning(delta: unknown): StreamEvent | undefined {
  const text = textOf(delta);
  return text ? { type: 'reasoning', text } : undefined;
}

/** Our names of the reasons for an answer that is not complete. */
const stopReasons: Readonly<Record<string, string>> = {
  max_output_tokens: 'max_tokens',
  content_filter: 'refusal',
};

const statusOfCode: Readonly<Record<string, number>> = {
  rate_limit_exceeded: 429,
  insufficient_quota: 429,
  invalid_api_key: 401,
  model_not_found: 404,
  server_error: 500,
  server_is_overloaded: 503,
  slow_down: 503,
  vector_store_timeout: 504,
};

/** Returns the error for what the server says in place of the rest. Only what it calls a request's fault is not tried again. */
function reported(error: WireError | string, data: string): ReportedError {
  if (typeof error === 'string') return new ReportedError(500, error);
  const code = textOf(error.code);
  const message = textOf(error.message) || data;
  const status = Object.hasOwn(statusOfCode, code) ? statusOfCode[code] : code === '' ? 500 : 400;
  return new ReportedError(status ?? 500, code && !message.includes(code) ? `${message} (${code})` : message);
}

/** Reasoning is in the output, and what a cache gave or took in the input. */
function toTokenCount(usage: NonNullable<WireResponse['usage']>): TokenCount {
  const cacheReadTokens = tokenCountIn(usage.input_tokens_details?.cached_tokens);
  const cacheWriteTokens = tokenCountIn(usage.input_tokens_details?.cache_write_tokens);
  return {
    inputTokens: Math.max(0, tokenCountIn(usage.input_tokens) - cacheReadTokens - cacheWriteTokens),
    outputTokens: tokenCountIn(usage.output_tokens),
    cacheReadTokens,
    cacheWriteTokens,
  };
}
