/**
 * The data of a run, as it travels between the engine and every frontend. Types and constants only, so that
 * the host, the chat view, the command line and a log reader can share one ground.
 */

import type { AgentCard } from './agentCard.ts';
import type { AttachedName } from './attachment.ts';
import { english, type Say } from './text.ts';

/** A value that survives JSON.stringify; tool inputs and schemas are such objects. */
export type JsonObject = { readonly [key: string]: unknown };

// ---- Messages: Anthropic's format inside; each provider translates at its own edge. ----

export interface TextBlock {
  type: 'text';
  text: string;
}

export interface ImageBlock {
  type: 'image';
  source: { type: 'base64'; media_type: string; data: string };
}

/** Reasoning that a model wants back unchanged in later rounds; `signature` is the provider's seal on it. */
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

/** One thing that the model wants done. */
export interface ToolCall {
  id: string;
  name: string;
  input: JsonObject;
  /** Set when the model's arguments could not be read; such a call never runs, and the model is told this. */
  problem?: string;
}

/** What the model reads back. A failing tool is a result with `isError`, never an exception. */
export interface ToolResult {
  content: string;
  isError: boolean;
  images?: ImageBlock[];
  /** Files that the call created or changed, absolute paths. */
  changedFiles?: string[];
  /** Of the file that was changed: how many lines came and went, where it is a text. */
  changedLines?: { added: number; removed: number };
  /** How many bytes there were, where the tool itself has kept less of them. */
  wholeSize?: number;
}

// ---- Routing ----

export interface SkillRef {
  agent: string;
  skill: string;
}

/**
 * Why a skill was picked: `chosen` by the person in a list, `explicit` by `/name`, `$name` or `agent:name`, `name`
 * because its name stands in the request, `index` by the search index, `model` by a question to a model,
 * `continued` because the conversation goes on with its skill, and `without_skill` for none: the run looks for one itself.
 */
export type RouteRule = 'chosen' | 'explicit' | 'name' | 'index' | 'model' | 'continued' | 'without_skill';

export interface RouteReason {
  rule: RouteRule;
  /** The words of the request that decided, where there are any. */
  matched?: string;
  /** The index's score, larger is better; only comparable within one request. */
  score?: number;
  runnerUp?: SkillRef & { score?: number };
}

// ---- Approvals ----

export type ApprovalScope = 'once' | 'run' | 'always';

/** A question to the person, shown exactly as it will be done. */
export interface ApprovalRequest {
  callId: string;
  /** By which an answer from elsewhere names this question: nobody can guess it, and it counts once. A call's id is the model's own choice. */
  token: string;
  tool: string;
  /** The exact command, resolved path or URL that will be used if the answer is yes. */
  subject: string;
  /** The folder in which it happens, where there is one. */
  folder?: string;
  /** The policy rule that asked, and its reason in a sentence. */
  rule: string;
  reason: string;
  scopes: readonly ApprovalScope[];
  /** What a yes for the run covers, where that is more than this very call: a name for it, which changes when it should be asked about again. */
  grant?: string;
  /** The agent's card, when the question is about all that its files name: then `always` accepts the card, and `once` is for this call alone. */
  card?: AgentCard;
  /** For a write: the lines that would change, each behind `-`, `+` or a blank. */
  diff?: string;
  /** What can be done beforehand so that this is not asked, in a sentence. */
  toAllow?: string;
}

export type ApprovalDecision = { allow: true; scope: ApprovalScope } | { allow: false; reason: string };

// ---- Usage and outcome ----

/** One round's tokens. `cost` is in US dollars, or `unknown` when no price of the model is known. */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  cost: number | 'unknown';
}

/** The model that was asked which skill fits; it may be another one than the run's. */
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

export interface RunError {
  code: ErrorCode;
  /** What happened, to what, and what to do next; free of secrets. */
  message: string;
  /** For `no_match`: what could have been meant, best first. */
  suggestions?: readonly SkillRef[];
}

/** Set when a recorded run answers in place of a model. */
export interface RecordingInfo {
  model: string;
  /** ISO 8601 time at which the run was recorded. */
  recordedAt: string;
}

/**
 * Everything that leaves the engine. A run's first event is `run_start`, its last `run_end`, exactly one of each.
 * `text` carries a delta, never the text so far.
 */
export type RunEvent =
  | {
      type: 'run_start';
      runId: string;
      text: string;
      startedAt: string;
      /** What was handed over with the request, where anything was. */
      attached?: readonly AttachedName[];
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
  | { type: 'notice'; level: 'info' | 'warning'; message: string }
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
      /** How the policy decided, and by which rule; missing for a call that could not be decided on, as its input made no sense. */
      policy?: { action: 'allow' | 'ask' | 'deny'; rule: string };
    }
  | {
      type: 'usage';
      /** From 1; 0 for what the choice of the skill has used. */
      round: number;
      usage: Usage;
      /** The model that chose the skill, with round 0. */
      routing?: RoutingModel;
    }
  | { type: 'retry'; attempt: number; waitMs: number; why: string }
  | {
      type: 'run_end';
      outcome: RunOutcome;
      rounds: number;
      toolCalls: number;
      durationMs: number;
      messages: Message[];
      error?: RunError;
      /** Set for a cancelled run that nobody stopped: the program in which it ran came to its end. */
      interrupted?: boolean;
    };

/** The sentence that every frontend shows for a choice: "kickoff of kairos: its name is in your request". */
export function describeRoute(agent: string, skill: string, reason: RouteReason, say: Say = english): string {
  if (reason.rule === 'without_skill') return describeReason(reason, say);
  return say('{0} of {1}: {2}', skill, agent, describeReason(reason, say));
}

function describeReason(reason: RouteReason, say: Say): string {
  switch (reason.rule) {
    case 'chosen':
      return say('you chose it');
    case 'explicit':
      return reason.matched ? say('you asked for {0}', reason.matched) : say('you asked for it');
    case 'name':
      return say('its name is in your request');
    case 'index':
      return reason.matched
        ? say('it fits your words best: {0}', reason.matched)
        : say('it fits your words best');
    case 'model':
      return say('the model picked it');
    case 'continued':
      return say('the conversation goes on with it');
    case 'without_skill':
      return say('no skill: Telos looks for one itself');
  }
}
