/** Implements the commands for the files of skills: create one, open one, show its folder. */

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import type { Agent } from '../../engine/skills/agent.ts';
import {
  addSamplePack,
  agentNameProblem,
  packNameProblem,
  skillNameProblem,
  writeNewSkill,
} from '../../engine/skills/scaffold.ts';
import { describeOrigin, describeReplacement, type InstallPlan } from '../../protocol/installPlan.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeTime, plainLabel, t, visibleText } from '../base/labels.ts';
import type { AgentNode, SkillNode, TreeNode } from './skillTree.ts';
import { undoPack } from './undoPacks.ts';

/**
 * Registers `Telos: New Skill...`, `Telos: Add Sample Pack`, `Telos: Show Skills Folder`, and Open and Reveal in the
 * tree.
 */
export function registerSkillFolders(current: CurrentTelos, extensionUri: vscode.Uri): vscode.Disposable {
  const samples = vscode.Uri.joinPath(extensionUri, 'media', 'demo', 'skills').fsPath;
  return vscode.Disposable.from(
    vscode.commands.registerCommand('telos.newSkill', () => newSkill(current)),
    vscode.commands.registerCommand('telos.addSamplePack', () => addSamples(current, samples)),
    vscode.commands.registerCommand('telos.showSkillsFolder', async () => {
      const { skillsDir } = (await current.openTelos()).config;
      await mkdir(skillsDir, { recursive: true });
      await reveal(vscode.Uri.file(skillsDir));
    }),
    vscode.commands.registerCommand('telos.openSkillFile', ({ skill }: Pick<SkillNode, 'skill'>) =>
      openFile(skill.file),
    ),
    vscode.commands.registerCommand('telos.revealSkill', (node: TreeNode) =>
      reveal(vscode.Uri.file(node.kind === 'skill' ? node.skill.file : node.agent.packDir)),
    ),
  );
}

async function newSkill(current: CurrentTelos): Promise<void> {
  const telos = await current.openTelos();
  const { skillsDir } = telos.config;
  const packDir = await pickPack(await telos.agents(), skillsDir);
  if (packDir === undefined) return;
  const name = await vscode.window.showInputBox({
    title: vscode.l10n.t('New Skill'),
    prompt: vscode.l10n.t('The name of its folder. People call the skill by it.'),
    placeHolder: 'weekly-report',
    validateInput: skillNameProblem,
  });
  if (!name) return;
  const file = await writeNewSkill(join(packDir, 'skills'), name);
  if (file) {
    await current.refresh();
    await openFile(file);
  } else {
    void vscode.window.showWarningMessage(
      vscode.l10n.t('There is a skill {0} already; it stays as it is.', name),
    );
  }
}

/** Returns the folder of the agent that gets the skill, or undefined if the person cancels. */
async function pickPack(agents: readonly Agent[], skillsDir: string): Promise<string | undefined> {
  // A bare skill is its own agent. There is no place for a second skill next to it.
  const packs = agents.filter(
    ({ source, skills, packDir }) => source === 'user' && !skills.some(({ dir }) => dir === packDir),
  );
  const items = packs.map(({ name, description, packDir }) => ({
    label: plainLabel(name),
    detail: plainLabel(description),
    packDir,
  }));
  const another = {
    label: vscode.l10n.t('New agent...'),
    detail: vscode.l10n.t('A folder of its own for skills that belong together'),
    packDir: '',
  };
  const pick =
    items.length === 0
      ? another
      : await vscode.window.showQuickPick([...items, another], {
          title: vscode.l10n.t('New Skill'),
          placeHolder: vscode.l10n.t('Which agent gets it?'),
        });
  if (!pick) return undefined;
  if (pick !== another) return pick.packDir;
  const name = await vscode.window.showInputBox({
    title: vscode.l10n.t('New Agent'),
    prompt: vscode.l10n.t('An agent is a folder of skills in {0}', plainLabel(skillsDir)),
    placeHolder: 'personal',
    validateInput: agentNameProblem,
  });
  return name && join(skillsDir, name);
}

async function addSamples(current: CurrentTelos, samples: string): Promise<void> {
  const { skillsDir } = (await current.openTelos()).config;
  const added = await addSamplePack(samples, skillsDir);
  await current.refresh();
  void vscode.window.showInformationMessage(
    added.length > 0
      ? vscode.l10n.t('Added {0} to {1}.', added.join(', '), plainLabel(skillsDir))
      : vscode.l10n.t('The sample pack is in {0} already; nothing was changed.', plainLabel(skillsDir)),
  );
}

async function openFile(path: string): Promise<void> {
  await vscode.window.showTextDocument(vscode.Uri.file(path));
}

/** Shows the folder in the system's file manager. If the editor runs in a browser, its own explorer is used instead. */
async function reveal(uri: vscode.Uri): Promise<void> {
  if (vscode.env.uiKind === vscode.UIKind.Desktop && !vscode.env.remoteName) {
    await vscode.commands.executeCommand('revealFileInOS', uri);
  } else if (vscode.workspace.getWorkspaceFolder(uri)) {
    await vscode.commands.executeCommand('revealInExplorer', uri);
  } else {
    const openWindow = vscode.l10n.t('Open in a New Window');
    const copyPath = vscode.l10n.t('Copy Path');
    const answer = await vscode.window.showInformationMessage(
      vscode.l10n.t('It lies in {0}', plainLabel(uri.fsPath, 1_000)),
      openWindow,
      copyPath,
    );
    if (answer === copyPath) await vscode.env.clipboard.writeText(uri.fsPath);
    if (answer === openWindow) {
      const { type } = await vscode.workspace.fs.stat(uri);
      const folder = type & vscode.FileType.Directory ? uri : vscode.Uri.joinPath(uri, '..');
      await vscode.commands.executeCommand('vscode.openFolder', folder, { forceNewWindow: true });
    }
  }
}

/** Registers `Telos: Install Agent Pack...` in the palette, the tree and the explorer, and Uninstall in the tree. */
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

/** Runs an action, and shows the person an error that the engine throws. */
async function said(act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    void vscode.window.showErrorMessage(
      plainLabel(error instanceof Error ? error.message : String(error), 500),
    );
  }
}

/** Offers two ways to a first skill. Resolves when the person has taken one or neither. */
export async function offerFirstSkill(): Promise<void> {
  const commands: Readonly<Record<string, string>> = {
    [vscode.l10n.t('New Skill...')]: 'telos.newSkill',
    [vscode.l10n.t('Add the Sample Pack')]: 'telos.addSamplePack',
  };
  const answer = await vscode.window.showInformationMessage(
    vscode.l10n.t('There are no skills yet.'),
    ...Object.keys(commands),
  );
  const command = answer && commands[answer];
  if (command) await vscode.commands.executeCommand(command);
}
