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

/** At most so many test files try to notice one break: the nearest that execute its place. */
const testsForBreak = 12;
/** Looked for among so many that import its file. */
const candidates = 60;
/** So many of them run before the others are loaded. */
const firstTests = 3;
const atOnce = 2;
/** Limit for the tests of a break: this, and five times as long as they take without it. In milliseconds. */
const leastLimitMs = 30_000;
/** A test file that takes longer without a break is not used. In milliseconds. */
const baselineLimitMs = 30_000;

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
    const importing = nearestTests(one.file, importers).slice(0, candidates);
    const near = importing[Symbol.iterator]();
    let tests = 0;
    for (const most of [firstTests, testsForBreak - firstTests]) {
      const { usable, limitMs } = await this.#nextUsable(one, near, most, place);
      if (usable.length === 0) break;
      tests += usable.length;
      const result = await place.tryBreak(one, usable, limitMs);
      if (result !== 'passed') return { one, outcome: result === 'failed' ? 'noticed' : 'timed out', tests };
    }
    if (tests > 0) return { one, outcome: 'survived', tests };
    // A place that no test executes is one that a test should notice, if tests can load its file at all.
    const results = await Promise.all(importing.map(test => this.#baseline(test, place)));
    const isLoaded = results.some(({ result }) => result === 'passed');
    return { one, outcome: isLoaded ? 'survived' : 'not covered', tests };
  }

  /** Returns the next tests that pass without a break and execute its place, with the time in which they do so at the latest. */
  async #nextUsable(
    { file, start }: Break,
    near: Iterator<string>,
    most: number,
    place: Workplace,
  ): Promise<{ usable: string[]; limitMs: number }> {
    const usable: string[] = [];
    let limitMs = leastLimitMs;
    while (usable.length < most) {
      const { value: test, done } = near.next();
      if (done) break;
      const { result, ms, executed } = await this.#baseline(test, place);
      if (result !== 'passed' || !hasExecuted(executed, file, start)) continue;
      usable.push(test);
      limitMs += 5 * ms;
    }
    return { usable, limitMs };
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
