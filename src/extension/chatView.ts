/** The chat in the secondary sidebar, and the commands that belong to it. */
import * as vscode from 'vscode';
import type { RunRequest } from '../engine/runRequest.ts';
import { type ChatDesk, ChatSurface } from './chatSurface.ts';
import type { Conversation } from './conversation.ts';
import { plainLabel } from './plainLabel.ts';

const viewId = 'telos.chat';

/** Where the workspace remembers which conversation the sidebar shows. */
const shownKey = 'telos.chat.shown';

export class ChatView implements vscode.WebviewViewProvider {
  readonly #memory: vscode.Memento;
  readonly #surface: ChatSurface;
  #view: vscode.WebviewView | undefined;

  constructor(desk: ChatDesk, memory: vscode.Memento) {
    this.#memory = memory;
    this.#surface = new ChatSurface(desk, {
      isVisible: () => this.#view?.visible === true,
      focus: () => this.focus(),
      changed: () => this.#label(),
    });
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    const shown = this.#memory.get<string>(shownKey);
    if (shown !== undefined && this.#surface.chat.title === '')
      this.#surface.restore({ conversationId: shown });
    this.#view = view;
    const subscriptions = vscode.Disposable.from(
      this.#surface.attach(view.webview),
      view.onDidChangeVisibility(() => {
        // A hidden page is thrown away; the one that comes back asks for everything.
        if (!view.visible) this.#surface.chat.hide();
      }),
      view.onDidDispose(() => {
        subscriptions.dispose();
        if (this.#view === view) this.#view = undefined;
      }),
    );
    this.#label();
  }

  /** Brings the chat to the front and runs a request in it, which takes nothing from what was said there before. */
  async submitInFront(request: RunRequest): Promise<void> {
    this.#surface.chat.submit({ ...request, goesOn: 'from_start' });
    await this.focus();
  }

  /** The same, and a run that is going on gives way to it. */
  async submitInstead(request: RunRequest): Promise<void> {
    await this.#surface.chat.submitInstead(request);
    await this.focus();
  }

  async focus(): Promise<void> {
    await vscode.commands.executeCommand(`${viewId}.focus`);
  }

  /** Shows a kept conversation in place of the one that is shown. */
  async open(conversation: Conversation): Promise<void> {
    await this.#surface.chat.open(conversation);
    await this.focus();
  }

  /** Empties the sidebar for a chat elsewhere; undefined while a run goes on. */
  give(): Promise<Conversation | undefined> {
    return this.#surface.chat.give();
  }

  async startOver(): Promise<void> {
    await this.#surface.chat.startOver();
    await this.focus();
  }

  /** A run goes on in it that can be stopped from here. */
  get isRunning(): boolean {
    return this.#surface.chat.canStop;
  }

  stop(): void {
    this.#surface.chat.stop();
  }

  #remember(keptId: string | undefined): void {
    // What is being read again has not been forgotten.
    if (keptId === undefined && this.#surface.isRestoring) return;
    if (this.#memory.get(shownKey) !== keptId) void this.#memory.update(shownKey, keptId);
  }

  #label(): void {
    const { keptId, title, canStop, waiting } = this.#surface.chat;
    this.#remember(title === '' ? undefined : keptId);
    void vscode.commands.executeCommand('setContext', 'telos.chatRunning', canStop);
    if (!this.#view) return;
    this.#view.description = plainLabel(title, 60);
    this.#view.badge =
      waiting > 0 ? { value: waiting, tooltip: vscode.l10n.t('Telos waits for your approval') } : undefined;
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
    vscode.commands.registerCommand('telos.stop', () => (chat.isRunning ? chat.stop() : desk.chats.stop())),
    vscode.commands.registerCommand('telos.newConversation', () => chat.startOver()),
  );
  return { chat, registration };
}
