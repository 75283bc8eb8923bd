/** Defines the time limits of a turn and its parts, and enforces them for one attempt. */
import { sentence } from '../../protocol/text.ts';
import { TelosError } from '../errors.ts';
import { sendAgain } from './failures.ts';

/** Limits of a turn; times in milliseconds. */
export interface TurnLimits {
  /** Time from sending the request to the first event of an answer. Connecting has its own limit of 10 s, in Node's fetch. */
  firstByteMs: number;
  /** Time between two parts of an answer; a ping is not a part. */
  idleMs: number;
  /** How long a connection may stay open after a complete answer. If it is read to its end, it can be used again. */
  lingerMs: number;
  /** Number of attempts in all, including the first. */
  tries: number;
  /** Pause before the second attempt; it doubles with each further one. */
  firstPauseMs: number;
  /** Longest pause that a server may ask for. If it asks for more, the turn fails at once and says so. */
  longestPauseMs: number;
}

export const standardLimits: TurnLimits = {
  firstByteMs: 60_000,
  idleMs: 90_000,
  lingerMs: 1_000,
  tries: 5,
  firstPauseMs: 1_000,
  longestPauseMs: 120_000,
};

/**
 * Aborts one attempt when the outer signal aborts or when the model was silent for too long. Uses one timer, however many
 * parts arrive.
 */
export class TurnWatch {
  held = false;
  expired: TelosError | undefined;
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal;
  readonly #limits: TurnLimits;
  #lastHeard = performance.now();
  #state: 'waiting' | 'hearing' | 'lingering' = 'waiting';
  #timer: NodeJS.Timeout | undefined;

  constructor(outer: AbortSignal, limits: TurnLimits) {
    this.#outer = outer;
    this.#limits = limits;
    outer.addEventListener('abort', this.#stop, { once: true });
    this.#timer = setTimeout(this.#check, limits.firstByteMs);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get hasHeard(): boolean {
    return this.#state !== 'waiting';
  }

  heard(): void {
    this.#lastHeard = performance.now();
    if (this.#state === 'waiting') this.#enter('hearing', this.#limits.idleMs);
  }

  linger(): void {
    if (this.#state !== 'lingering') this.#enter('lingering', this.#limits.lingerMs);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#outer.removeEventListener('abort', this.#stop);
  }

  abandon(): void {
    this.#controller.abort();
  }

  #enter(state: 'hearing' | 'lingering', limit: number): void {
    this.#state = state;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#check, limit);
  }

  readonly #stop = (): void => {
    this.#controller.abort(this.#outer.reason);
  };

  readonly #check = (): void => {
    const limit = this.#state === 'waiting' ? this.#limits.firstByteMs : this.#limits.idleMs;
    if (this.#state !== 'lingering') {
      const silence = this.held ? 0 : performance.now() - this.#lastHeard;
      if (silence < limit) {
        this.#timer = setTimeout(this.#check, limit - silence);
        return;
      }
      const seconds = Math.round(limit / 1000);
      const what =
        this.#state === 'waiting'
          ? sentence('The model did not answer within {0} seconds.', seconds)
          : sentence('The model sent nothing for {0} seconds.', seconds);
      this.expired = new TelosError('provider', [what, sendAgain]);
    }
    this.#controller.abort();
  };
}
