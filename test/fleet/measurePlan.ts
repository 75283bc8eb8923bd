/** Prints what workers bring to a plan, and what it survives. `node test/fleet/measurePlan.ts [stories] [ms a round] [kills]`, after a build. */
import { planUnderFaults } from './planFaults.ts';
import { manyStories, openPlanFleet, type PlanFleet } from './planFleet.ts';

const [count, roundMs, kills] = [100, 200, 50].map((usual, index) =>
  Number(process.argv[index + 2] ?? usual),
) as [number, number, number];

const world = await openPlanFleet();
try {
  const one = await wallTime(world, 1);
  console.log(`${count} stories with ${roundMs} ms of model time a round: one worker ${one.toFixed(1)} s`);
  const three = await wallTime(world, 3);
  console.log(`three workers ${three.toFixed(1)} s (${(three / one).toFixed(2)} of one)`);
  const order = {
    stories: count,
    kills,
    restarts: Math.ceil(kills / 10),
    awayMs: 20_000,
    roundMs,
    pauseMs: 2_500,
  };
  const { problems, seconds, attempts, ...faults } = await planUnderFaults(world, order);
  console.log(
    `${count} stories on three workers, ${faults.kills} of them killed, ${faults.restarts} restarts of the database, ${order.awayMs / 1000} s without the remote: ${problems.length} violations, ${attempts} attempts, ${seconds.toFixed(1)} s`,
  );
  for (const problem of problems) console.log(`  ${problem}`);
  if (problems.length > 0) process.exitCode = 1;
} finally {
  await world.close();
}

/** Returns how long the plan takes from its runner's start to its end, in seconds. */
async function wallTime(fleet: PlanFleet, workers: number): Promise<number> {
  const { stories, model } = manyStories(count);
  await fleet.serve(model, roundMs);
  const plan = await fleet.person(stories);
  for (let index = 0; index < workers; index++) await fleet.worker(plan);
  const start = performance.now();
  const { code, stdout, stderr } = await plan.run().result;
  const seconds = (performance.now() - start) / 1_000;
  const passed = new Set(plan.passed()).size;
  if (code !== 0 || passed !== count)
    throw new Error(`${passed} passed, exit ${code}: ${stdout}${stderr.slice(-3_000)}`);
  await fleet.clear();
  return seconds;
}
