/** Reads a streamed answer in OpenAI's chat completions format, with the liberties that compatible servers take. */
import { randomUUID } from 'node:crypto';
import { callExtrasBlock, messageExtrasBlock } from './callExtras.ts';
import type { StreamEvent, TokenCount } from './provider.ts';
import { readToolCall } from './toolArguments.ts';
import { ReportedError, type WireReader } from './turn.ts';

/** The parts of a chunk that we read; every one of them may be missing. */
interface OpenaiChunk {
  error?: { code?: unknown; message?: string } | string | null;
  choices?: readonly {
    delta?: {
      content?: string | null;
      refusal?: string | null;
      tool_calls?: readonly OpenaiCallDelta[] | null;
      reasoning_details?: readonly ReasoningDetail[] | null;
    } | null;
    finish_reason?: string | null;
  }[];
  usage?: {
    prompt_tokens?: number;
    completion_tokens?: number;
    total_tokens?: number;
    prompt_tokens_details?: { cached_tokens?: number | null; cache_write_tokens?: number | null } | null;
    cost?: unknown;
    is_byok?: boolean;
    cost_details?: { upstream_inference_cost?: unknown } | null;
  } | null;
}

/** A part of a model's reasoning, or of its seal, as OpenRouter passes it on. */
type ReasoningDetail = Readonly<Record<string, unknown>>;

interface OpenaiCallDelta {
  index?: number;
  id?: string | null;
  function?: { name?: string | null; arguments?: string | null };
  extra_content?: object;
}

interface OpenCall {
  index: number | undefined;
  id: string;
  name: string;
  json: string;
  extra: object | undefined;
}

/** Whose habits are to be expected. */
export type OpenaiCompatibleName = 'openai' | 'gemini' | 'openrouter' | 'ollama';

export class OpenaiReader implements WireReader {
  readonly #name: OpenaiCompatibleName;
  /** True when the stream's last line, `[DONE]`, has come. */
  #ended = false;
  #finish: string | undefined;
  #usage: TokenCount | undefined;
  readonly #calls: OpenCall[] = [];
  readonly #reasoning: ReasoningDetail[] = [];

  constructor(name: OpenaiCompatibleName) {
    this.#name = name;
  }

  get whole(): boolean {
    return this.#ended || this.#finish !== undefined;
  }

  read(data: string): StreamEvent | undefined {
    if (data === '[DONE]') {
      this.#ended = true;
      return undefined;
    }
    const chunk = JSON.parse(data) as OpenaiChunk;
    if (chunk.error) throw reportedError(chunk.error);
    if (chunk.usage) this.#usage = toTokenCount(this.#name, chunk.usage);
    const choice = chunk.choices?.[0];
    if (!choice) return undefined;
    if (choice.finish_reason) this.#finish = choice.finish_reason;
    for (const call of choice.delta?.tool_calls ?? []) this.#readCall(call);
    if (this.#name === 'openrouter')
      for (const detail of choice.delta?.reasoning_details ?? []) addDetail(this.#reasoning, detail);
    const text = choice.delta?.content || choice.delta?.refusal;
    return text ? { type: 'text', text } : undefined;
  }

  /** The calls come last: this format does not say when one is whole before the whole answer is. */
  end(): readonly StreamEvent[] {
    const calls = this.#calls.flatMap(({ id, name, json, extra }): StreamEvent[] => {
      const call: StreamEvent = { type: 'tool_call', call: readToolCall(id, name, json) };
      return extra
        ? [{ type: 'thinking', block: callExtrasBlock(id, { extra_content: extra }) }, call]
        : [call];
    });
    const reasoning: StreamEvent[] =
      this.#reasoning.length > 0
        ? [{ type: 'thinking', block: messageExtrasBlock({ reasoning_details: this.#reasoning }) }]
        : [];
    const finish = this.#finish ?? 'stop';
    const done: StreamEvent = { type: 'done', stopReason: stopReasons[finish] ?? finish };
    return [...reasoning, ...calls, this.#usage ? { ...done, usage: this.#usage } : done];
  }

  #readCall(delta: OpenaiCallDelta): void {
    let call = this.#callOf(delta);
    if (!call) {
      const id = delta.id || `call_${randomUUID().replaceAll('-', '')}`;
      call = { index: delta.index, id, name: '', json: '', extra: undefined };
      this.#calls.push(call);
    }
    call.name ||= delta.function?.name ?? '';
    call.json += delta.function?.arguments ?? '';
    call.extra ??= delta.extra_content;
  }

  /** Some servers send whole calls that all have index 0, or none, and differ in their ids. */
  #callOf({ index, id }: OpenaiCallDelta): OpenCall | undefined {
    const same =
      index === undefined ? this.#calls.at(-1) : this.#calls.findLast(call => call.index === index);
    return id && same && same.id !== id ? undefined : same;
  }
}

/** What is called otherwise elsewhere. */
const stopReasons: Readonly<Record<string, string>> = { length: 'max_tokens', content_filter: 'refusal' };

/** Pieces of one part go together: its texts grow, and what else comes with a later piece counts. */
function addDetail(details: ReasoningDetail[], piece: ReasoningDetail): void {
  const last = details.at(-1);
  if (!last || last['type'] !== piece['type'] || last['index'] !== piece['index']) {
    details.push(piece);
    return;
  }
  const merged: Record<string, unknown> = { ...last };
  for (const [name, value] of Object.entries(piece)) {
    const before = last[name];
    const grows = ['text', 'summary', 'data'].includes(name) && typeof before === 'string';
    if (grows && typeof value === 'string') merged[name] = before + value;
    else if (value !== null && value !== undefined) merged[name] = value;
  }
  details[details.length - 1] = merged;
}

function reportedError(error: NonNullable<OpenaiChunk['error']>): ReportedError {
  if (typeof error === 'string') return new ReportedError(500, error);
  const code = Number(error.code);
  return new ReportedError(code >= 400 && code < 600 ? code : 500, error.message ?? JSON.stringify(error));
}

type WireUsage = NonNullable<OpenaiChunk['usage']>;

function toTokenCount(name: OpenaiCompatibleName, usage: WireUsage): TokenCount {
  const { prompt_tokens: prompt = 0, completion_tokens: completion = 0, total_tokens: total = 0 } = usage;
  const cacheReadTokens = usage.prompt_tokens_details?.cached_tokens ?? 0;
  const cacheWriteTokens = usage.prompt_tokens_details?.cache_write_tokens ?? 0;
  const charged = name === 'openrouter' ? chargedFor(usage) : undefined;
  return {
    inputTokens: Math.max(0, prompt - cacheReadTokens - cacheWriteTokens),
    // Gemini counts what it thinks, which is paid as output, in the total alone.
    outputTokens: name === 'gemini' ? Math.max(completion, total - prompt) : completion,
    cacheReadTokens,
    cacheWriteTokens,
    ...(charged === undefined ? {} : { charged }),
  };
}

/**
 * OpenRouter ends each answer with what it took from the account, in credits, which are dollars; with a key of one's own at the model's
 * maker that is its fee alone, and the maker's price stands beside it. Source: its page on usage accounting.
 */
function chargedFor({ cost, is_byok: ownKey, cost_details: details }: WireUsage): number | undefined {
  const makers = ownKey ? details?.upstream_inference_cost : 0;
  return isAmount(cost) && isAmount(makers) ? cost + makers : undefined;
}

const isAmount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0;
