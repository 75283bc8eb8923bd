/**
 * What a person decides on a plan in a real VS Code: what a story is told, asked and made to do, what the plan may cost, and how it is
 * ended. Each test has a plan of its own, and a model that answers as it wants.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Frame } from 'playwright-core';
import { eventually, gate } from '../eventually.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import {
  agreeable,
  answersOf,
  approves,
  calls,
  denies,
  once,
  type StepModel,
  type StoryText,
  writes,
} from '../plan/planWorld.ts';
import { firstStartLimit } from '../vscode/editorSession.ts';
import { chooseInMenu, frameWith, runCommand } from '../vscode/workbench.ts';
import { PlanDesk } from './planDesk.ts';

const hours: StoryText = { id: 'US-001', title: 'Hours', touches: ['src/hours.js'] };
const builds: StepModel = { ...agreeable, coder: once(writes({ 'src/hours.js': '7\n' })) };

describe('what a person decides on a plan', function () {
  this.timeout(180_000);
  let desk: PlanDesk;
  let programs: TempFolder;
  let model = answersOf(builds);
  let count = 0;

  before(async function () {
    this.timeout(firstStartLimit);
    programs = tempFolder();
    // The gh of this machine is not called.
    for (const name of ['git', 'sh', 'node', 'ps', 'env', 'ls'])
      symlinkSync(where(name), join(programs.path, name));
    desk = await PlanDesk.open({
      model: { turns: request => model.turns(request) },
      variables: { TELOS_PROVIDER: 'anthropic', PATH: programs.path },
      // VS Code asks a login shell for the path.
      prepare: ({ dir }) => writeFileSync(join(dir, '.profile'), `PATH='${programs.path}'\n`),
    });
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed')
      await desk?.workbench.screenshot(`failed-${this.currentTest.title.slice(0, 60).replace(/\W+/g, '-')}`);
  });

  after(async () => {
    await desk?.close();
    programs?.remove();
  });

  /** Makes a plan, the only one in the view, and closes the pages of the others. */
  async function plan(stories: readonly StoryText[], answers: StepModel, settings = {}): Promise<string> {
    model = answersOf(answers);
    if (count > 0) rmSync(join(desk.world.workspace, '.telos'), { recursive: true, force: true });
    desk.git('checkout', '--quiet', 'main');
    await runCommand(desk.workbench.page, 'View: Close All Editors');
    const name = `plan-${++count}`;
    await desk.makeOf(name, stories, settings);
    await desk.row(`${name}, ready`).waitFor();
    return name;
  }

  const run = (name: string): Promise<void> => desk.press(desk.row(name), 'Run Plan');

  async function report(name: string): Promise<Frame> {
    await runCommand(desk.workbench.page, 'Telos: Show Report');
    return frameWith(desk.workbench, one => one.getByRole('heading', { name, level: 1, exact: true }));
  }

  /** The page of a story, on which everything can be pressed that a person can do to it. */
  async function storyPage(name: string, id = 'US-001'): Promise<Frame> {
    const page = await report(name);
    const summary = page.getByRole('region', { name: new RegExp(`^${id} `) });
    await summary.getByRole('button', { name: 'Show Attempts and Output' }).click();
    return frameWith(desk.workbench, one =>
      one.getByRole('heading', { name: new RegExp(`^${id} `), level: 1 }),
    );
  }

  /** Says yes in the dialog that a button of a page opens. */
  async function agree(question: string | RegExp, yes: string): Promise<void> {
    const dialog = desk.workbench.page.locator('.monaco-dialog-box');
    await dialog.getByText(question).waitFor();
    await dialog.getByRole('button', { name: yes, exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
  }

  const badge = () =>
    desk.workbench.page.locator('.activitybar .action-item', { hasText: '' }).locator('.badge-content');

  it('makes one commit of all that passed', async () => {
    const name = await plan([hours], builds);
    const before = desk.git('rev-parse', 'HEAD');
    await run(name);
    await desk.row(`${name}, done · 1/1`).waitFor();
    const page = await report(name);
    await page.getByRole('button', { name: 'Squash into main' }).click();
    await desk.row(`${name}, merged`).waitFor();
    await page.getByText('Merged into main').waitFor();
    assert.equal(desk.git('rev-parse', 'HEAD^'), before);
    assert.equal(desk.git('log', '-1', '--format=%(trailers:key=Telos-Plan,valueonly)').trim(), name);
    assert.equal(readFileSync(join(desk.world.workspace, 'src/hours.js'), 'utf8'), '7\n');
    assert.equal(desk.git('status', '--porcelain', '--', ':!.telos'), '');
    desk.git('reset', '--quiet', '--hard', before);
  });

  it('asks before it publishes, and says what is missing: a remote, or gh', async () => {
    const name = await plan([hours], builds);
    const remote = join(desk.world.dir, 'remote.git');
    await run(name);
    await desk.row(`${name}, done · 1/1`).waitFor();
    const page = await report(name);
    const publish = page.getByRole('button', { name: 'Open Pull Request...' });
    const question = `Open a pull request for telos/${name}?`;
    await publish.click();
    await agree(question, 'Open Pull Request');
    await page.getByRole('alert').getByText('The repository has no remote').waitFor();
    await desk.workbench.screenshot('plan-no-remote');
    execFileSync('git', ['init', '--quiet', '--bare', remote]);
    desk.git('remote', 'add', 'origin', remote);
    const pushed = () =>
      execFileSync('git', ['for-each-ref', '--format=%(objectname)'], {
        cwd: remote,
        encoding: 'utf8',
      }).trim();
    await publish.click();
    await agree(question, 'Cancel');
    assert.equal(pushed(), '');
    await publish.click();
    await agree(question, 'Open Pull Request');
    await desk.workbench.page
      .getByText(`Pushed telos/${name} to origin. gh is not installed`)
      .first()
      .waitFor();
    assert.equal(pushed(), desk.git('rev-parse', `telos/${name}`));
    await desk.workbench.screenshot('plan-pushed');
    writeFileSync(join(programs.path, 'gh'), '#!/bin/sh\necho https://example.com/pull/1\n');
    chmodSync(join(programs.path, 'gh'), 0o755);
    await publish.click();
    await agree(question, 'Open Pull Request');
    await desk.workbench.page.getByText('The pull request is open.').first().waitFor();
    await page.getByText('Pushed for a pull request').waitFor();
    rmSync(join(programs.path, 'gh'));
    desk.git('remote', 'remove', 'origin');
    rmSync(remote, { recursive: true });
  });

  it('splits a story into smaller ones', async () => {
    const part = (title: string, file: string) =>
      calls('submit_story', {
        title,
        criteria: [`${file} is there`],
        touches: [file],
        checks: [{ name: 'tests', command: 'node --test' }],
      }).toolCalls ?? [];
    const name = await plan([hours], {
      ...agreeable,
      'US-001 split': once({
        toolCalls: [...part('Weekdays', 'src/week.js'), ...part('Sundays', 'src/sunday.js')],
      }),
      'US-001a coder': once(writes({ 'src/week.js': '1\n' })),
      'US-001b coder': once(writes({ 'src/sunday.js': '2\n' })),
    });
    const page = await storyPage(name);
    await page.getByRole('button', { name: 'Split...' }).click();
    await agree('Split US-001 Hours?', 'Split');
    await run(name);
    await desk.row(`${name}, done · 2/2`).waitFor();
    await desk.row('US-001a Weekdays, passed').waitFor();
    await desk.row('US-001b Sundays, passed').waitFor();
    await desk.workbench.screenshot('plan-split');
  });

  it('rests at its budget, and goes on once that is raised', async () => {
    const second: StoryText = { id: 'US-002', title: 'Prices', touches: ['src/price.js'] };
    const dear = { ...writes({ 'src/hours.js': '7\n' }), usage: { output_tokens: 20_000 } };
    const name = await plan(
      [hours, second],
      { ...agreeable, 'US-001 coder': once(dear), 'US-002 coder': once(writes({ 'src/price.js': '1\n' })) },
      { limits: { maxCost: 0.01 } },
    );
    await run(name);
    await desk.row(`${name}, paused`).waitFor();
    await runCommand(desk.workbench.page, 'Telos: Raise Budget...');
    await desk.widget.getByText('In US dollars, on top of its limit').waitFor();
    await desk.type('no');
    await desk.widget.getByText('Enter an amount such as 5 or 0.50.').waitFor();
    await desk.type('1');
    await desk.workbench.page.getByText('is not running. This takes effect when it runs.').first().waitFor();
    await run(name);
    await desk.row(`${name}, done · 2/2`).waitFor();
  });

  it('begins a story anew that has passed', async () => {
    const name = await plan([hours], {
      ...agreeable,
      coder: (turn, attempt) =>
        turn === 0 ? writes({ 'src/hours.js': `${attempt}\n` }) : { text: ['Done.'] },
    });
    await run(name);
    await desk.row(`${name}, done · 1/1`).waitFor();
    const page = await storyPage(name);
    await page.getByRole('button', { name: 'Redo...' }).click();
    await agree('Redo US-001 Hours?', 'Redo');
    await desk.workbench.page.getByText('is not running. This takes effect when it runs.').first().waitFor();
    // Also once the notice is gone.
    await chooseInMenu(desk.workbench.page, desk.row(`${name}, done`), 'Run Plan');
    await page.getByRole('heading', { name: 'Attempt 2' }).waitFor();
    // The row may still say of the first attempt that it is done.
    await eventually(() => assert.equal(desk.git('show', `telos/${name}:src/hours.js`), '2'));
    await desk.row(`${name}, done · 1/1`).waitFor();
  });

  it('accepts a story that changes nothing, and is then done', async () => {
    const name = await plan([hours], { ...agreeable, coder: () => ({ text: ['It is all there.'] }) });
    await run(name);
    await desk.row(`${name}, needs input`).waitFor();
    await desk.row('US-001 Hours, needs input').waitFor();
    const page = await storyPage(name);
    await desk.workbench.screenshot('plan-stuck');
    await page.getByRole('button', { name: 'Accept...' }).click();
    await agree('Accept US-001 Hours?', 'Accept');
    await run(name);
    await desk.row('US-001 Hours, accepted by you').waitFor();
    await desk.row(`${name}, done · 1/1`).waitFor();
  });

  it('counts truly in the status bar and on the badge: a denied story, a question, its answer, also after a reload', async () => {
    const { opened, open } = gate();
    const second: StoryText = { id: 'US-002', title: 'Currency', touches: ['src/price.js'] };
    const name = await plan(
      [hours, second],
      {
        'US-001 coder': (turn, attempt) =>
          turn === 0
            ? writes({ 'src/hours.js': `${attempt}\n` })
            : { text: ['Done.'], ...(attempt > 1 && { hold: { behind: 'Done.', until: opened } }) },
        'US-001 reviewer': (turn, attempt) =>
          turn > 0 ? { text: ['Done.'] } : attempt === 1 ? denies('It has no Sundays.') : approves(),
        'US-002 coder': (turn, _attempt, request) =>
          JSON.stringify(request.body.messages).includes('Swiss francs')
            ? turn % 2 === 0
              ? writes({ 'src/price.js': 'chf\n' })
              : { text: ['Done.'] }
            : turn === 0
              ? calls('ask_person', { question: 'Which currency?', choices: ['Euro', 'Swiss francs'] })
              : { text: ['I wait.'] },
        'US-002 reviewer': once(approves()),
      },
      { parallel: 1 },
    );
    const { page } = desk.workbench;
    await run(name);
    await desk.row('US-001 Hours, working · attempt 2').waitFor();
    const text = async () => (await desk.status('0/2').textContent())?.replace(/\s+/g, ' ').trim();
    await eventually(async () => assert.match((await text()) ?? '', /^0\/2 · \$0\.\d+$/), 60_000);
    assert.equal(await badge().filter({ hasText: '1' }).count(), 0);
    await desk.workbench.screenshot('plan-status-denied');
    open();
    await desk.row(`${name}, needs input · 1/2`).waitFor();
    await desk.status('1/2').waitFor();
    const shown = (await desk.status('1/2').textContent()) ?? '';
    assert.match(shown, /^\s*1\/2 · \$0\.\d+ · 1 needs input\s*$/);
    await page.locator('.activitybar .badge-content', { hasText: '1' }).waitFor();
    await desk.workbench.screenshot('plan-status-question');
    await page.reload();
    await page.waitForSelector('.monaco-workbench');
    await desk.status('1/2').waitFor();
    assert.equal(await desk.status('1/2').textContent(), shown);
    await page.locator('.activitybar .badge-content', { hasText: '1' }).waitFor();
    await runCommand(page, 'Focus on Plans View');
    await desk.press(desk.row('Question, Which currency?'), 'Answer');
    await desk.picked('Swiss francs').click();
    await run(name);
    await desk.row(`${name}, done · 2/2`).waitFor();
    assert.equal(desk.git('show', `telos/${name}:src/price.js`), 'chf');
    await desk.status('needs input').waitFor({ state: 'detached' });
    await page.locator('.activitybar .badge-content', { hasText: '1' }).waitFor({ state: 'detached' });
  });
});

const where = (name: string): string =>
  execFileSync('/bin/sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
