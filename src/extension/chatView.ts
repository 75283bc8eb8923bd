/** The chat in the secondary sidebar, and the commands that belong to it. */
import * as vscode from 'vscode';
import type { RunRequest } from '../engine/telos.ts';
import { type ChatDesk, ChatSurface } from './chatSurface.ts';
import { plainLabel } from './plainLabel.ts';

const viewId = 'telos.chat';

export class ChatView implements vscode.WebviewViewProvider {
  readonly #surface: ChatSurface;
  #view: vscode.WebviewView | undefined;

  constructor(desk: ChatDesk) {
    this.#surface = new ChatSurface(desk, {
      isVisible: () => this.#view?.visible === true,
      focus: () => this.focus(),
      changed: () => this.#label(),
    });
  }

  resolveWebviewView(view: vscode.WebviewView): void {
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

  async startOver(): Promise<void> {
    await this.#surface.chat.startOver();
    await this.focus();
  }

  get isRunning(): boolean {
    return this.#surface.chat.isRunning;
  }

  stop(): void {
    this.#surface.chat.stop();
  }

  #label(): void {
    const { title, isRunning, waiting } = this.#surface.chat;
    void vscode.commands.executeCommand('setContext', 'telos.chatRunning', isRunning);
    if (!this.#view) return;
    this.#view.description = plainLabel(title, 60);
    this.#view.badge = waiting > 0 ? { value: waiting, tooltip: 'Telos waits for your approval' } : undefined;
  }
}

export function registerChatView(desk: ChatDesk): { chat: ChatView; registration: vscode.Disposable } {
  const chat = new ChatView(desk);
  const registration = vscode.Disposable.from(
    vscode.window.registerWebviewViewProvider(viewId, chat),
    desk.current.onDidChange(() => void desk.chats.updateInfo()),
    vscode.commands.registerCommand('telos.stop', () => (chat.isRunning ? chat.stop() : desk.chats.stop())),
    vscode.commands.registerCommand('telos.newConversation', () => chat.startOver()),
  );
  return { chat, registration };
}
