/** Tries breaks, several at once, each with the tests that are nearest to its file. */
import { type Break, breaksOf } from './breaks.ts';
import { chooseBreaks, type Equivalent, filesOf, isEquivalent } from './choose.ts';
import { type Executed, hasExecuted } from './coverage.ts';
import { type Importers, importersIn, nearestTests } from './nearestTests.ts';
import { type TestResult, Workplace } from './workplace.ts';

export type Outcome = 'noticed' | 'survived' | 'timed out' | 'not covered' | 'equivalent';

export interface Tried {
  one: Break;
  outcome: Outcome;
  /** How many test files that execute its place have run. */
  tests: number;
}

export interface Order {
  root: string;
  files: readonly string[];
  projects?: readonly string[];
  /** Undefined for all rooms. */
  room: string | undefined;
  seed: number;
  count: number;
}

/** So many test files are looked at for one break, the nearest first. Those that execute its place try to notice it. */
const nearest = 20;
/** So many of them before the others. */
const first = 5;
const atOnce = 2;
/** Limit for the tests of a break: this, and five times as long as they take without it. In milliseconds. */
const leastLimitMs = 30_000;
/** A test file that takes longer without a break is not used. In milliseconds. */
const baselineLimitMs = 90_000;

/** Returns the breaks of an order. */
export function breaksFor({ root, files, projects, room, seed, count }: Order): Break[] {
  const wanted = room === undefined ? [...files].sort() : filesOf(room, files);
  return chooseBreaks(breaksOf(root, wanted, projects), seed, count);
}

/** Returns one outcome for each break, in their order. `unusable` are the tests that failed without a break. */
export async function tryBreaks(
  root: string,
  breaks: readonly Break[],
  known: readonly Equivalent[],
  signal: AbortSignal,
  say: (tried: Tried) => void,
): Promise<{ tried: Tried[]; unusable: string[] }> {
  const importers = importersIn(root);
  const bench = new Bench(new Set(breaks.map(({ file }) => file)));
  const tried: Tried[] = [];
  const queue = [...breaks.entries()];
  const workplaces = Array.from({ length: Math.min(atOnce, breaks.length) }, () => new Workplace(root));
  const stop = (): void => void Promise.all(workplaces.map(place => place.remove()));
  signal.addEventListener('abort', stop);
  try {
    await Promise.all(
      workplaces.map(async place => {
        for (let next = queue.shift(); next && !signal.aborted; next = queue.shift()) {
          const [index, one] = next;
          const result = isEquivalent(one, known)
            ? { one, outcome: 'equivalent' as const, tests: 0 }
            : await bench.try(one, importers, place);
          tried[index] = result;
          say(result);
        }
      }),
    );
  } finally {
    signal.removeEventListener('abort', stop);
    await Promise.all(workplaces.map(place => place.remove()));
  }
  return { tried: tried.filter(Boolean), unusable: bench.unusable };
}

interface Baseline {
  result: TestResult;
  ms: number;
  executed: Executed;
}

/** Knows of each test file how long it takes without a break, and what it executes. */
class Bench {
  readonly #files: ReadonlySet<string>;
  readonly #baselines = new Map<string, Promise<Baseline>>();
  readonly unusable: string[] = [];

  /** `files` are those that will be broken. */
  constructor(files: ReadonlySet<string>) {
    this.#files = files;
  }

  async try(one: Break, importers: Importers, place: Workplace): Promise<Tried> {
    const near = nearestTests(one.file, importers).slice(0, nearest);
    let [tests, isLoaded] = [0, false];
    for (const some of [near.slice(0, first), near.slice(first)]) {
      const { passing, executing, limitMs } = await this.#usable(one, some, place);
      isLoaded ||= passing > 0;
      if (executing.length === 0) continue;
      tests += executing.length;
      const result = await place.tryBreak(one, executing, limitMs);
      if (result !== 'passed') return { one, outcome: result === 'failed' ? 'noticed' : 'timed out', tests };
    }
    // A place that no test executes is one that a test should notice, if tests can load its file at all.
    return { one, outcome: isLoaded ? 'survived' : 'not covered', tests };
  }

  /** Returns those tests that pass without a break and execute its place, with the time in which they do so at the latest. */
  async #usable(
    { file, start }: Break,
    some: readonly string[],
    place: Workplace,
  ): Promise<{ passing: number; executing: string[]; limitMs: number }> {
    const executing: string[] = [];
    let passing = 0;
    let limitMs = leastLimitMs;
    for (const test of some) {
      const { result, ms, executed } = await this.#baseline(test, place);
      if (result !== 'passed') continue;
      passing++;
      if (!hasExecuted(executed, file, start)) continue;
      executing.push(test);
      limitMs += 5 * ms;
    }
    return { passing, executing, limitMs };
  }

  #baseline(test: string, place: Workplace): Promise<Baseline> {
    const known = this.#baselines.get(test);
    if (known) return known;
    const measured = this.#measure(test, place);
    this.#baselines.set(test, measured);
    return measured;
  }

  async #measure(test: string, place: Workplace): Promise<Baseline> {
    const start = Date.now();
    const measured = await place.measure(test, this.#files, baselineLimitMs);
    if (measured.result !== 'passed') this.unusable.push(`${test} (${measured.result})`);
    return { ...measured, ms: Date.now() - start };
  }
}
