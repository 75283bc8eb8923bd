/** What workers and suites say of themselves in the database. What they say is shown, and decides only who is given jobs. */

/** A version of the orders. Another one is never mixed with it, whatever the version of Telos is. */
const orders = 1;

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
  version: string;
  label: string;
  waiting: number;
  running: number;
  done: number;
  failed: number;
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 100) : '');
const countOf = (value: unknown): number =>
  Number.isInteger(value) && (value as number) >= 0 ? Math.min(value as number, 1_000_000) : 0;
const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};

export function workerFacts(given: unknown): WorkerFacts {
  const { version, label, slots, running, done, refused, drains } = recordOf(given);
  return {
    ...{ version: textOf(version), label: textOf(label), drains: drains === true },
    ...{ slots: Math.min(countOf(slots), 64), running: countOf(running) },
    ...{ done: countOf(done), refused: countOf(refused) },
  };
}

export function suiteFacts(given: unknown): SuiteFacts {
  const { version, label, waiting, running, done, failed } = recordOf(given);
  return {
    ...{ version: textOf(version), label: textOf(label), waiting: countOf(waiting) },
    ...{ running: countOf(running), done: countOf(done), failed: countOf(failed) },
  };
}

/** How often a sign of life is given and looked for, in milliseconds. */
export const beatMs = 2_000;
/** After so many looks without a new sign, one is silent. Looks count and no clock does, since those of two machines may differ. */
export const silentLooks = 7;

/** Tells who has been silent for too long. */
export class Signs {
  readonly #seen = new Map<string, { beat: number; looks: number }>();

  /** Returns true if there was no new sign for too long. To be called once a look. */
  isSilent(id: string, beat: number | undefined): boolean {
    const known = this.#seen.get(id);
    const isNew = beat !== undefined && beat !== known?.beat;
    const looks = isNew ? 0 : (known?.looks ?? 0) + 1;
    this.#seen.set(id, { beat: beat ?? known?.beat ?? 0, looks });
    return looks >= silentLooks;
  }
}
