/** `Telos: Open Log`: what the runs of today did, as they wrote it down. */
import { access } from 'node:fs/promises';
import * as vscode from 'vscode';
import type { CurrentTelos } from './currentTelos.ts';
import { plainLabel } from './plainLabel.ts';

export function registerOpenLog(current: CurrentTelos): vscode.Disposable {
  return vscode.commands.registerCommand('telos.openLog', async () => {
    const [{ config }, { logPath }] = await Promise.all([
      current.openTelos(),
      import('../engine/logFile.ts'),
    ]);
    const file = logPath(config.dataDir);
    try {
      await access(file);
    } catch {
      void vscode.window.showInformationMessage(
        vscode.l10n.t('No run was written down today. The first one makes {0}', plainLabel(file, 1_000)),
      );
      return;
    }
    await vscode.window.showTextDocument(vscode.Uri.file(file));
  });
}
