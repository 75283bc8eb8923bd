/** Implements *Schedule...* and the actions on schedules in the tree *Runs*. */

import type { Config } from '@telos/engine/config';
import {
  type ClockEntry,
  type ClockKind,
  type ClockPlaces,
  callerFor,
  clockEntry,
  clockHere,
  keepWithEntry,
  nextTime,
  parseRule,
  removeEntry,
  resumed,
  type Schedule,
  Schedules,
  shownEntry,
} from '@telos/engine/schedule';
import * as vscode from 'vscode';
import { acknowledge } from '../base/acknowledge.ts';
import { askText } from '../base/askText.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, plainLabel, t, visibleText } from '../base/labels.ts';
import { writeClockScript } from '../editor/terminalCommand.ts';
import type { SkillNode } from '../skills/skillTree.ts';
import { nextLabel, type ScheduleNode, whyNot } from './scheduleItem.ts';

type OpenTelos = Awaited<ReturnType<CurrentTelos['openTelos']>>;

type Context = Parameters<typeof writeClockScript>[0];

/** What was done is seen in the tree, and what is due is looked for from now on. */
export interface ScheduleParts {
  context: Context;
  current: CurrentTelos;
  changed: () => Promise<void>;
  /** Runs one now, while its row says so. */
  runNow: (id: string) => Promise<void>;
}

async function placesFor(telos: OpenTelos): Promise<ClockPlaces> {
  const { config } = telos;
  const workFolders = [...(await telos.workFolders()), ...config.workspaceFolders.map(({ path }) => path)];
  return { env: config.env, dataDir: config.dataDir, workFolders };
}

const entryFor = (
  schedule: Schedule,
  config: Config,
  script: string,
  places: ClockPlaces,
): Promise<ClockEntry> => clockEntry(schedule, callerFor(config, [script], places, config.env));

/** Asks what runs when, and by which clock, and schedules it. */
export async function scheduleSkill(parts: ScheduleParts, { agent, skill }: SkillNode): Promise<void> {
  const open = await parts.current.openTelos();
  const { config } = open;
  const places = await placesFor(open);
  const title = t('Schedule {0}', plainLabel(skill.id));
  const request = await askText({
    title,
    value: t('run {0}', skill.id),
    prompt: t('What to ask each time'),
    validateInput: text => (text.trim() === '' ? t('Enter what it should do.') : undefined),
  });
  if (request === undefined) return;
  const at = await askTime(title);
  if (at === undefined) return;
  const clock = await askClock(title, places);
  if (clock === undefined) return;
  // As the clock finds it: a skill of a workspace counts only in its folder.
  const telos = await parts.current.openAt(config.cwd, undefined);
  const card = await telos.agentCard(agent.name);
  const schedules = new Schedules(config.dataDir);
  const draft = schedules.draft({
    request: request.trim(),
    skill: { agent: agent.name, skill: skill.id },
    at,
    cwd: config.cwd,
    digest: card.digest,
    missed: 'once' as const,
    clock,
    since: new Date().toISOString(),
  });
  await keep(draft, schedules, parts, { config, places });
}

/** Keeps the draft. An entry for a clock is shown first, word for word. */
async function keep(
  draft: Schedule,
  schedules: Schedules,
  { context, changed }: ScheduleParts,
  { config, places }: { config: Config; places: ClockPlaces },
): Promise<void> {
  if (draft.clock === 'none') await schedules.keep(draft);
  else {
    const entry = await entryFor(draft, config, await writeClockScript(context), places);
    const write = t('Write Entry');
    const detail = [visibleText(shownEntry(entry)), entry.note].filter(Boolean).join('\n\n');
    const question = t('Write this entry for {0}?', draft.clock);
    if ((await vscode.window.showInformationMessage(question, { modal: true, detail }, write)) !== write)
      return;
    await keepWithEntry(draft, entry, schedules, places);
  }
  await changed();
  const next = nextTime(parseRule(draft.at), new Date());
  acknowledge(t('Scheduled, next {0}', next ? nextLabel(next) : ''), {
    title: t('Show Runs'),
    act: () => vscode.commands.executeCommand('telos.runs.focus'),
  });
}

function askTime(title: string): Thenable<string | undefined> {
  return askText({
    title,
    value: 'weekdays 08:30',
    prompt: t('When, such as “weekdays 08:30”, “mon,thu 18:15”, “every 2 hours”, or five fields of cron'),
    validateInput: text => {
      try {
        const next = nextTime(parseRule(text), new Date());
        const message = next && t('Next: {0}', nextLabel(next));
        return message && { message, severity: vscode.InputBoxValidationSeverity.Info };
      } catch (error) {
        return plainLabel(describeError(error), 300);
      }
    },
  });
}

async function askClock(title: string, places: ClockPlaces): Promise<ClockKind | undefined> {
  const here = await clockHere(places);
  const items: (vscode.QuickPickItem & { clock: ClockKind })[] = [
    {
      clock: 'none',
      label: t('While Telos is open in VS Code'),
      detail: t('Uses the models and keys of VS Code. A missed run starts when VS Code starts again.'),
    },
  ];
  if (here !== 'none')
    items.push({
      clock: here,
      label: t('Always, by {0}', here),
      detail: t('Uses the command line, which has only the keys that `telos key` saved.'),
    });
  return (await vscode.window.showQuickPick(items, { title, placeHolder: t('Who starts it?') }))?.clock;
}

const openSchedules = async ({
  current,
}: ScheduleParts): Promise<{ schedules: Schedules; config: Config }> => {
  const { config } = await current.openTelos();
  return { schedules: new Schedules(config.dataDir), config };
};

/** Opens the conversation of the last run, which is then seen. */
export async function openSchedule(parts: ScheduleParts, { schedule }: ScheduleNode): Promise<void> {
  const { id, last } = schedule;
  const { schedules } = await openSchedules(parts);
  if (last)
    await schedules.change(id, one =>
      one.last ? { ...one, last: { ...one.last, isSeen: true } } : undefined,
    );
  await parts.changed();
  if (last?.runId) await vscode.commands.executeCommand('telos.openConversation', { runId: last.runId });
  const said = last?.runId ? undefined : whyNot(schedule);
  if (said) void vscode.window.showWarningMessage(said);
}

export async function runSchedule(parts: ScheduleParts, { schedule: { id } }: ScheduleNode): Promise<void> {
  await parts.runNow(id);
}

export async function pauseSchedule(
  parts: ScheduleParts,
  { schedule: { id, skill } }: ScheduleNode,
  isPaused: boolean,
): Promise<void> {
  const { schedules, config } = await openSchedules(parts);
  const card = await (await parts.current.openAt(config.cwd, undefined)).agentCard(skill.agent);
  await schedules.change(id, one => (isPaused ? { ...one, isPaused } : resumed(one, card)));
  await parts.changed();
}

/** Removes the schedule and its entry after a confirmation. Its runs stay. */
export async function removeSchedule(parts: ScheduleParts, { schedule }: ScheduleNode): Promise<void> {
  const remove = t('Remove');
  const question = t('Remove the schedule “{0}”?', plainLabel(schedule.request, 80));
  const detail = t('Its entry in the system scheduler is removed, too. Its runs are kept.');
  if ((await vscode.window.showWarningMessage(question, { modal: true, detail }, remove)) !== remove) return;
  const { schedules, config } = await openSchedules(parts);
  const places = await placesFor(await parts.current.openTelos());
  const entry = await entryFor(schedule, config, process.execPath, places);
  await removeEntry(schedule.id, entry, places);
  await schedules.remove(schedule.id);
  await parts.changed();
}
