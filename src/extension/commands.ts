/** Lists every command with what it does. The code of most loads when they are called. */

import { importKeys } from '@telos/engine/providers';
import type { Offer } from '@telos/packs/install';
import * as vscode from 'vscode';
import { clearSecrets, type KeyCheck, setApiKey } from './base/apiKeys.ts';
import type { CurrentTelos } from './base/currentTelos.ts';
import type { ChatDesk } from './chat/chatHost.ts';
import type { ChatPanels, ChatView } from './chat/chatPlaces.ts';
import type { OpenChats } from './chat/openChats.ts';
import type { RunChangesView } from './chat/runChanges.ts';
import { type NativeRuns, showRunning } from './editor/editorRuns.ts';
import type { PlansView } from './editor/plansView.ts';
import type { ServerNode, ServersView, ServerToolNode } from './editor/serverTree.ts';
import { onRun, type RunsView, searchRuns } from './runs/runsView.ts';
import type { ScheduleNode } from './runs/scheduleItem.ts';
import type { AgentNode, SkillNode, SkillTree, TreeNode } from './skills/skillTree.ts';

/** Parts of the extension that the commands use. */
export interface CommandParts {
  context: Pick<
    vscode.ExtensionContext,
    'extension' | 'extensionUri' | 'globalState' | 'globalStorageUri' | 'secrets'
  >;
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
  plans: PlansView;
  changes: RunChangesView;
  servers: ServersView;
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
  const { context, current, skillTree, view, panels, chats, desk, runs, runsView, plans, changes, servers } =
    parts;
  const places = { desk, view, panels };
  const { schedules } = runsView;
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
    'telos.configureSkill': async (node: SkillNode) =>
      (await import('./skills/configureSkill.ts')).configureSkill(current, node),
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

    'telos.improveSkill': async (given?: unknown) =>
      (await import('./editor/improveSkill.ts')).improveSkill(current, given),
    'telos.keepProposal': async (uri?: vscode.Uri) => (await proposals()).decide(true, uri),
    'telos.dropProposal': async (uri?: vscode.Uri) => (await proposals()).decide(false, uri),

    'telos.scheduleSkill': schedules.on<SkillNode>('skill', (actions, all, node) =>
      actions.scheduleSkill(all, node),
    ),
    'telos.openSchedule': schedules.on<ScheduleNode>('schedule', (actions, all, node) =>
      actions.openSchedule(all, node),
    ),
    'telos.runSchedule': schedules.on<ScheduleNode>('schedule', (actions, all, node) =>
      actions.runSchedule(all, node),
    ),
    'telos.pauseSchedule': schedules.on<ScheduleNode>('schedule', (actions, all, node) =>
      actions.pauseSchedule(all, node, true),
    ),
    'telos.resumeSchedule': schedules.on<ScheduleNode>('schedule', (actions, all, node) =>
      actions.pauseSchedule(all, node, false),
    ),
    'telos.removeSchedule': schedules.on<ScheduleNode>('schedule', (actions, all, node) =>
      actions.removeSchedule(all, node),
    ),

    // Agents and what they may do
    'telos.installPack': async (uri?: unknown) => (await packs()).installPack(current, uri),
    'telos.installSkills': async (source?: unknown) =>
      (await import('./skills/gallery.ts')).installSkills(current, source),
    'telos.tryOnce': async (offer: Offer) => (await import('./editor/tryOnce.ts')).tryOnce(current, offer),
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

    // MCP servers
    'telos.addMcpServer': async () => (await serverActions()).addServer(servers),
    'telos.importMcpServers': async () => (await serverActions()).importServers(servers),
    'telos.refreshMcpServers': async () => (await servers.tree()).refresh(),
    'telos.restartMcpServer': async (node?: ServerNode) =>
      (await serverActions()).restartServer(servers, node),
    'telos.showMcpServerLog': async (node?: ServerNode) => (await serverActions()).showLog(servers, node),
    'telos.signInMcpServer': async (node?: ServerNode) => (await serverActions()).signIn(servers, node),
    'telos.signOutMcpServer': async (node?: ServerNode) => (await serverActions()).signOut(servers, node),
    'telos.toggleMcpTool': async (node?: ServerToolNode) => (await serverActions()).toggleTool(servers, node),
    'telos.boxMcpServer': async (node?: ServerNode) => (await serverActions()).setBoxed(servers, true, node),
    'telos.unboxMcpServer': async (node?: ServerNode) =>
      (await serverActions()).setBoxed(servers, false, node),
    'telos.openMcpFile': async (node?: ServerNode) => (await serverActions()).openServerFile(node),

    // Set-up
    'telos.setApiKey': () => setApiKey(context.secrets, keyCheck(current)),
    'telos.clearSecrets': () => clearSecrets(context.secrets),
    'telos.chooseModel': async () => (await import('./editor/chooseModel.ts')).chooseModel(current),
    'telos.installCommand': async () => (await import('./editor/terminalCommand.ts')).installCommand(context),
    'telos.doctor': async () => (await trust()).showDoctor(current),
    'telos.openLog': async () => (await trust()).openLog(current),

    // Plans
    'telos.tryPlan': () => plans.act('demo', undefined),
    'telos.newPlan': (given?: unknown) => plans.act('new', given),
    'telos.approvePlan': (node?: unknown) => plans.act('approve', node),
    'telos.requestPlanChanges': (node?: unknown) => plans.act('change', node),
    'telos.addPlanComment': (reply: vscode.CommentReply) => plans.comment(reply),
    'telos.resolvePlanComment': (thread: vscode.CommentThread) => plans.resolveComment(thread),
    'telos.reviewPlanCard': (node?: unknown) => plans.act('card', node),
    'telos.runPlan': (node?: unknown) => plans.act('run', node),
    'telos.runPlanOnWorkers': (node?: unknown) => plans.act('workers', node),
    'telos.setWorkers': async () => (await import('./editor/workers.ts')).setWorkers(context.secrets),
    'telos.runPlanUntil': (node?: unknown) => plans.act('until', node),
    'telos.checkStory': (node?: unknown) => plans.act('check', node),
    'telos.pausePlan': (node?: unknown) => plans.act('pause', node),
    'telos.stopPlan': (node?: unknown) => plans.act('stop', node),
    'telos.openPlan': (node?: unknown) => plans.act('open', node),
    'telos.showStoryChanges': (node?: unknown) => plans.act('changes', node),
    'telos.showPlanReport': (node?: unknown) => plans.act('report', node),
    'telos.answerPlan': (node?: unknown) => plans.act('answer', node),
    'telos.tellPlan': (node?: unknown) => plans.act('tell', node),
    'telos.skipStory': (node?: unknown) => plans.act('skip', node),
    'telos.redoStory': (node?: unknown) => plans.act('redo', node),
    'telos.acceptStory': (node?: unknown) => plans.act('accept', node),
    'telos.splitStory': (node?: unknown) => plans.act('split', node),
    'telos.raisePlanBudget': (node?: unknown) => plans.act('budget', node),

    // Runs. In the menu of a run, two commands have a name that does not mention the last run.
    'telos.showChanges': (target: unknown) => changes.showTarget(target),
    'telos.showRunChanges': (target: unknown) => changes.showTarget(target),
    'telos.undoRun': (target: unknown) => changes.undoTarget(target),
    'telos.undoThisRun': (target: unknown) => changes.undoTarget(target),
    'telos.showToday': async () => (await import('./runs/todayPage.ts')).showToday(current),
    'telos.showDayChanges': async () =>
      (await import('./runs/dayChanges.ts')).showDayChanges(current, changes),
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
const proposals = () => import('./editor/proposedEdit.ts');
const folders = () => import('./skills/skillFolders.ts');
const updates = () => import('./skills/packUpdates.ts');
const packs = () => import('./skills/agentPacks.ts');
const exporting = () => import('./editor/exportAgent.ts');
const chatPlugins = () => import('./editor/chatPlugins.ts');
const trust = () => import('./editor/permissions.ts');
const serverActions = () => import('./editor/serverActions.ts');

const keyCheck =
  (current: CurrentTelos): KeyCheck =>
  async (variable, key) => {
    const [{ config }, { checkKey, keyedProvider }] = await Promise.all([current.openTelos(), importKeys()]);
    const provider = keyedProvider(variable);
    if (!provider) return {};
    const ping = await checkKey(config, provider.name, key, AbortSignal.timeout(15_000));
    return ping.ok ? {} : ping;
  };
