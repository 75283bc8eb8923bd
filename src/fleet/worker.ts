/** A worker: takes jobs from its queue in the database, as many at once as it has slots, until it is stopped. */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { type DatabaseAddress, reach, shortageOf } from './databaseAddress.ts';
import { type Dbos, loadDbos, preparedAlone } from './dbos.ts';
import {
  applicationName,
  evalWorkflow,
  FleetDatabase,
  type FleetLog,
  factStep,
  plainJson,
  queueOf,
  storyWorkflow,
  turnWorkflow,
} from './fleetDatabase.ts';
import { beatMs, suiteFacts, versionKey, type WorkerFacts } from './presence.ts';
import type { Turns } from './turns.ts';

export interface WorkerOptions {
  database: DatabaseAddress;
  slots: number;
  label: string | undefined;
  turns: Turns;
  /** Of Telos. */
  version: string;
  /** Says what happens, a sentence each. */
  log: FleetLog;
  /** Says how it is, again and again. */
  health: FleetLog;
}

/** Says what a job has come to so far. It is in the database once this has resolved. */
export type TellFacts = (sealed: string) => Promise<void>;

/** Returns what is written into the database as the answer to a job, of which nothing is believed. Throws the abort reason on abort. */
export type AnswerJob = (
  given: unknown,
  signal: AbortSignal,
  tell: TellFacts,
) => Promise<{ sealed: string } | { refused: string }>;

/** From the first signal on, running jobs have so long to end; the rest of the half minute is for handing back. In milliseconds. */
const drainMs = 20_000;
const lastMs = 6_000;

/** Works until the signal aborts, then finishes or hands back. Throws TelosError `config` if it cannot start. */
export async function runWorker(
  options: WorkerOptions,
  answer: AnswerJob,
  signal: AbortSignal,
): Promise<void> {
  const { DBOS } = await loadDbos();
  const worker = new Worker(DBOS, options, answer);
  await worker.start();
  try {
    await worker.work(signal);
  } finally {
    await Promise.race([worker.drain(), delay(drainMs + lastMs, undefined, { ref: false })]);
  }
}

class Worker {
  readonly #dbos: Dbos['DBOS'];
  readonly #options: WorkerOptions;
  readonly #answerJob: AnswerJob;
  readonly #id: string;
  readonly #version: string;
  readonly #jobs = new AbortController();
  readonly #ended = new AbortController();
  readonly #said = new Set<string>();
  /** What stops a job, by its key. */
  readonly #running = new Map<string, AbortController>();
  /** What has begun here, as long as the database has no end of it. */
  readonly #begun = new Set<string>();
  /** What the database says was taken here, and what had not begun at the last look. */
  #unbegun: ReadonlySet<string> = new Set();
  readonly #counts = { running: 0, done: 0, refused: 0, handedBack: 0 };
  #database: FleetDatabase | undefined;
  #drains = false;
  #isWishedAway = false;
  #lastHealth = '';

  constructor(dbos: Dbos['DBOS'], options: WorkerOptions, answer: AnswerJob) {
    this.#dbos = dbos;
    this.#options = options;
    this.#answerJob = answer;
    this.#version = versionKey(options.version);
    const name = (options.label ?? hostname()).replace(/[^\w.-]+/g, '-').slice(0, 40);
    this.#id = `${name}-${randomBytes(3).toString('hex')}`;
  }

  async start(): Promise<void> {
    const { database: address, slots, turns, log } = this.#options;
    await reach(address);
    await FleetDatabase.refuseMissing(address);
    for (const name of [evalWorkflow, storyWorkflow])
      this.#dbos.registerWorkflow((given: unknown) => this.#answer(given), { name });
    this.#dbos.registerWorkflow(async () => void this.#begin(), { name: turnWorkflow });
    this.#dbos.setConfig({
      name: applicationName,
      systemDatabaseUrl: address.url,
      systemDatabasePoolSize: 4,
      applicationVersion: this.#version,
      executorID: this.#id,
      listenQueues: [queueOf(this.#id), ...turns.queues],
      useListenNotify: false,
      serializer: plainJson,
      logger: this.#logger(),
    });
    await preparedAlone(address, log, () => this.#dbos.launch());
    this.#database = await FleetDatabase.open(address, log, this.#ended.signal);
    await this.#database.openQueue(this.#id, slots);
    await turns.start(this.#database, this.#version);
    await this.#beat();
    log(`Worker ${this.#id} takes jobs for Telos ${this.#options.version} from ${address.shown}.`);
  }

  /** Gives signs of life until the signal aborts, or a person wishes over the database that it ends. */
  async work(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !this.#isWishedAway) {
      await delay(beatMs, undefined, { signal }).catch(() => undefined);
      if (!signal.aborted) await this.#lookUntil(signal);
    }
  }

  async #lookUntil(signal: AbortSignal): Promise<void> {
    let stop = (): void => undefined;
    const aborted = new Promise<void>(resolve => {
      stop = resolve;
    });
    signal.addEventListener('abort', stop);
    try {
      await Promise.race([this.#look(), aborted]);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  async #look(): Promise<void> {
    const database = this.#opened();
    // A suite for which this worker was silent has closed it.
    await database.openQueue(this.#id, this.#options.slots);
    await this.#beat();
    await this.#settleTaken();
    await this.#options.turns.look();
    const wishes = await database.present('drain');
    this.#isWishedAway = wishes.some(({ id }) => id === this.#id);
    if (this.#isWishedAway) return this.#options.log('Ending, as was asked for over the database.');
    for (const { facts } of await database.present('suite')) {
      const { version, waiting } = suiteFacts(facts);
      if (version !== this.#options.version && waiting > 0) this.#leave(`Runs wait for Telos ${version}`);
    }
    for (const version of await database.otherVersions(this.#id, this.#version))
      this.#leave(`A job is for ${version}`);
  }

  /**
   * Stops what was taken back, and hands back what was taken here and never begins: the database failed in between, or no worker can read
   * it. Without that, whoever gave it would wait for as long as this worker lives.
   */
  async #settleTaken(): Promise<void> {
    const database = this.#opened();
    const [running, begun] = [[...this.#running], [...this.#begun]];
    const taken = new Set(await database.takenBy(this.#id));
    for (const [key, stop] of running) if (!taken.has(key)) stop.abort(new Error('The job was taken back.'));
    for (const key of begun) if (!taken.has(key)) this.#begun.delete(key);
    const unbegun = [...taken].filter(key => !this.#begun.has(key));
    const lost = unbegun.filter(key => this.#unbegun.has(key));
    this.#unbegun = new Set(unbegun);
    await database.cancel(lost);
    this.#counts.handedBack += lost.length;
  }

  #leave(what: string): void {
    this.#once(
      `${what}. This worker has Telos ${this.#options.version} and leaves them. Install the same version on both sides.`,
    );
  }

  /** Takes nothing more, lets running jobs end, and hands back those that do not. */
  async drain(): Promise<void> {
    this.#drains = true;
    const database = this.#opened();
    const quietly = <Value>(doing: Promise<Value>): Promise<Value | undefined> =>
      Promise.race([doing.catch(() => undefined), delay(2_000, undefined, { ref: false })]);
    if (this.#counts.running > 0)
      this.#options.log(`Ending: ${this.#counts.running} running, up to ${drainMs / 1_000} s for them.`);
    // Who gives no sign while its jobs end seems to be dead.
    const beating = setInterval(() => void this.#beat().catch(() => undefined), beatMs).unref();
    const stopping = this.#dbos.shutdown({ workflowCompletionTimeoutMS: drainMs }).catch(() => undefined);
    await quietly(this.#beat());
    await quietly(this.#handBack('ENQUEUED'));
    await Promise.race([stopping, delay(drainMs + 2_000, undefined, { ref: false })]);
    clearInterval(beating);
    for (const status of ['ENQUEUED', 'PENDING'] as const) await quietly(this.#handBack(status));
    this.#jobs.abort();
    await quietly(this.#options.turns.end());
    await quietly(database.withdraw('worker', this.#id));
    await quietly(database.withdraw('drain', this.#id));
    await quietly(database.closeQueue(this.#id));
    this.#ended.abort();
    await database.close();
    const { done, refused, handedBack } = this.#counts;
    this.#options.log(
      `Worker ${this.#id} has ended: ${done} done, ${refused} refused, ${handedBack} handed back.`,
    );
  }

  /** What is cancelled here, its suite gives to another worker. */
  async #handBack(status: 'ENQUEUED' | 'PENDING'): Promise<void> {
    const database = this.#opened();
    const keys = await database.keysOf(this.#id, status);
    await database.cancel(keys);
    this.#counts.handedBack += keys.length;
  }

  /** Returns the key of what the engine has just begun. */
  #begin(): string {
    const key = this.#dbos.workflowID ?? '';
    this.#begun.add(key);
    return key;
  }

  async #answer(given: unknown): Promise<unknown> {
    const key = this.#begin();
    const own = new AbortController();
    this.#counts.running++;
    this.#running.set(key, own);
    try {
      const signal = AbortSignal.any([this.#jobs.signal, own.signal]);
      const tell: TellFacts = sealed =>
        this.#dbos.runStep(async () => ({ sealed }), { name: factStep }).then(() => undefined);
      const answer = await this.#answerJob(given, signal, tell);
      if ('refused' in answer) {
        this.#counts.refused++;
        this.#once(`Refused a job: ${answer.refused}`);
      } else this.#counts.done++;
      return answer;
    } finally {
      this.#counts.running--;
      this.#running.delete(key);
    }
  }

  async #beat(): Promise<void> {
    const { version, label = '', slots } = this.#options;
    const { running, done, refused } = this.#counts;
    const facts: WorkerFacts = { version, label, slots, running, done, refused, drains: this.#drains };
    await this.#opened().announce('worker', this.#id, facts);
    const health = `${this.#drains ? 'ending' : 'healthy'}: ${running} of ${slots} slots busy, ${done} done, ${refused} refused`;
    if (health !== this.#lastHealth) this.#options.health(health);
    this.#lastHealth = health;
  }

  #opened(): FleetDatabase {
    if (!this.#database) throw new Error('The worker was not started.');
    return this.#database;
  }

  /** What the engine says is of use to a person in few cases only. It may name anything that is in a row. */
  #logger() {
    const heard = (entry: unknown): void => {
      const text = String(entry);
      if (/connection failed|Error (?:listing|getting)/.test(text))
        this.#database?.lost(shortageOf({ message: text }));
      if (!/Could not execute workflow/.test(text)) return;
      const isUnknown = /Cannot find workflow|not registered/.test(text);
      this.#once(
        isUnknown
          ? 'A job in the database is of a kind that no worker does. Nothing was run.'
          : 'A job could not be read from the database. Handing it back.',
      );
    };
    return { info() {}, debug() {}, warn: heard, error: heard };
  }

  #once(line: string): void {
    if (this.#said.has(line) || this.#said.size > 1_000) return;
    this.#said.add(line);
    this.#options.log(line);
  }
}
