/**
 * Defines the data of a run, as it is sent between the engine and every frontend.
 * Types and constants only: the host, the chat view, the command line and a log reader share them. `describe.ts` puts them into words.
 */

import type { AgentCard } from './agentCard.ts';
import type { AttachedName } from './attachment.ts';
import type { Sentence } from './text.ts';

/** An object that survives JSON.stringify. Tool inputs and schemas are such objects. */
export type JsonObject = { readonly [key: string]: unknown };

// ---- Messages: in Anthropic's format; each provider translates them to its own. ----

export interface TextBlock {
  type: 'text';
  text: string;
}

export interface ImageBlock {
  type: 'image';
  source: { type: 'base64'; media_type: string; data: string };
}

/** Reasoning that a model wants back unchanged in later rounds. `signature` is the provider's seal on it. */
export interface ThinkingBlock {
  type: 'thinking';
  thinking: string;
  signature: string;
}

export interface RedactedThinkingBlock {
  type: 'redacted_thinking';
  data: string;
}

export interface ToolUseBlock {
  type: 'tool_use';
  id: string;
  name: string;
  input: JsonObject;
}

export interface ToolResultBlock {
  type: 'tool_result';
  tool_use_id: string;
  content: string | (TextBlock | ImageBlock)[];
  is_error: boolean;
}

export type ContentBlock =
  | TextBlock
  | ImageBlock
  | ThinkingBlock
  | RedactedThinkingBlock
  | ToolUseBlock
  | ToolResultBlock;

export interface Message {
  role: 'user' | 'assistant';
  content: string | ContentBlock[];
}

// ---- Tools ----

/** One tool call that the model requests. */
export interface ToolCall {
  id: string;
  name: string;
  input: JsonObject;
  /** Set if the model's arguments could not be read. Such a call never runs, and the model receives this text. */
  problem?: string;
}

/** Result that the model reads. A failing tool returns a result with `isError` and never throws. */
export interface ToolResult {
  content: string;
  isError: boolean;
  images?: ImageBlock[];
  /** Files that the call created or changed. Absolute paths. */
  changedFiles?: string[];
  /** Number of lines added to and removed from the changed file, if it is text. */
  changedLines?: { added: number; removed: number };
  /** Size of the whole result in bytes, if the tool itself has kept less of it. */
  wholeSize?: number;
}

// ---- Routing ----

export interface SkillRef {
  agent: string;
  skill: string;
}

/**
 * Why a skill was picked:
 * `chosen` by the person in a list; `learned` because the person chose it for the same words before; `explicit` by `/name`, `$name` or `agent:name`;
 * `name` because its name is in the request; `misspelt` because the request has a word that is almost its name; `index` by the search index; `model` by a question to a model;
 * `continued` because the conversation continues with its skill;
 * `without_skill` if no skill was picked: the run looks for one itself.
 */
export type RouteRule =
  | 'chosen'
  | 'learned'
  | 'explicit'
  | 'name'
  | 'misspelt'
  | 'index'
  | 'model'
  | 'continued'
  | 'without_skill';

export interface RouteReason {
  rule: RouteRule;
  /** The words of the request that decided, if any. */
  matched?: string;
  /** The index's score; larger is better. Only comparable within one request. */
  score?: number;
  runnerUp?: SkillRef & { score?: number };
  /** The skill of the conversation so far, if this run has left it for a skill that clearly fits better. Its name is empty after a run without a skill. */
  switchedFrom?: SkillRef;
  /** A skill that fits about as well as the one that the conversation goes on with. A person may choose it with one click. */
  alsoFits?: SkillRef;
}

/** One of up to three skills that a request may mean, for a person to choose from. */
export interface RouteChoice extends SkillRef {
  description: string;
  reason: RouteReason;
}

/**
 * What a run may do before it asks: `default` as the user's rules say; `review` asks about every write too; `plan` only reads.
 * Prohibitions hold in each.
 */
export const runModes = ['default', 'review', 'plan'] as const;
export type RunMode = (typeof runModes)[number];

// ---- Approvals ----

export type ApprovalScope = 'once' | 'run' | 'always';

/** Dangers that the words of a command name, the worst first. */
export const dangerKinds = [
  ...(['device', 'formats', 'deletes-outside', 'runs-download', 'runs-unread', 'deletes-folder'] as const),
  ...(['deletes-found', 'deletes-unknown', 'deletes-untracked', 'force-push', 'deletes-remote'] as const),
  ...(['rewrites-history', 'discards', 'deletes-branch', 'publishes', 'kills', 'kills-chosen'] as const),
  ...(['privilege', 'unread'] as const),
] as const;
export type DangerKind = (typeof dangerKinds)[number];

/** A danger as data. `values` are the names in its sentence, as the command has them. */
export interface Danger {
  kind: DangerKind;
  values: readonly string[];
}

/** A question to the person. It shows the call exactly as it will be done. */
export interface ApprovalRequest {
  callId: string;
  /**
   * Names this question in an answer from elsewhere. It cannot be guessed and is valid once. A call's id is chosen by the model.
   */
  token: string;
  tool: string;
  /** The exact command, resolved path or URL that will be used if the answer is yes. */
  subject: string;
  /** The folder in which the call runs, if it has one. */
  folder?: string;
  /** The policy rule that asked, with its reason in a sentence. */
  rule: string;
  reason: string;
  scopes: readonly ApprovalScope[];
  /** Name for what a yes for the run covers, if that is more than this one call. A different name is asked about again. */
  grant?: string;
  /**
   * The agent's card, if the question is about everything that its files name.
   * Then `always` accepts the card, and `once` is for this call alone.
   */
  card?: AgentCard;
  /** For a write: the lines that would change, each after `-`, `+` or a blank. */
  diff?: string;
  /** The part of `reason` to show first. The rest holds for every question of its kind. */
  sentences?: readonly Sentence[];
  /** For a command: that it leaves the box and why, or why there is none. Shown beside the dangers too. */
  box?: readonly Sentence[];
  /** Lets the person avoid this question beforehand. */
  toAllow?: Remedy;
  /** Set for a command that the person may change before it runs. */
  isEditable?: boolean;
  /** Dangers of the command, worst first. With any, there is no `always`. Missing if there are none. */
  danger?: readonly Danger[];
}

/**
 * What a person can do about something, without the words of a frontend, since each has its own commands for it:
 * `set_key` give the key of a provider; `set_up_model` give any model; `choose_model` choose another provider or model;
 * `add_skill` make a first skill; `choose_name` install under another name; `review_agent` look at an agent's card and
 * accept it; `allow_rule` write a rule with these lines into the policy file; `check_policy` list what is wrong in it;
 * `lint` list the defects of all skill files; `record_again` record the run once more; `choose_folder` let the agent write its files
 * elsewhere, which its entry in this agents.toml says.
 */
export type Remedy =
  | { kind: 'set_key'; variable: string }
  | { kind: 'add_skill'; folder: string }
  | { kind: 'review_agent'; agent: string }
  | { kind: 'choose_folder'; agent: string; file: string }
  | { kind: 'allow_rule'; file: string; lines: readonly string[] }
  | { kind: 'set_up_model' | 'choose_model' | 'choose_name' | 'check_policy' | 'lint' | 'record_again' };

export type ApprovalDecision =
  | {
      allow: true;
      scope: ApprovalScope;
      /** For a card: its lines that are not accepted, such as a variable's name. */
      without?: readonly string[];
      /** The command as the person has changed it. It is decided on anew, and only this once. */
      command?: string;
    }
  | { allow: false; reason: string };

// ---- Usage and outcome ----

/** One round's tokens. `cost` is in US dollars, or `unknown` if the model's price is not known. */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  cost: number | 'unknown';
}

/** The model that was asked which skill fits. It can differ from the model of the run. */
export interface RoutingModel {
  provider: string;
  model: string;
}

export type RunOutcome = 'completed' | 'no_match' | 'round_limit' | 'budget' | 'cancelled' | 'failed';

export type ErrorCode =
  | 'config'
  | 'auth'
  | 'rate_limit'
  | 'budget'
  | 'provider'
  | 'mcp'
  | 'pack'
  | 'no_match'
  | 'internal';

/** A message for a person: in English, and as data for a frontend that speaks another language. Contains no secrets. */
export interface Told {
  /** States what happened and to what, in English. */
  message: string;
  /** The message's sentences, if it is made of some. Missing in runs that an older version has stored. */
  sentences?: readonly Sentence[];
  /** What to do next. */
  remedy?: Remedy;
}

export interface RunError extends Told {
  code: ErrorCode;
  /** For `rate_limit`: how long the provider asks to be left alone, if it says so. In milliseconds. */
  retryAfterMs?: number;
  /** For `no_match`: every skill. Those that could have been meant come first. */
  suggestions?: readonly SkillRef[];
  /**
   * For `no_match`: up to three skills that are likely, best first. To run one, send the same request with its `skill`.
   * Missing if none is likely.
   */
  choices?: readonly RouteChoice[];
  /** For `no_match`: the name of a skill of which the request has a misspelling. That skill is the first choice. */
  didYouMean?: string;
}

/** Set if a recorded run answers in place of a model. */
export interface RecordingInfo {
  model: string;
  /** Time at which the run was recorded, in ISO 8601 format. */
  recordedAt: string;
}

/**
 * An event of the engine, its only output. The first event of a run is `run_start`, the last `run_end`, exactly one of each.
 * `text` contains a delta, never the text so far.
 */
export type RunEvent =
  | {
      type: 'run_start';
      runId: string;
      text: string;
      startedAt: string;
      /** Attachments of the request, if there are any. */
      attached?: readonly AttachedName[];
      /** File and lines of the selection that the request is about: `math.ts:1-8`. */
      selection?: string;
      /** The mode, if it is another one than `default`. */
      mode?: RunMode;
    }
  | {
      type: 'routed';
      agent: string;
      skill: string;
      description: string;
      reason: RouteReason;
      provider: string;
      model: string;
      workingDir: string;
      hasMcp: boolean;
      recording?: RecordingInfo;
    }
  | { type: 'step'; skill: string; detail: string }
  | ({ type: 'notice'; level: 'info' | 'warning' } & Told)
  | { type: 'text'; text: string }
  | { type: 'tool_start'; call: ToolCall }
  | { type: 'approval_request'; request: ApprovalRequest }
  | { type: 'approval_response'; callId: string; decision: ApprovalDecision }
  | { type: 'question_request'; questions: readonly string[] }
  | { type: 'question_response'; answers: readonly string[] }
  | {
      type: 'tool_end';
      callId: string;
      name: string;
      result: ToolResult;
      /** The policy's decision and its rule. Missing if the call could not be decided on because its input was not valid. */
      policy?: {
        action: 'allow' | 'ask' | 'deny';
        rule: string;
        /** Set for a command that ran in the box. */
        boxed?: true;
      };
    }
  | {
      type: 'usage';
      /** Counts from 1. Round 0 is the choice of the skill. */
      round: number;
      usage: Usage;
      /** The model that chose the skill, with round 0. */
      routing?: RoutingModel;
    }
  /** `sentences` are those of `why`. */
  | { type: 'retry'; attempt: number; waitMs: number; why: string; sentences?: readonly Sentence[] }
  | {
      type: 'run_end';
      outcome: RunOutcome;
      rounds: number;
      toolCalls: number;
      durationMs: number;
      messages: Message[];
      error?: RunError;
      /** Set for a cancelled run that was not stopped by a person: the program in which it ran ended. */
      interrupted?: boolean;
    };
