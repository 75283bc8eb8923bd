/** Undoes installs and uninstalls of agents, after showing what that means. */
import * as vscode from 'vscode';
import type { FolderDifference } from '../../engine/files/folderRecord.ts';
import type { FolderState } from '../../engine/files/replacedFolders.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { plainLabel } from '../base/labels.ts';

/** The number of files that a question names at most. */
const mostNamed = 12;

/** Asks, and then undoes the latest install or uninstall, or the one with this id. */
export async function undoPack(current: CurrentTelos, id?: string): Promise<void> {
  const telos = await current.openTelos();
  const meant = id ?? (await telos.replaced.list())[0]?.id;
  if (meant === undefined) {
    void vscode.window.showInformationMessage(
      vscode.l10n.t('No agent was installed or uninstalled in the last 30 days.'),
    );
    return;
  }
  const found = await telos.replaced.look(meant);
  if (found.state === 'undone') {
    void vscode.window.showInformationMessage(vscode.l10n.t('This is undone already.'));
    return;
  }
  const isBlocked = found.state === 'edited' || found.state === 'occupied';
  const agree = isBlocked ? vscode.l10n.t('Undo Anyway') : vscode.l10n.t('Undo');
  const answer = await vscode.window.showWarningMessage(
    questionOf(found),
    { modal: true, detail: detailOf(found).join('\n') },
    agree,
  );
  if (answer !== agree) return;
  const { record, leftAlone } = await telos.undoFolder(meant, { force: isBlocked });
  await current.refresh();
  const done = vscode.l10n.t('Undone. Agent {0} is as it was before.', plainLabel(record.agent));
  const left = leftAlone.map(file =>
    vscode.l10n.t('{0} was edited since and was not changed.', plainLabel(file, 500)),
  );
  void vscode.window.showInformationMessage([done, ...left].join(' '));
}

function questionOf({ record }: FolderState): string {
  const agent = plainLabel(record.agent);
  switch (record.kind) {
    case 'install':
      return vscode.l10n.t('Undo the install of agent {0}?', agent);
    case 'uninstall':
      return vscode.l10n.t('Undo the uninstall of agent {0}?', agent);
    case 'undo':
      return vscode.l10n.t('Bring back the edited agent {0}?', agent);
  }
}

function detailOf({ record, state, edits, brings }: FolderState): string[] {
  const place = plainLabel(record.target, 500);
  return [
    record.kept === null
      ? vscode.l10n.t('This folder is removed: {0}', place)
      : vscode.l10n.t('This folder becomes what it was before: {0}', place),
    ...named(brings ?? []),
    ...(state === 'edited' ? ['', vscode.l10n.t('It was edited since. The edited one is kept, too.')] : []),
    ...(state === 'occupied'
      ? ['', vscode.l10n.t('Another folder is in its place now. That one is kept, too.')]
      : []),
    ...named(edits ?? []),
  ];
}

function named(differences: readonly FolderDifference[]): string[] {
  const lines = differences.map(
    ({ path, change }) => `${{ added: '+', changed: '~', removed: '−' }[change]} ${plainLabel(path)}`,
  );
  if (lines.length <= mostNamed) return lines;
  const more = String(lines.length - mostNamed + 1);
  return [...lines.slice(0, mostNamed - 1), vscode.l10n.t('and {0} more', more)];
}
