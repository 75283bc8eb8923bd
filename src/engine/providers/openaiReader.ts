/** Reads a streamed answer in OpenAI's chat completions format, including the variations of compatible servers. */

import type { ContentBlock } from '@telos/protocol/run';
import type { StreamEvent, TokenCount } from '../core/ports.ts';
import { countedTokens, tokenCountIn } from './eventRequest.ts';
import { ReportedError } from './failures.ts';
import { callExtrasBlock, messageExtrasBlock, newCallId, readToolCall } from './provider.ts';
import type { WireReader } from './turn.ts';

/** The parts of a chunk that are read here; each may be missing. */
interface OpenaiChunk {
  error?: WireError | string | null;
  /** With `code`: an error that is sent without the field `error`. */
  message?: string;
  code?: unknown;
  choices?:
    | readonly ({
        delta?: OpenaiDelta | null;
        /** Sent in place of a delta by servers that do not stream. */
        message?: OpenaiDelta | null;
        finish_reason?: string | null;
        /** Moonshot's place for token counts. */
        usage?: WireUsage | null;
      } | null)[]
    | null;
  usage?: WireUsage | null;
  /** Groq's place for token counts. */
  x_groq?: { usage?: WireUsage | null } | null;
}

interface OpenaiDelta {
  /** Mistral's reasoning models send a list of parts. */
  content?: string | readonly ContentPart[] | null;
  refusal?: string | null;
  tool_calls?: readonly (OpenaiCallDelta | null)[] | null;
  function_call?: OpenaiCallDelta['function'];
  /** What the model thinks, as DeepSeek and most servers of local models name it. */
  reasoning_content?: string | null;
  /** The same, as OpenRouter, Ollama, Groq and newer servers do. */
  reasoning?: string | null;
  reasoning_details?: readonly ReasoningDetail[] | null;
}

interface WireError {
  code?: unknown;
  message?: string;
}

interface WireUsage {
  prompt_tokens?: number;
  completion_tokens?: number;
  total_tokens?: number;
  prompt_tokens_details?: { cached_tokens?: number | null; cache_write_tokens?: number | null } | null;
  cost?: unknown;
  is_byok?: boolean;
  cost_details?: { upstream_inference_cost?: unknown } | null;
}

interface ContentPart {
  type?: string;
  text?: string;
  /** Of Mistral's parts of the type `thinking`. */
  thinking?: readonly ContentPart[] | null;
}

/** A part of a model's reasoning, or of its seal, as OpenRouter passes it on. */
type ReasoningDetail = Readonly<Record<string, unknown>>;

interface OpenaiCallDelta {
  index?: number | null;
  id?: string | null;
  function?: { name?: string | null; arguments?: string | object | null } | null;
  extra_content?: object;
}

interface OpenCall {
  index: number | undefined;
  /** The server's own id; a new one if it sent none, or one that an earlier call has. */
  id: string;
  givenId: string | undefined;
  name: string;
  json: string;
  extra: object | undefined;
}

/** The provider whose variations of the format are expected. */
export type OpenaiCompatibleName = 'openai' | 'gemini' | 'openrouter' | 'azure' | 'ollama';

export class OpenaiReader implements WireReader {
  readonly #name: OpenaiCompatibleName;
  readonly #note: (thought: ContentBlock) => void;
  /** True once the stream's last line, `[DONE]`, was read. */
  #ended = false;
  #finish: string | undefined;
  #usage: TokenCount | undefined;
  readonly #calls: OpenCall[] = [];
  readonly #reasoning: ReasoningDetail[] = [];
  #reasoningContent = '';
  #plainReasoning = '';
  readonly #text: ThoughtfulText;
  #hasRefused = false;

  /** `note` gets the reasoning that the server wants back. The habit is that of the model, for all of its answers. */
  constructor(
    name: OpenaiCompatibleName,
    note: (thought: ContentBlock) => void,
    habit: ThinkingHabit = { thinksFirst: false },
  ) {
    this.#name = name;
    this.#note = note;
    this.#text = new ThoughtfulText(habit);
  }

  get whole(): boolean {
    return this.#ended || this.#finish !== undefined;
  }

  read(data: string): readonly StreamEvent[] | undefined {
    if (data === '[DONE]') {
      this.#ended = true;
      return undefined;
    }
    const chunk = JSON.parse(data) as OpenaiChunk | null;
    if (chunk?.error) throw reportedError(chunk.error);
    if (chunk?.message && !chunk.choices) throw reportedError(chunk);
    const choice = chunk?.choices?.[0];
    const usage = chunk?.usage ?? choice?.usage ?? chunk?.x_groq?.usage;
    if (usage) this.#usage = countedTokens(toTokenCount(this.#name, usage)) ?? this.#usage;
    if (!choice) return undefined;
    if (choice.finish_reason) this.#finish = choice.finish_reason;
    const delta = choice.delta ?? choice.message;
    if (!delta) return undefined;
    if (delta.refusal) this.#hasRefused = true;
    // The older form of a call.
    if (delta.function_call) this.#readCall({ index: 0, function: delta.function_call });
    for (const call of delta.tool_calls ?? []) if (call) this.#readCall(call);
    if (this.#name === 'openrouter')
      for (const detail of delta.reasoning_details ?? []) addDetail(this.#reasoning, detail);
    const thought = this.#readThought(delta);
    const text = textOf(delta.content) || delta.refusal;
    return [
      ...(thought ? [{ type: 'reasoning' as const, text: thought }] : []),
      ...(text ? this.#text.add(text) : []),
    ];
  }

  /** Returns what the model thinks. A server that names it in two ways says it once. */
  #readThought({
    reasoning_content: content,
    reasoning,
    reasoning_details: details,
    content: parts,
  }: OpenaiDelta): string {
    if (content) this.#reasoningContent += content;
    else if (reasoning) this.#plainReasoning += reasoning;
    const detailed = (details ?? []).map(({ text, summary }) => text ?? summary);
    return (
      content || reasoning || detailed.filter(one => typeof one === 'string').join('') || thoughtsIn(parts)
    );
  }

  get used(): TokenCount | undefined {
    return this.#usage;
  }

  /** Returns the calls last: this format does not mark a call as complete before the whole answer is. */
  end(): readonly StreamEvent[] {
    const calls = this.#calls.flatMap(({ id, name, json, extra }): StreamEvent[] => {
      const call: StreamEvent = { type: 'tool_call', call: readToolCall(id, name, json) };
      const extras = extra && callExtrasBlock(id, { extra_content: extra }, this.#name);
      return extras ? [{ type: 'thinking', block: extras }, call] : [call];
    });
    const extras = this.#messageExtras();
    const block = extras && messageExtrasBlock(extras, this.#name);
    if (block) this.#note(block);
    const reasoning: StreamEvent[] = block ? [{ type: 'thinking', block }] : [];
    const finish = this.#finish ?? 'stop';
    const stopReason = this.#hasRefused ? 'refusal' : (stopReasons[finish.toLowerCase()] ?? finish);
    const done: StreamEvent = { type: 'done', stopReason };
    return [
      ...this.#text.end(),
      ...reasoning,
      ...calls,
      this.#usage ? { ...done, usage: this.#usage } : done,
    ];
  }

  /**
   * Returns the properties that the server wants back in addition to the model's text. DeepSeek and Moonshot refuse a round
   * of tools without the reasoning that led to its calls, and others think anew. No server wants it for an answer without calls.
   */
  #messageExtras(): object | undefined {
    if (this.#reasoning.length > 0) return { reasoning_details: this.#reasoning };
    if (this.#name === 'openrouter' || this.#calls.length === 0) return undefined;
    if (this.#reasoningContent) return { reasoning_content: this.#reasoningContent };
    if (this.#plainReasoning) return { reasoning: this.#plainReasoning };
    return this.#text.thoughts ? { [thoughtsBefore]: this.#text.thoughts } : undefined;
  }

  #readCall(delta: OpenaiCallDelta): void {
    const call = this.#callOf(delta) ?? this.#newCall(delta);
    call.name ||= delta.function?.name ?? '';
    const json = delta.function?.arguments ?? '';
    call.json += typeof json === 'string' ? json : JSON.stringify(json);
    call.extra ??= delta.extra_content;
  }

  #newCall({ index, id }: OpenaiCallDelta): OpenCall {
    const isOwn = id && this.#calls.every(call => call.id !== id);
    const call: OpenCall = {
      index: index ?? undefined,
      id: isOwn ? id : newCallId(),
      givenId: id || undefined,
      name: '',
      json: '',
      extra: undefined,
    };
    this.#calls.push(call);
    return call;
  }

  /**
   * Returns the open call that a delta continues, or undefined if it begins another. Some servers send calls that all have
   * index 0, or none, and differ in their ids. Some send complete calls without an id.
   */
  #callOf({ index, id, function: part }: OpenaiCallDelta): OpenCall | undefined {
    const candidates = this.#calls.filter(call => (index ?? call.index) === call.index);
    if (id) return candidates.findLast(call => call.givenId === id);
    const last = candidates.at(-1);
    const beginsAnother = part?.name && part.arguments && last?.name && isWhole(last.json);
    return beginsAnother ? undefined : last;
  }
}

const isWhole = (json: string): boolean => json !== '' && readToolCall('', '', json).problem === undefined;

/** Returns the text for the person. Parts of other types are the model's reasoning. */
function textOf(content: string | readonly ContentPart[] | null | undefined): string {
  if (!Array.isArray(content)) return typeof content === 'string' ? content : '';
  return content.map((part: ContentPart) => (part.type === 'text' ? (part.text ?? '') : '')).join('');
}

/** Returns what the model thinks, of a content that is a list of parts. */
const thoughtsIn = (content: OpenaiDelta['content']): string =>
  Array.isArray(content) ? content.map((part: ContentPart) => textOf(part.thinking)).join('') : '';

/** The property under which thoughts are kept that were a part of the text. It is never sent. */
export const thoughtsBefore = 'thoughts before the text';

const thinkTag = '<think>';
const thinkEnd = '</think>';

/** What is known of a model's way to think. */
export interface ThinkingHabit {
  /** True once it has closed thoughts that it had not opened: the template of its server opens them, out of sight. */
  thinksFirst: boolean;
}

/**
 * The text of an answer. What stands between `<think>` and `</think>` at its start is what the model thinks. Where only the end of thoughts
 * comes, they have been passed on as text by then; those of the model's later answers are not.
 */
class ThoughtfulText {
  thoughts = '';
  #state: 'start' | 'thoughts' | 'gap' | 'answer' = 'start';
  /** Received, and not passed on as it may be a part of a tag. */
  #held = '';
  readonly #habit: ThinkingHabit;
  #isOpened = false;
  #isAtLineStart = true;
  #isClosed = false;

  constructor(habit: ThinkingHabit) {
    this.#habit = habit;
  }

  add(text: string): StreamEvent[] {
    this.#held += text;
    const events: StreamEvent[] = [];
    if (this.#state === 'start') this.#begin();
    if (this.#state === 'thoughts') events.push(...this.#think());
    if (this.#state === 'gap') {
      this.#held = this.#held.trimStart();
      if (this.#held) this.#state = 'answer';
    }
    if (this.#state === 'answer') events.push(...this.#answer());
    return events;
  }

  #answer(): StreamEvent[] {
    const closing = this.#isClosed
      ? null
      : (this.#isAtLineStart ? closingFirst : closingLine).exec(this.#held);
    if (closing) {
      this.#habit.thinksFirst = true;
      this.#isClosed = true;
      const [before, rest] = [
        this.#held.slice(0, closing.index),
        this.#held.slice(closing.index + closing[0].length),
      ];
      this.#held = rest;
      this.#state = 'gap';
      return [{ type: 'text', text: `${before}\n\n` }, ...this.add('')];
    }
    const isHeld = !this.#isClosed && (this.#isAtLineStart || this.#held.includes('\n'));
    const length = this.#held.length - (isHeld ? lineHeldBack(this.#held) : 0);
    const text = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    if (text) this.#isAtLineStart = text.endsWith('\n');
    return text ? [{ type: 'text', text }] : [];
  }

  /** Returns what is left at the end of an answer. */
  end(): StreamEvent[] {
    const rest = this.#held;
    this.#held = '';
    if (this.#state === 'thoughts' && !this.#isOpened) {
      // It has answered at once this time.
      this.#habit.thinksFirst = false;
      const text = this.thoughts + rest;
      this.thoughts = '';
      return text ? [{ type: 'text', text }] : [];
    }
    if (!rest || this.#state === 'gap') return [];
    if (this.#state !== 'thoughts') return [{ type: 'text', text: rest }];
    this.thoughts += rest;
    return [{ type: 'reasoning', text: rest }];
  }

  #begin(): void {
    const begun = this.#held.trimStart();
    if (begun.startsWith(thinkTag)) {
      this.#state = 'thoughts';
      this.#isOpened = true;
      this.#held = begun.slice(thinkTag.length);
    } else if (!thinkTag.startsWith(begun)) this.#state = this.#habit.thinksFirst ? 'thoughts' : 'answer';
  }

  #think(): StreamEvent[] {
    const end = this.#held.indexOf(thinkEnd);
    const isOpen = end < 0;
    const length = isOpen ? this.#held.length - heldBack(this.#held) : end;
    const text = this.#held.slice(0, length);
    this.#held = this.#held.slice(isOpen ? length : end + thinkEnd.length);
    if (!isOpen) {
      this.#state = 'gap';
      this.#isOpened = this.#isClosed = true;
    }
    this.thoughts += text;
    return text ? [{ type: 'reasoning', text }] : [];
  }
}

/** The end of thoughts, in a line of its own: in the middle of one, a text is about it. */
const closingLine = /\n[ \t]*<\/think>[ \t]*(?:\n\s*|$)/;
const closingFirst = /(?:^|\n)[ \t]*<\/think>[ \t]*(?:\n\s*|$)/;

/** Returns how many characters at the end of a text may begin a line that ends thoughts. */
function lineHeldBack(text: string): number {
  const at = text.lastIndexOf('\n');
  const line = text.slice(at + 1).trimStart();
  return thinkEnd.startsWith(line) ? text.length - Math.max(at, 0) : 0;
}

/** Returns how many characters at the end of a text may begin the end of the thoughts. */
function heldBack(text: string): number {
  for (let length = Math.min(text.length, thinkEnd.length - 1); length > 0; length--)
    if (thinkEnd.startsWith(text.slice(-length))) return length;
  return 0;
}

/** Our names of stop reasons, by OpenAI's names, if the two differ. */
/** The reasons of several servers, in lower case. */
const stopReasons: Readonly<Record<string, string>> = {
  length: 'max_tokens',
  max_tokens: 'max_tokens',
  model_length: 'model_context_window_exceeded',
  content_filter: 'refusal',
  sensitive: 'refusal',
  safety: 'refusal',
  error_toxic: 'refusal',
  error: 'error',
};

/** Adds a piece to the part that it continues, or as a new part. Texts are appended; other fields take the later value. */
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

function reportedError(error: WireError | string): ReportedError {
  if (typeof error === 'string') return new ReportedError(500, error);
  const code = Number(error.code);
  return new ReportedError(code >= 400 && code < 600 ? code : 500, error.message ?? JSON.stringify(error));
}

function toTokenCount(name: OpenaiCompatibleName, usage: WireUsage): TokenCount {
  const [prompt = 0, completion = 0, total = 0, cacheReadTokens = 0, cacheWriteTokens = 0] = [
    ...[usage.prompt_tokens, usage.completion_tokens, usage.total_tokens],
    ...[usage.prompt_tokens_details?.cached_tokens, usage.prompt_tokens_details?.cache_write_tokens],
  ].map(tokenCountIn);
  const charged = name === 'openrouter' ? chargedFor(usage) : undefined;
  return {
    inputTokens: Math.max(0, prompt - cacheReadTokens - cacheWriteTokens),
    // Gemini counts reasoning, which is billed as output, only in the total.
    outputTokens: name === 'gemini' ? Math.max(completion, total - prompt) : completion,
    cacheReadTokens,
    cacheWriteTokens,
    ...(charged === undefined ? {} : { charged }),
  };
}

/**
 * Returns the charge in US dollars, or undefined if it is not given. OpenRouter ends each answer with the amount it charged,
 * in credits, which are dollars. With the person's own key of the model's maker, that amount is only OpenRouter's fee. The
 * maker's price is then in a separate field. Source: OpenRouter's page on usage accounting.
 */
function chargedFor({ cost, is_byok: ownKey, cost_details: details }: WireUsage): number | undefined {
  const makers = ownKey ? details?.upstream_inference_cost : 0;
  return isAmount(cost) && isAmount(makers) ? cost + makers : undefined;
}

const isAmount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0;
