/** Implements the commands for the files of skills: create one, open one, show its folder. */

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type Agent,
  addSamplePack,
  agentNameProblem,
  copySampleFolder,
  importSkillCopies,
  skillNameProblem,
  writeNewSkill,
} from '@telos/engine/skills';
import type { Sentence } from '@telos/protocol/text';
import * as vscode from 'vscode';
import { acknowledge, complain } from '../base/acknowledge.ts';
import { askText } from '../base/askText.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, plainLabel, translated } from '../base/labels.ts';
import type { SkillNode, TreeNode } from './skillTree.ts';

/** Implements `Telos: New Skill...`. */
export async function newSkill(current: CurrentTelos): Promise<void> {
  const telos = await current.openTelos();
  const { skillsDir } = telos.config;
  const packDir = await pickPack(await telos.agents(), skillsDir);
  if (packDir === undefined) return;
  const name = await askText({
    title: vscode.l10n.t('New Skill'),
    prompt: vscode.l10n.t('The folder name, which is also the name of the skill.'),
    placeHolder: 'weekly-report',
    validateInput: name => saidOf(skillNameProblem(name)),
  });
  if (!name) return;
  const file = await writeNewSkill(join(packDir, 'skills'), name);
  if (file) {
    await current.refresh();
    await openFile(file);
  } else {
    acknowledge(vscode.l10n.t('A skill {0} already exists.', name));
  }
}

/** Copies a skill under a name that the person gives, and opens the copy. */
export async function duplicateSkill(current: CurrentTelos, { skill }: SkillNode): Promise<void> {
  const name = await askText({
    title: vscode.l10n.t('Duplicate Skill'),
    prompt: vscode.l10n.t('The name of the copy'),
    value: `${skill.id}-copy`,
    validateInput: name => saidOf(skillNameProblem(name)),
  });
  if (!name) return;
  try {
    const { duplicateSkill: duplicate } = await importSkillCopies();
    const file = await duplicate(skill, name);
    await current.refresh();
    await openFile(file);
  } catch (error) {
    complain(plainLabel(describeError(error), 500));
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
          placeHolder: vscode.l10n.t('Which agent do you want to add it to?'),
        });
  if (!pick) return undefined;
  if (pick !== another) return pick.packDir;
  const name = await askText({
    title: vscode.l10n.t('New Agent'),
    prompt: vscode.l10n.t('An agent is a folder of skills in {0}', plainLabel(skillsDir)),
    placeHolder: 'personal',
    validateInput: name => saidOf(agentNameProblem(name)),
  });
  return name && join(skillsDir, name);
}

/** Adds the agents in the folder `samples`. Those that are there already stay as they are. */
export async function addSamplePacks(current: CurrentTelos, samples: string): Promise<void> {
  const { skillsDir } = (await current.openTelos()).config;
  const added = await addSamplePack(samples, skillsDir);
  await current.refresh();
  acknowledge(
    added.length > 0
      ? vscode.l10n.t('Added {0} to {1}.', added.join(', '), plainLabel(skillsDir))
      : vscode.l10n.t('The sample pack is in {0} already; nothing was changed.', plainLabel(skillsDir)),
  );
}

/** Adds the sample's skills, and opens a copy of its folder in a window of its own: its recording plays there and nowhere else. */
export async function trySample(current: CurrentTelos, demo: string): Promise<void> {
  const { skillsDir } = (await current.openTelos()).config;
  await addSamplePack(join(demo, 'skills'), skillsDir);
  await current.refresh();
  const folder = vscode.Uri.file(await copySampleFolder(join(demo, 'workspace')));
  await vscode.commands.executeCommand('vscode.openFolder', folder, { forceNewWindow: true });
}

export async function showSkillsFolder(current: CurrentTelos): Promise<void> {
  const { skillsDir } = (await current.openTelos()).config;
  await mkdir(skillsDir, { recursive: true });
  await reveal(vscode.Uri.file(skillsDir));
}

export const revealSkill = (node: TreeNode): Promise<void> =>
  reveal(vscode.Uri.file(node.kind === 'skill' ? node.skill.file : node.agent.packDir));

export async function openFile(path: string): Promise<void> {
  await vscode.window.showTextDocument(vscode.Uri.file(path));
}

/** Shows the folder in the system's file manager. If the editor runs in a browser, its own explorer is used instead. */
export async function reveal(uri: vscode.Uri): Promise<void> {
  if (vscode.env.uiKind === vscode.UIKind.Desktop && !vscode.env.remoteName) {
    await vscode.commands.executeCommand('revealFileInOS', uri);
  } else if (vscode.workspace.getWorkspaceFolder(uri)) {
    await vscode.commands.executeCommand('revealInExplorer', uri);
  } else {
    acknowledge(
      vscode.l10n.t('It is in {0}', plainLabel(uri.fsPath, 1_000)),
      { title: vscode.l10n.t('Open in a New Window'), act: () => openWindow(uri) },
      { title: vscode.l10n.t('Copy Path'), act: () => vscode.env.clipboard.writeText(uri.fsPath) },
    );
  }
}

const saidOf = (problem: Sentence | undefined): string | undefined => problem && translated(problem);

async function openWindow(uri: vscode.Uri): Promise<void> {
  const { type } = await vscode.workspace.fs.stat(uri);
  const folder = type & vscode.FileType.Directory ? uri : vscode.Uri.joinPath(uri, '..');
  await vscode.commands.executeCommand('vscode.openFolder', folder, { forceNewWindow: true });
}

/** Offers two ways to a first skill. Resolves when the person has taken one or neither. */
export async function offerFirstSkill(): Promise<void> {
  const ways = [
    { label: vscode.l10n.t('New Skill...'), command: 'telos.newSkill' },
    { label: vscode.l10n.t('Add Sample Pack'), command: 'telos.addSamplePack' },
  ];
  const picked = await vscode.window.showQuickPick(ways, {
    title: vscode.l10n.t('There are no skills yet.'),
  });
  if (picked) await vscode.commands.executeCommand(picked.command);
}
