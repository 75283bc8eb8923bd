/** Reads a streamed answer in Gemini's own format: each event is an answer of its own, with the parts that are new. */

import type { StreamEvent, TokenCount } from '../core/ports.ts';
import { countedTokens, tokenCountIn } from './eventRequest.ts';
import { ReportedError } from './failures.ts';
import { callExtrasBlock, newCallId, readToolCall } from './provider.ts';
import type { WireReader } from './turn.ts';

/** What is kept of a call: its signature, and its id if the server gave one. */
export const isSignedCall = (extras: object): extras is { thoughtSignature?: string; id?: string } =>
  'thoughtSignature' in extras || 'id' in extras;

/** What is kept before a text that is signed: how many of its characters are. */
export const isSignedText = (extras: object): extras is { thoughtSignature: string; length: number } =>
  'thoughtSignature' in extras && 'length' in extras;

interface WirePart {
  text?: unknown;
  thought?: unknown;
  thoughtSignature?: unknown;
  functionCall?: { id?: unknown; name?: unknown; args?: unknown } | null;
}

interface WireAnswer {
  candidates?:
    | readonly ({
        content?: { parts?: readonly (WirePart | null)[] | null } | null;
        finishReason?: string | null;
        finishMessage?: string | null;
      } | null)[]
    | null;
  promptFeedback?: { blockReason?: string | null } | null;
  usageMetadata?: Readonly<Record<string, unknown>> | null;
  error?: { code?: unknown; message?: unknown } | null;
}

/** Reasons for which Gemini keeps its answer back. */
const refusals: readonly string[] = [
  ...['SAFETY', 'RECITATION', 'LANGUAGE', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII', 'IMAGE_SAFETY'],
  ...['IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION', 'MODEL_ARMOR'],
];

/** Reasons that mean that the model has made a mistake, which it does not make each time. */
const mishaps: readonly string[] = [
  ...['MALFORMED_FUNCTION_CALL', 'MALFORMED_RESPONSE', 'UNEXPECTED_TOOL_CALL'],
];

export class GeminiReader implements WireReader {
  readonly #origin: string;
  #finish: string | undefined;
  #hasCalls = false;
  #usage: TokenCount | undefined;

  /** `origin` names who can read the signatures. */
  constructor(origin: string) {
    this.#origin = origin;
  }

  get whole(): boolean {
    return this.#finish !== undefined;
  }

  read(data: string): readonly StreamEvent[] | undefined {
    if (data === '[DONE]') return undefined;
    const answer = JSON.parse(data) as WireAnswer | null;
    if (answer?.error) throw reported(answer.error, data);
    if (answer?.usageMetadata) this.#usage = countedTokens(toTokenCount(answer.usageMetadata)) ?? this.#usage;
    if (answer?.promptFeedback?.blockReason) this.#finish ??= 'SAFETY';
    const candidate = answer?.candidates?.[0];
    // What follows the end is not part of the answer.
    if (!candidate || this.whole) return undefined;
    const { finishReason, finishMessage, content } = candidate;
    if (finishReason && mishaps.includes(finishReason))
      throw new ReportedError(500, finishMessage || `The model's answer is not valid (${finishReason}).`);
    const events = (content?.parts ?? []).flatMap(part => (part ? this.#part(part) : []));
    if (finishReason && finishReason !== 'FINISH_REASON_UNSPECIFIED') this.#finish = finishReason;
    return events;
  }

  get used(): TokenCount | undefined {
    return this.#usage;
  }

  end(): readonly StreamEvent[] {
    const done: StreamEvent = { type: 'done', stopReason: this.#stopReason() };
    return [this.#usage ? { ...done, usage: this.#usage } : done];
  }

  #stopReason(): string {
    const finish = this.#finish ?? 'STOP';
    if (finish === 'STOP') return this.#hasCalls ? 'tool_use' : 'end_turn';
    if (finish === 'MAX_TOKENS') return 'max_tokens';
    // Gemini gives many more reasons, all of answers that are not whole.
    return refusals.includes(finish) ? 'refusal' : 'other';
  }

  #part({ text, thought, thoughtSignature: seal, functionCall }: WirePart): StreamEvent[] {
    const thoughtSignature = typeof seal === 'string' && seal !== '' ? seal : undefined;
    if (functionCall) return this.#call(functionCall, thoughtSignature);
    if (typeof text !== 'string') return [];
    if (thought === true) return text ? [{ type: 'reasoning', text }] : [];
    const said: StreamEvent[] = text ? [{ type: 'text', text }] : [];
    if (thoughtSignature === undefined) return said;
    const extras = { thoughtSignature, length: text.length };
    return [{ type: 'thinking', block: callExtrasBlock('', extras, this.#origin) }, ...said];
  }

  #call(
    { id, name, args }: NonNullable<WirePart['functionCall']>,
    thoughtSignature: string | undefined,
  ): StreamEvent[] {
    this.#hasCalls = true;
    const given = typeof id === 'string' && id !== '' ? { id } : {};
    const callId = given.id ?? newCallId();
    const json = args === undefined || args === null ? '' : JSON.stringify(args);
    const call = readToolCall(callId, typeof name === 'string' ? name : '', json);
    const extras = { ...given, ...(thoughtSignature === undefined ? {} : { thoughtSignature }) };
    const kept: StreamEvent[] =
      Object.keys(extras).length > 0
        ? [{ type: 'thinking', block: callExtrasBlock(callId, extras, this.#origin) }]
        : [];
    return [...kept, { type: 'tool_call', call }];
  }
}

function reported({ code, message }: NonNullable<WireAnswer['error']>, data: string): ReportedError {
  const status = Number(code);
  const known = status >= 400 && status < 600 ? status : 500;
  return new ReportedError(known, typeof message === 'string' && message ? message : data);
}

/** Thoughts are billed as output, and not part of the count of the answer. */
function toTokenCount(usage: Readonly<Record<string, unknown>>): TokenCount {
  const count = (name: string): number => tokenCountIn(usage[name]);
  const cacheReadTokens = count('cachedContentTokenCount');
  const prompt = count('promptTokenCount') + count('toolUsePromptTokenCount');
  return {
    inputTokens: Math.max(0, prompt - cacheReadTokens),
    outputTokens: count('candidatesTokenCount') + count('thoughtsTokenCount'),
    cacheReadTokens,
    cacheWriteTokens: 0,
  };
}
