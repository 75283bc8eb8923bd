/** The view *Plans* in a real VS Code: a plan is judged, run, held and looked at there, whether this window or a terminal runs it. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../eventually.ts';
import { firstStartLimit } from '../vscode/editorSession.ts';
import { root } from '../vscode/paths.ts';
import { chatFrame, frameWith, runCommand } from '../vscode/workbench.ts';
import { PlanDesk } from './planDesk.ts';

describe('plans in a real VS Code', () => {
  let desk: PlanDesk;
  let other: PlanDesk | undefined;
  let runner: ChildProcess | undefined;

  before(async function () {
    this.timeout(firstStartLimit);
    desk = await PlanDesk.open();
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed')
      for (const [index, one] of [desk, other].entries())
        await one?.workbench.screenshot(
          `failed-${index}-${this.currentTest.title.slice(0, 60).replace(/\W+/g, '-')}`,
        );
  });

  after(async () => {
    runner?.kill();
    await other?.workbench.close();
    await desk?.close();
  });

  const linesOf = (plan: string): { type: string; status?: string; pid?: number }[] =>
    readFileSync(desk.file(plan, 'journal.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .map(line => JSON.parse(line));
  /** The processes that have worked on the stories of a plan. */
  const runnersOf = (plan: string): unknown[] =>
    linesOf(plan).flatMap(({ type, pid }) => (type === 'runner_started' ? [pid] : []));

  it('begins a plan: its goal, a form with suggested answers in the chat, and plan.md to approve', async () => {
    await desk.tree.getByText('There are no plans yet.').waitFor();
    await desk.tree.getByRole('button', { name: 'New Plan...' }).first().click();
    await desk.type('Bakery');
    const chat = await frameWith(desk.workbench, frame => frame.getByText('What should Telos know?'));
    await desk.row('bakery, interview').waitFor();
    const many = chat.getByRole('textbox', { name: /From how many rolls on is there a discount/ });
    assert.equal(await many.inputValue(), '10 % from ten rolls on');
    await chat.getByRole('button', { name: 'Decide for me' }).first().click();
    assert.equal(await many.inputValue(), '');
    await chat.getByRole('button', { name: '10 % from ten rolls on' }).click();
    const language = chat.getByRole('textbox', { name: /In which language are receipts/ });
    await language.fill('German');
    await desk.workbench.screenshot('plan-interview');
    await desk.sends(language, 'bakery, approve plan.md');
    await desk.status('1 needs input').waitFor();
    const interview = readFileSync(desk.file('bakery', 'interview.md'), 'utf8');
    assert.match(interview, /\nA: 10 % from ten rolls on\n/);
    assert.match(interview, /\nA: German\n/);
    await desk.lens('Approve').waitFor();
    await chat.getByRole('log').getByText('The plan bakery is written.').waitFor();
  });

  it('leaves an interview open, goes on with the same questions, and plans when that is enough', async () => {
    const chat = await chatFrame(desk.workbench);
    const message = chat.getByRole('textbox', { name: 'Message Telos' });
    await message.fill('/plan Sell cakes');
    await message.press('Enter');
    await chat.getByRole('button', { name: 'Later' }).click();
    await chat.getByRole('log').getByText('The interview waits.').waitFor();
    await desk.press(desk.row('sell-cakes, interview'), 'Run Plan');
    await chat.getByRole('button', { name: 'Start Planning' }).click();
    await desk.row('sell-cakes, approve plan.md').waitFor();
    // It opens by itself, and would come over what is opened before.
    await desk.lens('Approve', 'sell-cakes/plan.md').waitFor();
    const journal = readFileSync(desk.file('sell-cakes', 'journal.jsonl'), 'utf8');
    assert.equal(journal.split('"type":"interview_round"').length, 3);
    assert.match(journal, /"ready":true,"forced":true/);
    await desk.open(desk.row('bakery, approve plan.md'), desk.lens('Approve', 'bakery/plan.md'));
  });

  it('has plan.md written anew as it was asked to', async () => {
    await desk.lens('Request Changes...').click();
    await desk.type('Say which files it touches');
    const journal = desk.file('bakery', 'journal.jsonl');
    await eventually(async () =>
      assert.equal(readFileSync(journal, 'utf8').split('"type":"plan_written"').length, 3),
    );
    assert.match(readFileSync(journal, 'utf8'), /"comments":\["Say which files it touches"\]/);
    await desk.row('bakery, approve plan.md').waitFor();
  });

  it('sends comments on lines of plan.md together, answers in their threads, and approves when none is open', async function () {
    this.timeout(180_000);
    const { page } = desk.workbench;
    const said = (text: string) => page.locator('.codelens-decoration', { hasText: text }).first();
    await page.locator('.view-line', { hasText: 'Node and its own test runner' }).first().click();
    await runCommand(page, 'Comments: Add Comment on Current Selection');
    const thread = page.locator('.review-widget');
    await thread.locator('.monaco-editor').first().waitFor();
    await page.keyboard.type('Use mocha');
    await thread.getByRole('button', { name: 'Add Comment' }).click();
    await said('1 comment is open').waitFor();
    assert.equal(await desk.lens('Approve').count(), 0);
    await desk.workbench.screenshot('plan-comments');
    await desk.lens('Send 1 Comment').click();
    await thread.getByText('plan.md was rewritten with this.').waitFor();
    const journal = readFileSync(desk.file('bakery', 'journal.jsonl'), 'utf8');
    assert.match(journal, /On line 10, \\"Node and its own test runner\. No packages\.\\": Use mocha/);
    await said('1 comment is open').waitFor();
    await thread.locator('.action-label[aria-label^="Resolve Comment"]').click();
    await desk.lens('Approve').waitFor();
  });

  it('shows the card before anything runs, and each story as it passes', async function () {
    this.timeout(180_000);
    await desk.lens('Approve').click();
    await desk.row('bakery, approve to start').waitFor();
    const card = await frameWith(desk.workbench, frame =>
      frame.getByRole('heading', { name: 'Before bakery starts' }),
    );
    await card.getByText('node --test', { exact: true }).waitFor();
    await card.getByText('Nothing runs before you approve it.').waitFor();
    await desk.workbench.screenshot('plan-card');
    desk.inParallel('bakery');
    await card.getByRole('button', { name: 'Approve and Start' }).click();
    await card.getByText('Approved. This applies').waitFor();
    await card.getByRole('button', { name: 'Run', exact: true }).click();
    await desk.row('bakery, running').waitFor();
    // The plan's own process goes on while the window is gone, and is found again.
    const [first] = runnersOf('bakery');
    const { page } = desk.workbench;
    await page.reload();
    await page.waitForSelector('.monaco-workbench');
    await desk.row('bakery, done · 4/4').waitFor({ timeout: 120_000 });
    assert.deepEqual(runnersOf('bakery'), [first]);
    // Nothing had to be put right, and no attempt was cut off.
    assert.deepEqual(
      linesOf('bakery').filter(({ type, status }) => type === 'recovered' || status === 'interrupted'),
      [],
    );
    for (const id of ['US-001', 'US-002', 'US-003', 'US-004']) await desk.row(id).waitFor();
    await desk.press(desk.row('US-001'), 'Show Changes', page.locator('.multiDiffEntry'));
    await desk.row('US-001').click();
    const pageOfStory = () =>
      frameWith(desk.workbench, frame => frame.getByRole('heading', { name: 'Attempt 2' }));
    await (await pageOfStory()).getByRole('button', { name: 'Show Run: reviewer' }).first().click();
    await desk.workbench.page.locator('.tab', { hasText: 'US-001' }).nth(1).waitFor();
    await desk.row('US-001').click();
    await (await pageOfStory()).getByRole('button', { name: 'Open File' }).click();
    await desk.lens('passed').waitFor();
  });

  it('follows and holds a plan that a terminal runs, as another window does at the same time', async function () {
    this.timeout(240_000);
    // What a first try has left.
    if (runner?.kill()) await once(runner, 'exit');
    rmSync(desk.file('second', ''), { recursive: true, force: true, maxRetries: 5 });
    await desk.makeReady('second');
    other ??= await desk.beside();
    const windows = [desk, other];
    for (const window of windows) {
      await window.fold('bakery, done');
      await window.row('second, ready').waitFor();
    }
    const cli = join(root, 'dist', 'cli.js');
    runner = spawn(process.execPath, [cli, 'plan', 'run', 'second'], { ...desk.terminal, stdio: 'ignore' });
    // A window can take longer to draw its row than the whole plan takes.
    await eventually(() => {
      const rows = desk.journal('second');
      const isRunning = rows.some(({ type }) => type === 'attempt_started');
      assert.ok(isRunning, JSON.stringify([runner?.exitCode, rows.slice(-5)]));
    }, 60_000);
    runner.kill('SIGSTOP');
    for (const window of windows) await window.row('second, running').waitFor();
    await other.press(other.row('second, running'), 'Pause Plan');
    runner.kill('SIGCONT');
    await agree('second, paused', 'paused');
    await runCommand(desk.workbench.page, 'Telos: Show Report');
    await desk.picked('second').click();
    const report = await frameWith(desk.workbench, frame =>
      frame.getByRole('heading', { name: 'second', exact: true }),
    );
    await report
      .getByRole('region', { name: 'US-004' })
      .getByRole('button', { name: 'Show Attempts and Output' })
      .click();
    const story = await frameWith(desk.workbench, frame =>
      frame.getByRole('heading', { name: /^US-004/, level: 1 }),
    );
    await story.getByRole('button', { name: 'Send Message...' }).click();
    await desk.type('Open at seven');
    await eventually(() => assert.deepEqual(toldOf('second', 'US-004'), ['Open at seven']));
    await desk.telos('tell', 'US-004', 'Close at six', '--plan', 'second');
    await eventually(() => assert.deepEqual(toldOf('second', 'US-004'), ['Open at seven', 'Close at six']));
    await desk.workbench.screenshot('plan-story-live');
    await desk.press(desk.row('second, paused'), 'Run Plan');
    for (const window of windows) await window.row('second, done · 4/4').waitFor({ timeout: 120_000 });
    await agree('second, done · 4/4', 'done');
    // The page was drawn again as the story went on.
    await story.getByText('The reviewer approved').first().waitFor();
  });

  const toldOf = (plan: string, story: string): unknown[] =>
    desk.journal(plan).flatMap(({ type, command }) => {
      const told = command as { kind: string; story?: string; text?: string };
      return type === 'steered' && told.kind === 'tell' && told.story === story ? [told.text] : [];
    });

  /** Both windows have this row, and the same words for each story as a terminal. */
  async function agree(plan: string, phase: string): Promise<void> {
    await eventually(async () => {
      const said = JSON.parse(await desk.telos('show', 'second', '--json'));
      assert.equal(said.phase, phase);
      for (const window of [desk, other]) {
        await window?.row(plan).waitFor({ timeout: 2_000 });
        for (const { id, status } of said.stories as { id: string; status: string }[]) {
          const row = await window?.row(id).getAttribute('aria-label', { timeout: 2_000 });
          assert.ok(row?.includes(`, ${status}`), `${row} in a window, ${status} in the terminal`);
        }
      }
    }, 60_000);
  }
});
