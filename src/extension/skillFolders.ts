/** The commands around the files of skills: make one, open one, show where they lie. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import type { Agent } from '../engine/agents/agent.ts';
import { agentNameProblem, skillNameProblem, writeNewSkill } from '../engine/packs/newSkill.ts';
import { addSamplePack } from '../engine/packs/samplePack.ts';
import type { CurrentTelos } from './currentTelos.ts';
import { plainLabel } from './plainLabel.ts';
import type { SkillNode, TreeNode } from './skillTree.ts';

/** `Telos: New Skill...`, `Telos: Add Sample Pack`, `Telos: Show Skills Folder`, and Open and Reveal in the tree. */
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

/** The folder of the agent that gets the skill; undefined when the person has thought better of it. */
async function pickPack(agents: readonly Agent[], skillsDir: string): Promise<string | undefined> {
  // A bare skill is an agent of one; a second skill has no place beside it.
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

/** In the system's file manager, or, where the editor runs in a browser and there is none, in its own explorer. */
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
