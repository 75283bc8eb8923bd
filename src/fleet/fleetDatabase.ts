/** What workers and suites write into the database and read from it, over the durable engine alone. */

import { setTimeout as delay } from 'node:timers/promises';
import { TelosError } from '@telos/engine/errors';
import { beginningOf } from '@telos/protocol/text';
import { type DatabaseAddress, isAway, problemOf, reach, shortageOf } from './databaseAddress.ts';
import { type Dbos, loadDbos } from './dbos.ts';

/** The name under which all rows of Telos are kept in the database. */
export const applicationName = 'telos';
/** The workflow that makes one run of an eval. */
export const evalWorkflow = 'telos.eval';
/** The workflow that works on one attempt at a story of a plan. */
export const storyWorkflow = 'telos.story';
/** The step whose outputs are the facts of a job, while it is worked on. */
export const factStep = 'telos.facts';
/** The workflow that does nothing but to have its turn. */
export const turnWorkflow = 'telos.turn';
/** No one takes anything from this queue: its rows say who is there. */
const presenceQueue = 'telos-presence';

/** Plain JSON: what a stranger writes into a row becomes data and nothing else. */
export const plainJson = {
  name: () => 'telos-json',
  parse: (text: string | null | undefined): unknown => (text ? JSON.parse(text) : null),
  stringify: (value: unknown): string => JSON.stringify(value ?? null),
};

export type FleetLog = (line: string) => void;

/**
 * What a row without a job is: a worker or a suite that is there, a run that failed and waits, a key that rests, or the wish of a person that a worker
 * ends or that a run is given again. A wish stops work or repeats what a suite has asked for; it starts nothing of its own.
 */
export type PresenceKind = 'worker' | 'suite' | 'failed' | 'pause' | 'drain' | 'retry';

export interface Present {
  id: string;
  /** Changes with each sign of life. */
  beat: number;
  /** As it is in the row. */
  facts: unknown;
}

export interface EndedJob {
  id: string;
  status: string;
  output: unknown;
  /** Message of an error that was not expected. */
  error: string;
}

type Client = Awaited<ReturnType<Dbos['DBOSClient']['create']>>;
type Job = Awaited<ReturnType<Client['listWorkflows']>>[number];

const ends = ['SUCCESS', 'ERROR', 'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED'] as const;
const quiet = { info() {}, debug() {}, warn() {}, error() {} };

/** How long a call may take before a person hears of it, in milliseconds. */
const slowMs = 3_000;
/** How long it counts as short of something after it last said so. The engine tries again within a minute. In milliseconds. */
const shortMs = 65_000;
const againMs = 500;
/** How long a worker waits at its start until the database lets it in, in milliseconds. */
const entryMs = 15_000;

export class FleetDatabase {
  readonly #client: Client;
  readonly #address: DatabaseAddress;
  readonly #log: FleetLog;
  #signal: AbortSignal;
  #isLost = false;
  /** What it said it is short of, and when it last did. */
  #shortage: string | undefined;
  #shortAt = Number.NEGATIVE_INFINITY;

  private constructor(client: Client, address: DatabaseAddress, log: FleetLog, signal: AbortSignal) {
    this.#client = client;
    this.#address = address;
    this.#log = log;
    this.#signal = signal;
  }

  /**
   * Returns the database. Calls of it wait while the database is away, until the signal aborts. Throws TelosError `config` if it is not
   * there now, refuses the user, or was never used by a worker.
   */
  static async open(address: DatabaseAddress, log: FleetLog, signal: AbortSignal): Promise<FleetDatabase> {
    const { DBOSClient } = await loadDbos();
    await reach(address);
    const client = await DBOSClient.create({
      systemDatabaseUrl: address.url,
      systemDatabasePoolSize: 4,
      serializer: plainJson,
      logger: quiet,
      applicationName,
    });
    const database = new FleetDatabase(client, address, log, signal);
    try {
      await database.present('worker');
    } catch (error) {
      await database.close();
      throw error;
    }
    return database;
  }

  /**
   * Throws TelosError `config` if there is no such database, which the engine would make for each typo, or if it refuses the user or
   * all connections, which the engine would try again without end.
   */
  static async refuseMissing(address: DatabaseAddress): Promise<void> {
    const { DBOSClient } = await loadDbos();
    const client = await DBOSClient.create({
      systemDatabaseUrl: address.url,
      systemDatabasePoolSize: 1,
      serializer: plainJson,
      logger: quiet,
      applicationName,
    });
    const late = delay(entryMs, undefined, { ref: false }).then(() => {
      throw new TelosError(
        'config',
        `The database ${address.shown} accepts no connection. It is starting, or all its connections are in use: raise its max_connections, or end a worker.`,
      );
    });
    late.catch(() => undefined);
    try {
      await Promise.race([client.listWorkflows({ limit: 1 }), late]);
    } catch (error) {
      // It is prepared when the engine starts.
      if (!/^(?:42P01|3F000)$/.test((error as { code?: string }).code ?? '')) throw problemOf(error, address);
    } finally {
      await Promise.race([client.destroy().catch(() => undefined), delay(1_000)]);
    }
  }

  /** Returns all that there are of a kind. */
  async present(kind: PresenceKind): Promise<Present[]> {
    const rows = await this.#patient(() =>
      this.#client.listWorkflows({
        workflow_id_prefix: `telos-${kind}-`,
        queueName: presenceQueue,
        loadOutput: false,
        limit: 1_000,
      }),
    );
    return rows.map(({ workflowID, createdAt, input }) => ({
      id: workflowID.slice(`telos-${kind}-`.length),
      beat: createdAt,
      facts: (input as unknown[] | undefined)?.[0],
    }));
  }

  /** Says, or says again, who is there or what is wished. */
  async announce(kind: PresenceKind, id: string, facts: object): Promise<void> {
    const workflowID = `telos-${kind}-${id}`;
    await this.#patient(async () => {
      await this.#client.deleteWorkflows([workflowID]);
      await this.#client.enqueue(
        { workflowID, queueName: presenceQueue, workflowName: 'telos.presence', appVersion: 'presence' },
        facts,
      );
    });
  }

  withdraw(kind: PresenceKind, id: string): Promise<void> {
    return this.#patient(() => this.#client.deleteWorkflows([`telos-${kind}-${id}`]));
  }

  /** Makes the queue of a worker, from which it takes as many jobs at once as it has slots. */
  async openQueue(worker: string, slots: number): Promise<void> {
    await this.#patient(() =>
      this.#client.registerQueue(queueOf(worker), { workerConcurrency: slots, minPollingIntervalMs: 100 }),
    );
  }

  closeQueue(worker: string): Promise<void> {
    return this.#patient(() => this.#client.deleteQueue(queueOf(worker)));
  }

  /** Makes a queue that lets so many jobs through in a period, over all workers. */
  async openRate(queue: string, rateLimit: { limitPerPeriod: number; periodSec: number }): Promise<void> {
    await this.#patient(() => this.#client.registerQueue(queue, { rateLimit, minPollingIntervalMs: 100 }));
  }

  /** Waits in a queue for a turn, which has come when the job has ended. */
  async takeTurn(key: string, queueName: string, version: string): Promise<void> {
    const turn = { queueName, workflowName: turnWorkflow, appVersion: version, workflowID: key };
    await this.#patient(() => this.#client.enqueue(turn));
  }

  /** Gives a worker a job. A key that is known already is not given twice. */
  async send(
    key: string,
    worker: string,
    version: string,
    order: object,
    workflowName = evalWorkflow,
  ): Promise<void> {
    const to = { queueName: queueOf(worker), workflowName, appVersion: version };
    await this.#patient(() => this.#client.enqueue({ ...to, workflowID: key }, order));
  }

  /** Returns those of the jobs that have ended, with what came of them. */
  async ended(keys: readonly string[]): Promise<EndedJob[]> {
    if (keys.length === 0) return [];
    const rows = await this.#list({ workflowIDs: [...keys], status: [...ends], loadInput: false });
    return rows.map(({ workflowID, status, output, error }) => ({
      id: workflowID,
      status,
      output,
      error: beginningOf(String((error as { message?: unknown } | undefined)?.message ?? ''), 500),
    }));
  }

  /** Returns what a job has said while it is worked on, in its order. */
  async facts(key: string): Promise<unknown[]> {
    const steps = await this.#patient(() => this.#client.listWorkflowSteps(key));
    return (steps ?? [])
      .filter(({ name }) => name === factStep)
      .sort((one, other) => one.functionID - other.functionID)
      .map(({ output }) => output);
  }

  /** Returns how many jobs lie in the queue of each worker, up to ten thousand over all. */
  async queued(): Promise<Map<string, number>> {
    const rows = await this.#list({ status: 'ENQUEUED', ...withoutContent, limit: 10_000 });
    const counts = new Map<string, number>();
    for (const { queueName = '' } of rows) counts.set(queueName, (counts.get(queueName) ?? 0) + 1);
    return counts;
  }

  /** Returns the keys of a worker's jobs in that state. */
  async keysOf(worker: string, status: 'ENQUEUED' | 'PENDING'): Promise<string[]> {
    const rows = await this.#list({ queueName: queueOf(worker), status, ...withoutContent });
    return rows.map(({ workflowID }) => workflowID);
  }

  /** Returns the keys of all that a worker has taken and that has not ended: jobs, and turns of any queue. */
  async takenBy(worker: string): Promise<string[]> {
    const rows = await this.#list({ executorId: worker, status: 'PENDING', ...withoutContent });
    return rows.map(({ workflowID }) => workflowID);
  }

  /** Returns those of the jobs of which the database knows nothing. */
  async unknown(keys: readonly string[]): Promise<string[]> {
    if (keys.length === 0) return [];
    const rows = await this.#list({ workflowIDs: [...keys], ...withoutContent });
    const known = new Set(rows.map(({ workflowID }) => workflowID));
    return keys.filter(key => !known.has(key));
  }

  /** Returns those of the jobs that no worker has begun. */
  async unbegun(keys: readonly string[]): Promise<string[]> {
    if (keys.length === 0) return [];
    const rows = await this.#list({ workflowIDs: [...keys], status: 'ENQUEUED', ...withoutContent });
    return rows.map(({ workflowID }) => workflowID);
  }

  /** Returns the versions that jobs of a worker ask for and it does not have. */
  async otherVersions(worker: string, version: string): Promise<string[]> {
    const waiting = { queueName: queueOf(worker), status: 'ENQUEUED' } as const;
    const rows = await this.#list({ ...waiting, ...withoutContent, limit: 100 });
    const versions = rows.map(({ applicationVersion }) => applicationVersion ?? 'unknown');
    return [...new Set(versions)].filter(other => other !== version);
  }

  async cancel(keys: readonly string[]): Promise<void> {
    if (keys.length > 0) await this.#patient(() => this.#client.cancelWorkflows([...keys]));
  }

  /** Removes the rows of jobs, so that nothing of them is left. */
  async remove(keys: readonly string[]): Promise<void> {
    if (keys.length > 0) await this.#patient(() => this.#client.deleteWorkflows([...keys]));
  }

  /** From now on calls are made also after an abort, and wait only so long. In milliseconds. */
  lastCalls(ms: number): void {
    this.#signal = AbortSignal.timeout(ms);
  }

  /** Waits a moment at most: what the engine still tries ends with the process. */
  async close(): Promise<void> {
    await Promise.race([this.#client.destroy().catch(() => undefined), delay(1_000)]);
  }

  #list(query: Parameters<Client['listWorkflows']>[0]): Promise<Job[]> {
    return this.#patient(() => this.#client.listWorkflows(query));
  }

  /** Calls again until the database is back, and says when it is away and when it is back. */
  async #patient<Value>(call: () => Promise<Value>): Promise<Value> {
    const signal = this.#signal;
    signal.throwIfAborted();
    let abort = (): void => undefined;
    const aborted = new Promise<never>((_, reject) => {
      abort = () => reject(signal.reason);
    });
    aborted.catch(() => undefined);
    signal.addEventListener('abort', abort);
    const slow = setTimeout(() => this.lost(), slowMs);
    try {
      for (;;) {
        try {
          const value = await Promise.race([call(), aborted]);
          this.#found();
          return value;
        } catch (error) {
          signal.throwIfAborted();
          if (!isAway(error)) throw problemOf(error, this.#address);
          this.lost(shortageOf(error));
          await delay(againMs, undefined, { signal });
        }
      }
    } finally {
      clearTimeout(slow);
      signal.removeEventListener('abort', abort);
    }
  }

  /** Says once that the database is away, or what it is short of. */
  lost(shortage?: string): void {
    if (shortage) this.#shortAt = performance.now();
    if (this.#isLost && (!shortage || shortage === this.#shortage)) return;
    this.#isLost = true;
    this.#shortage = shortage;
    const what = shortage
      ? `${shortage} Everything waits.`
      : 'does not answer. Everything waits until it does.';
    this.#log(`The database ${this.#address.shown} ${what}`);
  }

  #found(): void {
    // What is full still answers whoever only reads.
    if (!this.#isLost || performance.now() - this.#shortAt < shortMs) return;
    this.#isLost = false;
    this.#log(`The database ${this.#address.shown} answers again.`);
  }
}

const withoutContent = { loadInput: false, loadOutput: false } as const;

/** Returns the name of the queue with the jobs of one worker. */
export const queueOf = (worker: string): string => `telos-jobs-${worker}`;
