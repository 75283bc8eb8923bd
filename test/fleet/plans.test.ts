import assert from 'node:assert/strict';
import { manyStories, openPlanFleet, type PlanFleet } from './planFleet.ts';

describe('a plan on workers', function () {
  this.timeout(180_000);
  let world: PlanFleet;
  before(async () => {
    world = await openPlanFleet();
  });
  afterEach(() => world.clear());
  after(() => world.close());

  it('has its stories built on a worker, and puts them on its branch', async () => {
    const { stories, model } = manyStories(4);
    await world.serve(model);
    const plan = await world.person(stories);
    const before = plan.checkout();
    await world.worker(plan);
    const { code, stdout, stderr } = await plan.run().result;
    for (const l of plan.journal())
      console.log(String(l['ts']).slice(17), l.type, l['story'] ?? '', l['step'] ?? '');
    assert.equal(code, 0, stdout + stderr);
    assert.deepEqual(plan.passed().sort(), ['US-001', 'US-002', 'US-003', 'US-004']);
    assert.equal(plan.checkout(), before);
  });
});
