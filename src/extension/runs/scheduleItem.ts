/** Describes a schedule in the tree *Runs*: what runs, when next, and how the last time ended. */

import type { Schedule } from '@telos/engine/schedule';
import * as vscode from 'vscode';
import { plainLabel, t } from '../base/labels.ts';
import { outcomeLabel, timeLabel } from './runItem.ts';

export interface ScheduleNode {
  kind: 'schedule';
  schedule: Schedule;
  /** Undefined while it is paused. */
  next: Date | undefined;
  isRunning: boolean;
  needsPerson: boolean;
}

/** The group of all schedules, above the days. */
export interface ScheduledNode {
  kind: 'scheduled';
  schedules: readonly ScheduleNode[];
}

export function scheduledItem({ schedules }: ScheduledNode): vscode.TreeItem {
  const { Expanded } = vscode.TreeItemCollapsibleState;
  const item = new vscode.TreeItem(t('Scheduled'), Expanded);
  item.id = 'scheduled';
  item.contextValue = 'scheduled';
  const waiting = schedules.filter(({ needsPerson }) => needsPerson).length;
  if (waiting > 0) item.description = waiting === 1 ? t('1 needs input') : t('{0} need input', waiting);
  return item;
}

export function scheduleItem(node: ScheduleNode): vscode.TreeItem {
  const { schedule, next, isRunning, needsPerson } = node;
  const item = new vscode.TreeItem(plainLabel(schedule.request, 100));
  item.id = `schedule\n${schedule.id}`;
  item.contextValue = `schedule.${schedule.isPaused ? 'paused' : 'active'}${schedule.last?.runId ? '.run' : ''}`;
  item.iconPath = iconOf(node);
  const when = isRunning ? t('Running') : next ? nextLabel(next) : t('Paused');
  item.description = needsPerson ? t('needs input') : when;
  item.tooltip = tooltipOf(node, when);
  item.accessibilityInformation = { label: [item.label, item.description, when].join(', ') };
  item.command = { command: 'telos.openSchedule', title: t('Open'), arguments: [node] };
  return item;
}

function iconOf({ schedule, isRunning, needsPerson }: ScheduleNode): vscode.ThemeIcon {
  if (isRunning) return new vscode.ThemeIcon('loading~spin');
  if (needsPerson) return new vscode.ThemeIcon('bell-dot', new vscode.ThemeColor('list.warningForeground'));
  if (schedule.isPaused) return new vscode.ThemeIcon('debug-pause');
  const { outcome = 'completed' } = schedule.last ?? {};
  return outcome === 'completed' || outcome === 'skipped'
    ? new vscode.ThemeIcon('calendar')
    : new vscode.ThemeIcon('warning', new vscode.ThemeColor('list.warningForeground'));
}

/** Returns the time of day today, with the day before a later one. */
export function nextLabel(next: Date): string {
  const locale = vscode.env.language;
  const time = { hour: '2-digit', minute: '2-digit' } as const;
  if (next.toDateString() === new Date().toDateString()) return next.toLocaleTimeString(locale, time);
  const isSoon = next.getTime() - Date.now() < 6 * 24 * 3_600_000;
  const day = isSoon ? ({ weekday: 'short' } as const) : ({ day: 'numeric', month: 'short' } as const);
  return next.toLocaleString(locale, { ...day, ...time });
}

/** Returns plain text on purpose: requests and questions are not Markdown. */
function tooltipOf({ schedule, next }: ScheduleNode, when: string): string {
  const { request, skill, at, cwd, clock, maxCost, last } = schedule;
  const lines = [
    plainLabel(request, 500),
    t('{0} of {1}', plainLabel(skill.skill), plainLabel(skill.agent)),
    next ? t('{0}, next {1}', plainLabel(at), when) : plainLabel(at),
    plainLabel(cwd, 300),
    clock === 'none' ? t('Runs while Telos is open in VS Code') : t('Started by {0}', clock),
    maxCost && t('At most {0} for each run', `$${maxCost}`),
    last && `${lastLabel(last)}, ${timeLabel(last.startedAt)}`,
    whyNot(schedule),
    ...(last?.needs ?? []).map(need => `? ${plainLabel(need, 300)}`),
    schedule.hasGivenUp && t('Paused automatically: it failed {0} times in a row.', schedule.failures),
  ];
  return lines.filter(Boolean).join('\n');
}

/** Returns why the last time did not end well, and what to do next. */
export function whyNot({ last, cwd, skill }: Schedule): string | undefined {
  const agent = plainLabel(skill.agent);
  switch (last?.obstacle) {
    case 'folder':
      return t('The folder {0} is missing. Bring it back, or remove the schedule.', plainLabel(cwd, 300));
    case 'skill':
      return t('The skill is missing. Install {0} again, or remove the schedule.', agent);
    case 'changed':
      return t('The files of {0} have changed. Approve them with Review Agent, then resume it.', agent);
    default:
      return last?.message && last.outcome !== 'completed' ? plainLabel(last.message, 400) : undefined;
  }
}

function lastLabel({ outcome, endedAt }: NonNullable<Schedule['last']>): string {
  if (outcome === 'blocked') return t('Not run');
  if (outcome === 'skipped') return t('Skipped');
  return outcomeLabel(outcome ?? (endedAt === undefined ? 'running' : 'interrupted'));
}
