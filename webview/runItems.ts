/** Defines what the chat view shows of a conversation as data: its runs, the items of a run, and the rows that show them. */
import type { AttachedName } from '@telos/protocol/attachment';
import type {
  ApprovalDecision,
  ApprovalRequest,
  ContextUse,
  RecordingInfo,
  RouteReason,
  RunError,
  RunMode,
  RunOutcome,
  SkillRef,
  ToolCall,
  ToolResult,
  Usage,
} from '@telos/protocol/run';
import type { Todo } from '@telos/protocol/todos';
import type { MarkdownStream } from './markdownBlocks.ts';

/** `waiting` is for the person's answer. `stopped` is a call without a result because its run ended. */
export type ToolState = 'running' | 'waiting' | 'done' | 'failed' | 'denied' | 'stopped';

export interface ServerName {
  agent: string;
  server: string;
}

export interface RouteItem extends SkillRef {
  kind: 'route';
  /** The request, for running it with another skill. */
  text: string;
  description: string;
  reason: RouteReason;
  provider: string;
  model: string;
  recording?: RecordingInfo;
  /** Set if the run before had the same skill and model, so that naming them says nothing. */
  isSame?: true;
  /** Where it works, in words. */
  place?: string;
  /** The agent, if the person may not know yet where it works, and can choose that. */
  folderOf?: string;
}

export interface TextItem {
  kind: 'text';
  markdown: MarkdownStream;
}

/** What the model thought before it went on, or its summary. */
export interface ThoughtItem {
  kind: 'thought';
  markdown: MarkdownStream;
  /** Missing while the model thinks, and if nothing says how long it did. */
  durationMs?: number;
  over: boolean;
}

export interface ToolItem {
  kind: 'tool';
  call: ToolCall;
  state: ToolState;
  workingDir: string;
  runId: string;
  result?: ToolResult;
  /** The end of what its command has printed while it ran. */
  output?: string;
  /** How far it is, in its tool's words, while it runs. */
  progress?: { message: string; share?: number };
  /** Set for a command that ran in the box. */
  boxed?: true;
  /** Set for a command that ran outside of it. */
  leftBox?: true;
  /** The run of the skill that the call uses. */
  inner?: Run;
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
  /** Skills that the request may have meant, if it was answered without one. */
  likely?: readonly SkillRef[];
  /** Set if a skill ran. */
  hasSkill?: true;
}

/** Usage of one request to the model. */
export interface RoundUsage {
  round: number;
  usage: Usage;
}

export type Item =
  | RouteItem
  | TextItem
  | ThoughtItem
  | ToolItem
  | ApprovalItem
  | RetryItem
  | EndItem
  | { kind: 'step'; skill: string; detail: string }
  /** `dead` is the server that the notice says did not start. */
  | { kind: 'notice'; level: 'info' | 'warning'; message: string; dead?: ServerName }
  | { kind: 'compacted'; summary: string; tokensBefore: number; tokensAfter: number }
  | { kind: 'restored' };

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
  /** What its latest round has sent. */
  readonly context?: ContextUse;
  /** The to-do list, as the model gave it last. */
  readonly todos?: readonly Todo[];
}

/** Whether a question of the run, or of a skill that it uses, waits for an answer. */
export const isWaiting = ({ items }: Run): boolean =>
  items.some(
    item =>
      (item.kind === 'approval' && !item.answer) ||
      (item.kind === 'tool' && item.inner !== undefined && isWaiting(item.inner)),
  );

export interface ChatState {
  readonly runs: readonly Run[];
}

/** What the runs of a conversation have done so far. */
export interface Ledger {
  actions: number;
  asked: number;
  /** Commands that ran outside of the sandbox. */
  left: number;
  /** Those that have changed files, the latest first. */
  runIds: readonly string[];
}

/** Counts what the runs have done, and skills that they used. What was denied is no action. */
export function ledgerOf(runs: readonly Run[]): Ledger {
  const items = runs.flatMap(itemsIn);
  const tools = items.filter(item => item.kind === 'tool' && /^(?:done|failed)$/.test(item.state));
  return {
    actions: tools.length,
    asked: items.filter(({ kind }) => kind === 'approval').length,
    left: tools.filter(item => item.kind === 'tool' && item.leftBox).length,
    runIds: runs
      .filter(({ items }) => items.some(item => item.kind === 'end' && item.changedFiles.length > 0))
      .map(({ id }) => id)
      .reverse(),
  };
}

const itemsIn = ({ items }: Run): Item[] =>
  items.flatMap(item => (item.kind === 'tool' && item.inner ? [item, ...itemsIn(item.inner)] : [item]));

/** Items that are shown in one row; `index` is that of the first. */
export interface Row {
  readonly index: number;
  readonly items: readonly Item[];
}

/** Fewer reads are shown one by one. */
const fewestReads = 3;

/** What only looks, by the names of the tools. */
export const readingTools: Readonly<Record<string, 'read' | 'list' | 'search'>> = {
  read_file: 'read',
  list_directory: 'list',
  glob: 'search',
  search_files: 'search',
};

/**
 * Returns one row for each item, but one for a series of reads and the thoughts between them. A read that failed or asked stays a
 * row of its own.
 */
export function rowsOf(items: readonly Item[]): Row[] {
  const rows: Row[] = [];
  let from = 0;
  while (from < items.length) {
    const end = endOfReads(items, from);
    rows.push({ index: from, items: items.slice(from, end) });
    from = end;
  }
  return rows;
}

/** Returns the index after the series of reads that begins at `from`, or after that one item if it is too short. */
function endOfReads(items: readonly Item[], from: number): number {
  let reads = 0;
  let end = from + 1;
  for (let at = from; at < items.length; at++) {
    const item = items[at]!;
    if (isRead(item)) {
      reads += 1;
      end = at + 1;
    } else if (item.kind !== 'thought' || reads === 0) break;
  }
  return reads >= fewestReads ? end : from + 1;
}

const isRead = (item: Item): item is ToolItem =>
  item.kind === 'tool' &&
  Object.hasOwn(readingTools, item.call.name) &&
  (item.state === 'done' || item.state === 'running');
