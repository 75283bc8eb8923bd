/** *Try a Plan*: makes the demo's project and plan in a temporary folder, opens it in a window of its own, and shows the card there. */

import { join } from 'node:path';
import { Telos } from '@telos/engine/telos';
import { makeDemoPlan, makeDemoProject, playingDemo } from '@telos/plans/run';
import * as vscode from 'vscode';
import { acknowledge } from '../base/acknowledge.ts';
import type { PlanNode } from './planItem.ts';
import type { PlansTree } from './plansTree.ts';
import { pickHuman } from './quickPickHuman.ts';

const filesOf = (extensionUri: vscode.Uri): string => join(extensionUri.fsPath, 'media', 'plan-demo');

/** Returns an engine that plays the demo. Its runs are kept beside the person's own. */
export const playingTelos = ({ config }: Telos, extensionUri: vscode.Uri): Telos =>
  Telos.open(playingDemo(config, filesOf(extensionUri)));

/** Brings the demo to its card and opens its window. Throws TelosError `config` if git or Node is missing. */
export async function tryPlan(telos: Telos, extensionUri: vscode.Uri): Promise<void> {
  const bar = {
    location: vscode.ProgressLocation.Notification,
    title: vscode.l10n.t('Creating a sample project and its plan'),
  };
  const repo = await vscode.window.withProgress(bar, async () => {
    const made = await makeDemoProject(filesOf(extensionUri), telos.config.env);
    const caller = { runs: playingTelos(telos, extensionUri), human: pickHuman, by: 'editor' as const };
    await makeDemoPlan(made, caller, () => undefined, new AbortController().signal);
    return made;
  });
  await vscode.commands.executeCommand('vscode.openFolder', vscode.Uri.file(repo), { forceNewWindow: true });
}

/** Shows the demo's plan and its card, once the workspace is trusted. */
export async function showDemo(tree: PlansTree, showCard: (node: PlanNode) => Promise<void>): Promise<void> {
  if (!vscode.workspace.isTrusted) {
    const granted = vscode.workspace.onDidGrantWorkspaceTrust(() => {
      granted.dispose();
      void showDemo(tree, showCard);
    });
    return;
  }
  await tree.children();
  const [node] = tree.plans;
  if (node?.look?.state.phase !== 'stories_review') return;
  await vscode.commands.executeCommand('telos.plans.focus');
  await vscode.window.showTextDocument(vscode.Uri.file(node.folder.path('plan.md')), { preview: false });
  await showCard(node);
  acknowledge(vscode.l10n.t('A recording answers in place of a model here; the checks are real.'));
}
