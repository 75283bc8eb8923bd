/** Provides the tree *Runs*: requests and their outcomes by day. Conversations of several runs unfold into them. */

import { importRunSummary, type RunHistory, type RunSummary } from '@telos/engine/records';
import { importDue, importRule, importSchedules } from '@telos/engine/schedule';
import * as vscode from 'vscode';
import type { StoredConversations } from '../chat/storedConversations.ts';
import { type ConversationNode, dayLabel, dayOf, type RunNode, runItem, timeLabel } from './runItem.ts';
import type { ScheduledNode, ScheduleNode } from './scheduleItem.ts';

export interface DayNode {
  kind: 'day';
  /** Local date, such as `2026-01-31`. */
  day: string;
  conversations: readonly ConversationNode[];
}

export type RunsNode = ScheduledNode | ScheduleNode | DayNode | ConversationNode | RunNode;

/** The number of days that start unfolded. The others open with a click. */
const unfoldedDays = 2;

export class RunsTree implements vscode.TreeDataProvider<RunsNode>, vscode.Disposable {
  readonly #kept: StoredConversations;
  readonly #log: vscode.LogOutputChannel;
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #listed = new vscode.EventEmitter<number>();
  readonly #scheduledListed = new vscode.EventEmitter<readonly ScheduleNode[]>();
  /** The tree's content when it was last shown, to detect changes. */
  #shown = '';
  #days: readonly DayNode[] = [];
  #scheduled: ScheduledNode = { kind: 'scheduled', schedules: [] };
  #search = '';
  #finding: { words: string; controller: AbortController; runs: Promise<RunSummary[]> } | undefined;
  readonly onDidChangeTreeData = this.#changed.event;
  /** Fires with the number of conversations that were just listed. */
  readonly onDidList = this.#listed.event;
  /** Fires with the schedules that were just listed. */
  readonly onDidListSchedules = this.#scheduledListed.event;

  constructor(kept: StoredConversations, log: vscode.LogOutputChannel) {
    this.#kept = kept;
    this.#log = log;
  }

  /** The words to search for. Empty if all runs are shown. */
  get search(): string {
    return this.#search;
  }

  set search(words: string) {
    this.#search = words.trim();
    this.#changed.fire();
  }

  /** Reads the files again, and redraws the tree if anything has changed. */
  async refresh(): Promise<void> {
    try {
      const [days, scheduled] = await Promise.all([this.#load(), this.#loadSchedules()]);
      this.#scheduledListed.fire(scheduled.schedules);
      const shown = lookOf(days, scheduled);
      if (shown !== this.#shown) this.#changed.fire();
    } catch (error) {
      this.#log.error('The runs could not be listed.', error);
    }
  }

  async getChildren(node?: RunsNode): Promise<RunsNode[]> {
    if (node?.kind === 'day') return [...node.conversations];
    if (node?.kind === 'conversation') return node.runs.map(runNode);
    if (node?.kind === 'scheduled') return [...node.schedules];
    if (node) return [];
    [this.#days, this.#scheduled] = await Promise.all([this.#load(), this.#loadSchedules()]);
    this.#scheduledListed.fire(this.#scheduled.schedules);
    this.#shown = lookOf(this.#days, this.#scheduled);
    this.#listed.fire(this.#days.reduce((sum, { conversations }) => sum + conversations.length, 0));
    return this.#scheduled.schedules.length > 0 ? [this.#scheduled, ...this.#days] : [...this.#days];
  }

  async getTreeItem(node: RunsNode): Promise<vscode.TreeItem> {
    if (node.kind === 'scheduled') return (await import('./scheduleItem.ts')).scheduledItem(node);
    if (node.kind === 'schedule') return (await import('./scheduleItem.ts')).scheduleItem(node);
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
    this.#scheduledListed.dispose();
  }

  async #load(): Promise<DayNode[]> {
    const history = await this.#kept.history();
    const runs = this.#search ? await this.#found(history) : await history.list();
    const { titleOf } = await importRunSummary();
    return byDay(conversationsOf(runs, titleOf));
  }

  /** Schedules are found by no words, so a search leaves them out. */
  async #loadSchedules(): Promise<ScheduledNode> {
    if (this.#search) return { kind: 'scheduled', schedules: [] };
    const [dataDir, { Schedules, needsPerson }, { isRunning }, { nextTime, parseRule }] = await Promise.all([
      this.#kept.dataDir(),
      importSchedules(),
      importDue(),
      importRule(),
    ]);
    const { schedules, problems } = new Schedules(dataDir).list();
    for (const problem of problems) this.#log.warn(problem);
    const nodes = schedules.map(schedule => ({
      kind: 'schedule' as const,
      schedule,
      isRunning: isRunning(schedule),
      next: schedule.isPaused ? undefined : nextTime(parseRule(schedule.at), new Date()),
      needsPerson: needsPerson(schedule),
    }));
    return { kind: 'scheduled', schedules: nodes };
  }

  /** Searches the history. A second search for the same words waits for the first one's result. */
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
    // The title that the person gave it, or else its plan or its first request.
    const named = together.find(({ title }) => title) ?? together.at(-1) ?? latest;
    const { plan } = named;
    const isPlan = plan !== undefined && !named.title;
    const title = isPlan ? vscode.l10n.t('Plan {0}', plan) : titleOf(named);
    return { kind: 'conversation', runId: latest.runId, title, runs: together };
  });
}

/** Groups the conversations by the day of their latest run. */
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
  const title = run.step ?? (run.request.replace(/\s+/g, ' ').trim() || run.skill);
  return { kind: 'run', runId: run.runId, runs: [run], title };
}

/** Returns everything that a person sees of the tree. It includes the day's label, since *Today* moves on. */
function lookOf(days: readonly DayNode[], { schedules }: ScheduledNode): string {
  const look = (node: ConversationNode): unknown[] => [
    node.title,
    node.runs.map(run => [run.runId, run.outcome, run.title, run.skill]),
    timeLabel(node.runs[0]?.startedAt ?? ''),
  ];
  return JSON.stringify([
    schedules,
    days.map(({ day, conversations }) => [dayLabel(day), conversations.map(look)]),
  ]);
}
