/**
 * Defines the data of a run, as it is sent between the engine and every frontend.
 * Types and constants only: the host, the chat view, the command line and a log reader share them. `describe.ts` puts them into words.
 */

import type { AgentCard } from './agentCard.ts';
import type { AttachedName } from './attachment.ts';
import type { FormContent, FormField } from './form.ts';
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

/** A document that a model reads page by page. */
export interface DocumentBlock {
  type: 'document';
  source: { type: 'base64'; media_type: 'application/pdf'; data: string };
  title: string;
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
  content: string | (TextBlock | ImageBlock | DocumentBlock)[];
  is_error: boolean;
}

export type ContentBlock =
  | TextBlock
  | ImageBlock
  | DocumentBlock
  | ThinkingBlock
  | RedactedThinkingBlock
  | ToolUseBlock
  | ToolResultBlock;

export interface Message {
  role: 'user' | 'assistant';
  content: string | ContentBlock[];
  /** Set for a message that is not sent itself. It says how the messages before it are sent from here on. */
  context?: ContextStep;
}

/**
 * `trimmed`: the results of these calls are sent as a note of what they were.
 * `compacted`: the message's content is a summary, which is sent in place of all before it but the last `kept` messages of the transcript and
 * at most `words` characters of the person's words. Messages with a context are not counted.
 * `restored`: the latest compaction counts no more.
 */
export type ContextStep =
  | { kind: 'trimmed'; calls: readonly string[] }
  | { kind: 'compacted'; kept: number; words: number }
  | { kind: 'restored' };

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
  /** Pictures and documents that the model sees. */
  images?: (ImageBlock | DocumentBlock)[];
  /** Files that the call created or changed. Absolute paths. */
  changedFiles?: string[];
  /** Number of lines added to and removed from the changed file, if it is text. */
  changedLines?: { added: number; removed: number };
  /** Size of the whole result in bytes, if the tool itself has kept less of it. */
  wholeSize?: number;
}

/** A command that runs in the background of a conversation. */
export interface RunningCommand {
  /** Names it within its conversation: `cmd-1`. */
  id: string;
  /** Its line, without secrets. */
  command: string;
  /** In ISO 8601 format. */
  startedAt: string;
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
 * `step` because another skill uses it;
 * `without_skill` if no skill was picked: the model answers by itself, and may use skills as steps.
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
  | 'step'
  | 'without_skill';

export interface RouteReason {
  rule: RouteRule;
  /** The words of the request that decided, if any. */
  matched?: string;
  /** How to call an offered skill that runs only by its name: `/deploy`. */
  runsAs?: string;
  /** The index's score; larger is better. Only comparable within one request. */
  score?: number;
  runnerUp?: SkillRef & { score?: number };
  /** The skill of the conversation so far, if this run has left it for a skill that clearly fits better. Its name is empty after a run without a skill. */
  switchedFrom?: SkillRef;
  /** A skill that fits about as well as the one that the conversation goes on with. A person may choose it with one click. */
  alsoFits?: SkillRef;
  /** Up to three skills that the request may have meant, best first, if it was answered without one. */
  likely?: readonly SkillRef[];
}

/** One of up to three skills that a request may mean, for a person to choose from. */
export interface RouteChoice extends SkillRef {
  description: string;
  reason: RouteReason;
}

/**
 * What a run may do before it asks, the most careful last: `sandbox` asks about nothing that the sandbox holds; `default` as the user's
 * rules say; `review` asks about every write too; `plan` only reads. Prohibitions hold in each.
 */
export const runModes = ['sandbox', 'default', 'review', 'plan'] as const;
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
  /** For a command that may take longer than usual: how long, in seconds. */
  timeLimit?: number;
  /** Set for a command that is to go on in the background. */
  inBackground?: true;
  /** For a question of the skill itself, which is the subject: answers to choose from. May be empty. */
  choices?: readonly string[];
  /** Set if the subject is shown whole, however long it is. */
  showsWhole?: true;
  /** The fields that the person fills in with a yes. */
  form?: readonly FormField[];
  /** Set for a host that a boxed command wants, if the command may run outside of the box after a question: `leaveBox` answers so. */
  mayLeave?: true;
  /** Set if the scope `run` also holds for later runs of the conversation. */
  forConversation?: true;
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
      /** To a question with `choices`: one of them, or the person's own words. */
      answer?: string;
      /** The command as the person has changed it. It is decided on again, and only this once. */
      command?: string;
      /** What the person has filled in. */
      content?: FormContent;
    }
  /** `isAway`: no person was there to be asked. `isSkipped`: the person left the question open, which is no denial. */
  | { allow: false; reason: string; isAway?: true; isSkipped?: true };

/** Leaves a question of the skill, or a form, without an answer. */
export const skipped = {
  allow: false,
  reason: 'The user skipped the question.',
  isSkipped: true,
} as const satisfies ApprovalDecision;

/** Refuses a host, and has the model ask to run its command outside of the box. */
export const leaveBox: ApprovalDecision = {
  allow: false,
  reason:
    'The user would rather run this command outside the sandbox. Call it again with outside_box and why; the user is asked then.',
};

// ---- Usage and outcome ----

/** One round's tokens. `cost` is in US dollars, or `unknown` if the model's price is not known. */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  cost: number | 'unknown';
}

/** The parts of a prompt. `tools` are their definitions, calls and results; `files` what was attached or read as context. */
export const contextParts = ['system', 'skill', 'files', 'tools', 'conversation'] as const;
export type ContextPart = (typeof contextParts)[number];

/** What a round has sent, as the provider counted it. How it divides into parts is estimated by their lengths. */
export interface ContextUse {
  /** Tokens that the model takes. Missing if that is not known. */
  window?: number;
  /** Names of the files of the workspace and of the person that were read as context. */
  read?: readonly string[];
  tokens: Readonly<Record<ContextPart, number>>;
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
  | 'no_answer'
  | 'internal';

/** A message for a person: in English, and as data for a frontend that speaks another language. Contains no secrets. */
export interface LocalizedMessage {
  /** States what happened and to what, in English. */
  message: string;
  /** The message's sentences, if it is made of some. Missing in runs that an older version has stored. */
  sentences?: readonly Sentence[];
  /** What to do next. */
  remedy?: Remedy;
}

export interface RunError extends LocalizedMessage {
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
      /** Set if files such as AGENTS.md were not read as context. */
      withoutContextFiles?: true;
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
  | ({ type: 'notice'; level: 'info' | 'warning' } & LocalizedMessage)
  | { type: 'text'; text: string }
  /** A delta of what the model thinks, or of its summary. With `durationMs`, the last of a stretch, whose text may be empty. */
  | { type: 'reasoning'; text: string; durationMs?: number }
  | { type: 'tool_start'; call: ToolCall }
  /** What the command of a call has printed since the last such event, while it runs. Not kept in the stored run: the result is. */
  | { type: 'tool_output'; callId: string; text: string }
  /** How far a call is, in its tool's words; `share` from 0 to 1 if it is known. Not kept in the stored run either. */
  | { type: 'tool_progress'; callId: string; name: string; message: string; share?: number }
  | { type: 'approval_request'; request: ApprovalRequest }
  | { type: 'approval_response'; callId: string; decision: ApprovalDecision }
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
      /** Missing for a question beside the conversation, such as that for a summary. */
      context?: ContextUse;
    }
  /**
   * An event of a skill that a call runs as a step, from its `run_start` to its `run_end`. Its usage is not among them: it is that of the
   * run. Its own steps are such events again.
   */
  | { type: 'skill_event'; callId: string; event: RunEvent }
  /** A hook has run. `said` are its words, `problem` why nothing of it counts, said once in a run. The agent is empty for one of the person. */
  | {
      type: 'hook';
      event: string;
      agent: string;
      /** As its author wrote it. */
      command: string;
      /** `denied` held back what the event is about, `rewrote` changed the call, `objected` has the model do more, `stopped` ended the run. */
      did:
        | 'passed'
        | 'denied'
        | 'asked'
        | 'objected'
        | 'stopped'
        | 'informed'
        | 'changed'
        | 'rewrote'
        | 'failed';
      callId?: string;
      said?: string;
      problem?: LocalizedMessage;
      /** Files that it created or changed. Absolute paths. */
      changedFiles?: string[];
      durationMs: number;
    }
  /** From here on the model is sent a summary of what came before. The numbers of tokens are estimates. */
  | { type: 'compacted'; summary: string; tokensBefore: number; tokensAfter: number }
  /** The latest compaction no longer counts: the model is sent everything again. */
  | { type: 'compaction_undone' }
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

/** Returns the event itself, or the event that it brings of a skill that the run uses, at whatever depth. */
export const innermost = (event: RunEvent): RunEvent =>
  event.type === 'skill_event' ? innermost(event.event) : event;

/** Returns the event with its innermost one changed. */
export const withInnermost = (event: RunEvent, change: (event: RunEvent) => RunEvent): RunEvent =>
  event.type === 'skill_event' ? { ...event, event: withInnermost(event.event, change) } : change(event);
