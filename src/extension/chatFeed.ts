/** Sends what happens in a conversation to the view that follows it, in numbered batches of about one frame. */
import type { RunEvent } from '../protocol/run.ts';
import type { ToWebview } from '../protocol/webview.ts';
import type { Conversation } from './conversation.ts';

/** About one frame of the screen, in milliseconds. */
const batchInterval = 16;
/** Text that comes faster than anybody reads is sent in larger parts, each of which is drawn but once. In milliseconds. */
const fastBatchInterval = 48;
/** UTF-16 units per millisecond from which text counts as fast: about 1,000 tokens a second. */
const fastText = 4;

export class ChatFeed {
  readonly #post: (message: ToWebview) => void;
  /** The conversation whose start the view has; undefined while no view waits for the rest. */
  #followed: Conversation | undefined;
  #timer: NodeJS.Timeout | undefined;
  #interval = batchInterval;
  #postedAt = 0;

  constructor(post: (message: ToWebview) => void) {
    this.#post = post;
  }

  get isFollowed(): boolean {
    return this.#followed !== undefined;
  }

  /** A view has the conversation's start and waits for the rest. */
  follow(conversation: Conversation): void {
    this.#followed = conversation;
  }

  /** The view is gone; events are kept until one asks for them. */
  leave(): void {
    this.#followed = undefined;
  }

  /** Something has been added to a conversation. */
  soon(conversation: Conversation): void {
    if (this.#followed === conversation) this.#timer ??= setTimeout(() => this.now(), this.#interval);
  }

  /** Sends what has come since the last batch. */
  now(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#followed?.nextBatch();
    if (!this.#followed || !batch) return;
    const now = performance.now();
    const isFast = textLength(batch.events) > fastText * (now - this.#postedAt);
    this.#interval = isFast ? fastBatchInterval : batchInterval;
    this.#postedAt = now;
    this.#post({ type: 'events', id: this.#followed.id, ...batch });
  }

  /** Whatever is not about the run; lost where no view follows. */
  say(message: ToWebview): void {
    if (this.#followed) this.#post(message);
  }

  dispose(): void {
    clearTimeout(this.#timer);
  }
}

const textLength = (events: readonly RunEvent[]): number =>
  events.reduce((sum, event) => sum + (event.type === 'text' ? event.text.length : 0), 0);
