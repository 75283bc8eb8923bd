/** Says whether work grows with its size alone, as a ratio of two times on one machine: how fast that machine is does not count. */
import assert from 'node:assert/strict';

const parts = 8;
/** Work that grows with the square would take eight times as long. */
const most = 4;
const tries = 4;

/** Throws if `work` takes much longer for `size` than eight times for an eighth of it. `name` says which work it was. */
export function assertGrowsWithSize(size: number, work: (size: number) => void, name = ''): void {
  const whole: number[] = [];
  const inParts: number[] = [];
  // In turns, since other work on the machine comes and goes; the fastest was the least disturbed.
  for (let turn = 0; turn < tries; turn++) {
    const start = performance.now();
    for (let part = 0; part < parts; part++) work(size / parts);
    const middle = performance.now();
    work(size);
    inParts.push(middle - start);
    whole.push(performance.now() - middle);
  }
  const ratio = Math.min(...whole) / Math.min(...inParts);
  assert.ok(ratio < most, `${name} ${ratio.toFixed(1)} times as long at once as in ${parts} parts`);
}
