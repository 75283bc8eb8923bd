/** Lists what Telos has changed today, by run and file, in one place: shows each difference, and undoes one run or all of them. */
import { basename, dirname } from 'node:path';
import { RunHistory, titleOf } from '@telos/engine/records';
import type { RunChanges } from '@telos/engine/undo';
import * as vscode from 'vscode';
import { acknowledge, complain } from '../base/acknowledge.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, plainLabel } from '../base/labels.ts';
import { isUnsaved, type RunChangesView, shortPath } from '../chat/runChanges.ts';

interface Row extends vscode.QuickPickItem {
  take?: () => Promise<void>;
  undo?: () => Promise<void>;
}

/** A run of today, and what it has changed. */
interface DayRun {
  title: string;
  changes: RunChanges;
}

/** Shows the list until the person has chosen or left it. Shows them an error of the file system. */
export async function showDayChanges(current: CurrentTelos, changes: RunChangesView): Promise<void> {
  try {
    const runs = await readDay(current);
    if (runs.length > 0) return await choose(rowsOf(runs, changes));
    acknowledge(vscode.l10n.t('Telos has changed no file today.'), {
      title: vscode.l10n.t('Show Today'),
      act: showToday,
    });
  } catch (error) {
    complain(plainLabel(describeError(error), 500));
  }
}

/** Returns the runs that have changed something since midnight, the latest first. */
async function readDay(current: CurrentTelos): Promise<DayRun[]> {
  const { changes, config } = await current.openTelos();
  const ids = await changes.since(new Date(new Date().setHours(0, 0, 0, 0)).toISOString());
  const known = new Map((await new RunHistory(config.dataDir).list()).map(run => [run.runId, titleOf(run)]));
  const all = await Promise.all(ids.map(id => changes.of(id)));
  return all
    .filter(({ files, repositories }) => files.length + repositories.length > 0)
    .map(each => ({ title: known.get(each.runId) ?? vscode.l10n.t('Run without a title'), changes: each }));
}

const showToday = (): Thenable<unknown> => vscode.commands.executeCommand('telos.showToday');

function rowsOf(runs: readonly DayRun[], view: RunChangesView): Row[] {
  const { t } = vscode.l10n;
  const open = runs.filter(({ changes }) => changes.undoneAt === undefined).map(({ changes }) => changes);
  const files = new Set(open.flatMap(each => each.files.map(({ path }) => path)));
  const all: Row = {
    label: `$(discard) ${t('Undo All...')}`,
    description: t('Runs: {0}, files: {1}', open.length, files.size),
    alwaysShow: true,
    take: () =>
      view.undoAll(
        open.map(({ runId }) => runId),
        t('Undo all that Telos has changed today? These files are restored.'),
      ),
  };
  const today: Row = {
    label: `$(calendar) ${t('Show Today')}`,
    description: t('what ran, and what waits for you'),
    alwaysShow: true,
    take: async () => void (await showToday()),
  };
  return [...(open.length > 0 ? [all] : []), today, ...runs.flatMap(run => rowsOfRun(run, view))];
}

function rowsOfRun({ title, changes }: DayRun, view: RunChangesView): Row[] {
  const { t } = vscode.l10n;
  const { runId, at, undoneAt, files, repositories } = changes;
  const time = new Date(at).toLocaleTimeString(vscode.env.language, { hour: '2-digit', minute: '2-digit' });
  const button = { iconPath: new vscode.ThemeIcon('discard'), tooltip: t('Undo This Run...') };
  const undo = undoneAt === undefined ? { buttons: [button], undo: () => view.undoTarget({ runId }) } : {};
  const heading: Row = {
    label: [time, plainLabel(title), undoneAt === undefined ? '' : t('undone')].filter(Boolean).join(' · '),
    kind: vscode.QuickPickItemKind.Separator,
  };
  return [
    heading,
    ...files.map(({ path, before, isUndone, isRemoved }): Row => {
      const folder = dirname(shortPath(path));
      const state = isUndone ? t('undone') : isRemoved ? t('deleted') : before ? '' : t('new');
      return {
        label: `$(file) ${plainLabel(basename(path))}`,
        description: [folder === '.' ? '' : folder, state, isUnsaved(path) ? t('not saved') : '']
          .filter(Boolean)
          .join(' · '),
        take: () => view.showTarget({ runId, path }),
        ...undo,
      };
    }),
    ...repositories.map(
      (path): Row => ({
        label: `$(git-branch) ${plainLabel(basename(path))}`,
        description: t('{0} (branches, tags and index)', shortPath(path)),
        ...undo,
      }),
    ),
  ];
}

/** Resolves once a row was taken, and what it does is done. */
async function choose(rows: Row[]): Promise<void> {
  const { t } = vscode.l10n;
  const pick = vscode.window.createQuickPick<Row>();
  pick.title = t('Changes of Today');
  pick.placeholder = t('Choose a file to see its changes');
  pick.matchOnDescription = true;
  pick.items = rows;
  const chosen = await new Promise<(() => Promise<void>) | undefined>(resolve => {
    pick.onDidAccept(() => resolve(pick.selectedItems[0]?.take));
    pick.onDidTriggerItemButton(({ item }) => resolve(item.undo));
    pick.onDidHide(() => resolve(undefined));
    pick.show();
  });
  pick.dispose();
  await chosen?.();
}
