/**
 * Activates Telos in the editor. Everything is created and registered here, but nothing is loaded before it is used.
 */

import * as vscode from 'vscode';
import { registerApiKeys } from './base/apiKeys.ts';
import { CurrentTelos } from './base/currentTelos.ts';
import { editorRipgrep } from './base/editorRipgrep.ts';
import { speak } from './base/labels.ts';
import { LastEditor } from './base/lastEditor.ts';
import { StatusBar } from './base/statusBar.ts';
import { BrowserSignIn, registerUriHandler, signInPath } from './browserSignIn.ts';
import { registerChatPanels, registerChatView } from './chat/chatPlaces.ts';
import { OpenChats } from './chat/openChats.ts';
import { RunChangesView } from './chat/runChanges.ts';
import { StoredConversations } from './chat/storedConversations.ts';
import { registerOpenLog, registerPermissions } from './commands.ts';
import { registerChatParticipant } from './editor/chatParticipant.ts';
import { registerChooseModel } from './editor/chooseModel.ts';
import { NativeRuns, registerShowRunning } from './editor/editorRuns.ts';
import { lmProviderName, lmProviderWithMemory, registerLmModels } from './editor/lmProvider.ts';
import { registerOfferedModels } from './editor/offeredModels.ts';
import { registerOfferedServers } from './editor/offeredServers.ts';
import { RunLink } from './editor/runLink.ts';
import { registerSkillTask } from './editor/skillTask.ts';
import { registerSkillTools } from './editor/skillTools.ts';
import { registerRunSkill } from './pickSkill.ts';
import { registerOpenConversation } from './runs/openConversation.ts';
import { registerRunsView } from './runs/runsView.ts';
import { registerPreviewRouting } from './skills/previewRouting.ts';
import { registerAgentPacks, registerSkillFolders } from './skills/skillFolders.ts';
import { registerSkillLanguage } from './skills/skillProblems.ts';
import { registerSkillTree, registerWhatIsMissing, SkillTree } from './skills/skillTree.ts';
import { registerSkillWatch } from './skills/skillWatch.ts';

/** The values that other extensions can use. */
export interface ExtensionExports {
  /** The tree *Agents & Skills*. */
  skillTree: SkillTree;
  status: StatusBar;
}

let openChats: OpenChats | undefined;
let nativeRuns: NativeRuns | undefined;

export function activate(context: vscode.ExtensionContext): ExtensionExports {
  speak(vscode.l10n.t, vscode.env.language);
  const log = vscode.window.createOutputChannel('Telos', { log: true });
  const ripgrep = editorRipgrep(vscode.env.appRoot);
  const signIn = new BrowserSignIn(context.secrets);
  const current = new CurrentTelos(context.secrets, {
    signIn,
    providers: { [lmProviderName]: lmProviderWithMemory(context.globalState) },
    ...(ripgrep ? { ripgrep } : {}),
  });
  const skillTree = new SkillTree(current, log);
  const status = new StatusBar(current);
  const chats = new OpenChats(status);
  openChats = chats;
  const editors = new LastEditor();
  const kept = new StoredConversations(() => current.openTelos());
  const changes = new RunChangesView(current);
  const desk = { extensionUri: context.extensionUri, current, log, chats, editors, kept, changes };
  const { chat, registration } = registerChatView(desk, context.workspaceState);
  const { panels, registration: panelRegistration } = registerChatPanels(desk);
  const runs = new NativeRuns(current);
  const runLink = new RunLink(current, chat);
  nativeRuns = runs;
  context.subscriptions.push(
    log,
    current,
    skillTree,
    status,
    editors,
    changes,
    registration,
    panelRegistration,
    registerOpenConversation(desk, chat, panels),
    registerRunsView(current, kept, log),
    registerLmModels(current),
    registerSkillTree(skillTree),
    registerSkillWatch(current, log),
    registerRunSkill(current, chat, context.globalState, runs),
    registerPreviewRouting(current, chat),
    registerWhatIsMissing(),
    registerSkillFolders(current, context.extensionUri),
    registerApiKeys(context.secrets),
    registerChooseModel(current),
    registerSkillLanguage(current, log),
    registerOpenLog(current),
    registerChatParticipant(current, runs, vscode.Uri.joinPath(context.extensionUri, 'media', 'icon.svg')),
    registerSkillTools(current, runs),
    registerSkillTask(runs),
    registerPermissions(current),
    registerOfferedModels(current, context.globalState),
    registerOfferedServers(current),
    runLink,
    runs,
    chats.follow(runs),
    registerShowRunning({ chats, runs }),
    registerUriHandler({
      '/run': query => runLink.preview(query),
      [signInPath]: (_query, written) => signIn.answer(written),
    }),
    registerAgentPacks(current),
    vscode.commands.registerCommand('telos.refresh', () => current.refresh()),
  );
  return { skillTree, status };
}

/** Ends all runs. The editor waits for it. */
export async function deactivate(): Promise<void> {
  await Promise.all([openChats?.end(), nativeRuns?.end()]);
  openChats = undefined;
  nativeRuns = undefined;
}
