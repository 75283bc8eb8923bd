import assert from 'node:assert/strict';
import { planUnderFaults } from './planFaults.ts';
import { itBuilds, openPlanFleet, type PlanFleet } from './planFleet.ts';

const isNight = process.env['TELOS_NIGHTLY'] !== undefined;

describe('a plan on three workers under faults', function () {
  this.timeout(isNight ? 1_200_000 : 240_000);
  let world: PlanFleet;
  before(async () => {
    world = await openPlanFleet();
  });
  after(() => world.close());

  itBuilds('loses and doubles nothing', async () => {
    const small = { stories: 8, kills: 3, restarts: 1, awayMs: 3_000, roundMs: 100, pauseMs: 1_500 };
    const large = { stories: 100, kills: 50, restarts: 5, awayMs: 20_000, roundMs: 200, pauseMs: 2_500 };
    const { problems, kills } = await planUnderFaults(world, isNight ? large : small);
    assert.deepEqual(problems, []);
    assert.ok(kills > 0);
  });
});
