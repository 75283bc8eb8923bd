/** Registers the commands about trust and the log. Their code is loaded on first use. */

import { access } from 'node:fs/promises';
import * as vscode from 'vscode';
import type { CurrentTelos } from './base/currentTelos.ts';
import { plainLabel } from './base/labels.ts';
import type { AgentNode } from './skills/skillTree.ts';

/** Registers `Telos: Manage Permissions...`, `Telos: Review Agent...` and `Telos: Doctor`. */
export function registerPermissions(current: CurrentTelos): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.commands.registerCommand('telos.managePermissions', async () =>
      (await import('./editor/permissions.ts')).managePermissions(current),
    ),
    vscode.commands.registerCommand('telos.reviewAgent', async (node?: AgentNode) =>
      (await import('./editor/permissions.ts')).reviewAgent(current, node?.agent.name),
    ),
    vscode.commands.registerCommand('telos.doctor', async () =>
      (await import('./editor/permissions.ts')).showDoctor(current),
    ),
  );
}

export function registerOpenLog(current: CurrentTelos): vscode.Disposable {
  return vscode.commands.registerCommand('telos.openLog', async () => {
    const [{ config }, { logPath }] = await Promise.all([
      current.openTelos(),
      import('../engine/records/logFile.ts'),
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
