/** Packs of agents: a folder is installed, an installed one removed, each after it has been shown what that means. */
import * as vscode from 'vscode';
import { packNameProblem } from '../../engine/packs/packName.ts';
import { describeOrigin, describeReplacement, type InstallPlan } from '../../protocol/installPlan.ts';
import type { CurrentTelos } from '../currentTelos.ts';
import { plainLabel } from '../plainLabel.ts';
import type { AgentNode } from '../skillTree.ts';
import { visibleText } from '../visibleText.ts';
import { describeTime, t } from '../words.ts';
import { undoPack } from './undoPacks.ts';

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
    vscode.commands.registerCommand('telos.undoInstall', () => said(() => undoPack(current))),
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

async function install(current: CurrentTelos, folder: string, as?: string): Promise<void> {
  const telos = await current.openTelos();
  const plan = await telos.planInstall(folder, { as });
  const isReplacing = plan.replaces !== undefined && !plan.replaces.isSame;
  const answer = await (isReplacing ? agreesToReplace(plan) : agreesToCopy(plan, telos.config.skillsDir));
  if (answer === 'rename') {
    const name = await askName(plan.name);
    return name === undefined ? undefined : install(current, folder, name);
  }
  if (answer !== 'yes') return;
  const installed = await telos.install(folder, { as, agreed: plan.token });
  await current.refresh();
  const left =
    installed.leftOut.length > 0 ? ` ${vscode.l10n.t('Not copied: {0}.', installed.leftOut.join(', '))}` : '';
  const review = vscode.l10n.t('Review Agent');
  const undo = vscode.l10n.t('Undo');
  const next = await vscode.window.showInformationMessage(
    plainLabel(`${installed.summary}.${left}`, 500),
    review,
    ...(installed.undoId === undefined ? [] : [undo]),
  );
  if (next === review)
    await vscode.commands.executeCommand('telos.reviewAgent', { agent: { name: installed.name } });
  if (next === undo) await undoPack(current, installed.undoId);
}

async function agreesToCopy({ source }: InstallPlan, skillsDir: string): Promise<'yes' | 'no'> {
  const agree = vscode.l10n.t('Install');
  const answer = await vscode.window.showInformationMessage(
    vscode.l10n.t(
      'Copy {0} to {1}? Nothing of it runs by that.',
      plainLabel(source, 500),
      plainLabel(skillsDir, 500),
    ),
    agree,
  );
  return answer === agree ? 'yes' : 'no';
}

async function agreesToReplace(plan: InstallPlan): Promise<'yes' | 'rename' | 'no'> {
  const replace = vscode.l10n.t('Replace');
  const rename = vscode.l10n.t('Use Another Name...');
  const detail = [...describeReplacement(plan, timeOf, t), '', keptText()];
  const answer = await vscode.window.showWarningMessage(
    vscode.l10n.t('Replace agent {0}?', plainLabel(plan.name)),
    { modal: true, detail: detail.map(line => visibleText(line)).join('\n') },
    replace,
    rename,
  );
  if (answer === rename) return 'rename';
  return answer === replace ? 'yes' : 'no';
}

const timeOf = (iso: string): string => describeTime(new Date(iso));

const keptText = (): string => vscode.l10n.t('The old folder is kept for 30 days; Undo brings it back.');

async function askName(taken: string): Promise<string | undefined> {
  return vscode.window.showInputBox({
    title: vscode.l10n.t('Install Under Another Name'),
    prompt: vscode.l10n.t('The name of the new agent'),
    value: `${taken} 2`,
    validateInput: name =>
      packNameProblem(name) === undefined ? undefined : vscode.l10n.t('An agent cannot have this name.'),
  });
}

async function uninstall(current: CurrentTelos, name: string): Promise<void> {
  const telos = await current.openTelos();
  const { path, entryIn, origin, edited = 0 } = await telos.installed(name);
  const detail = [
    vscode.l10n.t('This folder is removed: {0}', path),
    describeOrigin(origin, timeOf, t),
    ...(edited > 0
      ? [vscode.l10n.t('Files that were edited, added or deleted since: {0}', String(edited))]
      : []),
    ...(entryIn ? [vscode.l10n.t('And its entry in {0}', entryIn)] : []),
    keptText(),
  ];
  const agree = vscode.l10n.t('Uninstall');
  const answer = await vscode.window.showWarningMessage(
    vscode.l10n.t('Uninstall agent {0}?', plainLabel(name)),
    { modal: true, detail: detail.map(line => visibleText(line)).join('\n') },
    agree,
  );
  if (answer !== agree) return;
  const { undoId } = await telos.uninstall(name);
  await current.refresh();
  const undo = vscode.l10n.t('Undo');
  const next = await vscode.window.showInformationMessage(
    vscode.l10n.t('Agent {0} is uninstalled.', plainLabel(name)),
    undo,
  );
  if (next === undo) await undoPack(current, undoId);
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
