/** A plan on three workers while they are killed, the database restarts and the remote is away; and how it seems afterwards to somebody who knows none of our code. */
import { setTimeout as delay } from 'node:timers/promises';
import type { RunningCli } from '../cli/cliProcess.ts';
import { seeded } from '../faults/figure.ts';
import type { FleetHome } from './fleetWorld.ts';
import { type FleetPlan, kill, manyStories, type PlanFleet } from './planFleet.ts';

export interface FaultOrder {
  stories: number;
  kills: number;
  restarts: number;
  /** How long the remote is away, in milliseconds. */
  awayMs: number;
  /** How long a round of the model takes, and the time between two kills, in milliseconds. */
  roundMs: number;
  pauseMs: number;
}

export interface FaultReport {
  problems: string[];
  kills: number;
  restarts: number;
  seconds: number;
  attempts: number;
}

export async function planUnderFaults(world: PlanFleet, order: FaultOrder): Promise<FaultReport> {
  const { stories, model } = manyStories(order.stories);
  await world.serve(model, order.roundMs);
  const plan = await world.person(stories);
  const before = plan.checkout();
  const homes = [1, 2, 3].map(() => world.fleet.home({}));
  const workers: RunningCli[] = [];
  for (const home of homes) workers.push(await world.worker(plan, [], home));
  const start = performance.now();
  const running = plan.run();
  let isOver = false;
  void running.result.then(() => {
    isOver = true;
  });
  await running.says('begins');
  const faults = { kills: 0, restarts: 0 };
  await withFaults(world, plan, { homes, workers }, order, faults, () => isOver);
  const { code, stdout, stderr } = await running.result;
  const seconds = (performance.now() - start) / 1_000;
  const problems =
    code === 0
      ? problemsOf(
          world,
          plan,
          stories.map(({ id }) => id),
          before,
        )
      : [`exit ${code}: ${stdout}${stderr.slice(-2_000)}`];
  const attempts = plan.journal().filter(({ type }) => type === 'attempt_started').length;
  await world.clear();
  return { problems, ...faults, seconds, attempts };
}

async function withFaults(
  { fleet: { postgres }, daemon, worker }: PlanFleet,
  plan: FleetPlan,
  { homes, workers }: { homes: FleetHome[]; workers: RunningCli[] },
  { kills, restarts, awayMs, pauseMs }: FaultOrder,
  done: { kills: number; restarts: number },
  isOver: () => boolean,
): Promise<void> {
  const random = seeded(kills);
  const restartEvery =
    restarts > 0 ? Math.max(1, Math.floor(kills / (restarts + 1))) : Number.POSITIVE_INFINITY;
  let away: Promise<void> | undefined;
  while (done.kills < kills && !isOver()) {
    await delay(random() * 2 * pauseMs);
    if (isOver()) break;
    const index = Math.floor(random() * homes.length);
    const [one, home] = [workers[index], homes[index]];
    if (!one || !home) continue;
    kill(one.child, done.kills % 2 === 0 ? 'alone' : 'group');
    await one.result;
    done.kills++;
    if (done.kills % restartEvery === 0 && done.restarts < restarts) {
      await postgres.stop();
      await delay(500);
      await postgres.start();
      done.restarts++;
    }
    if (awayMs > 0 && done.kills === Math.ceil(kills / 2))
      away = daemon
        .stop()
        .then(() => delay(awayMs))
        .then(() => daemon.start());
    workers[index] = await worker(plan, [], home);
  }
  await away;
}

/** Returns what is wrong with a plan that was carried out. */
function problemsOf(
  { daemon }: PlanFleet,
  plan: FleetPlan,
  ids: readonly string[],
  before: string,
): string[] {
  const problems: string[] = [];
  const passed = plan.passed();
  for (const id of ids) {
    const count = passed.filter(one => one === id).length;
    if (count === 0) problems.push(`${id} is lost`);
    if (count > 1) problems.push(`${id} passed ${count} times`);
    const text = plan.git('show', `telos/site:${id}/work.txt`);
    if (text !== `${id} done`) problems.push(`${id} has other files`);
  }
  if (plan.checkout() !== before) problems.push("the person's checkout has changed");
  const name = /([\w-]+)\.git$/.exec(plan.url)?.[1] ?? '';
  const refs = daemon.git(name, 'for-each-ref', '--format=%(refname)').split('\n');
  const foreign = refs.filter(ref => !ref.startsWith('refs/telos/site/') && ref !== 'refs/heads/telos/site');
  if (foreign.length > 0) problems.push(`the remote has ${foreign.join(', ')}`);
  if (daemon.git(name, 'rev-parse', 'telos/site') !== plan.git('rev-parse', 'telos/site'))
    problems.push('the remote has another branch than the person');
  plan.git('fsck', '--no-dangling', '--connectivity-only');
  const trees = plan
    .journal()
    .flatMap(line => (line.type === 'story_passed' ? [String(line['commit'])] : []));
  for (const commit of trees) {
    const tree = plan.git('rev-parse', `${commit}^{tree}`);
    const checked = plan
      .journal()
      .some(line => line.type === 'check_ended' && line['tree'] === tree && line['exitCode'] === 0);
    if (!checked) problems.push(`no check ran on ${commit}`);
  }
  return problems;
}
