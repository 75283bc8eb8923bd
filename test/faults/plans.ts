/** Plans under SIGKILL: at every point of a small one, at random in a large one, a torn journal, two runners at once, and the time that it costs. */
import { readFileSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { Git } from '../../src/engine/workflow/git.ts';
import { Journal } from '../../src/engine/workflow/journal.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { type Extent, type Figure, inLanes, seeded } from './figure.ts';
import { PlanWorld } from './planWorld.ts';
import { canSeeProcesses } from './processTable.ts';

const isNight = process.env['TELOS_NIGHTLY'] !== undefined;

/** Points within which the first kills of the worlds lie. */
const stride = 55;
/** A runner that never comes to its end. */
const mostKills = 100;
/** The next kill comes so many points after the start of a runner: sometimes while it takes over, sometimes after a whole story. */
const nextKill = (kills: number): number => 20 + ((kills * 67) % 150);

export async function planFigures(extent: Extent): Promise<Figure[]> {
  if (!canSeeProcesses)
    return [
      {
        name: 'plans',
        limit: 'no violation',
        value: 'processes are counted in /proc, which is not here',
        met: undefined,
      },
    ];
  if (extent === 'quick') return [await pointKills(4, 1), await randomKills(16, 4, 3), await tornJournal()];
  return [
    await engineTime(),
    await pointKills(12, isNight ? stride : 14),
    await randomKills(100, 4, isNight ? 100 : 12),
    await tornJournal(),
    await runnersAtOnce(isNight ? 100 : 20),
  ];
}

/** Worlds that differ in the point of their first kill: together they have a kill at each point, and some while they take over. */
async function pointKills(stories: number, worlds: number): Promise<Figure> {
  const template = PlanWorld.make(stories, 1);
  const problems: string[] = [];
  let kills = 0;
  try {
    await inLanes(Array.from({ length: worlds }), 2, async (_, index) => {
      const world = template.copy();
      try {
        const first = 1 + Math.floor((index * stride) / worlds);
        for (let killAt = first; ; killAt = nextKill(world.kills)) {
          const report = await world.start({ killAt }).report;
          if (report || world.problems.length > 0) break;
          world.noteKill();
          if (world.kills === mostKills)
            world.problems.push(`it does not come to its end after ${mostKills} kills`);
        }
        world.verify();
        problems.push(...world.problems.map(problem => `first kill at ${first}: ${problem}`));
        kills += world.kills;
      } finally {
        world.remove();
      }
    });
  } finally {
    template.remove();
  }
  return {
    name: `SIGKILL at points of a plan of ${stories} stories`,
    value: `${problems.length} violations after ${kills} kills in ${worlds} plans${told(problems)}`,
    limit: 'no violation',
    met: problems.length === 0 && kills > 0,
  };
}

/** Kills the runner alone and the runner with all that it has started, in turns, at random moments. */
async function randomKills(stories: number, slots: number, kills: number): Promise<Figure> {
  const world = PlanWorld.make(stories, slots);
  const random = seeded(kills);
  try {
    for (let report: unknown; report === undefined && world.problems.length === 0; ) {
      const runner = world.start();
      if (world.kills < kills) {
        await Promise.race([delay(500 + random() * 2500), runner.report]);
        if (runner.child.exitCode === null) {
          process.kill(world.kills % 2 === 0 ? runner.child.pid! : -runner.child.pid!, 'SIGKILL');
          await runner.report;
          world.noteKill();
          continue;
        }
      }
      report = await runner.report;
    }
    world.verify();
    return {
      name: `random SIGKILL of a plan of ${stories} stories in ${slots} slots`,
      value: `${world.problems.length} violations after ${world.kills} kills${told(world.problems)}`,
      limit: 'none lost, none doubled, no foreign byte',
      met: world.problems.length === 0 && world.kills > 0,
    };
  } finally {
    world.remove();
  }
}

const told = (problems: readonly string[]): string =>
  problems.length === 0 ? '' : ` (${problems.slice(0, 3).join('; ')})`;

/** The last line of a journal, cut at each of its bytes. */
async function tornJournal(): Promise<Figure> {
  const folder = tempFolder();
  const [whole, torn] = [`${folder.path}/journal.jsonl`, `${folder.path}/torn.jsonl`];
  const wrong: number[] = [];
  try {
    const journal = await Journal.open(whole);
    for (let count = 0; count < 3; count++)
      await journal.append({ type: 'phase', phase: 'paused', why: `Grund ${count} – ☕` });
    await journal.close();
    const bytes = readFileSync(whole);
    const start = bytes.lastIndexOf('\n', bytes.length - 2) + 1;
    for (let length = start; length < bytes.length; length++) {
      writeFileSync(torn, bytes.subarray(0, length));
      const opened = await Journal.open(torn);
      const before = opened.lines.length;
      await opened.append({ type: 'phase', phase: 'done' });
      await opened.close();
      const again = await Journal.open(torn);
      const isRight =
        before >= 2 && again.lines.length === before + 1 && again.lines.at(-1)?.seq === before + 1;
      if (!isRight) wrong.push(length);
      await again.close();
    }
    return {
      name: 'a journal that is torn at each byte of its last line',
      value: `${wrong.length} of ${bytes.length - start} cannot be gone on with`,
      limit: 'none',
      met: wrong.length === 0,
    };
  } finally {
    folder.remove();
  }
}

async function runnersAtOnce(times: number): Promise<Figure> {
  const template = PlanWorld.make(1, 1);
  const problems: string[] = [];
  let both = 0;
  try {
    for (let time = 0; time < times; time++) {
      const world = template.copy();
      try {
        const runners = [world.start(), world.start()];
        const reports = await Promise.all(runners.map(({ report }) => report));
        // One may have come when the other was done.
        if (reports.every(report => report?.passed === 1)) both++;
        else if (reports.filter(report => report?.busy !== undefined).length !== 1)
          problems.push(JSON.stringify(reports));
        world.verify();
        problems.push(...world.problems);
      } finally {
        world.remove();
      }
    }
  } finally {
    template.remove();
  }
  return {
    name: 'two runners started at once',
    value: `${problems.length} of ${times} went wrong${told(problems)}; ${both} times the second came when the first was done`,
    limit: 'exactly one works',
    met: problems.length === 0,
  };
}

/** Files that are written whole after each attempt: a story, the record of it, prd.json and progress.txt. */
const projected = 4;

/** Engine time of a story without model and checks, beside the same number of bare starts of git and of bare lines that are synced. */
async function engineTime(): Promise<Figure> {
  const world = PlanWorld.make(30, 1);
  try {
    const report = await world.start({ trace: true }).report;
    world.verify();
    const perStory = (pattern: RegExp): number =>
      (report?.names.filter(name => pattern.test(name)).length ?? 0) / 30;
    const [calls, lines] = [perStory(/^git .* before$/), perStory(/^journal .* before$/) + projected];
    const git = new Git(world.repo, world.env);
    const call = await meanMs(() => git.run(['version']));
    const handle = await open(`${world.folder.path}/bare`, 'a');
    const line = await meanMs(async () => {
      await handle.write('a line of a journal\n');
      await handle.datasync();
    });
    await handle.close();
    const [ms, bare] = [report?.msPerStory ?? Number.NaN, calls * call + lines * line];
    return {
      name: 'engine time of a story',
      value: `${ms.toFixed(0)} ms; its ${calls.toFixed(1)} calls of git and ${lines.toFixed(1)} synced writes alone take ${bare.toFixed(0)} ms here (${call.toFixed(1)} and ${line.toFixed(1)} each)${told(world.problems)}`,
      limit: '60 ms, or twice what the bare ones take on a busy machine',
      met: world.problems.length === 0 && ms <= Math.max(60, bare * 2),
    };
  } finally {
    world.remove();
  }
}

async function meanMs(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  for (let count = 0; count < 50; count++) await work();
  return (performance.now() - start) / 50;
}
