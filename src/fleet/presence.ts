import { beginningOf } from '@telos/protocol/text';

/** What workers and suites say of themselves in the database. What they say is shown, and decides only who is given jobs. */

/** A version of the orders. Another one is never mixed with it, whatever the version of Telos is. */
const orders = 2;

/** Returns what the database keeps apart: a worker takes the jobs of its own version only. */
export const versionKey = (version: string): string => `telos ${version} orders ${orders}`;

export interface WorkerFacts {
  version: string;
  label: string;
  slots: number;
  running: number;
  done: number;
  refused: number;
  /** Takes nothing more, and is about to end. */
  drains: boolean;
}

export interface SuiteFacts {
  /** A plan with stories, in place of a suite of evals. */
  isPlan: boolean;
  version: string;
  label: string;
  waiting: number;
  running: number;
  done: number;
  failed: number;
}

/** A run that failed, or that every worker has refused, and waits until it is given again. */
export interface FailedFacts {
  /** Skill and eval. */
  job: string;
  worker: string;
  why: string;
}

const textOf = (value: unknown): string => (typeof value === 'string' ? beginningOf(value, 100) : '');
const countOf = (value: unknown): number =>
  Number.isInteger(value) && (value as number) >= 0 ? Math.min(value as number, 1_000_000) : 0;
const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};

export function workerFacts(given: unknown): WorkerFacts {
  const { version, label, slots, running, done, refused, drains } = recordOf(given);
  return {
    version: textOf(version),
    label: textOf(label),
    drains: drains === true,
    slots: Math.min(countOf(slots), 64),
    running: countOf(running),
    done: countOf(done),
    refused: countOf(refused),
  };
}

export function suiteFacts(given: unknown): SuiteFacts {
  const { isPlan, version, label, waiting, running, done, failed } = recordOf(given);
  return {
    isPlan: isPlan === true,
    version: textOf(version),
    label: textOf(label),
    waiting: countOf(waiting),
    running: countOf(running),
    done: countOf(done),
    failed: countOf(failed),
  };
}

export function failedFacts(given: unknown): FailedFacts {
  const { job, worker, why } = recordOf(given);
  return {
    job: textOf(job),
    worker: textOf(worker),
    why: typeof why === 'string' ? beginningOf(why, 500) : '',
  };
}

/** A key that a provider wants no request of for some time, in milliseconds. */
export function pauseFacts(given: unknown): { key: string; ms: number } {
  const { key, ms } = recordOf(given);
  return { key: textOf(key), ms: countOf(ms) };
}

/** How often a sign of life is given and looked for, in milliseconds. */
export const beatMs = 1_000;
/** After so many looks without a new sign, one is silent. Looks count and no clock does, since those of two machines may differ. */
const silentLooks = 14;

/** Tells who lives, by signs that change, from what a killed one has left. */
export class Signs {
  readonly #seen = new Map<string, { beat: number; looks: number; isAlive: boolean }>();
  #isFirst = true;

  /** Takes the signs of one look by who gave them. Returns those who have been silent for too long, once. */
  look(beats: ReadonlyMap<string, number>): string[] {
    const silent: string[] = [];
    for (const id of new Set([...beats.keys(), ...this.#seen.keys()])) {
      const known = this.#seen.get(id);
      const beat = beats.get(id) ?? known?.beat ?? 0;
      const isNew = beat !== known?.beat;
      // Who comes after the first look has just begun.
      const isAlive = known?.isAlive === true || (isNew && !(known === undefined && this.#isFirst));
      const looks = isNew ? 0 : (known?.looks ?? 0) + 1;
      if (looks >= silentLooks) silent.push(id);
      this.#seen.set(id, { beat, looks, isAlive });
    }
    for (const id of silent) this.#seen.delete(id);
    this.#isFirst = false;
    return silent;
  }

  /** Returns true if there was a sign since the first look. */
  isAlive(id: string): boolean {
    return this.#seen.get(id)?.isAlive === true;
  }
}
