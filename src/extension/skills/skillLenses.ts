/** Shows the lines *Run* and *Preview Routing* above a SKILL.md, and registers their commands. */

import { realpath } from 'node:fs/promises';
import * as vscode from 'vscode';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { isSkillFile } from './frontmatterPlace.ts';
import type { SkillNode } from './skillTree.ts';

export const lensProvider: vscode.CodeLensProvider = {
  provideCodeLenses({ uri }) {
    if (!isSkillFile(uri.path)) return [];
    const top = new vscode.Range(0, 0, 0, 0);
    return [
      new vscode.CodeLens(top, {
        title: '$(play) Run',
        tooltip: vscode.l10n.t('Saves the file and runs the skill in the chat'),
        command: 'telos.runSkillFile',
        arguments: [uri],
      }),
      new vscode.CodeLens(top, {
        title: vscode.l10n.t('Preview Routing'),
        tooltip: vscode.l10n.t('Shows which skills a request would find, and where this one stands'),
        command: 'telos.previewRouting',
        arguments: [undefined, uri.fsPath],
      }),
    ];
  },
};

export function registerRunSkillFile(current: CurrentTelos): vscode.Disposable {
  return vscode.commands.registerCommand('telos.runSkillFile', async (uri: vscode.Uri) => {
    const document = vscode.workspace.textDocuments.find(each => each.uri.toString() === uri.toString());
    if (document?.isDirty && (await document.save())) await current.refresh();
    const node = await findNode(current, uri.fsPath);
    if (node) {
      await vscode.commands.executeCommand('telos.runTreeSkill', node);
      return;
    }
    const show = vscode.l10n.t('Show Skills Folder');
    const message = vscode.l10n.t(
      'This file lies in none of the folders from which Telos reads skills, so it cannot run from here.',
    );
    if ((await vscode.window.showInformationMessage(message, show)) === show) {
      await vscode.commands.executeCommand('telos.showSkillsFolder');
    }
  });
}

/** Returns the skill of a file, with links resolved on both sides. */
async function findNode(current: CurrentTelos, file: string): Promise<SkillNode | undefined> {
  const agents = await (await current.openTelos()).agents();
  const nodes = agents.flatMap(agent =>
    agent.skills.map(skill => ({ kind: 'skill' as const, agent, skill })),
  );
  const exact = nodes.find(({ skill }) => skill.file === file);
  if (exact) return exact;
  const real = await realpath(file).catch(() => file);
  for (const node of nodes) {
    if ((await realpath(node.skill.file).catch(() => '')) === real) return node;
  }
  return undefined;
}
