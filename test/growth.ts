/** Says whether work grows with its size alone, as a ratio of two times on one machine: how fast that machine is does not count. */
import assert from 'node:assert/strict';

const parts = 8;
/** Work that grows with the square would take eight times as long. */
const most = 4;
/** Short work is tried more often, since the least disturbance shows in it. In milliseconds of the processor. */
const tries = { least: 4, most: 60, enough: 150 };

/** Time of the processor that this process has used, which work of others does not raise. In milliseconds. */
function used(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Throws if `work` takes much longer for `size` than eight times for an eighth of it. `name` says which work it was. */
export function assertGrowsWithSize(size: number, work: (size: number) => void, name = ''): void {
  const whole: number[] = [];
  const inParts: number[] = [];
  const begun = used();
  // In turns, since what else this process does comes and goes; the fastest was the least disturbed.
  for (let turn = 0; turn < tries.least || (turn < tries.most && used() - begun < tries.enough); turn++) {
    const start = used();
    for (let part = 0; part < parts; part++) work(size / parts);
    const middle = used();
    work(size);
    inParts.push(middle - start);
    whole.push(used() - middle);
  }
  // Where the system counts in steps, the fastest of short work may seem to have taken none; all tries together do not.
  const isTooShort = Math.min(...inParts) === 0;
  const [all, divided] = isTooShort ? [sum(whole), sum(inParts)] : [Math.min(...whole), Math.min(...inParts)];
  const ratio = divided === 0 ? 0 : all / divided;
  assert.ok(ratio < most, `${name} ${ratio.toFixed(1)} times as long at once as in ${parts} parts`);
}

const sum = (times: readonly number[]): number => times.reduce((total, one) => total + one, 0);
