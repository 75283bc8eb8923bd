/** A plan and evals on a worker, started from a real VS Code: the database is asked for once, and rows name the worker. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import { acceptWorkerCard } from '../../src/fleet/stories/workerCards.ts';
import { eventually, gate } from '../eventually.ts';
import type { AnthropicTurn, ReceivedRequest } from '../fakes/anthropicServer.ts';
import { type FleetHome, type FleetWorld, openFleet } from '../fleet/fleetWorld.ts';
import { type GitDaemon, startGitDaemon } from '../fleet/gitDaemon.ts';
import { builders, itBuilds, manyStories } from '../fleet/planFleet.ts';
import { answersOf } from '../plan/planWorld.ts';
import { firstStartLimit } from '../vscode/editorSession.ts';
import { root } from '../vscode/paths.ts';
import { chooseInMenu, runCommand } from '../vscode/workbench.ts';
import { PlanDesk } from './planDesk.ts';

const skill = {
  'garden/skills/diary/SKILL.md': '---\nname: diary\ndescription: Sums up the harvest\n---\nTHE DIARY TEXT\n',
  'garden/skills/diary/evals/evals.json': JSON.stringify({
    evals: [
      {
        id: 1,
        prompt: 'Count the plums',
        expected_output: 'A number',
        expectations: [],
        checks: [{ tool: 'write_file', times: { min: 0, max: 0 } }],
      },
    ],
  }),
};

describe('workers in a real VS Code', () => {
  let desk: PlanDesk;
  let fleet: FleetWorld;
  let daemon: GitDaemon;
  let home: FleetHome;
  const [asked, held] = [gate(), gate()];

  const stories = answersOf({
    ...builders,
    coder: (turn, attempt, request) => {
      asked.open();
      const answer = builders['coder']?.(turn, attempt, request) ?? {};
      return { ...answer, ...(turn === 0 && { hold: { behind: '', until: held.opened } }) };
    },
  });
  const turns = (request: ReceivedRequest): AnthropicTurn =>
    JSON.stringify(request.body).includes('THE DIARY TEXT')
      ? { text: ['Nine plums.'] }
      : stories.turns(request);

  before(async function () {
    this.timeout(firstStartLimit);
    fleet = await openFleet();
    daemon = await startGitDaemon();
    desk = await PlanDesk.open({ model: { turns }, skills: skill, variables: {} });
    const url = daemon.repository('bakery');
    desk.git('remote', 'add', 'origin', url);
    await desk.makeOf('site', manyStories(1).stories);
    home = fleet.home(
      Object.fromEntries(Object.entries(skill).map(([path, text]) => [`skills/${path}`, text])),
    );
    const trusted = await home.run(['trust', 'garden', '--yes']);
    assert.equal(trusted.code, 0, trusted.stderr);
    const card = execFileSync(
      process.execPath,
      [join(root, 'dist', 'cli.js'), 'plan', 'approve', 'site', '--card', '--yes', '--json'],
      { ...desk.terminal, encoding: 'utf8' },
    );
    await acceptWorkerCard({ dataDir: home.dataDir }, JSON.parse(card).digest);
    await home.worker(['--label', 'green', '--repository', url], {
      TELOS_PROVIDER: 'anthropic',
      ANTHROPIC_BASE_URL: desk.session.model.url,
      ANTHROPIC_API_KEY: 'key-of-the-worker-0123456789',
    });
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed')
      await desk?.workbench.screenshot(`failed-${this.currentTest.title.slice(0, 60).replace(/\W+/g, '-')}`);
  });

  after(async () => {
    held.open();
    await desk?.close();
    await fleet?.close();
    await daemon?.remove();
  });

  const page = () => desk.workbench.page;
  const dialog = (): Locator => page().locator('.monaco-dialog-box');

  async function press(label: string): Promise<void> {
    await dialog().getByRole('button', { name: label, exact: true }).click({ delay: 150 });
    await dialog().waitFor({ state: 'detached' });
  }

  const runPlan = (): Promise<void> => chooseInMenu(page(), desk.row('site, ready'), 'Run Plan on Workers');

  itBuilds(
    'asks for the database once and for the package, and says which worker has a story',
    async function () {
      this.timeout(240_000);
      await desk.row('site, ready').waitFor();
      await runPlan();
      const input = desk.widget.locator('input');
      await input.fill('nowhere');
      await desk.widget.getByText('is not a PostgreSQL URL').waitFor();
      assert.equal(await input.getAttribute('type'), 'password');
      await input.fill(fleet.postgres.url);
      await page().keyboard.press('Enter');
      // The extension brings no engine for workers.
      await dialog().getByText('npm install --prefix').waitFor();
      await desk.workbench.screenshot('workers-package');
      await press('Cancel');
      const packages = join(desk.world.data, 'packages');
      mkdirSync(packages, { recursive: true });
      symlinkSync(join(root, 'node_modules'), join(packages, 'node_modules'));
      await runPlan();
      await asked.opened;
      await page()
        .getByRole('treeitem', { name: /^US-001 .*working · on green-[\da-f]{6} · attempt 1/ })
        .waitFor({ timeout: 60_000 });
      await desk.workbench.screenshot('workers-plan');
      held.open();
      await desk.row('site, done').waitFor({ timeout: 120_000 });
      assert.equal(desk.git('show', 'telos/site:US-001/work.txt'), 'US-001 done');
    },
  );

  itBuilds('runs evals on a worker, and says on which', async function () {
    this.timeout(240_000);
    await runCommand(page(), 'Focus on Test Explorer View');
    await runCommand(page(), 'Test: Refresh Tests');
    const item = page().locator('.part.sidebar .monaco-list-row', { hasText: 'diary' });
    await item.waitFor();
    await item.click();
    await page().keyboard.press('ArrowRight');
    await page().locator('.part.sidebar .monaco-list-row', { hasText: 'Count the plums' }).waitFor();
    await chooseInMenu(page(), item, 'Execute Using Profile');
    await desk.picked('Run Evals on Workers').click();
    await dialog().getByText('Run 1 eval with').waitFor();
    await desk.workbench.screenshot('workers-evals-question');
    await press('Run on Workers');
    await eventually(async () => {
      const rows = await page().locator('.part.sidebar .monaco-list-row').allTextContents();
      assert.match(rows.join('\n'), /Count the plums.*on green-[\da-f]{6}/);
    }, 60_000);
    await desk.workbench.screenshot('workers-evals');
  });
});
