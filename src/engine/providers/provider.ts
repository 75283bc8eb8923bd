/** The contract behind which every model stands. */
import type {
  JsonObject,
  Message,
  RecordingInfo,
  RedactedThinkingBlock,
  ThinkingBlock,
  ToolCall,
} from '../../protocol/run.ts';
import { deepestJson, isDeeper } from '../jsonDepth.ts';
import type { ToolDefinition } from '../tools/tool.ts';

export interface CompletionRequest {
  system: string;
  messages: readonly Message[];
  tools: readonly ToolDefinition[];
  /** Upper bound of the answer in tokens. */
  maxTokens: number;
  /** Which skill asks; only a recording looks at it. */
  skillDir?: string;
}

/** The answer's length limit when nothing else is said, in tokens. */
export const defaultMaxTokens = 16384;

export interface TokenCount {
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  /** US dollars, where the provider itself says what it has charged. */
  charged?: number;
}

/**
 * One model turn as it arrives: text deltas, reasoning blocks and complete tool calls in the model's order, then exactly one
 * `done`. A `tool_call` is only sent once its arguments are whole.
 */
export type StreamEvent =
  | { type: 'text'; text: string }
  | { type: 'thinking'; block: ThinkingBlock | RedactedThinkingBlock }
  | { type: 'tool_call'; call: ToolCall }
  | { type: 'retry'; attempt: number; waitMs: number; why: string }
  | { type: 'done'; stopReason: string; usage?: TokenCount };

export interface Quota {
  /** For a sentence: "the quota of ...". */
  whose: string;
  /** After so many rounds of one run, and again after as many, the person is asked whether it may go on; 0 never asks. */
  roundsBeforeAsking: number;
}

export interface Provider {
  readonly name: string;
  readonly model: string;
  readonly recording?: RecordingInfo;
  /** What a person should know before this model is used. */
  readonly notice?: string;
  /** Set where each round counts against a quota that cannot be seen from here. */
  readonly quota?: Quota;
  /**
   * Streams one model turn. Throws TelosError (`auth`, `rate_limit`, `provider`) when the turn cannot be had; a stream that
   * ends before its message does is such an error. Stops within moments of the signal's abort, by throwing the abort reason.
   */
  streamCompletion(request: CompletionRequest, signal: AbortSignal): AsyncIterable<StreamEvent>;
}

/** The call as it is, or one without its arguments where those go too deep for anything to be done with them, kept or shown. */
export function withoutDepth(call: ToolCall): ToolCall {
  if (!isDeeper(call.input)) return call;
  const problem = `The arguments hold more than ${deepestJson} lists and objects inside each other. Give them flat.`;
  return { ...call, input: {}, problem };
}

/** `json` is the model's text, whole; no text means no arguments. What cannot be read leaves `input` empty and says so in `problem`. */
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
