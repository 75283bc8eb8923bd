/** Every chat of the window, in the sidebar and in editors, as one: what runs, what waits for the person, and how all of it ends. */
import * as vscode from 'vscode';
import type { Chat } from './chat.ts';
import type { StatusBar } from './statusBar.ts';

/** A chat and the place in which the person sees it. */
export interface PlacedChat {
  readonly chat: Chat;
  /** Brings it to the front. */
  focus(): Promise<void>;
}

export class OpenChats {
  readonly #status: StatusBar;
  readonly #all = new Set<PlacedChat>();

  constructor(status: StatusBar) {
    this.#status = status;
    // The window may remember a run of an extension host that has ended since.
    this.changed();
  }

  add(one: PlacedChat): void {
    this.#all.add(one);
  }

  /** To be called once nothing runs in it any more. */
  remove(one: PlacedChat): void {
    this.#all.delete(one);
    this.changed();
  }

  /** To be called when a run has started or ended, or a question was put or answered. */
  changed(): void {
    const chats = [...this.#all].map(({ chat }) => chat);
    const running = chats.filter(chat => chat.isRunning).length;
    void vscode.commands.executeCommand('setContext', 'telos.running', running > 0);
    this.#status.sayRunning(
      running,
      chats.reduce((sum, chat) => sum + chat.waiting, 0),
    );
  }

  /** The chat that shows a kept conversation now, where one does. */
  holding(keptId: string): PlacedChat | undefined {
    return [...this.#all].find(({ chat }) => chat.keptId === keptId);
  }

  /** Provider, skills or trust may have changed. */
  async updateInfo(): Promise<void> {
    await Promise.all([...this.#all].map(({ chat }) => chat.updateInfo()));
  }

  /** Stops every run that is shown somewhere. */
  stop(): void {
    for (const { chat } of this.#all) chat.stop();
  }

  /** Aborts every run and waits for its end. */
  async end(): Promise<void> {
    await Promise.all([...this.#all].map(({ chat }) => chat.end()));
  }
}
