/** Tries breaks, several at once, each with the tests that are nearest to its file. */
import { type Break, breaksOf } from './breaks.ts';
import { chooseBreaks, type Equivalent, filesOf, isEquivalent } from './choose.ts';
import { type Importers, importersIn, nearestTests } from './nearestTests.ts';
import { type TestResult, Workplace } from './workplace.ts';

export type Outcome = 'noticed' | 'survived' | 'timed out' | 'not covered' | 'equivalent';

export interface Tried {
  one: Break;
  outcome: Outcome;
  /** How many test files were there to notice it. */
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

/** At most so many test files try to notice one break, the nearest first. */
const testsForBreak = 12;
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
  const bench = new Bench();
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

/** Knows how long each test file takes without a break. */
class Bench {
  readonly #baselines = new Map<string, Promise<{ result: TestResult; ms: number }>>();
  readonly unusable: string[] = [];

  async try(one: Break, importers: Importers, place: Workplace): Promise<Tried> {
    const near = nearestTests(one.file, importers).slice(0, testsForBreak);
    let tests = 0;
    for (const some of [near.slice(0, firstTests), near.slice(firstTests)]) {
      const usable: string[] = [];
      let limitMs = leastLimitMs;
      for (const test of some) {
        const { result, ms } = await this.#baseline(test, place);
        if (result !== 'passed') continue;
        usable.push(test);
        limitMs += 5 * ms;
      }
      if (usable.length === 0) continue;
      tests += usable.length;
      const result = await place.tryBreak(one, usable, limitMs);
      if (result !== 'passed') return { one, outcome: result === 'failed' ? 'noticed' : 'timed out', tests };
    }
    return { one, outcome: tests === 0 ? 'not covered' : 'survived', tests };
  }

  #baseline(test: string, place: Workplace): Promise<{ result: TestResult; ms: number }> {
    const known = this.#baselines.get(test);
    if (known) return known;
    const measured = this.#measure(test, place);
    this.#baselines.set(test, measured);
    return measured;
  }

  async #measure(test: string, place: Workplace): Promise<{ result: TestResult; ms: number }> {
    const start = Date.now();
    const result = await place.runTests([test], baselineLimitMs);
    if (result !== 'passed') this.unusable.push(`${test} (${result})`);
    return { result, ms: Date.now() - start };
  }
}
