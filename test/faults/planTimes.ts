/** What a plan costs in time and memory: by story, by slot, and to go on after a kill. Each time stands beside what git or the disk alone take. */
import { execFile } from 'node:child_process';
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Git } from '../../src/plans/git.ts';
import { type Figure, percentile } from './figure.ts';
import { plainStory, type ScriptedStory, sameFileStory } from './planScript.ts';
import { PlanWorld, type RunnerReport } from './planWorld.ts';

const stories = 100;

/** How often a plan may take what its counterpart takes. */
const limits = { engine: 3.5, whole: 6.5, slots: 7, journal: 1.5, act: 25, look: 6 };

export async function planTimes(): Promise<Figure[]> {
  const one = await carriedOut(1, plainStory);
  const four = await carriedOut(4, plainStory);
  const asCommits = (name: string, { bare, told }: CarriedOut, ms: number, limit: number): Figure =>
    beside(name, ms, { ms: bare.commitMs, what: 'the same commit by plain git' }, limit, told);
  return [
    asCommits(
      'F4: engine time of a story, 1 slot, without model and checks',
      one,
      one.engineMs,
      limits.engine,
    ),
    asCommits('F5: a story, scripted model, 1 slot', one, one.report.ms / stories, limits.whole),
    asCommits('F5: a story with files of its own, 4 slots', four, four.report.ms / stories, limits.slots),
    beside(
      'F8: the journal of a story, fsync included',
      one.report.journalMs / stories,
      { ms: one.bare.journalMs, what: 'its lines appended by a bare loop, each with fsync' },
      limits.journal,
      one.told,
    ),
    memory(one.report),
  ];
}

interface Counterpart {
  ms: number;
  what: string;
}

function beside(name: string, ms: number, bare: Counterpart, limit: number, told: string): Figure {
  const ratio = ms / bare.ms;
  return {
    name,
    value: `${ratio.toFixed(2)} times (${ms.toFixed(1)} ms, ${bare.what}: ${bare.ms.toFixed(1)} ms); ${told}`,
    limit: `${limit} times`,
    met: ratio <= limit && !told.includes('wrong:'),
  };
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
  const ratio = fastest(four, again) / fastest(first, last);
  const each = turns.map(({ report }) => (report.ms / 1000).toFixed(2)).join(', ');
  return [
    {
      name: `F6: ${stories} stories that change one file, 4 slots beside 1, the faster of two each`,
      value: `${ratio.toFixed(2)} times; ${redone} attempts redone; 1, 4, 4 and 1 slots took ${each} s; ${four.told}`,
      limit: '1.1 times',
      met: ratio <= 1.1 && !four.told.includes('wrong:'),
    },
  ];
}

interface CarriedOut {
  report: RunnerReport;
  /** Without the steps of models and without checks, a story. */
  engineMs: number;
  attempts: number;
  bare: Bare;
  /** What it is to be seen beside, and what went wrong. */
  told: string;
}

async function carriedOut(slots: number, script: (number: number) => ScriptedStory): Promise<CarriedOut> {
  const world = await PlanWorld.make(stories, slots, script);
  try {
    const call = await bareCall(world);
    const commitMs = await plainCommit(world);
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
    const bare = { commitMs, journalMs: appended(world, lines.length / stories) };
    return {
      report,
      bare,
      engineMs: (Date.parse(ended) - Date.parse(began) - steps - checks) / stories,
      attempts: lines.filter(({ type }) => type === 'attempt_started').length,
      told: `${count.toFixed(1)} processes of git a story, one alone takes ${call.toFixed(1)} ms now; steps ${(steps / stories).toFixed(0)} ms, checks ${(checks / stories).toFixed(0)} ms, ${(lines.length / stories).toFixed(1)} lines${wrong}`,
    };
  } finally {
    world.remove();
  }
}

/** What a story is measured against. In milliseconds. */
interface Bare {
  commitMs: number;
  journalMs: number;
}

/** Returns how long a commit of one new file takes by git alone, in a repository of its own: the middle one of many. */
async function plainCommit(world: PlanWorld): Promise<number> {
  const root = join(world.folder.path, 'plain');
  mkdirSync(root);
  const git = async (...args: string[]): Promise<unknown> =>
    promisify(execFile)('git', args, { cwd: root, env: world.env });
  const author = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.org'];
  await git('init', '-q');
  const times: number[] = [];
  for (let number = 0; number < 30; number++) {
    const start = performance.now();
    writeFileSync(join(root, `${number}.txt`), 'whole\n');
    await git('add', '-A');
    await git(...author, 'commit', '-q', '-m', `Story ${number}`);
    times.push(performance.now() - start);
  }
  return percentile(times, 0.5);
}

/** Returns how long so many lines take to append and to reach the disk, where the plan lies. */
function appended(world: PlanWorld, lines: number): number {
  const file = openSync(join(world.repo, '.telos', 'appended.jsonl'), 'a');
  const rounds = 200;
  const start = performance.now();
  for (let round = 0; round < rounds; round++) {
    writeSync(file, `${JSON.stringify({ type: 'line', round })}\n`);
    fsyncSync(file);
  }
  const each = (performance.now() - start) / rounds;
  closeSync(file);
  return each * lines;
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
    const reads = [1, 2, 3].map(() => filesRead(join(world.repo, '.telos/plans/bakery')));
    const before = world.journal().length;
    const next = world.start();
    const end = await next.report;
    const act = world
      .journal()
      .slice(before)
      .find(({ type }) => acts.has(type));
    world.verify();
    const wrong = world.problems.length > 0 ? `; wrong: ${world.problems.slice(0, 3).join('; ')}` : '';
    const told = `${before} lines, ${stories} stories, a plan that was killed${wrong}`;
    const began = Date.parse(end?.began ?? '');
    return [
      beside(
        'F7: from the start of a runner to its first act',
        Date.parse(act?.ts ?? '') - began,
        { ms: percentile(reads, 0.5), what: 'reading its files' },
        limits.act,
        told,
      ),
      beside(
        'F7: a look at the plan',
        percentile(looks, 0.5),
        { ms: percentile(reads, 0.5), what: 'reading its files' },
        limits.look,
        told,
      ),
    ];
  } finally {
    world.remove();
  }
}

/** Returns how long it takes to read all files below the folder of a plan, and to parse the lines of its journal. */
function filesRead(folder: string): number {
  const start = performance.now();
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, name);
    if (!statSync(path).isFile()) continue;
    const text = readFileSync(path, 'utf8');
    if (name.endsWith('journal.jsonl')) for (const line of text.split('\n')) if (line) JSON.parse(line);
  }
  return performance.now() - start;
}

/** With these a plan goes on: what comes before puts right what a kill has left. */
const acts: ReadonlySet<string> = new Set([
  'attempt_started',
  'step_started',
  'check_ended',
  'story_passed',
  'snapshot',
]);
