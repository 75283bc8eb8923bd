/** The tree *Runs*: what was asked of Telos and what came of it, by day; conversations of several runs unfold into them. */
import * as vscode from 'vscode';
import type { RunHistory } from '../../engine/records/runHistory.ts';
import type { RunSummary } from '../../engine/records/runSummary.ts';
import type { KeptConversations } from '../chat/storedConversations.ts';
import { type ConversationNode, dayLabel, dayOf, type RunNode, runItem, timeLabel } from './runItem.ts';

export interface DayNode {
  kind: 'day';
  /** `2026-01-31`, local. */
  day: string;
  conversations: readonly ConversationNode[];
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
    const { titleOf } = await import('../../engine/records/runSummary.ts');
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
