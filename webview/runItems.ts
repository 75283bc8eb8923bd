/** Defines what the chat view shows of a conversation as data: its runs, and the items of a run. */
import type { AttachedName } from '../src/protocol/attachment.ts';
import type {
  ApprovalDecision,
  ApprovalRequest,
  RecordingInfo,
  RouteReason,
  RunError,
  RunMode,
  RunOutcome,
  SkillRef,
  ToolCall,
  ToolResult,
  Usage,
} from '../src/protocol/run.ts';
import type { MarkdownStream } from './markdownBlocks.ts';

/** `waiting` is for the person's answer. `stopped` is a call without a result because its run ended. */
export type ToolState = 'running' | 'waiting' | 'done' | 'failed' | 'denied' | 'stopped';

export interface RouteItem extends SkillRef {
  kind: 'route';
  /** The request, for running it with another skill. */
  text: string;
  description: string;
  reason: RouteReason;
  provider: string;
  model: string;
  recording?: RecordingInfo;
}

export interface TextItem {
  kind: 'text';
  markdown: MarkdownStream;
}

export interface ToolItem {
  kind: 'tool';
  call: ToolCall;
  state: ToolState;
  workingDir: string;
  runId: string;
  result?: ToolResult;
  /** Set for a command that ran in the box. */
  boxed?: true;
}

export interface ApprovalItem {
  kind: 'approval';
  request: ApprovalRequest;
  /** Missing while the question is open. `withdrawn` if the run ended before an answer. */
  answer?: ApprovalDecision | 'withdrawn';
}

export interface RetryItem {
  kind: 'retry';
  provider: string;
  attempt: number;
  waitMs: number;
  why: string;
  over: boolean;
}

export interface EndItem {
  kind: 'end';
  /** `interrupted` is a run whose end was never seen. */
  outcome: RunOutcome | 'interrupted';
  runId: string;
  /** The request, for trying it again. */
  text: string;
  /** Paths that the run has created or changed, each once. */
  changedFiles: readonly string[];
  rounds: number;
  toolCalls: number;
  durationMs?: number;
  usage?: Usage;
  /** Usage of each round, if there were several. */
  perRound?: readonly RoundUsage[];
  error?: RunError;
}

/** Usage of one request to the model. */
export interface RoundUsage {
  round: number;
  usage: Usage;
}

export type Item =
  | RouteItem
  | TextItem
  | ToolItem
  | ApprovalItem
  | RetryItem
  | EndItem
  | { kind: 'step'; skill: string; detail: string }
  /** `folderOf` is an agent whose folder the notice names. */
  | { kind: 'notice'; level: 'info' | 'warning'; message: string; folderOf?: string }
  | { kind: 'questions'; questions: readonly string[]; answers?: readonly string[] };

export interface Run {
  readonly id: string;
  readonly text: string;
  readonly attached?: readonly AttachedName[];
  readonly selection?: string;
  /** Mode of the run. Missing if it is the default. */
  readonly mode?: RunMode;
  readonly startedAt: string;
  readonly running: boolean;
  readonly items: readonly Item[];
  readonly route?: RouteItem;
  readonly workingDir: string;
  readonly rounds: number;
  readonly usage?: Usage;
  readonly perRound?: readonly RoundUsage[];
}

export interface ChatState {
  readonly runs: readonly Run[];
}
