/** The file of a story in a real VS Code: run the plan up to it, run its checks alone, and see beside each box what it has come to. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Journal } from '../../src/plans/journal.ts';
import { MachineSeal } from '../../src/plans/machineSeal.ts';
import { PlanFolder } from '../../src/plans/planFolder.ts';
import { takeRunner } from '../../src/plans/runnerLock.ts';
import type { PlanEvent } from '../../src/protocol/plan.ts';
import { eventually } from '../eventually.ts';
import { firstStartLimit } from '../vscode/editorSession.ts';
import { frameWith, openFile, runCommand } from '../vscode/workbench.ts';
import { PlanDesk } from './planDesk.ts';

describe('the file of a story in a real VS Code', () => {
  let desk: PlanDesk;

  before(async function () {
    this.timeout(firstStartLimit);
    desk = await PlanDesk.open();
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed')
      await desk?.workbench.screenshot(`failed-${this.currentTest.title.slice(0, 60).replace(/\W+/g, '-')}`);
  });

  after(() => desk?.close());

  const page = () => desk.workbench.page;

  /** The path of a story's file from its number. */
  function storyFile(plan: string, number: string): string {
    const [name = ''] = readdirSync(desk.file(plan, 'prds')).filter(one => one.startsWith(number));
    return desk.file(plan, join('prds', name));
  }

  /** Puts another command into a story's check. */
  function withCommand(plan: string, number: string, command: string): void {
    const file = storyFile(plan, number);
    const text = readFileSync(file, 'utf8').replace(/command: ".*"/, `command: "${command}"`);
    writeFileSync(file, text);
  }

  /** The marks that are drawn in the margin. */
  const marks = (): Promise<number> =>
    page()
      .locator('.editor-instance .cgmr')
      .evaluateAll(
        all => all.filter(one => getComputedStyle(one).backgroundImage.includes('data:image/svg+xml')).length,
      );

  const showsMarks = (count: number): Promise<void> =>
    eventually(async () => assert.equal(await marks(), count), 60_000);

  /** What is said of a box while the pointer is on it. */
  async function saidOf(box: string, text: string): Promise<void> {
    const hover = page().locator('.monaco-hover:not(.hidden)', { hasText: text }).first();
    await eventually(async () => {
      await page().mouse.move(0, 0);
      await page()
        .locator('.view-line', { hasText: box })
        .first()
        .hover({ position: { x: 80, y: 8 }, timeout: 2_000 });
      await hover.waitFor({ timeout: 3_000 });
    }, 60_000);
  }

  /** Shows a story's file alone: the stories of each plan here have the same names, and a deleted file keeps its tab. */
  async function show(plan: string, number: string): Promise<void> {
    await runCommand(page(), 'View: Close All Editors');
    await openFile(page(), basename(storyFile(plan, number)), join(plan, 'prds'));
  }

  /** The text of a story's box, as its line has it. */
  function boxOf(plan: string, number: string, box: number): string {
    const text = readFileSync(storyFile(plan, number), 'utf8');
    return new RegExp(`\\[.\\] (${box}\\. .{10,30})`).exec(text)?.[1] ?? '';
  }

  it('runs its checks alone, in the checkout, once the card is accepted', async () => {
    await desk.makeReady('shop');
    await desk.row('shop, ready').waitFor();
    await show('shop', '01');
    await desk.lens('Check Only').click();
    const said = (text: string) => page().locator('.statusbar-item', { hasText: text });
    await said('Checks of US-001 that pass in your checkout: 1 of 1').waitFor();
    const broken = join(desk.world.workspace, 'test', 'broken.test.js');
    writeFileSync(broken, "throw new Error('The oven is \u202Ecold');\n");
    await desk.lens('Check Only').click();
    await said('Checks of US-001 that pass in your checkout: 0 of 1').waitFor();
    // What failed is shown at once, with what would turn the line around made visible.
    const output = page().locator('.editor-instance', { hasText: 'US-001 · tests · exit code 1' }).first();
    await output.waitFor();
    assert.doesNotMatch(await output.innerText(), /\u202E/);
    await desk.workbench.screenshot('plan-check-only');
    rmSync(broken);
    await show('shop', '01');
    // A command that nobody has accepted does not run: the card comes instead.
    withCommand('shop', '01', 'node --test --only');
    await desk.lens('Check Only').click();
    await frameWith(desk.workbench, frame => frame.getByRole('heading', { name: 'Before shop starts' }));
    withCommand('shop', '01', 'node --test');
  });

  it('runs the plan up to it, and marks what has passed', async function () {
    this.timeout(240_000);
    await desk.row('shop, ').waitFor();
    await show('shop', '02');
    await showsMarks(0);
    await desk.lens('Run to Here').click();
    await desk.row('shop, paused').waitFor({ timeout: 90_000 });
    await showsMarks(2);
    await saidOf('A test covers it', 'passed');
    await desk.workbench.screenshot('plan-marks-passed');
    const journal = readFileSync(desk.file('shop', 'journal.jsonl'), 'utf8');
    assert.doesNotMatch(journal, /"attempt_started","story":"US-00[34]"/);
    assert.equal(journal.match(/"type":"story_passed"/g)?.length, 2);
    await show('shop', '04');
    await desk.lens('Run to Here').waitFor();
    await showsMarks(0);
  });

  it('says why a box failed literally, whoever wrote it', async () => {
    await desk.makeReady('second');
    const journal = await Journal.open(
      desk.file('second', 'journal.jsonl'),
      new MachineSeal(desk.world.data),
    );
    const why = '[the oven](command:workbench.action.quit) is ![cold](https://example.com/x.png)';
    await journal.append({ type: 'story_failed', story: 'US-004', why, by: 'engine' });
    await journal.close();
    await desk.fold('shop, ');
    await desk.row('second, ').waitFor();
    await desk.row('US-004').click();
    await showsMarks(3);
    await saidOf('README.md names it', 'failed: [the oven] (command:workbench.action.quit) is');
    assert.equal(await page().locator('.monaco-hover a[data-href], .monaco-hover img').count(), 0);
    await desk.workbench.screenshot('plan-marks-failed');
  });

  it('marks the box that is worked on, and those that were accepted by hand or wait for the person', async () => {
    // The rows of a small view are not all drawn.
    for (const other of PlanFolder.list(desk.world.workspace))
      rmSync(desk.file(other, ''), { recursive: true });
    await desk.makeReady('third');
    const folder = PlanFolder.open(desk.world.workspace, 'third', new MachineSeal(desk.world.data));
    const note = async (...events: readonly PlanEvent[]): Promise<void> => {
      const journal = await Journal.open(folder.journal, folder.seal);
      for (const event of events) await journal.append(event);
      await journal.close();
    };
    const taken = await takeRunner(folder, 'cli');
    assert.equal(taken.kind, 'taken');
    const base = desk.git('rev-parse', 'HEAD');
    await note(
      { type: 'runner_started', base, branch: 'telos/third', slots: 1, limits: {}, pid: process.pid },
      { type: 'phase', phase: 'running' },
      {
        type: 'attempt_started',
        story: 'US-001',
        item: 2,
        attempt: 1,
        slot: 1,
        parent: base,
        role: 'coder',
      },
    );
    await desk.row('third, running').waitFor();
    await show('third', '01');
    await showsMarks(1);
    await saidOf(boxOf('third', '01', 2), 'Telos works on this.');
    await desk.workbench.screenshot('plan-marks-running');
    const worker = 'green-0a1b2c';
    await note({ type: 'job_given', story: 'US-001', attempt: 1, job: 'telos-story-third-US-001', worker });
    await page()
      .getByRole('treeitem', { name: new RegExp(`^US-001 .*, working · on ${worker} · attempt 1`) })
      .waitFor();
    await desk.workbench.screenshot('plan-on-a-worker');
    // The mark goes with whoever worked on it, although the attempt is still open.
    if (taken.kind === 'taken') await taken.lock.release();
    await desk.row('third, interrupted').waitFor();
    await showsMarks(0);
    await note({ type: 'story_accepted', story: 'US-001', why: 'by hand', by: 'editor' });
    await eventually(async () => assert.ok((await marks()) > 1), 60_000);
    await saidOf(boxOf('third', '01', 2), 'accepted by you');
    const question = { id: 'US-002-1', story: 'US-002', text: 'Rye or wheat?', choices: [] };
    await note({ type: 'question_parked', question });
    await show('third', '02');
    await eventually(async () => assert.ok((await marks()) > 0), 60_000);
    await saidOf(boxOf('third', '02', 1), 'needs input');
    await desk.workbench.screenshot('plan-marks-needs-you');
  });
});
