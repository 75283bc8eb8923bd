/** Where the editor starts Telos: everything is made, registered and subscribed here, and nothing is loaded before it is used. */
import * as vscode from 'vscode';
import { registerApiKeys } from './apiKeys.ts';
import { BrowserSignIn, signInPath } from './browserSignIn.ts';
import { registerChatPanels } from './chatPanel.ts';
import { registerChatView } from './chatView.ts';
import { registerChooseModel } from './chooseModel.ts';
import { CurrentTelos } from './currentTelos.ts';
import { editorRipgrep } from './editorRipgrep.ts';
import { KeptConversations } from './keptConversations.ts';
import { LastEditor } from './lastEditor.ts';
import { lmProviderName, lmProviderWithMemory, registerLmModels } from './lmProvider.ts';
import { registerAgentPacks } from './native/agentPacks.ts';
import { registerChatParticipant } from './native/chatParticipant.ts';
import { NativeRuns } from './native/nativeRuns.ts';
import { registerOfferedModels } from './native/offeredModels.ts';
import { registerOfferedServers } from './native/offeredServers.ts';
import { registerPermissions } from './native/registerPermissions.ts';
import { RunLink } from './native/runLink.ts';
import { registerShowRunning } from './native/showRunning.ts';
import { registerSkillTask } from './native/skillTask.ts';
import { registerSkillTools } from './native/skillTools.ts';
import { OpenChats } from './openChats.ts';
import { registerOpenConversation } from './openConversation.ts';
import { registerOpenLog } from './openLog.ts';
import { registerPreviewRouting } from './previewRouting.ts';
import { RunChangesView } from './runChanges.ts';
import { registerRunSkill } from './runSkill.ts';
import { registerRunsView } from './runsView.ts';
import { registerSkillFolders } from './skillFolders.ts';
import { registerSkillLanguage } from './skillLanguage/skillLanguage.ts';
import { registerSkillTree, SkillTree } from './skillTree.ts';
import { registerSkillWatch } from './skillWatch.ts';
import { StatusBar } from './statusBar.ts';
import { registerUriHandler } from './uriHandler.ts';
import { registerWhatIsMissing } from './whatIsMissing.ts';
import { speak } from './words.ts';

/** What other extensions may look at. */
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
  const kept = new KeptConversations(() => current.openTelos());
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

/** Ends what runs; the editor waits for it. */
export async function deactivate(): Promise<void> {
  await Promise.all([openChats?.end(), nativeRuns?.end()]);
  openChats = undefined;
  nativeRuns = undefined;
}
