/** Runs of a suite that failed or were refused by every worker, and wait until a person has them given again. */
import type { EvalJob } from '@telos/evals/suite';
import type { FleetDatabase, FleetLog } from './fleetDatabase.ts';
import type { FailedFacts } from './presence.ts';

/** A job that is not done yet. */
export interface OpenJob {
  job: EvalJob;
  /** How often it was given to a worker. */
  given: number;
  /** How often it may be given. */
  most: number;
  /** Workers that have refused a run of the same skill, with their reasons. They get none of it any more. */
  refused: Map<string, string>;
}

/** A job that so many workers have handed back or left is given to no other one. */
export const mostGiven = 6;

export class HeldJobs {
  readonly #suite: string;
  readonly #database: FleetDatabase;
  readonly #log: FleetLog;
  readonly #jobs = new Map<string, OpenJob>();

  constructor(suite: string, { database, log }: { database: FleetDatabase; log: FleetLog }) {
    this.#suite = suite;
    this.#database = database;
    this.#log = log;
  }

  get size(): number {
    return this.#jobs.size;
  }

  /** Keeps the job, and says in the database why. */
  async hold(open: OpenJob, worker: string, why: string): Promise<void> {
    const { run, place } = open.job;
    const id = `${this.#suite}-${place}`;
    const job = `${run.one.skill.id} ${run.eval.id} ${run.configuration} ${run.model}`;
    this.#jobs.set(id, open);
    const facts: FailedFacts = { job, worker, why };
    await this.#database.announce('failed', id, facts);
    this.#log(`${job} waits to be given again as ${id}: ${why}`);
  }

  /** Returns the jobs that a person wishes to be given again, without the refusals of before. Nothing else in a wish counts. */
  async again(): Promise<OpenJob[]> {
    if (this.#jobs.size === 0) return [];
    const again: OpenJob[] = [];
    for (const { id } of await this.#database.present('retry')) {
      const open = this.#jobs.get(id);
      if (!open) continue;
      this.#jobs.delete(id);
      open.refused.clear();
      again.push({ ...open, most: open.given + mostGiven });
      await this.#leave(id);
    }
    return again;
  }

  /** Leaves no row. */
  async end(): Promise<void> {
    for (const id of this.#jobs.keys()) await this.#leave(id);
    this.#jobs.clear();
  }

  async #leave(id: string): Promise<void> {
    for (const kind of ['failed', 'retry'] as const) await this.#database.withdraw(kind, id);
  }
}
