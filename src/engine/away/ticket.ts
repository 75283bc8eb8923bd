/** Signs the answers to one question, and takes one of them, once, while the question is still the same. */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { AwayAnswer } from './messenger.ts';

/** How long an answer counts, in milliseconds. */
export const patience = 3_600_000;

/** Of this process alone: what it has signed is void when it ends. */
const key = randomBytes(32);

/** Matches what may be an answer; its first group is the id of the ticket. */
const shape = /^([\w-]{16})\.(?:once|no)\.[\w-]{22}$/;

/** Returns the id of the question that a text would answer; undefined if it is no answer. */
export const idIn = (token: string): string | undefined => shape.exec(token)?.[1];

export class Ticket {
  readonly id = randomBytes(12).toString('base64url');
  /** By the clock that is shown. */
  readonly until: Date;
  readonly #now: () => number;
  readonly #bytes: () => string;
  #isUsed = false;

  /** `bytes` returns the question as it is now. */
  constructor(bytes: () => string, now: () => number = Date.now) {
    this.#now = now;
    this.#bytes = bytes;
    this.until = new Date(now() + patience);
  }

  /** Returns the answer as it travels. At most 64 characters, as Telegram wants it. */
  token(answer: AwayAnswer): string {
    const digest = createHash('sha256').update(this.#bytes()).digest('hex');
    const about = JSON.stringify([this.id, answer, this.until.getTime(), digest]);
    const mac = createHmac('sha256', key).update(about).digest().subarray(0, 16);
    return `${this.id}.${answer}.${mac.toString('base64url')}`;
  }

  /** Returns the answer; undefined for a second one, a late one, a forged one, and one to other bytes. */
  take(token: string): AwayAnswer | undefined {
    if (this.#isUsed || this.#now() >= this.until.getTime()) return undefined;
    const answer = (['once', 'no'] as const).find(one => isSame(this.token(one), token));
    if (answer) this.#isUsed = true;
    return answer;
  }

  /** Takes no answer any more. */
  close(): void {
    this.#isUsed = true;
  }
}

function isSame(one: string, other: string): boolean {
  const [ours, theirs] = [Buffer.from(one), Buffer.from(other)];
  return ours.length === theirs.length && timingSafeEqual(ours, theirs);
}
