/** The commands about trust; what they do loads with their first use. */
import * as vscode from 'vscode';
import type { CurrentTelos } from '../currentTelos.ts';
import type { AgentNode } from '../skillTree.ts';

/** `Telos: Manage Permissions...`, `Telos: Review Agent...` and `Telos: Doctor`. */
export function registerPermissions(current: CurrentTelos): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.commands.registerCommand('telos.managePermissions', async () =>
      (await import('./permissions.ts')).managePermissions(current),
    ),
    vscode.commands.registerCommand('telos.reviewAgent', async (node?: AgentNode) =>
      (await import('./permissions.ts')).reviewAgent(current, node?.agent.name),
    ),
    vscode.commands.registerCommand('telos.doctor', async () =>
      (await import('./permissions.ts')).showDoctor(current),
    ),
  );
}
