/** Gives the stories of a plan to workers, and collects what comes of them. */

import { randomBytes } from 'node:crypto';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { TelosError } from '@telos/engine/errors';
import { createWhole, makeOwnFolders, readText } from '@telos/engine/files';
import { beginningOf } from '@telos/protocol/text';
import type { DatabaseAddress } from './databaseAddress.ts';
import { type EndedJob, FleetDatabase, type FleetLog, storyWorkflow } from './fleetDatabase.ts';
import { beatMs, Signs, type SuiteFacts, versionKey, type WorkerFacts, workerFacts } from './presence.ts';
import { keptKeys, proofFor, readKeys, type SuiteKeys, suiteKeys, unseal } from './sealed.ts';

export interface PlanJobsParts {
  address: DatabaseAddress;
  /** Of Telos. */
  version: string;
  /** Only workers with this label. Undefined for all. */
  label: string | undefined;
  /** The file with the plan's key: what was sealed before a crash can be read after it. */
  keyFile: string;
  /** Says who the plan is to workers. */
  name: string;
  log: FleetLog;
}

interface GivenJob {
  key: string;
  worker: string;
}

interface Talk {
  given(job: GivenJob): Promise<void>;
  facts(facts: readonly unknown[]): Promise<void>;
}

type JobEnd =
  | { kind: 'ended'; worker: string; end: unknown }
  | { kind: 'refused'; why: string }
  | { kind: 'left'; worker: string; why: string };

interface OpenJob extends GivenJob {
  /** What its answers must bring: a row that someone else wrote does not have it. */
  proof: string;
  /** Facts that are known already, and come again. */
  known: number;
  talk: Talk;
  /** Outputs of its steps that were taken. */
  steps: number;
  /** When to look for more. */
  nextFacts: number;
  end?: JobEnd;
}

/** Pauses between two looks, in milliseconds. */
const pauseMs = 100;
const factsMs = 700;
/** After so many looks it is sure who is there. */
const sureLooks = 2;
/** How long the end waits for the database, in milliseconds. */
const lastMs = 3_000;

export class PlanJobs {
  readonly #parts: PlanJobsParts;
  readonly #keys: SuiteKeys;
  readonly #id: string;
  readonly #signs = new Signs();
  readonly #said = new Set<string>();
  readonly #workers = new Map<string, WorkerFacts>();
  readonly #open = new Map<string, OpenJob>();
  /** Workers that refuse this plan, with their reasons. */
  readonly #refusals = new Map<string, string>();
  readonly #database: FleetDatabase;
  readonly #over: AbortController;
  readonly #working: Promise<void>;
  #failure: unknown;
  #looks = 0;
  #nextLook = 0;
  #done = 0;
  #waiting = 0;
  /** Jobs that are about to be given, by worker. */
  readonly #chosen = new Map<string, number>();

  private constructor(parts: PlanJobsParts, keys: SuiteKeys, database: FleetDatabase, over: AbortController) {
    this.#parts = parts;
    this.#keys = keys;
    this.#database = database;
    this.#over = over;
    this.#id = `${parts.name}-${randomBytes(3).toString('hex')}`;
    this.#working = this.#work();
  }

  /** Throws TelosError `config` if the database cannot be used, and errors of the file system. */
  static async open(parts: PlanJobsParts): Promise<PlanJobs> {
    const over = new AbortController();
    const database = await FleetDatabase.open(parts.address, parts.log, over.signal);
    return new PlanJobs(parts, await planKeys(parts.keyFile), database, over);
  }

  room(): number {
    return Math.max(
      1,
      this.#able().reduce((sum, [, { slots }]) => sum + slots, 0),
    );
  }

  proof(name: string): string {
    return proofFor(this.#keys, `${this.#parts.name} ${name}`);
  }

  async give(name: string, order: object, talk: Talk, signal: AbortSignal): Promise<JobEnd> {
    for (;;) {
      const worker = await this.#choose(signal);
      if (worker === undefined) return { kind: 'refused', why: this.#refusedText() };
      const open = await this.#send(name, worker, order, talk).finally(() => this.#leaveChoice(worker));
      const end = await this.#ended(open, signal);
      if (end.kind !== 'refused') return end;
    }
  }

  async find(job: GivenJob, known: number, talk: Talk, signal: AbortSignal): Promise<JobEnd> {
    const { key, worker } = job;
    if ((await this.#database.unknown([key])).length > 0)
      return { kind: 'left', worker, why: 'never got it' };
    // Behind the name are a hyphen and eight digits.
    const proof = this.proof(key.slice(this.#prefix.length, -9));
    const open: OpenJob = { ...job, proof, known, steps: 0, talk, nextFacts: 0 };
    this.#open.set(key, open);
    const end = await this.#ended(open, signal);
    return end.kind === 'refused' ? { kind: 'left', worker, why: 'refused it' } : end;
  }

  async close(): Promise<void> {
    const database = this.#database;
    this.#over.abort();
    await this.#working;
    database.lastCalls(lastMs);
    await database.withdraw('suite', this.#id).catch(() => undefined);
    await database.close();
  }

  /** Returns a worker with room, once there is one; undefined if all that are there refuse. */
  async #choose(signal: AbortSignal): Promise<string | undefined> {
    this.#waiting++;
    try {
      for (;;) {
        signal.throwIfAborted();
        if (this.#failure !== undefined) throw this.#failure;
        const able = this.#able();
        const [best] = able
          .map(([id, { slots }]) => ({ id, load: this.#loadOf(id) / Math.max(1, slots) }))
          .filter(({ load }) => load < 1)
          .sort((one, other) => one.load - other.load);
        if (best) {
          this.#chosen.set(best.id, (this.#chosen.get(best.id) ?? 0) + 1);
          return best.id;
        }
        if (able.length === 0 && this.#refusals.size > 0 && this.#looks > sureLooks) return undefined;
        await delay(pauseMs, undefined, { signal });
      }
    } finally {
      this.#waiting--;
    }
  }

  get #prefix(): string {
    return `telos-story-${this.#parts.name}-`;
  }

  #leaveChoice(worker: string): void {
    this.#chosen.set(worker, (this.#chosen.get(worker) ?? 1) - 1);
  }

  #loadOf(worker: string): number {
    const given = [...this.#open.values()].filter(job => job.worker === worker).length;
    return given + (this.#chosen.get(worker) ?? 0);
  }

  async #send(name: string, worker: string, order: object, talk: Talk): Promise<OpenJob> {
    const { version } = this.#parts;
    const key = `${this.#prefix}${name}-${randomBytes(4).toString('hex')}`;
    await talk.given({ key, worker });
    const whole = { ...order, replyTo: this.#keys.publicKey };
    await this.#database.send(key, worker, versionKey(version), whole, storyWorkflow);
    const open: OpenJob = { key, worker, proof: this.proof(name), known: 0, steps: 0, talk, nextFacts: 0 };
    this.#open.set(key, open);
    return open;
  }

  /** Resolves when the job has ended. Takes it back on abort. */
  async #ended(open: OpenJob, signal: AbortSignal): Promise<JobEnd> {
    try {
      for (;;) {
        if (this.#failure !== undefined) throw this.#failure;
        if (open.end) return open.end;
        await delay(pauseMs / 2, undefined, { signal });
      }
    } finally {
      this.#open.delete(open.key);
      if (!open.end) await this.#takeBack(open.key);
    }
  }

  async #takeBack(key: string): Promise<void> {
    const database = this.#database;
    const late = delay(lastMs, undefined, { ref: false });
    await Promise.race([database.cancel([key]).catch(() => undefined), late]);
  }

  /** Looks who is there and what has come, until the plan rests. */
  async #work(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      try {
        if (performance.now() >= this.#nextLook) await this.#look();
        await this.#collect();
        await delay(pauseMs, undefined, { signal });
      } catch (error) {
        if (signal.aborted) return;
        this.#failure = error;
        return;
      }
    }
  }

  /** Looks who is there, and says that this plan is. */
  async #look(): Promise<void> {
    const { version, label = '' } = this.#parts;
    const database = this.#database;
    this.#nextLook = performance.now() + beatMs;
    const [waiting, running] = [this.#waiting, this.#open.size];
    const [done, failed] = [this.#done, 0];
    const facts: SuiteFacts = { isPlan: true, version, label, waiting, running, done, failed };
    await database.announce('suite', this.#id, facts);
    const present = await database.present('worker');
    for (const one of present) this.#workers.set(one.id, workerFacts(one.facts));
    for (const id of this.#signs.look(new Map(present.map(({ id: name, beat }) => [name, beat]))))
      await this.#leaveSilent(id);
    this.#looks++;
    if (this.#looks > sureLooks && waiting > 0 && this.#able().length === 0) this.#sayWhyNone();
  }

  #able(): [string, WorkerFacts][] {
    const { version, label } = this.#parts;
    return [...this.#workers].filter(
      ([id, facts]) =>
        this.#signs.isAlive(id) &&
        facts.version === version &&
        !facts.drains &&
        !this.#refusals.has(id) &&
        (label === undefined || facts.label === label),
    );
  }

  #sayWhyNone(): void {
    const { version, label } = this.#parts;
    const other = [...this.#workers].find(([, facts]) => facts.version !== version);
    if (other)
      this.#once(
        `The worker ${other[0]} has Telos ${other[1].version || 'of an unknown version'}, not ${version}, so it gets no stories.`,
      );
    if (this.#refusals.size === 0)
      this.#once(
        `No worker ${label === undefined ? '' : `with the label ${label} `}takes stories at the moment. They wait for one.`,
      );
  }

  #refusedText(): string {
    return [...this.#refusals].map(([worker, why]) => `${worker}: ${why}`).join(' ');
  }

  /** The jobs of a worker that gives no sign any more are over. */
  async #leaveSilent(id: string): Promise<void> {
    const database = this.#database;
    this.#workers.delete(id);
    // If it lives after all, it says so again.
    await database.withdraw('worker', id);
    await database.closeQueue(id);
    await database.cancel([...this.#open.values()].filter(job => job.worker === id).map(({ key }) => key));
  }

  async #collect(): Promise<void> {
    const database = this.#database;
    const now = performance.now();
    const ended = new Map((await database.ended([...this.#open.keys()])).map(one => [one.id, one]));
    for (const open of this.#open.values()) {
      const end = ended.get(open.key);
      if (!end && now < open.nextFacts) continue;
      open.nextFacts = now + factsMs;
      await this.#takeFacts(open);
      // A database that was put back to an earlier state knows nothing of it.
      const isGone = !end && (await database.unknown([open.key])).length > 0;
      if (isGone) open.end ??= { kind: 'left', worker: open.worker, why: 'lost it with the database' };
      if (!end) continue;
      open.end = this.#endOf(end, open);
      this.#done++;
      await database.remove([open.key]);
    }
  }

  async #takeFacts(open: OpenJob): Promise<void> {
    const outputs = (await this.#database.facts(open.key)).slice(open.steps);
    if (outputs.length === 0) return;
    open.steps += outputs.length;
    const facts = outputs.flatMap(output => {
      const read = this.#proven((output as { sealed?: unknown } | undefined)?.sealed, open)?.facts;
      return Array.isArray(read) ? read : [];
    });
    // Those of a job that was found again are known in part.
    const fresh = facts.slice(Math.min(open.known, facts.length));
    open.known -= facts.length - fresh.length;
    if (fresh.length > 0) await open.talk.facts(fresh);
  }

  /** Returns what was sealed for this plan by who has read the order; undefined for anything else. */
  #proven(sealed: unknown, { proof }: OpenJob): { facts?: unknown; end?: unknown } | undefined {
    const read = Object(unseal(sealed, this.#keys)) as { proof?: unknown; facts?: unknown; end?: unknown };
    return read.proof === proof ? read : undefined;
  }

  #endOf({ status, output, error }: EndedJob, open: OpenJob): JobEnd {
    const { worker } = open;
    const facts = this.#workers.get(worker);
    // It hands back what it does not do any more, before its next sign says so.
    if (status === 'CANCELLED' && facts) facts.drains = true;
    if (status === 'CANCELLED')
      return { kind: 'left', worker, why: facts ? 'handed it back' : 'has gone silent' };
    const { refused, sealed } = Object(output) as { refused?: unknown; sealed?: unknown };
    if (status !== 'SUCCESS') return { kind: 'left', worker, why: `failed (${error || status})` };
    if (typeof refused !== 'string') return { kind: 'ended', worker, end: this.#proven(sealed, open)?.end };
    const why = beginningOf(refused, 500);
    this.#refusals.set(worker, why);
    this.#once(`The worker ${worker} refuses: ${why}`);
    return { kind: 'refused', why };
  }

  #once(line: string): void {
    if (this.#said.has(line)) return;
    this.#said.add(line);
    this.#parts.log(line);
  }
}

/** Returns the keys of a plan, made if there are none. Throws TelosError `config` if the file is another one. */
async function planKeys(file: string): Promise<SuiteKeys> {
  makeOwnFolders(dirname(dirname(file)), dirname(file));
  await createWhole(file, keptKeys(suiteKeys()));
  try {
    return readKeys(readText(file));
  } catch (error) {
    throw new TelosError('config', `${file} has no key of a plan. Delete it, and jobs are given anew.`, {
      cause: error,
    });
  }
}
