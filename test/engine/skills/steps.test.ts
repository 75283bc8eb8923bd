import assert from 'node:assert/strict';
import { runInSlices, runNow, type Steps } from '../../../src/engine/skills/findSkills.ts';

function* busy(steps: number, stepMs: number): Steps<string> {
  for (let step = 0; step < steps; step++) {
    const end = performance.now() + stepMs;
    while (performance.now() < end);
    yield;
  }
  return 'whole';
}

describe('work in steps', () => {
  it('comes to the same at once and in slices, and slices let others have a turn', async () => {
    assert.equal(runNow(busy(3, 0)), 'whole');
    let turns = 0;
    const others = setInterval(() => {
      turns++;
    }, 0);
    assert.equal(await runInSlices(busy(4, 12)), 'whole');
    clearInterval(others);
    assert.ok(turns >= 2, `others had ${turns} turns`);
  });

  it('fails as the work fails', async () => {
    function* failing(): Steps<void> {
      yield;
      throw new Error('torn');
    }
    assert.throws(() => runNow(failing()), /torn/);
    await assert.rejects(runInSlices(failing()), /torn/);
  });
});
