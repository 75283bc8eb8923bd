/** Defines what the loop of a run needs from outside: a model, a window, decisions on its calls, a budget and a user who answers. */
import { randomBytes } from 'node:crypto';
import type {
  ApprovalDecision,
  ApprovalRequest,
  ContextUse,
  JsonObject,
  Message,
  RecordingInfo,
  RedactedThinkingBlock,
  RunEvent,
  ThinkingBlock,
  ToolCall,
  ToolResult,
  Usage,
} from '@telos/protocol/run';
import type { Sentence } from '@telos/protocol/text';
import type { effortLevels } from './limits.ts';

/** A tool as a model sees it. `inputSchema` is a JSON Schema of type object. */
export interface ToolDefinition {
  name: string;
  description: string;
  inputSchema: JsonObject;
}

export type EffortLevel = (typeof effortLevels)[number];

/** How much a model thinks before it answers: a level, or at most this many tokens. */
export type Effort = EffortLevel | number;

export interface CompletionRequest {
  system: string;
  messages: readonly Message[];
  tools: readonly ToolDefinition[];
  /** Upper bound of the answer, in tokens. */
  maxTokens: number;
  /** Folder of the skill that runs, and the folder in which it works; only a recording reads them. */
  skillDir?: string;
  workingDir?: string;
  /** Pictures and documents that go with the last message, for a single question. A server that cannot take them refuses the request. */
  attached?: readonly AttachedFile[];
  /** A question beside the conversation. A recording leaves it out, since none is asked where it plays. */
  isAside?: true;
  /** True if the first block of the first message is the same in many requests, so that a provider should keep it in its cache. */
  repeatsStart?: boolean;
  /** By default the model thinks as much as it does by itself. */
  effort?: Effort;
  /** How the model's thinking is switched off, if its provider has said so. */
  thinkingOff?: 'disabled' | 'between_tools';
}

export interface AttachedFile {
  name: string;
  mediaType: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp' | 'application/pdf';
  /** Base64. */
  data: string;
}

export interface TokenCount {
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  /** The charge in US dollars, if the provider reports it. */
  charged?: number;
}

/** US dollars per million tokens. `input` is for tokens neither read from a cache nor written to one, and for those if their price is not known. */
export interface TokenPrices {
  input: number;
  output: number;
  cacheRead?: number;
  cacheWrite?: number;
}

/**
 * An event of one model turn. Text deltas, reasoning blocks and complete tool calls arrive in the model's order, then exactly
 * one `done`. `spent` is the use of an attempt that ended before it was whole: the user stopped it, it broke off, or it is retried.
 * Where the server gives no numbers, they are estimated. A `tool_call` is sent only once its arguments are complete. `reasoning` is
 * a delta of the model's thoughts, for a reader; `thinking` is a complete block that the model wants back.
 */
export type StreamEvent =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  | { type: 'thinking'; block: ThinkingBlock | RedactedThinkingBlock }
  | { type: 'tool_call'; call: ToolCall }
  | { type: 'retry'; attempt: number; waitMs: number; why: string; sentences?: readonly Sentence[] }
  | { type: 'spent'; usage: TokenCount }
  | { type: 'done'; stopReason: string; usage?: TokenCount };

/** Kinds of files that a model may take besides text. */
export type MediaKind = 'image' | 'document';

export interface Quota {
  /** The owner as in a sentence: "the quota of ...". */
  whose: string;
  /** Number of rounds of one run after which the user is asked, each time, whether it may continue. 0 never asks. */
  roundsBeforeAsking: number;
}

export interface Provider {
  readonly name: string;
  readonly model: string;
  readonly recording?: RecordingInfo;
  /** Tokens that the model takes, prompt and answer, if the provider says so. */
  readonly contextWindow?: number;
  /** What the user has set as its price, in place of the one that is known. */
  readonly price?: TokenPrices;
  /** A message for the user before this model is used. */
  readonly notice?: string;
  /** Set if each round counts against a quota that Telos cannot see. */
  readonly quota?: Quota;
  /** Returns the kinds of files that the model takes. Missing, or undefined, if nothing is known of it. */
  media?(signal: AbortSignal): Promise<readonly MediaKind[] | undefined>;
  /**
   * Streams one model turn. Throws TelosError (`auth`, `rate_limit`, `provider`) if the turn fails, also if the stream ends
   * before its message does. Throws the abort reason soon after the signal aborts.
   */
  streamCompletion(request: CompletionRequest, signal: AbortSignal): AsyncIterable<StreamEvent>;
}

/** Returns 128 random bits for a new question, see `ApprovalRequest.token`. */
export const newToken = (): string => randomBytes(16).toString('base64url');

/** A person who answers. Both calls settle when the signal aborts: `approve` with a denial, `ask` with empty answers. */
export interface Human {
  /** True if no person reads the questions, and so no one could stop a run that goes in circles. */
  readonly isAway?: boolean;
  approve(request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalDecision>;
  ask(questions: readonly string[], signal: AbortSignal): Promise<readonly string[]>;
}

export interface Budget {
  /**
   * Must be called before each call of a model, which is `next`. Returns notices for the user. Throws TelosError `budget` if a limit is
   * reached, or if there is one of cost and the price of the model is not known.
   */
  check(next: Pick<Provider, 'name' | 'model' | 'recording' | 'price'>): Promise<Sentence[]>;
  /** Must be called after each model call; undefined if the model does not report tokens. Returns notices for the user. */
  add(usage: Usage | undefined): Sentence[];
}

/** What the model is sent of the conversation. Nothing is lost from the transcript. */
export interface ContextWindow {
  /** In tokens. Undefined if it is not known. */
  readonly size: number | undefined;
  /** Returns the next request, after room was made for it if the window is nearly full. */
  fit(
    tools: readonly ToolDefinition[],
    maxTokens: number,
    signal: AbortSignal,
  ): AsyncGenerator<RunEvent, CompletionRequest>;
  /** Makes room after the server has refused the request for its length. Returns false if nothing could be left out. */
  shrink(refused: CompletionRequest, signal: AbortSignal): AsyncGenerator<RunEvent, boolean>;
  /** Returns the parts of the prompt, by the server's own count. Later estimates are closer. */
  counted(request: CompletionRequest, usage: TokenCount): ContextUse | undefined;
}

/** The decision on a call, as it is shown and recorded. */
export type DecidedBy = NonNullable<Extract<RunEvent, { type: 'tool_end' }>['policy']>;

/** A call as the model wrote it, and as it is meant. */
export interface MeantCall {
  call: ToolCall;
  /** Sentences for the model about the difference. */
  notes: readonly string[];
}

/** A call that may run. */
export interface AllowedCall {
  /** True if no other call may run at the same time. */
  isAlone: boolean;
  policy: DecidedBy;
  /** Carries the call out. Never throws: a failure and a cancellation are results. */
  execute(report: CallReport): Promise<ToolResult>;
}

/** A call that is over without being carried out: refused, answered by a recording, or by a server that is gone. */
export interface SettledCall {
  result: ToolResult;
  policy?: DecidedBy;
}

/** What a call that runs tells. */
export interface CallReport {
  /** Shows how far the call is, with the share from 0 to 1 if it is known; may be called often. */
  progress(message: string, share?: number): void;
  show(event: RunEvent): void;
  /** Shows the events, and returns the result that follows them. */
  through<Result>(events: AsyncGenerator<RunEvent, Result>): Promise<Result>;
}

/** Decides on the calls of a run. No other part of the loop does. */
export interface CallPolicy {
  /** Returns the start of something that must be there before the call can be decided on, such as its server. Nothing else runs then. */
  wait(written: ToolCall, signal: AbortSignal): AsyncGenerator<RunEvent, void> | undefined;
  /** Returns the call as it is meant. It is not resolved again after that. */
  resolve(written: ToolCall): MeantCall;
  /** Decides, and asks the user if needed. Throws the abort reason on abort. */
  decide(meant: MeantCall, signal: AbortSignal): AsyncGenerator<RunEvent, AllowedCall | SettledCall>;
  /** Called with the result of each call. */
  ended(call: ToolCall, settled: SettledCall): void;
  /** Returns what the user should know once the calls of a turn are over. */
  warnings(): Iterable<RunEvent>;
}

/** Gives the loop its policy. It is half of an engine, and no run needs it before its first request is sent. */
export interface CallPolicySource {
  open(): Promise<CallPolicy>;
  /** Called when the model has begun to answer. */
  load(): void;
  /** Does the work that the first calls would wait for, while the model thinks. Undefined once that is done. */
  getReady: (() => void) | undefined;
}

/** Makes calls of those that a model has written as text. Returns undefined if there are none. */
export type ReadWritten = (
  text: string,
) => Promise<{ before: string; calls: readonly ToolCall[] } | 'unreadable' | undefined>;

/** Everything that a loop works with. */
export interface RunSpec {
  /** Gives each call an id that is new in the conversation, and arguments that are not nested too deeply. */
  provider: Provider;
  /** Filled during the run, so that a failed run still has its transcript. The first message is already there. */
  messages: Message[];
  readonly tools: readonly ToolDefinition[];
  window: ContextWindow;
  calls: CallPolicySource;
  human: Human;
  readWritten: ReadWritten;
  /** Rounds after which the user is asked whether to continue, and after which an unattended run ends. Defaults to 20. */
  maxRounds?: number | undefined;
  /** Increased during the run. */
  counts: { rounds: number; toolCalls: number };
  priceOf(tokens: TokenCount): number | 'unknown';
  /** Undefined if nothing is limited. */
  budget?: Budget | undefined;
  /** Length limit of an answer, in tokens, once it is another than usual. Changed during the run. */
  maxTokens?: number;
  /** Returns the words of the user since the last round. */
  mail?: (() => Promise<readonly string[]>) | undefined;
  /** Called with each answer that would end the run. Returns what the model has to do before; undefined if it may end. */
  atEnd?: ((signal: AbortSignal) => AsyncGenerator<RunEvent, string | undefined>) | undefined;
}
