/**
 * Treats all chats of the window as one, in the sidebar and in editors. Tracks what runs and what waits for the person,
 * and ends all runs.
 */
import * as vscode from 'vscode';
import type { StatusBar } from '../base/statusBar.ts';
import type { Chat } from './chat.ts';

/** A chat and the place in which the person sees it. */
export interface PlacedChat {
  readonly chat: Chat;
  /** Brings it to the front. */
  focus(): Promise<void>;
}

/** Runs that no chat of Telos shows. */
export interface OtherRuns {
  readonly running: readonly { cost: number }[];
  readonly onDidChange: vscode.Event<void>;
  stop(): void;
}

export class OpenChats {
  readonly #status: StatusBar;
  #others: OtherRuns | undefined;
  readonly #all = new Set<PlacedChat>();
  readonly #needsYou = new vscode.EventEmitter<number>();
  /** Fires with the number of questions that wait for the person, in all chats. */
  readonly onDidChangeWaiting = this.#needsYou.event;

  constructor(status: StatusBar) {
    this.#status = status;
    // The window may remember a run of an extension host that has ended since.
    this.changed();
  }

  add(one: PlacedChat): void {
    this.#all.add(one);
  }

  /** Counts these runs too from now on. */
  follow(others: OtherRuns): vscode.Disposable {
    this.#others = others;
    return others.onDidChange(() => this.changed());
  }

  /** Removes a chat. Call it once nothing runs in it any more. */
  remove(one: PlacedChat): void {
    this.#all.delete(one);
    this.changed();
  }

  /** Updates the counts. Call it when a run starts or ends, or a question is asked or answered. */
  changed(): void {
    const chats = [...this.#all].map(({ chat }) => chat);
    const others = this.#others?.running ?? [];
    const running = chats.filter(chat => chat.isWorking).length + others.length;
    const waiting = chats.reduce((sum, chat) => sum + chat.waiting, 0);
    void vscode.commands.executeCommand('setContext', 'telos.running', running > 0);
    void vscode.commands.executeCommand('setContext', 'telos.waiting', waiting > 0);
    this.#needsYou.fire(waiting);
    this.#status.sayRunning(
      running,
      waiting,
      others.reduce((sum, { cost }) => sum + cost, 0),
    );
  }

  /** Brings the chat to the front in which a question waits. */
  async showQuestion(): Promise<void> {
    await [...this.#all].find(({ chat }) => chat.waiting > 0)?.focus();
  }

  /** Returns the chat that shows a stored conversation now, or undefined if none does. */
  holding(conversationId: string): PlacedChat | undefined {
    return [...this.#all].find(({ chat }) => chat.conversationId === conversationId);
  }

  /** Refreshes all chats after a possible change of provider, skills or trust. */
  async updateInfo(): Promise<void> {
    await Promise.all([...this.#all].map(({ chat }) => chat.updateInfo()));
  }

  /** Stops every run. */
  stop(): void {
    this.stopChats();
    this.#others?.stop();
  }

  /** The number of runs that the chats show. */
  get runningInChats(): number {
    return [...this.#all].filter(({ chat }) => chat.isWorking).length;
  }

  /** Stops the runs in the chats. */
  stopChats(): void {
    for (const { chat } of this.#all) chat.stop();
  }

  /** Aborts every run and waits for its end. */
  async end(): Promise<void> {
    await Promise.all([...this.#all].map(({ chat }) => chat.end()));
  }
}
