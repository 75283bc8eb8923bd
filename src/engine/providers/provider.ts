/** Defines the interface that every model provider implements. */
import type {
  JsonObject,
  Message,
  RecordingInfo,
  RedactedThinkingBlock,
  ThinkingBlock,
  ToolCall,
} from '../../protocol/run.ts';
import type { Sentence } from '../../protocol/text.ts';
import { deepestJson, isDeeper } from '../jsonDepth.ts';
import type { ToolDefinition } from '../tools/tool.ts';

export interface CompletionRequest {
  system: string;
  messages: readonly Message[];
  tools: readonly ToolDefinition[];
  /** Upper bound of the answer, in tokens. */
  maxTokens: number;
  /** Folder of the skill that runs; only a recording reads it. */
  skillDir?: string;
  /** True if the first block of the first message is the same in many requests, so that a provider should keep it in its cache. */
  repeatsStart?: boolean;
}

/** Default length limit of an answer, in tokens. */
export const defaultMaxTokens = 16384;

export interface TokenCount {
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  /** The charge in US dollars, if the provider reports it. */
  charged?: number;
}

/**
 * An event of one model turn. Text deltas, reasoning blocks and complete tool calls arrive in the model's order, then exactly
 * one `done`. A `tool_call` is sent only once its arguments are complete.
 */
export type StreamEvent =
  | { type: 'text'; text: string }
  | { type: 'thinking'; block: ThinkingBlock | RedactedThinkingBlock }
  | { type: 'tool_call'; call: ToolCall }
  | { type: 'retry'; attempt: number; waitMs: number; why: string; sentences?: readonly Sentence[] }
  | { type: 'done'; stopReason: string; usage?: TokenCount };

export interface Quota {
  /** The owner as in a sentence: "the quota of ...". */
  whose: string;
  /** Number of rounds of one run after which the person is asked, each time, whether it may continue. 0 never asks. */
  roundsBeforeAsking: number;
}

export interface Provider {
  readonly name: string;
  readonly model: string;
  readonly recording?: RecordingInfo;
  /** A message for the person before this model is used. */
  readonly notice?: string;
  /** Set if each round counts against a quota that Telos cannot see. */
  readonly quota?: Quota;
  /**
   * Streams one model turn. Throws TelosError (`auth`, `rate_limit`, `provider`) if the turn fails, also if the stream ends
   * before its message does. Throws the abort reason soon after the signal aborts.
   */
  streamCompletion(request: CompletionRequest, signal: AbortSignal): AsyncIterable<StreamEvent>;
}

/** Returns the call unchanged, or without its arguments if those are nested too deeply to be used, stored or shown. */
export function withoutDepth(call: ToolCall): ToolCall {
  if (!isDeeper(call.input)) return call;
  const problem = `The arguments nest lists and objects more than ${deepestJson} levels deep. Use fewer levels.`;
  return { ...call, input: {}, problem };
}

/**
 * Returns the tool call for the model's complete text `json`. An empty text means no arguments. If the text cannot be
 * read, `input` is empty and `problem` says why.
 */
export function readToolCall(id: string, name: string, json: string): ToolCall {
  if (json.trim() === '') return { id, name, input: {} };
  try {
    const input: unknown = JSON.parse(json);
    if (typeof input === 'object' && input !== null && !Array.isArray(input)) {
      return withoutDepth({ id, name, input: input as JsonObject });
    }
    return { id, name, input: {}, problem: 'The arguments must be one JSON object.' };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { id, name, input: {}, problem: `The arguments are not valid JSON: ${reason}` };
  }
}
