/** Asks, and then restores the files and the conversation to before a request. */

import type { RestorePlan } from '@telos/engine/undo';
import * as vscode from 'vscode';
import { acknowledge, complain } from '../base/acknowledge.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, plainLabel } from '../base/labels.ts';
import type { Chat } from './chat.ts';
import { isUnsaved, named, nameWithChange, notUndone, reasonAgainst, shortPath } from './runChanges.ts';

/** Shows the person an error that the engine throws. */
export async function restoreTo(runId: string, chat: Chat, current: CurrentTelos): Promise<void> {
  try {
    await restore(runId, chat, current);
  } catch (error) {
    complain(plainLabel(describeError(error), 500));
  }
}

async function restore(runId: string, chat: Chat, current: CurrentTelos): Promise<void> {
  const { runIds, since } = chat.restorable(runId);
  if (runIds.length === 0) {
    complain(
      vscode.l10n.t(
        'This request cannot be taken back here: it belongs to another conversation, or a run is active.',
      ),
    );
    return;
  }
  const telos = await current.openTelos();
  const running = telos
    .commandsOf(chat.conversationId)
    .running.filter(({ startedAt }) => startedAt.toISOString() >= since);
  const plan = await telos.changes.restorable(runIds);
  const unsaved = plan.files.filter(({ path }) => isUnsaved(path));
  const blocked = plan.files.flatMap(file => reasonAgainst(file) ?? []);
  if (unsaved.length > 0) {
    const message = vscode.l10n.t('Nothing was restored: {0}', named(blocked).join(', '));
    await vscode.window.showWarningMessage(message, { modal: true });
    return;
  }
  if (!(await agrees(plan, running, blocked))) return;
  for (const command of running) await command.stop();
  const result = await telos.changes.restore(runIds, { others: blocked.length > 0 });
  if (result.outcome === 'refused') {
    complain(vscode.l10n.t('Nothing was restored: a file was changed in the meantime.'));
    return;
  }
  await chat.goBackTo(runId, result.id);
  const count = result.restored.length + result.removed.length;
  if (result.problem !== undefined) {
    const [many, why] = [String(count), plainLabel(result.problem, 500)];
    complain(vscode.l10n.t('Only some files were restored: {0}. {1}', many, why));
  } else
    acknowledge(
      count === 1
        ? vscode.l10n.t('Restored: 1 file and the conversation')
        : vscode.l10n.t('Restored: {0} files and the conversation', count),
    );
}

async function agrees(
  plan: RestorePlan,
  running: readonly { command: string }[],
  blocked: readonly string[],
): Promise<boolean> {
  const { t } = vscode.l10n;
  const changed = plan.files.filter(({ state }) => state === 'ready');
  const lines = [
    ...changed.map(nameWithChange),
    ...plan.repositories.map(path => t('{0} (branches, tags and index)', shortPath(path))),
  ];
  const commands = (all: readonly string[]): string => named(all.map(one => plainLabel(one, 100))).join(', ');
  const sentences = [
    ...(blocked.length > 0 ? [t('Not changed: {0}', named(blocked).join(', '))] : []),
    ...(running.length > 0 ? [t('Ends: {0}', commands(running.map(({ command }) => command)))] : []),
    ...notUndone(plan),
    ...(plan.outside.length > 0
      ? [t('Ran outside the sandbox, and is not undone: {0}', commands(plan.outside))]
      : []),
    ...(plan.tooLarge.length > 0
      ? [
          t(
            'Too large to be kept, so that undoing the restore leaves it out: {0}',
            named(plan.tooLarge.map(shortPath)).join(', '),
          ),
        ]
      : []),
  ];
  const question =
    lines.length > 0
      ? t('Restore files and conversation to before this request? These files are restored.')
      : t('Restore the conversation to before this request? No file is changed.');
  const yes = t('Restore');
  const detail = [...named(lines), ...(sentences.length > 0 ? ['', ...sentences] : [])].join('\n');
  return (await vscode.window.showWarningMessage(question, { modal: true, detail }, yes)) === yes;
}
