/**
 * Activates Telos in the editor. Everything is created and registered here, but nothing is loaded before it is used.
 */

import * as vscode from 'vscode';
import { CurrentTelos } from './base/currentTelos.ts';
import { editorRipgrep } from './base/editorRipgrep.ts';
import { describeError, speak } from './base/labels.ts';
import { LastEditor } from './base/lastEditor.ts';
import { StatusBar } from './base/statusBar.ts';
import { BrowserSignIn, openBrowser, registerUriHandler, signInPath } from './browserSignIn.ts';
import type { ChatDesk } from './chat/chatHost.ts';
import { registerChatPanels, registerChatView } from './chat/chatPlaces.ts';
import { OpenChats } from './chat/openChats.ts';
import { RunChangesView } from './chat/runChanges.ts';
import { StoredConversations } from './chat/storedConversations.ts';
import { registerCommands } from './commands.ts';
import { registerChatParticipant } from './editor/chatParticipant.ts';
import { NativeRuns } from './editor/editorRuns.ts';
import { EvalTests } from './editor/evalTests.ts';
import { lmProviderName, lmProviderWithMemory, registerLmModels } from './editor/lmProvider.ts';
import { PlansView } from './editor/plansView.ts';
import { RunLink } from './editor/runLink.ts';
import { registerServersView } from './editor/serversView.ts';
import { registerSkillTask, registerSkillTools } from './editor/skillTools.ts';
import { registerRunsView } from './runs/runsView.ts';
import type { ScheduleDesk } from './runs/scheduleDesk.ts';
import { registerSkillLanguage } from './skills/skillProblems.ts';
import { registerSkillTree, SkillTree } from './skills/skillTree.ts';
import { registerSkillWatch } from './skills/skillWatch.ts';

/** The values that other extensions can use. */
export interface ExtensionExports {
  /** The tree *Agents & Skills*. */
  skillTree: SkillTree;
  status: StatusBar;
  /** The Testing view. */
  evalTests: EvalTests;
}

let openChats: OpenChats | undefined;
let nativeRuns: NativeRuns | undefined;
let currentTelos: CurrentTelos | undefined;
let plansView: PlansView | undefined;
let schedules: ScheduleDesk | undefined;

export function activate(context: vscode.ExtensionContext): ExtensionExports {
  speak(vscode.l10n.t, vscode.env.language);
  const log = vscode.window.createOutputChannel('Telos', { log: true });
  const ripgrep = editorRipgrep(vscode.env.appRoot);
  const signIn = new BrowserSignIn(context.secrets);
  const current = new CurrentTelos(context.secrets, {
    signIn,
    openUrl: async url => openBrowser(url),
    providers: { [lmProviderName]: lmProviderWithMemory(context.globalState) },
    ...(ripgrep ? { ripgrep } : {}),
  });
  currentTelos = current;
  const skillTree = new SkillTree(current, log, context.globalState);
  const status = new StatusBar(current);
  const chats = new OpenChats(status);
  openChats = chats;
  const editors = new LastEditor();
  const kept = new StoredConversations(() => current.openTelos());
  const changes = new RunChangesView(current);
  const memory = context.globalState;
  const { extensionUri } = context;
  const desk: ChatDesk = {
    extensionUri,
    current,
    log,
    chats,
    editors,
    kept,
    changes,
    memory,
    beginPlan: goal => stage => plans.begin(goal, stage),
  };
  const { chat, registration } = registerChatView(desk, context.workspaceState);
  const { panels, registration: panelRegistration } = registerChatPanels(desk);
  const runs = new NativeRuns(current);
  const runsView = registerRunsView(context, current, kept, log);
  const plans = new PlansView(current, {
    extensionUri,
    log,
    memory: context.workspaceState,
    inChat: async (text, work) => {
      if (!(await chat.workInFront(text, work))) panels.open().host.chat.work(text, work);
    },
  });
  const serversView = registerServersView(current);
  const evalTests = new EvalTests(current, log);
  const runLink = new RunLink(current, chat);
  nativeRuns = runs;
  plansView = plans;
  schedules = runsView.schedules;
  context.subscriptions.push(
    log,
    current,
    skillTree,
    status,
    editors,
    changes,
    registration,
    panelRegistration,
    runsView.registration,
    plans,
    serversView,
    evalTests,
    registerLmModels(current),
    registerSkillTree(skillTree, current),
    registerSkillWatch(current, log),
    registerSkillLanguage(current, log),
    registerChatParticipant(current, runs, vscode.Uri.joinPath(context.extensionUri, 'media', 'icon.svg')),
    registerSkillTools(current, runs),
    registerSkillTask(runs),
    runLink,
    runs,
    chats.follow(runs),
    chats.onDidChangeWaiting(count => runsView.sayWaiting(count)),
    registerUriHandler({
      '/run': query => runLink.preview(query),
      '/install': async query => (await import('./skills/offers.ts')).installFromLink(current, query),
      [signInPath]: (_query, written) => signIn.answer(written),
    }),
    registerCommands({
      context,
      current,
      skillTree,
      view: chat,
      panels,
      chats,
      desk,
      runs,
      runsView,
      plans,
      changes,
      servers: serversView,
    }),
  );
  if (context.globalState.get('telos.terminalCommand') !== undefined)
    import('./editor/terminalCommand.ts')
      .then(({ updateCommand }) => updateCommand(context))
      .catch(error => log.warn(describeError(error)));
  return { skillTree, status, evalTests };
}

/** Ends all runs. The editor waits for it. */
export async function deactivate(): Promise<void> {
  await Promise.all([
    openChats?.end(),
    nativeRuns?.end(),
    plansView?.end(),
    schedules?.end(),
    currentTelos?.closeCommands(),
  ]);
  openChats = undefined;
  currentTelos = undefined;
  nativeRuns = undefined;
  plansView = undefined;
  schedules = undefined;
}
