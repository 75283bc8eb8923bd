/**
 * Kills the extension host of a real VS Code while a plan runs from it: in the window with a model of the editor itself, whose extension
 * is killed as well, and with `TELOS_NIGHTLY=1` again and again, also in a process of its own and with a model of the engine. Then looks
 * from outside: at what the model was asked, at the journal, at git and at the checkout.
 */
import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { eventually } from '../eventually.ts';
import {
  answersOf,
  approves,
  checkoutOf,
  once,
  type StepModel,
  type StoryText,
  writes,
} from '../plan/planWorld.ts';
import { firstStartLimit } from '../vscode/editorSession.ts';
import { root } from '../vscode/paths.ts';
import { commandOf, descendants } from '../vscode/processTree.ts';
import { runCommand } from '../vscode/workbench.ts';
import type { World } from '../vscode/world.ts';
import { PlanDesk } from './planDesk.ts';

const isLong = process.env['TELOS_NIGHTLY'] !== undefined;
/** How often it is killed in each of the ways: with a model of the editor, and at night in the others too. */
const kills = isLong ? 30 : 1;
/**
 * After this a person loads the window again. VS Code starts no new host and says nothing if it does not learn within two seconds how
 * the last one has ended. In milliseconds.
 */
const patienceMs = 20_000;
const [storiesOfPlan, slots] = isLong ? [6, 2] : [3, 2];
/** Before each answer of the model, so that kills meet steps. In milliseconds. */
const stallMs = 300;

const lmExtension = join(root, 'test', 'fixtures', 'lm-server-extension');

interface Settings {
  keepRunning: boolean;
  provider?: string;
}

/** Settings of a machine are not those of a person in a browser. */
function set({ profile }: World, { keepRunning, provider }: Settings): void {
  const folder = join(profile, 'Machine');
  mkdirSync(folder, { recursive: true });
  const settings = {
    'telos.plans.keepRunning': keepRunning,
    ...(provider !== undefined && { 'telos.provider': provider }),
  };
  writeFileSync(join(folder, 'settings.json'), JSON.stringify(settings));
}

const paused = ['paused', 'Telos: Pause Plan'] as const;
const stopped = ['stopped', 'Telos: Stop Plan'] as const;

const idsOf = (plan: number): string[] =>
  Array.from({ length: storiesOfPlan }, (_, index) => `US-${plan}0${index + 1}`);
const fileOf = (id: string): string => `src/${id}.js`;
const textOf = (id: string): string => `export const id = '${id}';\n`;

/** Each story passes at its first attempt: whatever is asked twice was asked because of a kill. */
const model: StepModel = {
  coder: (turn, _attempt, { body }) => {
    const id = /US-\d+/.exec(JSON.stringify(body.messages[0]))?.[0] ?? '';
    const answer = once(writes({ [fileOf(id)]: textOf(id) }))(turn, 1, body);
    return { ...answer, stallMs };
  },
  reviewer: (turn, _attempt, request) => ({ ...once(approves())(turn, 1, request), stallMs }),
};

describe('a plan of an editor whose extension host is killed', function () {
  this.timeout(isLong ? 40 * 60_000 : 5 * 60_000);
  // What went wrong once in so many kills has gone wrong.
  if (isLong) this.retries(0);
  const { turns, requestsOf } = answersOf(model);
  let desk: PlanDesk;
  let plans = 0;
  /** How the next hosts came. */
  const came = { byItself: 0, byButton: 0, byReload: 0 };

  before(async function () {
    this.timeout(firstStartLimit);
    desk = await PlanDesk.open({
      model: { turns },
      variables: { TELOS_PROVIDER: 'anthropic' },
      settings: { 'chat.disableAIFeatures': false },
      extensions: { 'telos.telos-lm-server-0.0.1': lmExtension },
      prepare: world => set(world, { keepRunning: false }),
    });
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed')
      await desk?.workbench.screenshot(`failed-${this.currentTest.title.slice(0, 60).replace(/\W+/g, '-')}`);
  });

  after(() => desk?.close());

  /** Loads the window with the settings. */
  async function open(settings: Settings): Promise<void> {
    set(desk.world, settings);
    await reload();
  }

  async function reload(): Promise<void> {
    await desk.workbench.page.reload();
    await desk.workbench.page.waitForSelector('.monaco-workbench');
    await runCommand(desk.workbench.page, 'Focus on Plans View');
  }

  /** The extension hosts. That of a window which was loaded again may last a while. */
  async function hosts(): Promise<number[]> {
    const all = await descendants(desk.session.server.pid);
    return all.filter(pid => commandOf(pid).includes('--type=extensionHost'));
  }

  /** Kills the host, and has the next one: VS Code starts it twice in five minutes, and then when the person presses its button. */
  async function kill(): Promise<void> {
    const old = await hosts();
    assert.ok(old.length > 0, 'there is no extension host to kill');
    for (const pid of old) killNow(pid);
    const button = desk.workbench.page
      .locator('.notifications-toasts .monaco-button', { hasText: 'Restart Remote Extension Host' })
      .first();
    let how: keyof typeof came = 'byItself';
    let asked = performance.now();
    await eventually(async () => {
      const found = (await hosts()).some(pid => !old.includes(pid));
      if (found) return;
      if (how !== 'byButton' && (await button.isVisible())) {
        await button.click({ timeout: 2_000 });
        how = 'byButton';
        asked = performance.now();
      } else if (performance.now() - asked > patienceMs) {
        how = 'byReload';
        await reload();
        asked = performance.now();
      }
      assert.fail('there is no new extension host');
    }, 3 * 60_000);
    came[how]++;
  }

  const has = (plan: string, type: string): number =>
    desk.journal(plan).filter(line => line.type === type).length;
  const isDone = (plan: string): boolean =>
    desk.journal(plan).some(({ type, phase }) => type === 'phase' && phase === 'done');

  /** Makes plans and runs them until the host was killed often enough. Returns how often a step was begun again that had not ended. */
  async function runThrough(name: string, isHere: boolean): Promise<number> {
    const [first, began] = [plans + 1, performance.now()];
    Object.assign(came, { byItself: 0, byButton: 0, byReload: 0 });
    let left = kills;
    let again = 0;
    while (left > 0) {
      const plan = `${name}-${++plans}`;
      const before = checkoutOf(desk.world.workspace, desk.git.bind(desk));
      const ids = idsOf(plans);
      await desk.makeOf(plan, ids.map(storyOf), { parallel: slots });
      await desk.press(desk.row(`${plan}, ready`), 'Run Plan');
      await eventually(() => assert.ok(has(plan, 'runner_started') > 0), 60_000);
      const [runner] = desk.journal(plan).filter(({ type }) => type === 'runner_started');
      assert.equal((await hosts()).includes(Number(runner?.['pid'])), isHere);
      for (; left > 0; left--) {
        await wait(Math.random() * 1_500);
        if (isDone(plan)) break;
        const begun = has(plan, 'runner_started');
        await kill();
        // One in four also meets the next host while it still begins.
        if (left > 1 && Math.random() < 0.25) continue;
        if (isHere)
          await eventually(
            () => assert.ok(isDone(plan) || has(plan, 'runner_started') > begun, `${plan} does not go on`),
            2 * 60_000,
          );
        else await eventually(() => desk.row(`${plan}, `).waitFor({ timeout: 2_000 }), 2 * 60_000);
      }
      await desk.row(`${plan}, done · ${storiesOfPlan}/${storiesOfPlan}`).waitFor({ timeout: 120_000 });
      again += verify(plan, ids, isHere);
      assert.equal(checkoutOf(desk.world.workspace, desk.git.bind(desk)), before);
      // The rows of a small view are not all drawn.
      rmSync(desk.file(plan, ''), { recursive: true });
      await desk.row(plan).waitFor({ state: 'detached' });
      if (isLong) console.log(`      ${plan} is right, ${kills - left} of ${kills} kills made`);
    }
    const seconds = Math.round((performance.now() - began) / 1_000);
    console.log(
      `      ${kills} kills in ${plans - first + 1} plans and ${seconds} s, the next host ${JSON.stringify(came)}: ` +
        `0 steps begun again that had ended, ${again} that were cut off, branches and checkout right`,
    );
    return again;
  }

  /** Returns how often a step was begun again that had not ended. */
  function verify(plan: string, ids: readonly string[], isHere: boolean): number {
    const lines = desk.journal(plan);
    const branch = `telos/${plan}`;
    const passed = desk.git('log', '--format=%(trailers:key=Telos-Story,valueonly)', `main..${branch}`);
    assert.deepEqual(passed.split('\n').filter(Boolean).sort(), ids);
    const changed = desk.git('diff', '--name-only', 'main', branch).split('\n');
    assert.deepEqual(changed, ids.map(fileOf));
    for (const id of ids) assert.equal(`${desk.git('show', `${branch}:${fileOf(id)}`)}\n`, textOf(id));
    assert.equal(desk.git('fsck', '--no-dangling', '--connectivity-only'), '');
    let repeated = 0;
    for (const id of ids)
      for (const role of ['coder', 'reviewer']) {
        const of = lines.filter(({ story, step }) => story === id && step === role);
        const began = of.filter(({ type }) => type === 'step_started').length;
        const ended = of.filter(({ type, outcome }) => type === 'step_ended' && outcome === 'completed');
        assert.equal(ended.length, 1, `${id} ${role} ended ${ended.length} times`);
        const after = of.slice(of.indexOf(ended[0]!) + 1);
        assert.ok(!after.some(({ type }) => type === 'step_started'), `${id} ${role} began after its end`);
        const asked = requestsOf(id, role).length;
        // Two requests are a whole step. One that was cut off has made them in part.
        assert.ok(asked >= 2 && asked <= 2 * began, `${id} ${role}: ${asked} requests in ${began} steps`);
        if (!isHere) assert.equal(asked, 2, `${id} ${role}: ${asked} requests`);
        repeated += began - 1;
      }
    if (!isHere) {
      assert.equal(has(plan, 'runner_started'), 1);
      assert.equal(has(plan, 'recovered'), 0);
    }
    return repeated;
  }

  it('leaves a plan of the window alone that the person has paused or stopped', async () => {
    for (const [held, command] of isLong ? ([paused, stopped] as const) : [paused]) {
      const plan = `here-${++plans}`;
      await desk.makeOf(plan, idsOf(plans).map(storyOf));
      await desk.press(desk.row(`${plan}, `), 'Run Plan');
      await desk.row(`${plan}, running`).waitFor();
      await runCommand(desk.workbench.page, command);
      await desk.row(`${plan}, ${held}`).waitFor();
      const began = has(plan, 'runner_started');
      await kill();
      await reload();
      await desk.row(`${plan}, ${held}`).waitFor();
      assert.equal(has(plan, 'runner_started'), began);
      if (held === 'stopped') {
        await desk.press(desk.row(`${plan}, stopped`), 'Run Plan');
        await desk.row(`${plan}, done`).waitFor();
      }
      rmSync(desk.file(plan, ''), { recursive: true });
    }
  });

  it('goes on by itself with a model of the editor, once its extension brings it again', async () => {
    await open({ keepRunning: true, provider: 'vscode' });
    const repeated = await runThrough('here', true);
    assert.ok(repeated <= kills * slots, `${repeated} steps begun again`);
  });

  if (!isLong) return;

  it(`goes on by itself in the window after each of ${kills} kills, and asks for nothing again that has ended`, async () => {
    await open({ keepRunning: false });
    const repeated = await runThrough('here', true);
    assert.ok(repeated <= kills * slots, `${repeated} steps begun again`);
  });

  it(`goes on in a process of its own through ${kills} kills, and is shown again`, async () => {
    await open({ keepRunning: true });
    const repeated = await runThrough('apart', false);
    assert.equal(repeated, 0);
  });
});

const storyOf = (id: string): StoryText => ({ id, touches: [fileOf(id)] });

/** The host of a window that was loaded again may have ended by itself. */
function killNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
