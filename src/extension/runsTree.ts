/** The tree *Runs*: what was asked of Telos and what came of it, by day; conversations of several runs unfold into them. */
import * as vscode from 'vscode';
import type { RunHistory } from '../engine/history/runHistory.ts';
import type { KeptOutcome, RunSummary } from '../engine/history/runSummary.ts';
import type { KeptConversations } from './keptConversations.ts';
import { plainLabel } from './plainLabel.ts';

export interface DayNode {
  kind: 'day';
  /** `2026-01-31`, local. */
  day: string;
  conversations: readonly ConversationNode[];
}

/** A conversation, standing for its latest run; `runId` is what commands of other files take. */
export interface ConversationNode {
  kind: 'conversation';
  runId: string;
  title: string;
  /** The newest first, never empty. */
  runs: readonly RunSummary[];
}

/** One run of a conversation that has several. */
export interface RunNode {
  kind: 'run';
  runId: string;
  runs: readonly [RunSummary];
  title: string;
}

export type RunsNode = DayNode | ConversationNode | RunNode;

/** Days that start unfolded; the others are a click away. */
const unfoldedDays = 2;

export class RunsTree implements vscode.TreeDataProvider<RunsNode>, vscode.Disposable {
  readonly #kept: KeptConversations;
  readonly #log: vscode.LogOutputChannel;
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #listed = new vscode.EventEmitter<number>();
  /** What the tree showed last, to tell whether anything is different. */
  #shown = '';
  #days: readonly DayNode[] = [];
  #search = '';
  #finding: { words: string; controller: AbortController; runs: Promise<RunSummary[]> } | undefined;
  readonly onDidChangeTreeData = this.#changed.event;
  /** The number of conversations that the editor has just been given. */
  readonly onDidList = this.#listed.event;

  constructor(kept: KeptConversations, log: vscode.LogOutputChannel) {
    this.#kept = kept;
    this.#log = log;
  }

  /** The words that are looked for; empty when all runs are shown. */
  get search(): string {
    return this.#search;
  }

  set search(words: string) {
    this.#search = words.trim();
    this.#changed.fire();
  }

  /** Looks at the files again, and has the editor draw what is different. */
  async refresh(): Promise<void> {
    try {
      const shown = lookOf(await this.#load());
      if (shown !== this.#shown) this.#changed.fire();
    } catch (error) {
      this.#log.error('The runs could not be listed.', error);
    }
  }

  async getChildren(node?: RunsNode): Promise<RunsNode[]> {
    if (node?.kind === 'day') return [...node.conversations];
    if (node?.kind === 'conversation') return node.runs.map(runNode);
    if (node) return [];
    this.#days = await this.#load();
    this.#shown = lookOf(this.#days);
    this.#listed.fire(this.#days.reduce((sum, { conversations }) => sum + conversations.length, 0));
    return [...this.#days];
  }

  getTreeItem(node: RunsNode): vscode.TreeItem {
    if (node.kind !== 'day') return runItem(node);
    const { Expanded, Collapsed } = vscode.TreeItemCollapsibleState;
    const isUnfolded = this.#search !== '' || this.#days.indexOf(node) < unfoldedDays;
    const item = new vscode.TreeItem(dayLabel(node.day), isUnfolded ? Expanded : Collapsed);
    item.id = `${node.day}\n${this.#search}`;
    item.contextValue = 'day';
    return item;
  }

  dispose(): void {
    this.#finding?.controller.abort();
    this.#changed.dispose();
    this.#listed.dispose();
  }

  async #load(): Promise<DayNode[]> {
    const history = await this.#kept.history();
    const runs = this.#search ? await this.#found(history) : await history.list();
    const { titleOf } = await import('../engine/history/runSummary.ts');
    return byDay(conversationsOf(runs, titleOf));
  }

  /** Who looks while the same words are looked for already waits for the same answer. */
  #found(history: RunHistory): Promise<RunSummary[]> {
    const words = this.#search;
    if (this.#finding?.words === words) return this.#finding.runs;
    this.#finding?.controller.abort();
    const controller = new AbortController();
    const runs = foundIn(history, words, controller.signal).finally(() => {
      if (this.#finding?.controller === controller) this.#finding = undefined;
    });
    this.#finding = { words, controller, runs };
    return runs;
  }
}

async function foundIn(history: RunHistory, words: string, signal: AbortSignal): Promise<RunSummary[]> {
  const runs: RunSummary[] = [];
  for await (const run of history.search(words, signal)) runs.push(run);
  return runs;
}

type TitleOf = (run: RunSummary) => string;

function conversationsOf(runs: readonly RunSummary[], titleOf: TitleOf): ConversationNode[] {
  const byConversation = new Map<string, RunSummary[]>();
  for (const run of runs) {
    const together = byConversation.get(run.conversation);
    if (together) together.push(run);
    else byConversation.set(run.conversation, [run]);
  }
  return [...byConversation.values()].map(together => {
    const [latest] = together as [RunSummary];
    // What the person called it, else what it began with.
    const named = together.find(({ title }) => title) ?? together.at(-1) ?? latest;
    return { kind: 'conversation', runId: latest.runId, title: titleOf(named), runs: together };
  });
}

/** By the day of each one's latest run. */
function byDay(conversations: readonly ConversationNode[]): DayNode[] {
  const days = new Map<string, ConversationNode[]>();
  for (const one of conversations) {
    const day = dayOf(new Date(one.runs[0]?.startedAt ?? ''));
    const together = days.get(day);
    if (together) together.push(one);
    else days.set(day, [one]);
  }
  return [...days].map(([day, together]) => ({ kind: 'day', day, conversations: together }));
}

function runNode(run: RunSummary): RunNode {
  const title = run.request.replace(/\s+/g, ' ').trim() || run.skill;
  return { kind: 'run', runId: run.runId, runs: [run], title };
}

/** Everything of it that a person sees; the day, too, as *Today* moves on. */
function lookOf(days: readonly DayNode[]): string {
  const look = (node: ConversationNode): unknown[] => [
    node.title,
    node.runs.map(run => [run.runId, run.outcome, run.title, run.skill]),
    timeLabel(node.runs[0]?.startedAt ?? ''),
  ];
  return JSON.stringify(days.map(({ day, conversations }) => [dayLabel(day), conversations.map(look)]));
}

function runItem(node: ConversationNode | RunNode): vscode.TreeItem {
  const [run] = node.runs as readonly [RunSummary];
  const { None, Collapsed } = vscode.TreeItemCollapsibleState;
  const item = new vscode.TreeItem(plainLabel(node.title, 100), node.runs.length > 1 ? Collapsed : None);
  const count = node.runs.length > 1 ? vscode.l10n.t('{0} runs', node.runs.length) : '';
  item.id = `${node.kind}\n${node.kind === 'run' ? run.runId : run.conversation}`;
  item.contextValue = contextOf(node, run);
  item.iconPath = iconOf(run.outcome);
  item.description = [plainLabel(run.skill), timeLabel(run.startedAt), count].filter(Boolean).join(' · ');
  item.tooltip = tooltipOf(node.title, run);
  item.accessibilityInformation = {
    label: [item.label, outcomeLabel(run.outcome), item.description].join(', '),
  };
  item.command = {
    command: 'telos.openRun',
    title: vscode.l10n.t('Open'),
    arguments: [node],
  };
  return item;
}

/** `conversation.interrupted.skill`: what it is, how it ended, whether there may be others of its skill, and whether it may have changed files. */
function contextOf({ kind }: ConversationNode | RunNode, run: RunSummary): string {
  const { outcome, skill, toolCalls } = run;
  const canGoOn = outcome === 'interrupted' || outcome === 'cancelled' ? '.resumable' : '';
  return `${kind}.${outcome}${canGoOn}${skill ? '.skill' : ''}${toolCalls > 0 ? '.tools' : ''}`;
}

function iconOf(outcome: KeptOutcome): vscode.ThemeIcon {
  const [icon, color] = icons[outcome];
  return new vscode.ThemeIcon(icon, color ? new vscode.ThemeColor(color) : undefined);
}

const icons: Readonly<Record<KeptOutcome, readonly [icon: string, color?: string]>> = {
  completed: ['pass', 'testing.iconPassed'],
  failed: ['error', 'list.errorForeground'],
  no_match: ['question', 'list.warningForeground'],
  round_limit: ['warning', 'list.warningForeground'],
  budget: ['warning', 'list.warningForeground'],
  cancelled: ['circle-slash', 'disabledForeground'],
  running: ['loading~spin'],
  interrupted: ['debug-disconnect', 'list.warningForeground'],
};

export function outcomeLabel(outcome: KeptOutcome): string {
  switch (outcome) {
    case 'completed':
      return vscode.l10n.t('Completed');
    case 'failed':
      return vscode.l10n.t('Failed');
    case 'no_match':
      return vscode.l10n.t('No skill fits');
    case 'round_limit':
      return vscode.l10n.t('Stopped at its rounds');
    case 'budget':
      return vscode.l10n.t('Stopped at its budget');
    case 'cancelled':
      return vscode.l10n.t('Stopped');
    case 'running':
      return vscode.l10n.t('Running');
    case 'interrupted':
      return vscode.l10n.t('Interrupted');
  }
}

/** Plain text on purpose: the editor reads no links out of a string that is not Markdown. */
function tooltipOf(title: string, run: RunSummary): string {
  const { request, agent, skill, provider, model, outcome, error, startedAt, rounds, toolCalls, usage } = run;
  const seconds = run.durationMs === undefined ? undefined : (run.durationMs / 1000).toFixed(1);
  const tokens = usage && usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
  const lines = [
    plainLabel(title, 300),
    request.trim() && request.trim() !== title ? plainLabel(request, 500) : '',
    skill
      ? vscode.l10n.t('{0} of {1}', plainLabel(skill), plainLabel(agent))
      : vscode.l10n.t('Without a skill'),
    [outcomeLabel(outcome), error && plainLabel(error, 400)].filter(Boolean).join(': '),
    new Date(startedAt).toLocaleString(vscode.env.language),
    seconds && vscode.l10n.t('{0} s, rounds: {1}, tool calls: {2}', seconds, rounds, toolCalls),
    usage && vscode.l10n.t('{0} tokens in, {1} out', tokens ?? 0, usage.outputTokens),
    costLabel(run),
    model && plainLabel(`${provider} ${model}`),
  ];
  return lines.filter(Boolean).join('\n');
}

function costLabel({ usage, isRecording, rounds }: RunSummary): string {
  if (!usage || rounds === 0) return '';
  if (isRecording) return vscode.l10n.t('Cost: nothing, a recording answered');
  if (typeof usage.cost !== 'number') return vscode.l10n.t('Cost: not known');
  return vscode.l10n.t('Cost: {0}', `$${usage.cost.toFixed(4)}`);
}

/** `2026-01-31` by the local calendar; empty for what is no time. */
function dayOf(date: Date): string {
  if (Number.isNaN(date.getTime())) return '';
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

function dayLabel(day: string): string {
  const now = new Date();
  if (day === dayOf(now)) return vscode.l10n.t('Today');
  if (day === dayOf(new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1)))
    return vscode.l10n.t('Yesterday');
  const date = new Date(`${day}T12:00:00`);
  if (Number.isNaN(date.getTime())) return vscode.l10n.t('Some time');
  const year = date.getFullYear() === now.getFullYear() ? {} : ({ year: 'numeric' } as const);
  return date.toLocaleDateString(vscode.env.language, {
    weekday: 'long',
    day: 'numeric',
    month: 'long',
    ...year,
  });
}

/** How long ago, as long as that says more than the time of the day. */
function timeLabel(iso: string): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return '';
  const minutes = Math.floor((Date.now() - date.getTime()) / 60_000);
  if (minutes < 1) return vscode.l10n.t('just now');
  const ago = new Intl.RelativeTimeFormat(vscode.env.language, { style: 'short' });
  if (minutes < 60) return ago.format(-minutes, 'minute');
  if (minutes < 6 * 60) return ago.format(-Math.floor(minutes / 60), 'hour');
  return date.toLocaleTimeString(vscode.env.language, { hour: '2-digit', minute: '2-digit' });
}
