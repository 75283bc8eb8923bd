/** Plans under SIGKILL: at every point of a small one, at random in a large one; a torn journal, and two runners at once. */
import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Journal } from '../../src/plans/journal.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { type Extent, type Figure, inLanes, seeded } from './figure.ts';
import { PlanWorld } from './planWorld.ts';

const isNight = process.env['TELOS_NIGHTLY'] !== undefined;

/** A runner that never comes to its end. */
const mostKills = 1000;

export const pointFigures = async (extent: Extent): Promise<Figure[]> => [
  extent === 'quick' ? await pointKills(3, [0]) : await pointKills(12, isNight ? allLanes : [0]),
];

export const randomFigures = async (extent: Extent): Promise<Figure[]> => [
  extent === 'quick' ? await randomKills(8, 4, 2) : await randomKills(100, 4, isNight ? 100 : 12),
];

export const tornFigures = async (): Promise<Figure[]> => [await tornJournal()];

export const togetherFigures = async (): Promise<Figure[]> => [await runnersAtOnce(isNight ? 100 : 20)];

/** Into so many parts the points of a plan are divided. */
const lanes = 16;
const allLanes = Array.from({ length: lanes }, (_, lane) => lane);

/**
 * Kills plans until they have come to their end, each at all points of its lanes, which together are the points of one plan: what it
 * passes before and behind each write and call, by the last line about a story.
 */
async function pointKills(stories: number, share: readonly number[]): Promise<Figure> {
  const template = await PlanWorld.make(stories, 1);
  const problems: string[] = [];
  const [points, kinds, reached] = [new Set<string>(), new Set<string>(), new Set<string>()];
  let [kills, repeated] = [0, 0];
  try {
    await inLanes(share, 3, async lane => {
      const world = await template.copy();
      try {
        for (;;) {
          const report = await world.start({ killAt: { lane, lanes } }).report;
          for (const name of Object.keys(report?.points ?? {})) reached.add(name);
          if (report || world.problems.length > 0) break;
          world.noteKill();
          if (world.kills === mostKills)
            world.problems.push(`it does not come to its end after ${mostKills} kills`);
        }
        world.verify();
        problems.push(...world.problems.map(problem => `lane ${lane}: ${problem}`));
        for (const point of world.killedAt()) {
          points.add(point);
          kinds.add(point.replace(/^.*?: /, ''));
        }
        kills += world.kills;
        repeated += world.repeated;
        // All lanes take a quarter of an hour.
        if (isNight) console.error(`part ${lane}: ${world.kills} kills, ${world.problems.length} violations`);
      } finally {
        world.remove();
      }
    });
  } finally {
    template.remove();
  }
  const part = share.length === lanes ? 'each point' : `${share.length} of ${lanes} parts of the points`;
  return {
    name: `F1, F9, F10: SIGKILL at ${part} of a plan of ${stories} stories`,
    value: `${problems.length} violations after ${kills} kills at ${points.size} points, of ${kinds.size} kinds (${reached.size} are passed); ${(repeated / kills).toFixed(2)} steps paid again a kill${told(problems)}`,
    limit: 'no violation, at most 1 step paid again a kill',
    met: problems.length === 0 && kills > 0 && repeated <= kills,
  };
}

/** Kills the runner alone and the runner with all that it has started, in turns, at random moments. */
async function randomKills(stories: number, slots: number, kills: number): Promise<Figure> {
  const world = await PlanWorld.make(stories, slots);
  const random = seeded(kills);
  try {
    for (let report: unknown; report === undefined && world.problems.length === 0; ) {
      const runner = world.start();
      if (world.kills < kills) {
        await moment(world, runner.report, mostLines(stories, kills), random);
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
      name: `F2, F9: random SIGKILL of a plan of ${stories} stories in ${slots} slots`,
      value: `${world.problems.length} violations after ${world.kills} kills; ${world.repeated} steps paid again${told(world.problems)}`,
      limit: `${kills} kills, none lost, none doubled, no foreign byte`,
      met: world.problems.length === 0 && world.kills === kills,
    };
  } finally {
    world.remove();
  }
}

/** A life with more lines would have the plan come to its end before the last kill. A story takes about ten, and each life some of its own. */
const mostLines = (stories: number, kills: number): number => Math.ceil((stories * 10) / kills) + 6;

/**
 * Waits until a runner has written a random number of lines and a little longer, so that it dies anywhere between two of them. Time
 * alone would say nothing: a busy machine takes more of it. Whoever dies before its first line dies while it takes over.
 */
async function moment(
  world: PlanWorld,
  report: Promise<unknown>,
  most: number,
  random: () => number,
): Promise<void> {
  let isOver = false;
  void report.then(() => {
    isOver = true;
  });
  const lines = Math.floor(random() * most);
  const until = world.journalLines() + lines;
  while (!isOver && world.journalLines() < until) await delay(2);
  await Promise.race([delay(random() * (lines === 0 ? 800 : 40)), report]);
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
      name: 'F3: a journal that is torn at each byte of its last line',
      value: `${wrong.length} of ${bytes.length - start} cannot be gone on with`,
      limit: 'none',
      met: wrong.length === 0,
    };
  } finally {
    folder.remove();
  }
}

async function runnersAtOnce(times: number): Promise<Figure> {
  const template = await PlanWorld.make(1, 1);
  const problems: string[] = [];
  let both = 0;
  try {
    for (let time = 0; time < times; time++) {
      const world = await template.copy();
      try {
        const runners = [world.start(), world.start()];
        const reports = await Promise.all(runners.map(({ report }) => report));
        // One may have come when the other was done.
        if (reports.every(report => report?.end.kind === 'rest')) both++;
        else if (reports.filter(report => report?.end.kind === 'busy').length !== 1)
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
    name: 'F13: two runners started at once',
    value: `${problems.length} of ${times} went wrong${told(problems)}; ${both} times the second came when the first was done`,
    limit: 'exactly one works',
    met: problems.length === 0,
  };
}
