import assert from 'node:assert/strict';
import { assertGrowsWithSize } from './growth.ts';

describe('work that grows', () => {
  const loop = (count: number): number => {
    let sum = 0;
    for (let step = 0; step < count; step++) sum += Math.sqrt(step);
    return sum;
  };

  it('passes with the size', () => assertGrowsWithSize(400_000, loop));

  it('is refused with the square of the size', () => {
    assert.throws(
      () => assertGrowsWithSize(2_400, size => loop(size * size), 'a square:'),
      /a square: \d+\.\d times/,
    );
  });
});
