/** The result of a measurement. */
import type { Result } from '../harness/report.ts';

export interface Figure {
  name: string;
  /** The measured value, with its units and what it was measured on. */
  value: string;
  /** The promised value. */
  limit: string;
  /** Undefined when it cannot be measured here; `value` says why. */
  met: boolean | undefined;
}

/** How much is done: everything, or as much as fits into a test that runs with every change. */
export type Extent = 'whole' | 'quick';

/** Returns the figure as the result of a case; `area` names the measurement. */
export const resultOf = ({ name, value, limit, met }: Figure, area: string): Result => ({
  id: name,
  area,
  result: met === undefined ? 'not judged' : met ? 'pass' : 'fail',
  measured: `${value} (limit: ${limit})`,
  problems: [],
});

/** The value below which `share` of the values lie, by the nearest rank. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** Does `work` for each item, `width` at a time. */
export async function inLanes<Item>(
  items: readonly Item[],
  width: number,
  work: (item: Item, index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++;
      await work(items[index]!, index);
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
}

/** Numbers from 0 to 1 that are the same in every run: a fault that was found can be met again. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
