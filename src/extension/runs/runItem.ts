/** Describes a stored run in the tree *Runs*: its name, how it ended, when, and its usage. */

import type { RunSummary, StoredOutcome } from '@telos/engine/records';
import * as vscode from 'vscode';
import { plainLabel } from '../base/labels.ts';

/** A conversation, represented by its latest run. Commands of other files take its `runId`. */
export interface ConversationNode {
  kind: 'conversation';
  runId: string;
  title: string;
  /** Newest first, never empty. */
  runs: readonly RunSummary[];
}

/** One run of a conversation with several runs. */
export interface RunNode {
  kind: 'run';
  runId: string;
  runs: readonly [RunSummary];
  title: string;
}

/** Returns the tree item of a conversation or of one of its runs. */
export function runItem(node: ConversationNode | RunNode): vscode.TreeItem {
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

/**
 * Returns the context value, such as `conversation.interrupted.skill`. It gives the kind, the outcome, whether others
 * of its skill may exist, and whether files may have changed.
 */
function contextOf({ kind }: ConversationNode | RunNode, run: RunSummary): string {
  const { outcome, skill, toolCalls } = run;
  const canGoOn = outcome === 'interrupted' || outcome === 'cancelled' ? '.resumable' : '';
  return `${kind}.${outcome}${canGoOn}${skill ? '.skill' : ''}${toolCalls > 0 ? '.tools' : ''}`;
}

function iconOf(outcome: StoredOutcome): vscode.ThemeIcon {
  const [icon, color] = icons[outcome];
  return new vscode.ThemeIcon(icon, color ? new vscode.ThemeColor(color) : undefined);
}

const icons: Readonly<Record<StoredOutcome, readonly [icon: string, color?: string]>> = {
  completed: ['pass', 'testing.iconPassed'],
  failed: ['error', 'list.errorForeground'],
  no_match: ['question', 'list.warningForeground'],
  round_limit: ['warning', 'list.warningForeground'],
  budget: ['warning', 'list.warningForeground'],
  cancelled: ['circle-slash', 'disabledForeground'],
  running: ['loading~spin'],
  interrupted: ['debug-disconnect', 'list.warningForeground'],
};

/** Scheme of the address under which a run is a document. */
export const documentScheme = 'telos-run';

export function outcomeLabel(outcome: StoredOutcome): string {
  switch (outcome) {
    case 'completed':
      return vscode.l10n.t('Completed');
    case 'failed':
      return vscode.l10n.t('Failed');
    case 'no_match':
      return vscode.l10n.t('No matching skill');
    case 'round_limit':
      return vscode.l10n.t('Stopped at the limit of steps');
    case 'budget':
      return vscode.l10n.t('Stopped at the budget limit');
    case 'cancelled':
      return vscode.l10n.t('Stopped');
    case 'running':
      return vscode.l10n.t('Running');
    case 'interrupted':
      return vscode.l10n.t('Interrupted');
  }
}

/** Returns plain text on purpose: the editor reads no links out of a string that is not Markdown. */
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
    seconds && vscode.l10n.t('{0} s, steps: {1}, tool calls: {2}', seconds, rounds, toolCalls),
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

/** Returns the local date, such as `2026-01-31`. Empty if the date is not valid. */
export function dayOf(date: Date): string {
  if (Number.isNaN(date.getTime())) return '';
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

export function dayLabel(day: string): string {
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

/** Returns the time that has passed, or the time of day once that says more. */
export function timeLabel(iso: string): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return '';
  const minutes = Math.floor((Date.now() - date.getTime()) / 60_000);
  if (minutes < 1) return vscode.l10n.t('just now');
  const ago = new Intl.RelativeTimeFormat(vscode.env.language, { style: 'short' });
  if (minutes < 60) return ago.format(-minutes, 'minute');
  if (minutes < 6 * 60) return ago.format(-Math.floor(minutes / 60), 'hour');
  return date.toLocaleTimeString(vscode.env.language, { hour: '2-digit', minute: '2-digit' });
}
