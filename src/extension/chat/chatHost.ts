/** Draws one chat in a webview, and decides which of the view's messages make the editor act. */

import { TelosError } from '@telos/engine/errors';
import type { Telos } from '@telos/engine/telos';
import type { Habit } from '@telos/evals/fromRuns';
import { describeQuestion } from '@telos/protocol/describe';
import type { ApprovalRequest, RunOutcome } from '@telos/protocol/run';
import type { ChatInfo, ToHost, ToWebview } from '@telos/protocol/webview';
import * as vscode from 'vscode';
import type { ChatWork } from '../base/chatWork.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { drawPage } from '../base/drawPage.ts';
import { describeError, plainLabel } from '../base/labels.ts';
import type { LastEditor } from '../base/lastEditor.ts';
import { hintedDescription } from '../skills/skillFiles.ts';
import { rankedSkills, SkillMemory } from '../skills/skillRanking.ts';
import type { Attaching } from './attaching.ts';
import { Chat } from './chat.ts';
import { readToHost } from './chatMessages.ts';
import type { OpenChats, PlacedChat } from './openChats.ts';
import type { RunChangesView } from './runChanges.ts';
import type { ConversationPlace, StoredConversations } from './storedConversations.ts';

/** The parts that all chats of the window share. */
export interface ChatDesk {
  extensionUri: vscode.Uri;
  current: CurrentTelos;
  log: vscode.LogOutputChannel;
  chats: OpenChats;
  editors: LastEditor;
  kept: StoredConversations;
  changes: RunChangesView;
  /** Keeps what the person has answered for all windows. */
  memory: vscode.Memento;
  /** Begins a plan for a goal and asks in the chat what must be known. */
  beginPlan(goal: string): ChatWork;
}

/** The place in which a chat is shown. */
export interface ChatPlace {
  isVisible(): boolean;
  /** Brings it to the front. */
  focus(): Promise<void>;
  /** Called when a run starts or ends, a question is asked or answered, or another conversation is shown. */
  changed(): void;
}

export class ChatHost implements PlacedChat {
  readonly chat: Chat;
  readonly #desk: ChatDesk;
  readonly #place: ChatPlace;
  #attaching: Promise<Attaching> | undefined;
  #webview: vscode.Webview | undefined;
  #unfollow: () => void = () => undefined;
  /** A skill of it is offered below the latest answer. */
  #habit: Habit | undefined;
  /** Set while a stored conversation is read. Messages from the view wait for it. */
  #restoring: Promise<void> | undefined;
  /** Attachments must be complete before their request is sent. */
  #inOrder: Promise<unknown> = Promise.resolve();

  constructor(desk: ChatDesk, place: ChatPlace) {
    this.#desk = desk;
    this.#place = place;
    const skills = new SkillMemory(desk.memory);
    this.chat = new Chat({
      post: message => this.#post(message),
      openTelos: async () => {
        await desk.current.look();
        return desk.current.openTelos();
      },
      readAttachments: kept => desk.kept.attachments(kept),
      readInfo: () => readChatInfo(desk),
      isTrusted: () => vscode.workspace.isTrusted,
      changed: () => {
        desk.chats.changed();
        place.changed();
        void this.#followCommands();
        if (!this.chat.isRunning) void this.#sayToday();
      },
      ended: conversationId => void this.#endCommands(conversationId),
      approvalAsked: request => this.#sayAsked(request),
      skillRuns: ref => void skills.noteRun(ref),
      skillMissed: () => void this.#offerTeaching(),
      runEnded: (outcome, runId) => {
        this.#sayEnded(outcome);
        if (outcome === 'completed' && runId !== undefined) void this.#offerHabit(runId);
      },
    });
    desk.chats.add(this);
  }

  /** Draws the chat in a webview from now on. The returned disposable detaches it. */
  attach(webview: vscode.Webview): vscode.Disposable {
    this.#webview = webview;
    const listening = vscode.Disposable.from(
      webview.onDidReceiveMessage(message => void this.#receive(message)),
      this.#desk.changes.onDidUndo(id => {
        void this.chat.takeUpAgain(id).then(() => this.#sayUndone());
      }),
    );
    drawPage(webview, this.#desk.extensionUri, 'main');
    return new vscode.Disposable(() => {
      listening.dispose();
      if (this.#webview !== webview) return;
      this.#webview = undefined;
      this.chat.hide();
    });
  }

  async focus(): Promise<void> {
    await this.#place.focus();
  }

  /** Shows a conversation of an earlier window again, or an empty one if none is stored. */
  restore(place: ConversationPlace): void {
    this.#restoring = this.#restore(place).finally(() => {
      this.#restoring = undefined;
    });
  }

  get isRestoring(): boolean {
    return this.#restoring !== undefined;
  }

  async #restore(place: ConversationPlace): Promise<void> {
    try {
      const conversation = await this.#desk.kept.conversation(place, true);
      if (conversation && this.chat.title === '') await this.chat.open(conversation);
    } catch (error) {
      this.#desk.log.error('A kept conversation could not be shown again.', error);
    }
  }

  #post(message: ToWebview): void {
    // Not awaited: a hidden view never answers. It asks for lost events by their number.
    this.#webview?.postMessage(message).then(undefined, error => this.#desk.log.error(error));
  }

  async #receive(value: unknown): Promise<void> {
    const message = readToHost(value);
    if (!message) {
      this.#desk.log.warn(
        `The chat view sent a message that is not known: ${plainLabel(describe(value), 300)}`,
      );
      return;
    }
    try {
      await this.#restoring;
      await this.#act(message);
    } catch (error) {
      this.#desk.log.error(`The chat view's message '${message.type}' failed.`, error);
      if (message.type !== 'submit' && message.type !== 'resend') return;
      // The view waits for a run that will never start.
      this.#post({ type: 'draft', text: message.text, suggested: true });
      const why = plainLabel(describeError(error), 300);
      this.#post({ type: 'problem', text: vscode.l10n.t('The request was not sent: {0}', why) });
    }
  }

  async #act(message: ToHost): Promise<void> {
    switch (message.type) {
      case 'ready':
        await this.chat.show(message.id, message.have);
        (await this.#attachments()).show();
        await this.#sayUndone();
        await this.#followCommands();
        return this.#sayToday();
      case 'submit':
        return this.#next(() => this.#submit(message));
      case 'resend': {
        const before = this.chat.wordsOf(message.runId);
        const [, goal] = /^\/plan(?:\s+(.*))?$/s.exec(message.text) ?? [];
        if (goal !== undefined && this.chat.isWork(message.runId)) return this.#act({ type: 'plan', goal });
        const attachments = await (await this.#attachments()).newlyNamed(message.text, before);
        if (!attachments) return this.#post({ type: 'draft', text: message.text, suggested: true });
        return this.chat.resend(message.runId, message.text, attachments);
      }
      case 'resume':
        return this.chat.resume(message.runId);
      case 'compact': {
        const { focus } = message;
        return this.chat.submit({ text: `/compact ${focus}`.trim(), change: { kind: 'compact', focus } });
      }
      case 'plan': {
        const { goal } = message;
        if (this.chat.work(`/plan ${goal}`.trim(), this.#desk.beginPlan(goal))) return;
        this.#post({ type: 'draft', text: `/plan ${goal}`, suggested: true });
        return this.#sayProblem(vscode.l10n.t('A plan can begin here once the run has ended.'));
      }
      case 'context_files':
        return this.chat.setContextFiles(message.on);
      case 'undo_compaction':
        return this.chat.submit({ text: vscode.l10n.t('Undo compaction'), change: { kind: 'restore' } });
      case 'unqueue':
        return this.chat.unqueue(message.id);
      case 'run_queued':
        return this.chat.runQueued(message.id);
      case 'choose_skill':
        return this.#chooseSkill();
      case 'set_mode':
        return this.chat.setMode(message.mode);
      case 'look_around':
        return this.#sayAround();
      case 'find_models': {
        const { offeredModels } = await import('../editor/chooseModel.ts');
        return this.#post({ type: 'models', models: await offeredModels(this.#desk.current) });
      }
      case 'use_model':
        return (await import('../editor/chooseModel.ts')).useModel(message);
      case 'choose_folder':
        return vscode.commands.executeCommand('telos.chooseWorkFolder', { agent: { name: message.agent } });
      case 'dead_server': {
        const { act, agent, server } = message;
        if (act === 'log')
          return vscode.commands.executeCommand('telos.showMcpServerLog', {
            kind: 'server',
            listed: { agent, server },
          });
        const { switchServerOf } = await import('../editor/serverActions.ts');
        return switchServerOf(this.#desk.current, { agent, server }, false);
      }
      case 'pick_skill':
        return this.#pickSkill(message.text);
      case 'teach':
        return this.#teach(message.answer);
      case 'habit':
        return this.#saveHabit(message.answer);
      case 'attach_bytes':
      case 'attach_uris':
      case 'attach_mention':
        return this.#next(async () => (await this.#attachments()).act(message));
      case 'attach':
      case 'detach':
      case 'find_files':
      case 'find_offers':
        return (await this.#attachments()).act(message);
      case 'stop':
        return this.chat.stop();
      case 'stop_command':
        return (await this.#commands()).named(message.id)?.stop();
      case 'to_background':
        if (!(await this.#commands()).move(message.callId))
          this.#sayProblem(vscode.l10n.t('The command cannot go on in the background now.'));
        return;
      case 'new_conversation':
        return this.chat.startOver();
      case 'approve':
        if (!this.chat.answer(message.token, message.decision)) {
          this.#desk.log.warn('An answer came for permissions that do not wait.');
        }
        return;
      case 'open_link':
        return (await import('./openFromChat.ts')).openLink(message.url, this.#desk.log);
      case 'open_file':
        return this.#sayProblem(
          await (await import('./openFromChat.ts')).openFile(message, this.chat.workingDir, this.#desk),
        );
      case 'look_up_files': {
        const { filesAmong } = await import('./openFromChat.ts');
        const found = await filesAmong(message.paths, this.chat.workingDir, this.#desk);
        return this.#post({ type: 'files_looked_up', asked: message.paths, found });
      }
      case 'read_image': {
        const { path } = message;
        const { imageOf } = await import('./openFromChat.ts');
        return this.#post({
          type: 'image',
          path,
          ...(await imageOf(path, this.chat.workingDir, this.#desk)),
        });
      }
      case 'show_changes':
        return vscode.commands.executeCommand('telos.showChanges', message);
      case 'undo_run':
        return vscode.commands.executeCommand('telos.undoRun', message);
      case 'undo_runs':
        return this.#desk.changes.undoAll(message.runIds);
      case 'improve_skill':
        return vscode.commands.executeCommand('telos.improveSkill', { runId: message.runId });
      case 'restore':
        return (await import('./restoring.ts')).restoreTo(message.runId, this.chat, this.#desk.current);
      case 'branch':
        return this.chat.branchAt(message.runId);
      case 'copy':
        return vscode.env.clipboard.writeText(message.text);
      case 'insert_code':
        return this.#sayProblem(
          await (await import('./openFromChat.ts')).insertAtCursor(this.#desk.editors.editor, message.text),
        );
      case 'new_file':
        return (await import('./openFromChat.ts')).openNewFile(message.text, message.language);
      case 'command':
        return vscode.commands.executeCommand(message.command);
    }
  }

  async #endCommands(conversationId: string): Promise<void> {
    this.#unfollow();
    this.#post({ type: 'commands', commands: [] });
    await (await this.#desk.current.openTelos()).endCommands(conversationId);
  }

  async #commands(): Promise<ReturnType<Telos['commandsOf']>> {
    return (await this.#desk.current.openTelos()).commandsOf(this.chat.conversationId);
  }

  /** Lists what runs in the background of the shown conversation, now and whenever that changes. */
  async #followCommands(): Promise<void> {
    if (!this.#webview || this.chat.title === '') return;
    const commands = await this.#commands();
    const say = (): void => this.#post({ type: 'commands', commands: commands.list() });
    this.#unfollow();
    this.#unfollow = commands.listen(say);
    say();
  }

  /** Says above the textbox why something was not done. */
  #sayProblem(text: string | undefined): void {
    if (text !== undefined) this.#post({ type: 'problem', text });
  }

  #attachments(): Promise<Attaching> {
    this.#attaching ??= import('./attaching.ts').then(
      ({ Attaching }) =>
        new Attaching(
          message => this.#post(message),
          this.#desk.editors,
          async () => (await this.#desk.current.openTelos()).book.offers(),
        ),
    );
    return this.#attaching;
  }

  #next(work: () => Promise<void>): Promise<void> {
    const done = this.#inOrder.then(work);
    this.#inOrder = done.catch(() => undefined);
    return done;
  }

  /** Reports which of the shown runs are undone, here or elsewhere. */
  async #sayUndone(): Promise<void> {
    const shown = this.chat.runIds;
    if (!this.#webview || shown.length === 0) return;
    const { changes } = await this.#desk.current.openTelos();
    this.#post({ type: 'undone', runIds: changes.undoneAmong(shown) });
  }

  async #sayToday(): Promise<void> {
    if (!this.#webview || this.chat.title === '') return;
    try {
      const today = await (await this.#desk.current.openTelos()).today();
      this.#post({ type: 'today', today });
    } catch (error) {
      this.#desk.log.warn(describeError(error));
    }
  }

  /** Sends a request. If something cannot be attached, the words are returned as a draft to be changed. */
  async #submit(message: Extract<ToHost, { type: 'submit' }>): Promise<void> {
    const { text, skill, withoutSkill, anew } = message;
    const attachments = await (await this.#attachments()).takeFor(text);
    if (!attachments) return this.#post({ type: 'draft', text });
    const request = {
      text,
      ...(attachments.length > 0 && { attachments }),
      ...(skill && { skill, isChoice: true }),
      ...(withoutSkill && { withoutSkill }),
      ...(anew && { continuation: 'anew' as const }),
    };
    return message.instead ? this.chat.submitInstead(request) : this.chat.submit(request);
  }

  async #offerTeaching(): Promise<void> {
    const { teachingOffer } = await import('../skills/teachSkills.ts');
    const text = await teachingOffer(this.#desk.current, this.#desk.memory);
    if (text !== undefined) this.#post({ type: 'teaching_offer', text });
  }

  async #teach(answer: 'write' | 'never'): Promise<void> {
    this.#post({ type: 'teaching_offer', text: null });
    const { answerOffer } = await import('../skills/teachSkills.ts');
    await answerOffer(this.#desk.current, this.#desk.memory, answer);
  }

  /** Offers a skill below the answer if that was the third of its kind. */
  async #offerHabit(runId: string): Promise<void> {
    this.#habit = undefined;
    const { habitBehind } = await import('../editor/habitSkill.ts');
    this.#habit = await habitBehind(runId, this.#desk.current);
    this.#post({ type: 'habit_offer', name: this.#habit?.name ?? null });
  }

  async #saveHabit(answer: 'write' | 'never'): Promise<void> {
    const habit = this.#habit;
    this.#habit = undefined;
    this.#post({ type: 'habit_offer', name: null });
    if (!habit) return;
    const { declineOffer, saveHabit } = await import('../editor/habitSkill.ts');
    if (answer === 'never') await declineOffer(habit, this.#desk.current);
    else await saveHabit(habit, this.#desk.current);
  }

  async #pickSkill(text: string): Promise<void> {
    const { previewRouting } = await import('../skills/previewRouting.ts');
    const skill = await previewRouting(this.#desk.current, text);
    if (!skill) return;
    await this.chat.submitInstead({ text, skill, isChoice: true });
    await this.#place.focus();
  }

  /** Puts the skill of the next request into the chip above the textbox. */
  async #chooseSkill(): Promise<void> {
    const { chooseNextSkill } = await import('./openFromChat.ts');
    const chosen = await chooseNextSkill(await this.#desk.current.openTelos(), this.#desk.memory);
    if (chosen) this.#post({ type: 'next_skill', skill: chosen.skill });
    await this.#place.focus();
  }

  /** Says where the next runs work, and whether a sandbox works there. */
  async #sayAround(): Promise<void> {
    const { wanted, state } = await (await this.#desk.current.openTelos()).box();
    const off = wanted === 'off' ? vscode.l10n.t('the setting telos.sandbox is off.') : undefined;
    const noSandbox = off ?? (state && !state.works ? state.why : undefined);
    const workspace = vscode.workspace.workspaceFolders?.[0]?.name ?? '';
    const surroundings = { workspace, ...(noSandbox !== undefined && { noSandbox }) };
    this.#post({ type: 'surroundings', surroundings });
  }

  /** Says that a question waits, if the chat is out of sight. */
  #sayAsked(request: ApprovalRequest): void {
    const question = plainLabel(describeQuestion(request, vscode.l10n.t), 80);
    const subject = plainLabel(request.subject, 120);
    this.#sayHidden(
      'showWarningMessage',
      vscode.l10n.t('Telos waits for your answer: {0} {1}', question, subject),
    );
  }

  /** Says that the latest run has ended, if the chat is out of sight. */
  #sayEnded(outcome: RunOutcome): void {
    const title = plainLabel(this.chat.title, 60);
    if (outcome === 'completed')
      this.#sayHidden('showInformationMessage', vscode.l10n.t('Telos is done: {0}', title));
    else if (outcome !== 'cancelled')
      this.#sayHidden('showWarningMessage', vscode.l10n.t('Telos could not finish: {0}', title));
  }

  #sayHidden(show: 'showInformationMessage' | 'showWarningMessage', message: string): void {
    if (this.#place.isVisible()) return;
    const focus = vscode.l10n.t('Show');
    void vscode.window[show](message, focus).then(async answer => {
      if (answer === focus) await this.#place.focus();
    });
  }
}

function describe(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return typeof value;
  }
}

/** The view shows one line of each description. With thousands of skills, each line counts. In characters. */
const maxListedDescription = 160;

/** Reads models and skills for the chat. Never throws. Errors are shown in the result and logged. */
async function readChatInfo({ current, log, memory }: ChatDesk): Promise<ChatInfo> {
  const trusted = vscode.workspace.isTrusted;
  try {
    const telos = await current.openTelos();
    const [choice, ranked] = await Promise.all([
      choiceOf(telos, log),
      rankedSkills(telos, new SkillMemory(memory)),
    ]);
    const skills = ranked.map(({ ref, skill, note }) => ({
      ...ref,
      description: plainLabel(hintedDescription(skill), maxListedDescription),
      ...(note && { note }),
    }));
    const { name: provider, model, recording, isUnset } = choice;
    return { provider, model, recording, ...(isUnset && { isUnset }), skills, trusted };
  } catch (error) {
    log.error('What the chat shows about models and skills could not be read.', error);
    return { provider: vscode.l10n.t('not available'), model: '', recording: false, skills: [], trusted };
  }
}

/**
 * Returns the provider. A missing set-up does not keep the skills from being shown. The run reports what is missing.
 */
async function choiceOf(
  telos: Telos,
  log: vscode.LogOutputChannel,
): Promise<{ name: string; model: string; recording: boolean; isUnset?: boolean }> {
  try {
    return await telos.provider();
  } catch (error) {
    log.warn(error instanceof TelosError ? error.message : String(error));
    return { name: vscode.l10n.t('not set up'), model: '', recording: false };
  }
}
