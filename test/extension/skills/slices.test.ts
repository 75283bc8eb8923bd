import assert from 'node:assert/strict';
import { inSlices } from '../../../src/extension/skills/skillFiles.ts';

describe('work in slices', () => {
  it('hands everything on in order, and lets others have a turn when the reader is busy', async () => {
    let turns = 0;
    const others = setInterval(() => {
      turns++;
    }, 0);
    const seen: number[] = [];
    for await (const value of inSlices([1, 2, 3, 4])) {
      const end = performance.now() + 10;
      while (performance.now() < end);
      seen.push(value);
    }
    clearInterval(others);
    assert.deepEqual(seen, [1, 2, 3, 4]);
    assert.ok(turns >= 3, `others had ${turns} turns`);
  });
});
