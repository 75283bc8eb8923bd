/** Shows the chat in the secondary sidebar and in editors, and registers their commands. */

import type { RunRequest } from '@telos/engine/run';
import * as vscode from 'vscode';
import type { ChatWork } from '../base/chatWork.ts';
import { plainLabel } from '../base/labels.ts';
import { type ChatDesk, ChatHost } from './chatHost.ts';
import { type Conversation, conversationIdOf } from './conversation.ts';

const viewId = 'telos.chat';

/** The workspace's key for the conversation that the sidebar shows. */
const shownKey = 'telos.chat.shown';

export class ChatView implements vscode.WebviewViewProvider {
  readonly #memory: vscode.Memento;
  readonly #host: ChatHost;
  #view: vscode.WebviewView | undefined;

  constructor(desk: ChatDesk, memory: vscode.Memento) {
    this.#memory = memory;
    this.#host = new ChatHost(desk, {
      isVisible: () => this.#view?.visible === true,
      focus: () => this.focus(),
      changed: () => this.#label(),
    });
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    const shown = this.#memory.get<string>(shownKey);
    if (shown !== undefined && this.#host.chat.title === '') this.#host.restore({ conversationId: shown });
    this.#view = view;
    const subscriptions = vscode.Disposable.from(
      this.#host.attach(view.webview),
      view.onDidChangeVisibility(() => {
        // A hidden page is discarded. The next one asks for everything.
        if (!view.visible) this.#host.chat.hide();
      }),
      view.onDidDispose(() => {
        subscriptions.dispose();
        if (this.#view === view) this.#view = undefined;
      }),
    );
    this.#label();
  }

  /**
   * Brings the chat to the front and runs a request in it. The request does not continue what was said there before.
   */
  async submitInFront(request: RunRequest): Promise<void> {
    this.#host.chat.submit({ ...request, continuation: 'from_start' });
    await this.focus();
  }

  /** Brings the chat to the front and runs a request in it, in place of an active run. */
  async submitInstead(request: RunRequest): Promise<void> {
    await this.#host.chat.submitInstead(request);
    await this.focus();
  }

  async focus(): Promise<void> {
    await vscode.commands.executeCommand(`${viewId}.focus`);
  }

  /** Brings the chat to the front and shows work in it that is no run of a skill. Returns false while a run is active. */
  async workInFront(text: string, work: ChatWork): Promise<boolean> {
    if (!this.#host.chat.work(text, work)) return false;
    await this.focus();
    return true;
  }

  /** Shows a stored conversation in place of the shown one. */
  async open(conversation: Conversation): Promise<void> {
    await this.#host.chat.open(conversation);
    await this.focus();
  }

  /** Empties the sidebar for a chat elsewhere. Returns undefined while a run is active. */
  give(): Promise<Conversation | undefined> {
    return this.#host.chat.give();
  }

  async startOver(): Promise<void> {
    await this.#host.chat.startOver();
    await this.focus();
  }

  /** True while it has an active run that can be stopped from here. */
  get isRunning(): boolean {
    return this.#host.chat.canStop;
  }

  stop(): void {
    this.#host.chat.stop();
  }

  #remember(conversationId: string | undefined): void {
    // A conversation that is being read again is still remembered.
    if (conversationId === undefined && this.#host.isRestoring) return;
    if (this.#memory.get(shownKey) !== conversationId) void this.#memory.update(shownKey, conversationId);
  }

  #label(): void {
    const { conversationId, title, canStop, waiting } = this.#host.chat;
    this.#remember(title === '' ? undefined : conversationId);
    void vscode.commands.executeCommand('setContext', 'telos.chatRunning', canStop);
    if (!this.#view) return;
    this.#view.description = plainLabel(title, 60);
    this.#view.badge =
      waiting > 0 ? { value: waiting, tooltip: vscode.l10n.t('Telos waits for your answer') } : undefined;
  }
}

export function registerChatView(
  desk: ChatDesk,
  memory: vscode.Memento,
): { chat: ChatView; registration: vscode.Disposable } {
  const chat = new ChatView(desk, memory);
  const registration = vscode.Disposable.from(
    vscode.window.registerWebviewViewProvider(viewId, chat),
    desk.current.onDidChange(() => void desk.chats.updateInfo()),
  );
  return { chat, registration };
}

/** Also named in package.json. */
const panelType = 'telos.chatPanel';

/** One chat and the editor that shows it. Its run outlives the editor. */
class ChatPanel {
  readonly host: ChatHost;
  readonly #desk: ChatDesk;
  readonly #panels: ChatPanels;
  #panel: vscode.WebviewPanel | undefined;

  constructor(desk: ChatDesk, panels: ChatPanels) {
    this.#desk = desk;
    this.#panels = panels;
    this.host = new ChatHost(desk, {
      isVisible: () => this.#panel?.visible === true,
      focus: async () => this.focus(),
      changed: () => this.#label(),
    });
  }

  get isActive(): boolean {
    return this.#panel?.active === true;
  }

  /** Shows the editor. Opens it again if it was closed while its run is active. */
  focus(): void {
    this.#panels.add(this);
    if (this.#panel) this.#panel.reveal();
    else this.show(newEditor());
  }

  show(panel: vscode.WebviewPanel): void {
    this.#panel = panel;
    const subscriptions = vscode.Disposable.from(
      this.host.attach(panel.webview),
      panel.onDidChangeViewState(() => {
        // A hidden page is discarded. The next one asks for everything.
        if (!panel.visible) this.host.chat.hide();
        this.#panels.changed();
      }),
      panel.onDidDispose(() => {
        subscriptions.dispose();
        this.#panel = undefined;
        this.#panels.changed();
        const { chat } = this.host;
        if (chat.isWorking) this.#goOnUnseen();
        else if (chat.isRunning) chat.close();
        else this.#panels.remove(this);
      }),
    );
    this.#label();
  }

  #label(): void {
    const { title, isRunning, waiting } = this.host.chat;
    this.#panels.changed();
    if (!this.#panel) {
      if (!isRunning) this.#panels.remove(this);
      return;
    }
    this.#panel.title = plainLabel(title, 40) || 'Telos';
    this.#panel.iconPath = this.#icon(isRunning, waiting);
  }

  #icon(isRunning: boolean, waiting: number): vscode.IconPath {
    if (waiting > 0) return new vscode.ThemeIcon('bell-dot');
    if (isRunning) return new vscode.ThemeIcon('loading~spin');
    const picture = (theme: string): vscode.Uri =>
      vscode.Uri.joinPath(this.#desk.extensionUri, 'media', `icon-${theme}.svg`);
    return { light: picture('light'), dark: picture('dark') };
  }

  /**
   * Asks whether to stop the run of a closed editor. Closing cannot be prevented, and the run may have taken long
   * already.
   */
  #goOnUnseen(): void {
    const question = vscode.l10n.t(
      '“{0}” runs on, although its editor is closed.',
      plainLabel(this.host.chat.title, 60),
    );
    const [show, stop] = [vscode.l10n.t('Show'), vscode.l10n.t('Stop')];
    void vscode.window.showInformationMessage(question, show, stop).then(answer => {
      if (answer === show) this.focus();
      if (answer === stop) this.host.chat.stop();
    });
  }
}

/** All chats in editors. */
export class ChatPanels implements vscode.WebviewPanelSerializer {
  readonly #desk: ChatDesk;
  readonly #all = new Set<ChatPanel>();

  constructor(desk: ChatDesk) {
    this.#desk = desk;
  }

  open(): ChatPanel {
    const one = new ChatPanel(this.#desk, this);
    this.add(one);
    one.show(newEditor());
    return one;
  }

  /** Runs a request in a new editor, beside whatever runs elsewhere. */
  submitInNew(request: RunRequest): void {
    this.open().host.chat.submit({ ...request, continuation: 'from_start' });
  }

  /** Restores a chat. `state` is the state that the page of an earlier window stored. */
  async deserializeWebviewPanel(panel: vscode.WebviewPanel, state: unknown): Promise<void> {
    const one = new ChatPanel(this.#desk, this);
    this.add(one);
    const id = typeof state === 'object' && state !== null && 'id' in state ? state.id : undefined;
    if (typeof id === 'string') one.host.restore({ conversationId: conversationIdOf(id) });
    one.show(panel);
  }

  get active(): ChatPanel | undefined {
    return [...this.#all].find(one => one.isActive);
  }

  /** Adds a chat, again if it was removed after its run ended with its editor closed. */
  add(one: ChatPanel): void {
    this.#all.add(one);
    this.#desk.chats.add(one.host);
  }

  remove(one: ChatPanel): void {
    if (!this.#all.delete(one)) return;
    this.#desk.chats.remove(one.host);
  }

  /** Updates the context for the `when` clauses of package.json. */
  changed(): void {
    const isRunning = this.active?.host.chat.canStop === true;
    void vscode.commands.executeCommand('setContext', 'telos.panelRunning', isRunning);
  }
}

/** Registers the restoring of editors after a reload. */
export function registerChatPanels(desk: ChatDesk): { panels: ChatPanels; registration: vscode.Disposable } {
  const panels = new ChatPanels(desk);
  const registration = vscode.Disposable.from(
    vscode.window.registerWebviewPanelSerializer(panelType, panels),
  );
  return { panels, registration };
}

function newEditor(): vscode.WebviewPanel {
  return vscode.window.createWebviewPanel(panelType, 'Telos', vscode.ViewColumn.Active);
}
