/**
 * A runner of a plan in its own process, with a scripted model: `node planProcess.ts ORDER`. Every journal line and every call of git is a
 * point at which the order may have it killed. Prints what it did as one line of JSON when it ends by itself.
 */
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Git, runnerMark } from '../../src/engine/workflow/git.ts';
import { commitStory, integrate } from '../../src/engine/workflow/integrate.ts';
import { Journal } from '../../src/engine/workflow/journal.ts';
import { PlanFolder } from '../../src/engine/workflow/planFolder.ts';
import { Projection } from '../../src/engine/workflow/projection.ts';
import { attemptRef, endMarked, type Resume, recover } from '../../src/engine/workflow/recover.ts';
import { takeRunner } from '../../src/engine/workflow/runnerLock.ts';
import { type Slot, Slots } from '../../src/engine/workflow/slots.ts';
import { openItems, type StoryState } from '../../src/engine/workflow/storyState.ts';
import type { PlanEvent } from '../../src/protocol/plan.ts';
import type { PlanOrder, ScriptedAttempt } from './planWorld.ts';

const order: PlanOrder = JSON.parse(process.argv[2] ?? '{}');
const script: Record<string, ScriptedAttempt[]> = JSON.parse(readFileSync(order.script, 'utf8'));

let count = 0;
const names: string[] = [];
const point = (name: string): void => {
  if (order.trace) names.push(name);
  if (++count === order.killAt) process.kill(process.pid, 'SIGKILL');
};

const folder = PlanFolder.open(order.repo, order.plan);
const taken = await takeRunner(folder, 'cli');
if (taken.kind === 'busy') {
  console.log(JSON.stringify({ busy: taken.runner.pid }));
  process.exit(3);
}
const { lock } = taken;
const env = { ...process.env, [runnerMark]: lock.mark };
const git = new Git(order.repo, env, { point });
const settings = await folder.settings();
const slots = await Slots.open(folder, git, settings, env);
const journal = await Journal.open(folder.journal, { point });
const projection = new Projection(folder, journal);
const { branch } = settings;

const { resume } = await recover({ folder, lock, git, slots, journal, branch });
let { state } = await projection.project();
const base = state.base ?? (await git.tip('HEAD')) ?? '';
const append = (event: PlanEvent) => journal.append(event);
await append({ type: 'runner_started', base, branch, slots: order.slots, limits: {}, pid: process.pid });
({ state } = await projection.project());

/** What an outsider sees of what a model was paid for. */
const pay = (key: string): void => appendFileSync(order.paid, `${key}\n`);

async function step(
  key: string,
  name: 'coder' | 'reviewer',
  story: string,
  work: () => Promise<void>,
): Promise<void> {
  const runId = `${key}.${process.pid}`;
  await append({ type: 'step_started', key, step: name, story, runId });
  pay(key);
  await work();
  await append({ type: 'step_ended', key, step: name, story, runId, outcome: 'completed' });
}

/** Writes what the script says, in two parts, and leaves a process running, as careless commands do. */
async function code(slot: Slot, { files, leaves }: ScriptedAttempt): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(slot.dir, name)), { recursive: true });
    writeFileSync(join(slot.dir, name), text.slice(0, text.length / 2));
    point('coder writes');
    writeFileSync(join(slot.dir, name), text);
  }
  if (leaves) spawn('sleep', ['600'], { env, stdio: 'ignore', detached: true }).unref();
  point('coder worked');
}

/** The check runs in the slot: everything that the attempt should have written is there, whole, and nothing unfinished. */
function check(slot: Slot, { files }: ScriptedAttempt): number {
  point('check');
  const isRight = ([name, text]: [string, string]): boolean =>
    existsSync(join(slot.dir, name)) && readFileSync(join(slot.dir, name), 'utf8') === text;
  return Object.entries(files).every(isRight) ? 0 : 1;
}

async function attempt(story: StoryState, number: number, from?: Resume): Promise<void> {
  const { id, title } = story.story;
  const counted = from?.open.attempt ?? story.attempts + 1;
  // An attempt that was cut off had nothing of the script.
  const scripted =
    script[id]?.[Math.min(story.charged + story.commits.length, (script[id]?.length ?? 1) - 1)];
  if (!scripted) throw new Error(`no script for ${id}`);
  const parent = from?.open.parent ?? (await git.tip(`refs/heads/${branch}`)) ?? base;
  const slot = from?.slot ?? (await slots.openSlot(number, from?.open.snapshot?.commit ?? parent));
  const of = { story: id, attempt: counted };
  const end = (status: 'approved' | 'approved-partial' | 'denied' | 'no-change', details: string) =>
    append({ type: 'attempt_ended', ...of, status, details });
  if (!from) {
    const item = openItems(story)[0]?.number ?? 0;
    await append({ type: 'attempt_started', ...of, item, slot: slot.number, parent, role: 'coder' });
    await step(`${id}.a${counted}.coder`, 'coder', id, () => code(slot, scripted));
  }
  let kept = from?.open.snapshot;
  if (!kept) {
    const ref = attemptRef(order.plan, id, counted);
    const snapshot = await slots.snapshot(slot, { ref, parent, message: `${id}.a${counted}` });
    if (!snapshot) return void (await end('no-change', ''));
    await append({ type: 'snapshot', ...of, ...snapshot });
    kept = snapshot;
  }
  let { tree } = kept;
  const checked = async (): Promise<boolean> => {
    const exitCode = check(slot, scripted);
    await append({ type: 'check_ended', ...of, tree, name: 'files', exitCode, ms: 0, output: '' });
    return exitCode === 0;
  };
  await slots.reset(slot, kept.commit);
  if (!(await checked())) return void (await end('denied', 'the check failed'));
  const items = scripted.items ?? openItems(story).map(({ number: box }) => box);
  if (!from?.open.verdict) {
    await step(`${id}.a${counted}.reviewer`, 'reviewer', id, async () => {
      point('reviewer');
      const approved = !scripted.denied;
      await append({ type: 'verdict', ...of, tree, approved, text: approved ? 'Fine.' : 'No.', items });
    });
  }
  if (scripted.denied) return void (await end('denied', 'No.'));
  const isPart = openItems(story).some(({ number: box }) => !items.includes(box));
  const words = { plan: order.plan, title, items, isPart, checks: ['files'], review: 'Fine.', ...of };
  let [commit, onto] = [await commitStory(git, { ...words, tree, parent }), parent];
  for (;;) {
    const known = new Set(journal.lines.flatMap(line => (line.type === 'story_passed' ? [line.commit] : [])));
    const result = await integrate(git, {
      ...{ plan: order.plan, story: id, base, branch, commit, parent: onto, known, isOurs: lock.isOurs },
    });
    if (result.kind === 'passed') {
      await append({
        type: 'story_passed',
        ...of,
        items,
        commit: result.commit,
        ...(isPart && { part: true as const }),
      });
      return void (await end(isPart ? 'approved-partial' : 'approved', 'Fine.'));
    }
    if (result.kind !== 'moved') throw new Error(`${id}: ${JSON.stringify(result)}`);
    ({ commit, parent: onto, tree } = result);
    await slots.reset(slot, commit);
    if (!(await checked())) return void (await end('denied', 'red on the merged tree'));
  }
}

const running = new Map<number, { story: string; done: Promise<void> }>();
function begin(story: StoryState, number: number, from?: Resume): void {
  const done = attempt(story, number, from).then(async () => {
    ({ state } = await projection.project());
    running.delete(number);
  });
  running.set(number, { story: story.story.id, done });
}

const startedAt = performance.now();
let passed = state.stories.filter(({ status }) => status === 'passed').length;
const before = passed;
for (const from of resume) {
  const story = state.story(from.story);
  if (story) begin(story, from.open.slot, from);
}
for (;;) {
  const busy = new Set([...running.values()].map(({ story }) => story));
  for (let number = 1; number <= order.slots; number++) {
    if (running.has(number)) continue;
    const next = state.stories.find(({ story, status }) => status === 'ready' && !busy.has(story.id));
    if (!next) break;
    busy.add(next.story.id);
    begin(next, number);
  }
  if (running.size === 0) break;
  await Promise.race([...running.values()].map(({ done }) => done));
}
passed = state.stories.filter(({ status }) => status === 'passed').length;
const ms = performance.now() - startedAt;
const { kept } = order.keepSlots ? { kept: [] } : await slots.removeSlots();
await endMarked(lock.mark);
await journal.close();
await lock.release();
console.log(
  JSON.stringify({ passed, msPerStory: ms / Math.max(1, passed - before), kept, points: count, names }),
);
