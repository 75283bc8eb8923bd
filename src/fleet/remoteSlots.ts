/** The slots of workers: gives each as many jobs as it has room for, and collects what came of them. */

import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type EvalJob,
  type EvalResult,
  type JobResult,
  nothing,
  type Slots,
  SuiteBudget,
  type SuiteTerms,
} from '@telos/evals/suite';
import { beginningOf } from '@telos/protocol/text';
import { type EvalAnswer, readResult, SuiteDigests } from './evalOrder.ts';
import type { EndedJob, FleetDatabase, FleetLog } from './fleetDatabase.ts';
import { HeldJobs, mostGiven, type OpenJob } from './heldJobs.ts';
import { beatMs, Signs, type SuiteFacts, versionKey, type WorkerFacts, workerFacts } from './presence.ts';
import { suiteKeys, unseal } from './sealed.ts';

export interface RemoteParts {
  database: FleetDatabase;
  /** Of Telos. */
  version: string;
  /** Only workers with this label. Undefined for all. */
  label: string | undefined;
  /** Runs that failed wait until a person has them given again. False ends the suite with the first of them. */
  waits: boolean;
  log: FleetLog;
}

/** Returns the slots of all workers on a database. */
export const remoteSlots = (parts: RemoteParts): Slots => ({
  async *run(jobs, terms, signal) {
    const suite = new RemoteSuite(jobs, terms, parts);
    try {
      yield* suite.results(signal);
    } finally {
      await suite.end();
    }
  },
});

interface GivenJob extends OpenJob {
  worker: string;
}

/** Pauses between two looks at results, in milliseconds. */
const pauses = { busy: 40, idle: 200 };

class RemoteSuite {
  readonly #id = randomBytes(6).toString('hex');
  readonly #keys = suiteKeys();
  readonly #digests = new SuiteDigests();
  readonly #signs = new Signs();
  readonly #said = new Set<string>();
  readonly #parts: RemoteParts;
  readonly #terms: SuiteTerms;
  readonly #budget: SuiteBudget;
  readonly #given = new Map<string, GivenJob>();
  readonly #held: HeldJobs | undefined;
  #waiting: OpenJob[];
  #workers = new Map<string, WorkerFacts>();
  #done = 0;
  #nextLook = 0;
  #looks = 0;
  /** Why no more jobs are given: an unfinished result, which comes last. */
  #stopped: JobResult | undefined;

  constructor(jobs: readonly EvalJob[], terms: SuiteTerms, parts: RemoteParts) {
    const refusals = new Map(jobs.map(({ run }) => [run.one.skill, new Map<string, string>()]));
    this.#waiting = jobs.map(job => ({
      job,
      given: 0,
      most: mostGiven,
      refused: refusals.get(job.run.one.skill) ?? new Map(),
    }));
    this.#terms = terms;
    this.#parts = parts;
    if (parts.waits) this.#held = new HeldJobs(this.#id, parts);
    this.#budget = new SuiteBudget(terms.maxCost);
  }

  async *results(signal: AbortSignal): AsyncGenerator<JobResult> {
    while (this.#waiting.length + this.#given.size > 0 || (!this.#stopped && this.#held?.size)) {
      signal.throwIfAborted();
      if (performance.now() >= this.#nextLook) await this.#look();
      await this.#giveOut();
      const results = await this.#collect();
      yield* results;
      const pause = results.length > 0 ? pauses.busy : pauses.idle;
      await delay(pause, undefined, { signal });
    }
    if (this.#stopped) yield this.#stopped;
  }

  /** Takes back what no one has done, and leaves no row. */
  async end(): Promise<void> {
    const { database } = this.#parts;
    const keys = [...this.#given.keys()];
    database.lastCalls(2_500);
    const leave = async (): Promise<void> => {
      await database.cancel(keys);
      await database.remove(keys);
      await database.withdraw('suite', this.#id);
      await this.#held?.end();
    };
    await Promise.race([leave().catch(() => undefined), delay(3_000, undefined, { ref: false })]);
  }

  /** Looks who is there, and says that this suite is. */
  async #look(): Promise<void> {
    const { database, version, label = '' } = this.#parts;
    this.#nextLook = performance.now() + beatMs;
    const [waiting, running] = [this.#waiting.length, this.#given.size];
    const [done, failed] = [this.#done, this.#held?.size ?? 0];
    const facts: SuiteFacts = { isPlan: false, version, label, waiting, running, done, failed };
    await database.announce('suite', this.#id, facts);
    if (!this.#stopped) this.#waiting.unshift(...((await this.#held?.again()) ?? []));
    const present = await database.present('worker');
    for (const one of present) this.#workers.set(one.id, workerFacts(one.facts));
    for (const id of this.#signs.look(new Map(present.map(({ id: name, beat }) => [name, beat]))))
      await this.#leaveSilent(id);
    await this.#findLost();
    const isSure = ++this.#looks > 2;
    if (isSure && this.#waiting.length > 0 && this.#able().length === 0) this.#sayWhyNone();
  }

  /** Gives again what the database has forgotten: it was restored to an earlier time. What was collected is kept here. */
  async #findLost(): Promise<void> {
    const { database, log } = this.#parts;
    const lost = await database.unknown([...this.#given.keys()]);
    if (lost.length === 0) return;
    for (const key of lost) {
      const { worker: _worker, ...open } = this.#given.get(key) as GivenJob;
      this.#given.delete(key);
      this.#waiting.unshift(open);
    }
    log(
      `The database has lost ${lost.length === 1 ? 'a run that was given' : `${lost.length} runs that were given`}. They are given again.`,
    );
  }

  #able(): [string, WorkerFacts][] {
    const { version, label } = this.#parts;
    return [...this.#workers].filter(
      ([id, facts]) =>
        this.#signs.isAlive(id) &&
        facts.version === version &&
        !facts.drains &&
        (label === undefined || facts.label === label),
    );
  }

  #sayWhyNone(): void {
    const { version, label } = this.#parts;
    const other = [...this.#workers].find(([, facts]) => facts.version !== version);
    if (other)
      this.#once(
        `The worker ${other[0]} has Telos ${other[1].version || 'of an unknown version'}, not ${version}, so it gets no runs.`,
      );
    this.#once(
      `No worker ${label === undefined ? '' : `with the label ${label} `}takes runs at the moment. They wait for one.`,
    );
  }

  /** Gives the jobs of a worker that gives no sign any more to others. */
  async #leaveSilent(id: string): Promise<void> {
    const { database, log } = this.#parts;
    this.#workers.delete(id);
    // If it lives after all, it says so again.
    await database.withdraw('worker', id);
    await database.closeQueue(id);
    const own = [...this.#given].filter(([, { worker }]) => worker === id).map(([key]) => key);
    if (own.length === 0) return;
    log(`The worker ${id} is silent. Its ${own.length === 1 ? 'run goes' : 'runs go'} to others.`);
    await database.cancel(own);
  }

  /** Fills the workers: each has as many jobs again waiting as it has slots, so that it need not wait for this process. */
  async #giveOut(): Promise<void> {
    const sending: Promise<void>[] = [];
    while (this.#waiting.length > 0 && !this.#stopped) {
      const next = this.#nextPair();
      if (!next) break;
      const [open, worker] = next;
      this.#waiting.splice(this.#waiting.indexOf(open), 1);
      sending.push(this.#give(open, worker));
    }
    await Promise.all(sending);
  }

  #nextPair(): [OpenJob, string] | undefined {
    const load = (id: string): number =>
      [...this.#given.values()].filter(({ worker }) => worker === id).length;
    const rooms = this.#able()
      .map(([id, { slots }]) => ({ id, load: load(id) / Math.max(1, slots * 2) }))
      .filter(room => room.load < 1)
      .sort((a, b) => a.load - b.load);
    for (const { id } of rooms) {
      const open = this.#waiting.find(({ refused }) => !refused.has(id));
      if (open) return [open, id];
    }
    return undefined;
  }

  async #give(open: OpenJob, worker: string): Promise<void> {
    const { database, version } = this.#parts;
    const key = `telos-run-${this.#id}-${open.job.place}-${open.given}`;
    this.#given.set(key, { ...open, given: open.given + 1, worker });
    const order = await this.#digests.orderFor(open.job, this.#terms, this.#keys.publicKey);
    await database.send(key, worker, versionKey(version), order);
  }

  async #collect(): Promise<JobResult[]> {
    const { database } = this.#parts;
    const ended = await database.ended([...this.#given.keys()]);
    const results: JobResult[] = [];
    for (const one of ended) {
      const given = this.#given.get(one.id);
      this.#given.delete(one.id);
      const result = given && this.#resultOf(one, given);
      if (result?.status === 'unfinished' && given) await this.#fail(given, result);
      else if (result && given) results.push({ place: given.job.place, result });
    }
    this.#done += results.length;
    await database.remove(ended.map(({ id }) => id));
    if (this.#budget.isReached && this.#waiting[0])
      this.#stopAt(this.#waiting[0].job, 'budget', this.#budgetText());
    if (this.#stopped) await this.#takeBack();
    return results;
  }

  #budgetText(): string {
    try {
      this.#budget.check();
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  }

  /** Returns the result of a job, or undefined if it goes to another worker. */
  #resultOf({ status, output, error }: EndedJob, given: GivenJob): EvalResult | undefined {
    const { job, worker } = given;
    const unfinished = (message: string): EvalResult => ({
      ...nothing(job.run),
      status: 'unfinished',
      error: { code: 'config', message },
      worker,
    });
    const facts = this.#workers.get(worker);
    const again = (): undefined => {
      this.#waiting.unshift({ job, given: given.given, most: given.most, refused: given.refused });
    };
    // It hands back what it does not do any more, before its next sign says so.
    if (status === 'CANCELLED' && facts) facts.drains = true;
    if (status === 'CANCELLED')
      return given.given < given.most ? again() : unfinished(`${mostGiven} workers have left this run.`);
    if (status !== 'SUCCESS') return unfinished(`The worker ${worker} failed: ${error || status}`);
    const answer = (output ?? {}) as Partial<Record<'sealed' | 'refused', unknown>> & Partial<EvalAnswer>;
    if (typeof answer.refused === 'string') {
      const why = beginningOf(answer.refused, 500);
      given.refused.set(worker, why);
      this.#once(`The worker ${worker} refuses: ${why}`);
      const isLeft = this.#able().some(([id]) => !given.refused.has(id));
      return isLeft ? again() : unfinished(`No worker takes it. ${worker}: ${why}`);
    }
    const read = readResult(unseal(answer.sealed, this.#keys), job, worker);
    if (!read) return unfinished(`What the database has of this run was not written for it by a worker.`);
    this.#budget.add(read.spent);
    return read.result;
  }

  /** Ends the suite with what failed, or lets it wait. What the budget of the suite ends, no worker could do. */
  async #fail(given: GivenJob, result: EvalResult): Promise<void> {
    const held = result.error?.code === 'budget' ? undefined : this.#held;
    if (!held) return this.#stop(given.job.place, result);
    const why = result.error?.message ?? '';
    await held.hold(given, given.worker, why);
    // Others of the skill would be refused by the same workers.
    const able = this.#able();
    const isOpen = ({ refused }: OpenJob): boolean => able.some(([id]) => !refused.has(id));
    const shut = able.length > 0 ? this.#waiting.filter(open => !isOpen(open)) : [];
    for (const open of shut) await held.hold(open, given.worker, why);
    this.#waiting = this.#waiting.filter(open => !shut.includes(open));
  }

  #stopAt({ place, run }: EvalJob, code: 'budget', message: string): void {
    this.#stop(place, { ...nothing(run), status: 'unfinished', error: { code, message } });
  }

  #stop(place: number, result: EvalResult): void {
    this.#stopped ??= { place, result };
    this.#waiting = [];
  }

  /** Takes back what no worker has begun. What is running ends, as it is paid for. */
  async #takeBack(): Promise<void> {
    const { database } = this.#parts;
    const unbegun = await database.unbegun([...this.#given.keys()]);
    await database.cancel(unbegun);
    await database.remove(unbegun);
    for (const key of unbegun) this.#given.delete(key);
    this.#waiting = [];
  }

  #once(line: string): void {
    if (this.#said.has(line)) return;
    this.#said.add(line);
    this.#parts.log(line);
  }
}
