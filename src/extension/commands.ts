/** Lists every command with what it does. The code of most loads when they are called. */

import * as vscode from 'vscode';
import { clearSecrets, type KeyCheck, setApiKey } from './base/apiKeys.ts';
import type { CurrentTelos } from './base/currentTelos.ts';
import type { ChatDesk } from './chat/chatHost.ts';
import type { ChatPanels, ChatView } from './chat/chatPlaces.ts';
import type { OpenChats } from './chat/openChats.ts';
import type { RunChangesView } from './chat/runChanges.ts';
import { type NativeRuns, showRunning } from './editor/editorRuns.ts';
import { onRun, type RunsView, searchRuns } from './runs/runsView.ts';
import type { AgentNode, SkillNode, SkillTree, TreeNode } from './skills/skillTree.ts';

/** Parts of the extension that the commands use. */
export interface CommandParts {
  context: Pick<vscode.ExtensionContext, 'extension' | 'extensionUri' | 'globalState' | 'secrets'>;
  current: CurrentTelos;
  skillTree: SkillTree;
  /** The chat in the sidebar, and those in editors. */
  view: ChatView;
  panels: ChatPanels;
  chats: OpenChats;
  desk: ChatDesk;
  /** Runs outside of a chat. */
  runs: NativeRuns;
  runsView: RunsView;
  changes: RunChangesView;
}

type Handler = (...given: never[]) => unknown;

export function registerCommands(parts: CommandParts): vscode.Disposable {
  return vscode.Disposable.from(
    ...Object.entries(commandsOf(parts)).map(([id, handler]) =>
      vscode.commands.registerCommand(id, handler as (...given: unknown[]) => unknown),
    ),
  );
}

function commandsOf(parts: CommandParts): Readonly<Record<`telos.${string}`, Handler>> {
  const { context, current, skillTree, view, panels, chats, desk, runs, runsView, changes } = parts;
  const places = { desk, view, panels };
  const pick = { current, chat: view, panels, memory: context.globalState, runs };
  return {
    // The chat
    'telos.newConversation': () => view.startOver(),
    'telos.stop': () => (view.isRunning ? view.stop() : chats.stop()),
    'telos.openChatInEditor': () => void panels.open(),
    'telos.moveChatToEditor': async () => (await conversations()).moveChatToEditor(places),
    'telos.stopEditorChat': () => panels.active?.host.chat.stop(),
    'telos.newEditorConversation': () => panels.active?.host.chat.startOver(),
    'telos.openConversation': async (given?: unknown) =>
      (await conversations()).openConversation(places, given),
    'telos.showRunning': () => showRunning({ chats, runs }),
    'telos.showQuestion': () => chats.showQuestion(),

    // Skills
    'telos.runSkill': async () => (await picking()).runSkill(pick),
    'telos.runSkillOnSelection': async () => (await picking()).runSkillOnSelection(pick),
    'telos.runSkillOnTerminalSelection': async () => (await picking()).runSkillOnTerminalSelection(pick),
    'telos.runSkillOnFile': async (uri?: vscode.Uri, chosen?: readonly vscode.Uri[]) =>
      (await picking()).runSkillOnFile(pick, uri, chosen),
    'telos.runTreeSkill': async (node: SkillNode) => (await picking()).runTreeSkill(pick, node),
    'telos.runSkillFile': async (uri: vscode.Uri) => (await picking()).runSkillFile(pick, uri),
    'telos.previewRouting': async (text?: unknown, file?: unknown) =>
      (await import('./skills/previewRouting.ts')).askAndPreview(current, view, text, file),
    'telos.teachSkills': async () => (await teaching()).teachSkills(current),
    'telos.forgetChoices': async () => (await teaching()).forgetChoices(current),
    'telos.whatIsMissing': async (node: SkillNode) =>
      (await import('./skills/skillTree.ts')).showMissing(node),
    'telos.filterSkills': async () => (await import('./skills/skillTree.ts')).filterSkills(skillTree),
    'telos.clearSkillFilter': () => {
      skillTree.filter = '';
    },
    'telos.addFavorite': (node: SkillNode) => skillTree.setFavorite(node, true),
    'telos.removeFavorite': (node: SkillNode) => skillTree.setFavorite(node, false),
    'telos.disableSkill': (node: SkillNode) => skillTree.setDisabled(node, true),
    'telos.enableSkill': (node: SkillNode) => skillTree.setDisabled(node, false),
    'telos.refresh': () => current.refresh(),
    'telos.newSkill': async () => (await folders()).newSkill(current),
    'telos.addSamplePack': async () =>
      (await folders()).addSamplePacks(
        current,
        vscode.Uri.joinPath(context.extensionUri, 'media', 'demo', 'skills').fsPath,
      ),
    'telos.trySample': async () =>
      (await folders()).trySample(current, vscode.Uri.joinPath(context.extensionUri, 'media', 'demo').fsPath),
    'telos.showSkillsFolder': async () => (await folders()).showSkillsFolder(current),
    'telos.openSkillFile': async ({ skill }: Pick<SkillNode, 'skill'>) =>
      (await folders()).openFile(skill.file),
    'telos.duplicateSkill': async (node: SkillNode) => (await folders()).duplicateSkill(current, node),
    'telos.uninstallSkill': async (node: SkillNode) => (await packs()).uninstallSkill(current, node),
    'telos.revealSkill': async (node: TreeNode) => (await folders()).revealSkill(node),

    // Agents and what they may do
    'telos.installPack': async (uri?: unknown) => (await packs()).installPack(current, uri),
    'telos.installSkills': async (source?: unknown) =>
      (await import('./skills/gallery.ts')).installSkills(current, source),
    'telos.checkForUpdates': async () => (await updates()).checkForUpdates(current, skillTree),
    'telos.pinAgent': async (node: AgentNode) => (await updates()).pinAgent(current, node, true),
    'telos.unpinAgent': async (node: AgentNode) => (await updates()).pinAgent(current, node, false),
    'telos.uninstallPack': async (node: AgentNode) => (await packs()).uninstallPack(current, node),
    'telos.undoInstall': async () => (await packs()).undoInstall(current),
    'telos.exportAgent': async (node?: AgentNode) => (await exporting()).exportAgent(current, node?.agent),
    'telos.useAgentInChat': async (node?: AgentNode) => (await chatPlugins()).useInChat(current, node?.agent),
    'telos.stopUsingAgentInChat': async (node?: AgentNode) =>
      (await chatPlugins()).stopUsingInChat(current, node?.agent),
    'telos.managePermissions': async () => (await trust()).managePermissions(current),
    'telos.chooseWorkFolder': async (node?: AgentNode) =>
      (await trust()).chooseWorkFolder(current, node?.agent.name),
    'telos.reviewAgent': async (node?: AgentNode) => (await trust()).reviewAgent(current, node?.agent.name),

    // Set-up
    'telos.setApiKey': () => setApiKey(context.secrets, keyCheck(current)),
    'telos.clearSecrets': () => clearSecrets(context.secrets),
    'telos.chooseModel': async () => (await import('./editor/chooseModel.ts')).chooseModel(current),
    'telos.installCommand': async () => (await import('./editor/terminalCommand.ts')).installCommand(context),
    'telos.doctor': async () => (await trust()).showDoctor(current),
    'telos.openLog': async () => (await trust()).openLog(current),

    // Runs. In the menu of a run, two commands have a name that does not mention the last run.
    'telos.showChanges': (target: unknown) => changes.showTarget(target),
    'telos.showRunChanges': (target: unknown) => changes.showTarget(target),
    'telos.undoRun': (target: unknown) => changes.undoTarget(target),
    'telos.undoThisRun': (target: unknown) => changes.undoTarget(target),
    'telos.refreshRuns': () => runsView.tree.refresh(),
    'telos.searchRuns': () => searchRuns(runsView),
    'telos.clearRunSearch': () => runsView.search(''),
    'telos.openRun': onRun(runsView, (actions, node) => actions.open(node)),
    'telos.openRunToSide': onRun(runsView, (actions, node) => actions.open(node, { panel: true })),
    'telos.resumeRun': onRun(runsView, (actions, node) => actions.open(node, { resume: true })),
    'telos.replayRun': onRun(runsView, (actions, node) => actions.open(node, { replay: true })),
    'telos.renameRun': onRun(runsView, (actions, node) => actions.rename(node)),
    'telos.deleteRun': onRun(runsView, (actions, _node, selected) => actions.delete(selected)),
    'telos.exportRun': onRun(runsView, (actions, node) => actions.export(node)),
    'telos.compareRun': onRun(runsView, (actions, node, selected) => actions.compare(node, selected)),
  };
}

const conversations = () => import('./runs/openConversation.ts');
const picking = () => import('./pickSkill.ts');
const teaching = () => import('./skills/teachSkills.ts');
const folders = () => import('./skills/skillFolders.ts');
const updates = () => import('./skills/packUpdates.ts');
const packs = () => import('./skills/agentPacks.ts');
const exporting = () => import('./editor/exportAgent.ts');
const chatPlugins = () => import('./editor/chatPlugins.ts');
const trust = () => import('./editor/permissions.ts');

const keyCheck =
  (current: CurrentTelos): KeyCheck =>
  async (variable, key) => {
    const [{ config }, { checkKey, keyedProvider }] = await Promise.all([
      current.openTelos(),
      import('../engine/providers/keys.ts'),
    ]);
    const provider = keyedProvider(variable);
    if (!provider) return {};
    const ping = await checkKey(config, provider.name, key, AbortSignal.timeout(15_000));
    return ping.ok ? {} : ping;
  };
