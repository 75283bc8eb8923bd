/** The events of one conversation, kept and numbered, so that a view that was closed can draw itself again. */
import { randomUUID } from 'node:crypto';
import type { RunEvent } from '../protocol/run.ts';

/** `from` is the number of the first event; the next batch starts at `from + events.length`. */
export interface Batch {
  from: number;
  events: readonly RunEvent[];
}

export class Conversation {
  readonly id: string = randomUUID();
  #numbered: RunEvent[] = [];
  /** Not numbered yet: what arrives here within one frame leaves as one batch, its text as one delta. */
  #waiting: RunEvent[] = [];

  get isEmpty(): boolean {
    return this.#numbered.length + this.#waiting.length === 0;
  }

  append(event: RunEvent): void {
    pushJoined(this.#waiting, event);
  }

  /** Numbers and returns what has come since the last call; undefined when nothing has. */
  nextBatch(): Batch | undefined {
    if (this.#waiting.length === 0) return undefined;
    const batch = { from: this.#numbered.length, events: this.#waiting };
    for (const event of batch.events) this.#numbered.push(event);
    this.#waiting = [];
    return batch;
  }

  /**
   * Everything from number `have` on. A view that has nothing yet gets the whole conversation with its text joined again, and with
   * new numbers; a number that was never given means the same.
   */
  since(have: number): Batch {
    this.nextBatch();
    if (have > 0 && have <= this.#numbered.length) return { from: have, events: this.#numbered.slice(have) };
    const joined: RunEvent[] = [];
    for (const event of this.#numbered) pushJoined(joined, event);
    this.#numbered = joined;
    return { from: 0, events: joined.slice() };
  }

  /** The folder in which the latest skill worked; undefined before any was picked. */
  get workingDir(): string | undefined {
    const routed = [...this.#numbered, ...this.#waiting].findLast(event => event.type === 'routed');
    return routed?.workingDir;
  }
}

function pushJoined(events: RunEvent[], event: RunEvent): void {
  const last = events.at(-1);
  if (event.type === 'text' && last?.type === 'text') {
    events[events.length - 1] = { type: 'text', text: last.text + event.text };
  } else {
    events.push(event);
  }
}
