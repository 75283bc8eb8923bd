/** Packs of agents: a folder is installed, an installed one removed, each after it has been shown what that means. */
import * as vscode from 'vscode';
import type { CurrentTelos } from '../currentTelos.ts';
import { plainLabel } from '../plainLabel.ts';
import type { AgentNode } from '../skillTree.ts';

/** `Telos: Install Agent Pack...` in the palette, the tree and the explorer, and Uninstall in the tree. */
export function registerAgentPacks(current: CurrentTelos): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.commands.registerCommand('telos.installPack', async (uri?: unknown) => {
      const folder = uri instanceof vscode.Uri ? uri : await pickFolder();
      if (folder) await said(() => install(current, folder.fsPath));
    }),
    vscode.commands.registerCommand('telos.uninstallPack', async ({ agent }: AgentNode) => {
      await said(() => uninstall(current, agent.name));
    }),
  );
}

async function pickFolder(): Promise<vscode.Uri | undefined> {
  const picked = await vscode.window.showOpenDialog({
    title: vscode.l10n.t('A folder with an agent.toml and skills, or with a SKILL.md'),
    openLabel: vscode.l10n.t('Install'),
    canSelectFiles: false,
    canSelectFolders: true,
  });
  return picked?.[0];
}

async function install(current: CurrentTelos, folder: string): Promise<void> {
  const telos = await current.openTelos();
  const { skillsDir } = telos.config;
  const agree = vscode.l10n.t('Install');
  const answer = await vscode.window.showInformationMessage(
    vscode.l10n.t(
      'Copy {0} to {1}? Nothing of it runs by that.',
      plainLabel(folder, 500),
      plainLabel(skillsDir, 500),
    ),
    agree,
  );
  if (answer !== agree) return;
  const installed = await telos.install(folder);
  await current.refresh();
  const left =
    installed.leftOut.length > 0 ? ` ${vscode.l10n.t('Not copied: {0}.', installed.leftOut.join(', '))}` : '';
  const next = await vscode.window.showInformationMessage(
    plainLabel(`${installed.summary}.${left}`, 500),
    vscode.l10n.t('Review Agent'),
  );
  if (next) await vscode.commands.executeCommand('telos.reviewAgent', { agent: { name: installed.name } });
}

async function uninstall(current: CurrentTelos, name: string): Promise<void> {
  const telos = await current.openTelos();
  const { path, entryIn } = await telos.installed(name);
  const detail = [
    vscode.l10n.t('This folder is removed: {0}', path),
    ...(entryIn ? [vscode.l10n.t('And its entry in {0}', entryIn)] : []),
  ];
  const agree = vscode.l10n.t('Uninstall');
  const answer = await vscode.window.showWarningMessage(
    vscode.l10n.t('Uninstall agent {0}?', plainLabel(name)),
    { modal: true, detail: detail.join('\n') },
    agree,
  );
  if (answer !== agree) return;
  await telos.uninstall(name);
  await current.refresh();
}

/** What the engine refuses is for the person to read. */
async function said(act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    void vscode.window.showErrorMessage(
      plainLabel(error instanceof Error ? error.message : String(error), 500),
    );
  }
}
