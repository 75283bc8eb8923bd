/** Keeps requests to providers within a rate that holds for a key on all workers: each request takes its turn in a queue of that key. */

import { randomBytes, scryptSync } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { isKnown, type Provider, providerAddress, providerSetups } from '@telos/engine/providers';
import type { FleetDatabase } from './fleetDatabase.ts';
import { pauseFacts } from './presence.ts';

/** How many requests a minute a provider gets from all workers with the same key, by the provider's name. */
export type RequestLimits = ReadonlyMap<string, number>;

/** Returns the name of a key that all its workers share. It is short and slow to make, so it confirms no guess of the key. */
export function keyName(config: Config, provider: string): string {
  if (!isKnown(provider)) return provider;
  const { keyVariable } = providerSetups[provider];
  const key = (keyVariable && config.env[keyVariable]) || providerAddress(config, provider);
  return scryptSync(key, `turns of ${provider}`, 6).toString('hex');
}

/** Returns the limit of a queue. Its windows are short, so that requests come evenly; no minute has more of them than `requests`. */
export function rateOf(requests: number): { limitPerPeriod: number; periodSec: number } {
  const limitPerPeriod = Math.max(1, Math.floor(requests / 12));
  return { limitPerPeriod, periodSec: (60 * limitPerPeriod) / requests };
}

const turnsQueue = (name: string): string => `telos-turns-${name}`;

/** Pauses between two looks whether a turn has come, and how long a row counts after that, in milliseconds. */
const lookMs = 100;
const countsMs = 65_000;
/** A provider that wants no request is asked again for so long, and a pause that others ask for is never longer. */
const patienceMs = 10 * 60_000;
const longestPauseMs = 2 * 60_000;
const unnamedPauseMs = 5_000;

export class Turns {
  readonly #config: Config;
  readonly #limits: RequestLimits;
  readonly #id = randomBytes(4).toString('hex');
  readonly #names = new Map<string, string>();
  readonly #open = new Map<string, () => void>();
  readonly #counted = new Map<string, number>();
  readonly #until = new Map<string, number>();
  readonly #heard = new Map<string, number>();
  #database: FleetDatabase | undefined;
  #version = '';
  #looking: Promise<void> | undefined;
  #failure: unknown;

  constructor(config: Config, limits: RequestLimits) {
    this.#config = config;
    this.#limits = limits;
  }

  /** The queues in which this worker's keys take turns. */
  get queues(): string[] {
    return [...this.#limits.keys()].map(provider => turnsQueue(this.#name(provider)));
  }

  /** Makes the queues. The worker that starts last says how many requests they let through. */
  async start(database: FleetDatabase, version: string): Promise<void> {
    this.#database = database;
    this.#version = version;
    for (const [provider, requests] of this.#limits)
      await database.openRate(turnsQueue(this.#name(provider)), rateOf(requests));
  }

  /** Hears which keys others let rest, and removes turns that count no more. */
  async look(): Promise<void> {
    const database = this.#database;
    if (!database) return;
    for (const { id, beat, facts } of await database.present('pause')) {
      if (this.#heard.get(id) === beat) continue;
      this.#heard.set(id, beat);
      const { key, ms } = pauseFacts(facts);
      this.#rest(key, ms);
    }
    const over = [...this.#counted].filter(([, end]) => end < performance.now()).map(([id]) => id);
    await database.remove(over);
    for (const id of over) this.#counted.delete(id);
  }

  /** Removes turns that no request waits for. Those that have come still count until they are removed by age. */
  async end(): Promise<void> {
    await this.#database?.cancel([...this.#open.keys()]);
    await this.#database?.withdraw('pause', this.#id);
  }

  /** Returns the provider, each request of which waits for its turn. One that has to wait is sent again, and all workers with the key rest. */
  over(provider: Provider): Provider {
    const turns = this;
    return {
      ...provider,
      async *streamCompletion(request, signal) {
        for (const end = performance.now() + patienceMs; ; ) {
          let isPassedOn = false;
          let isAsked = false;
          await turns.#take(provider.name, signal);
          try {
            for await (const event of provider.streamCompletion(request, signal)) {
              if (event.type === 'retry') {
                isAsked = true;
                await turns.#slow(provider.name, event.waitMs);
              } else if (event.type !== 'reasoning') isPassedOn = true;
              yield event;
              if (event.type === 'retry') await turns.#take(provider.name, signal);
            }
            return;
          } catch (error) {
            const isRate = error instanceof TelosError && error.code === 'rate_limit';
            // A budget that is spent at the provider names no time.
            const isOver = isPassedOn || !(isAsked || (isRate && error.retryAfterMs !== undefined));
            if (!isRate || isOver || performance.now() > end) throw error;
            await turns.#slow(provider.name, error.retryAfterMs ?? unnamedPauseMs);
          }
        }
      },
    };
  }

  #name(provider: string): string {
    const known = this.#names.get(provider) ?? keyName(this.#config, provider);
    this.#names.set(provider, known);
    return known;
  }

  #rest(name: string, ms: number): void {
    const until = performance.now() + Math.min(ms, longestPauseMs);
    this.#until.set(name, Math.max(until, this.#until.get(name) ?? 0));
  }

  async #slow(provider: string, ms: number): Promise<void> {
    const key = this.#name(provider);
    this.#rest(key, ms);
    await this.#database?.announce('pause', this.#id, { key, ms: Math.ceil(Math.min(ms, longestPauseMs)) });
  }

  async #take(provider: string, signal: AbortSignal): Promise<void> {
    const name = this.#name(provider);
    const rested = async (): Promise<void> => {
      for (let left = 1; left > 0; ) {
        left = (this.#until.get(name) ?? 0) - performance.now();
        if (left > 0) await delay(left, undefined, { signal });
      }
    };
    await rested();
    const database = this.#database;
    if (!database || !this.#limits.has(provider)) return;
    const id = `telos-turn-${this.#id}-${randomBytes(6).toString('hex')}`;
    const come = new Promise<void>(resolve => this.#open.set(id, resolve));
    await database.takeTurn(id, turnsQueue(name), this.#version);
    this.#looking ??= this.#lookForTurns(database);
    let stop = (): void => undefined;
    const aborted = new Promise<never>((_, reject) => {
      stop = () => reject(signal.reason);
    });
    signal.addEventListener('abort', stop);
    try {
      await Promise.race([come, aborted]);
    } finally {
      signal.removeEventListener('abort', stop);
      this.#counted.set(id, performance.now() + countsMs);
      if (this.#open.delete(id)) await database.cancel([id]);
    }
    if (this.#failure) throw this.#failure;
    await rested();
  }

  async #lookForTurns(database: FleetDatabase): Promise<void> {
    try {
      while (this.#open.size > 0) {
        for (const { id } of await database.ended([...this.#open.keys()])) {
          this.#open.get(id)?.();
          this.#open.delete(id);
        }
        await delay(lookMs);
      }
    } catch (error) {
      this.#failure = error;
      for (const come of this.#open.values()) come();
      this.#open.clear();
    } finally {
      this.#looking = undefined;
    }
  }
}
