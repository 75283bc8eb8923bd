/** What a plan costs in time and memory: by story, by slot, and to go on after a kill. */
import { setTimeout as delay } from 'node:timers/promises';
import { Git } from '../../src/engine/workflow/git.ts';
import { type Figure, percentile } from './figure.ts';
import { plainStory, type ScriptedStory, sameFileStory } from './planScript.ts';
import { PlanWorld, type RunnerReport } from './planWorld.ts';

const stories = 100;

export async function planTimes(): Promise<Figure[]> {
  const one = await carriedOut(1, plainStory);
  const four = await carriedOut(4, plainStory);
  return [
    below('F4: engine time of a story, 1 slot, without model and checks', one.engineMs, 60, 'ms', one.told),
    below(`F5: ${stories} stories, scripted model, 1 slot`, one.report.ms / 1000, 8, 's', one.told),
    below(
      `F5: ${stories} stories with files of their own, 4 slots`,
      four.report.ms / 1000,
      4,
      's',
      four.told,
    ),
    below('F8: the journal, fsync included', one.report.journalMs / stories, 5, 'ms a story', one.told),
    memory(one.report),
  ];
}

/** Each is measured twice, in turns: what else a machine does comes and goes. */
export async function slotTimes(): Promise<Figure[]> {
  const turns: CarriedOut[] = [];
  for (const slots of [1, 4, 4, 1]) turns.push(await carriedOut(slots, sameFileStory));
  const [first, ...others] = turns as [CarriedOut, CarriedOut, CarriedOut, CarriedOut];
  const [four, again, last] = others;
  const fastest = (...some: readonly CarriedOut[]): number =>
    Math.min(...some.map(({ report }) => report.ms));
  const redone = four.attempts + again.attempts - 2 * stories;
  const each = turns.map(({ report }) => (report.ms / 1000).toFixed(2)).join(', ');
  return [
    below(
      `F6: ${stories} stories that change one file, 4 slots beside 1, the faster of two each`,
      fastest(four, again) / fastest(first, last),
      1.1,
      'times',
      `${redone} attempts redone; 1, 4, 4 and 1 slots took ${each} s; ${four.told}`,
    ),
  ];
}

function below(name: string, value: number, limit: number, unit: string, beside: string): Figure {
  const digits = value < 10 ? 2 : 0;
  return {
    name,
    value: `${value.toFixed(digits)} ${unit}; ${beside}`,
    limit: `${limit} ${unit}`,
    met: value <= limit && !beside.includes('wrong:'),
  };
}

interface CarriedOut {
  report: RunnerReport;
  /** Without the steps of models and without checks, a story. */
  engineMs: number;
  attempts: number;
  /** What it is to be seen beside, and what went wrong. */
  told: string;
}

async function carriedOut(slots: number, script: (number: number) => ScriptedStory): Promise<CarriedOut> {
  const world = await PlanWorld.make(stories, slots, script);
  try {
    const call = await bareCall(world);
    const report = await world.start().report;
    world.verify();
    if (!report) throw new Error(world.problems.join('; '));
    const calls = Object.entries(report.points).filter(([name]) => /^git .* before$/.test(name));
    const count = calls.reduce((sum, [, times]) => sum + times, 0) / stories;
    const lines = world.journal();
    const { steps, checks } = waitedFor(lines);
    const began = lines.find(({ type }) => type === 'attempt_started')?.ts ?? '';
    const ended = lines.findLast(({ type }) => type === 'attempt_ended')?.ts ?? '';
    const wrong = world.problems.length > 0 ? `; wrong: ${world.problems.slice(0, 3).join('; ')}` : '';
    return {
      report,
      engineMs: (Date.parse(ended) - Date.parse(began) - steps - checks) / stories,
      attempts: lines.filter(({ type }) => type === 'attempt_started').length,
      told: `${count.toFixed(1)} processes of git a story, one alone takes ${call.toFixed(1)} ms now; steps ${(steps / stories).toFixed(0)} ms, checks ${(checks / stories).toFixed(0)} ms, ${(lines.length / stories).toFixed(1)} lines${wrong}`,
    };
  } finally {
    world.remove();
  }
}

/** Time of all steps of models and of all checks. In milliseconds. */
function waitedFor(lines: ReturnType<PlanWorld['journal']>): { steps: number; checks: number } {
  const began = new Map<string, number>();
  let [steps, checks] = [0, 0];
  for (const { type, key, ts, ms } of lines) {
    if (type === 'step_started') began.set(key, Date.parse(ts));
    if (type === 'step_ended') steps += Date.parse(ts) - (began.get(key) ?? 0);
    if (type === 'check_ended') checks += ms;
  }
  return { steps, checks };
}

async function bareCall(world: PlanWorld): Promise<number> {
  const git = new Git(world.repo, world.env);
  const start = performance.now();
  for (let count = 0; count < 30; count++) await git.run(['version']);
  return (performance.now() - start) / 30;
}

function memory({ rss }: RunnerReport): Figure {
  const middle = (part: number[]): number => percentile(part, 0.5);
  // Two steps a story. In the first half V8 takes what it needs to run and compile: what a story leaves is seen in the second.
  const half = rss.slice(rss.length / 2);
  const [early, late] = [half.slice(0, 20), half.slice(-20)];
  const growth = (middle(late) - middle(early)) / 1e6 / ((half.length - 20) / 2);
  const most = Math.max(...rss) / 1e6;
  return {
    name: `F11: memory of the runner over ${stories} stories`,
    value: `${most.toFixed(0)} MB at most, ${growth.toFixed(2)} MB more a story`,
    limit: '150 MB, 0.3 MB a story',
    met: most < 150 && growth <= 0.3,
  };
}

/** A runner is killed near the end of its plan. Then somebody looks at the plan, and another runner goes on with it. */
export async function resumeTimes(): Promise<Figure[]> {
  const world = await PlanWorld.make(stories, 1, plainStory);
  try {
    const { child, report } = world.start();
    while (world.journal().length < 950 && child.exitCode === null) await delay(20);
    child.kill('SIGKILL');
    await report;
    const looks = [await world.look(), await world.look(), await world.look()].map(({ ms }) => ms);
    const before = world.journal().length;
    const next = world.start();
    const end = await next.report;
    const began = Date.parse(end?.began ?? '');
    const act = world
      .journal()
      .slice(before)
      .find(({ type }) => acts.has(type));
    world.verify();
    const wrong = world.problems.length > 0 ? `; wrong: ${world.problems.slice(0, 3).join('; ')}` : '';
    return [
      below(
        'F7: from the start of a runner to its first act',
        Date.parse(act?.ts ?? '') - began,
        400,
        'ms',
        `${before} lines, ${stories} stories, a plan that was killed${wrong}`,
      ),
      below('F7: a look at the plan', Math.max(...looks), 300, 'ms', 'the slowest of 3'),
    ];
  } finally {
    world.remove();
  }
}

/** With these a plan goes on: what comes before puts right what a kill has left. */
const acts: ReadonlySet<string> = new Set([
  'attempt_started',
  'step_started',
  'check_ended',
  'story_passed',
  'snapshot',
]);
