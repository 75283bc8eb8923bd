/** *Try a Plan* in a real VS Code: from the empty view to the report, without a model and without touching the person's folders. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../eventually.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import { firstStartLimit, openEditorSession } from '../vscode/editorSession.ts';
import { anotherWindow, frameWith, runCommand } from '../vscode/workbench.ts';
import { PlanDesk } from './planDesk.ts';

describe('Try a Plan in a real VS Code', () => {
  let first: PlanDesk;
  let desk: PlanDesk | undefined;
  let temporary: TempFolder;

  before(async function () {
    this.timeout(firstStartLimit);
    temporary = tempFolder();
    const variables = { TMPDIR: temporary.path, XDG_CACHE_HOME: join(temporary.path, 'cache') };
    first = new PlanDesk(
      await openEditorSession({
        model: { turns: [] },
        skills: {},
        workspace: { 'mine.txt': 'mine' },
        variables,
      }),
    );
    await runCommand(first.workbench.page, 'Focus on Plans View');
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed')
      for (const one of [first, desk])
        console.error(await one?.workbench.screenshot(`try-a-plan-failed-${Number(one === desk)}`));
    await desk?.workbench.close();
    desk = undefined;
  });

  after(async () => {
    await first?.close();
    temporary.remove();
  });

  /** Where the demo's project lies. */
  function project(): string {
    const [made = ''] = readdirSync(temporary.path).filter(name => name.startsWith('telos-plan-'));
    return join(temporary.path, made, 'bakery');
  }

  it('opens a window with a plan to approve, plays it with real checks after the yes, and ends with its report', async function () {
    this.timeout(240_000);
    await first.tree.getByText('There are no plans yet.').waitFor();
    const window = await anotherWindow(first.workbench, () =>
      first.tree.getByRole('button', { name: 'Try a Plan' }).click(),
    );
    desk = new PlanDesk(first.session, {}, window);
    await desk.row('bakery, approve to start').waitFor();
    const card = await frameWith(window, frame =>
      frame.getByRole('heading', { name: 'Before bakery starts' }),
    );
    await card.getByText('node --test', { exact: true }).waitFor();
    await window.page.locator('.tab', { hasText: 'plan.md' }).waitFor();
    await window.screenshot('try-a-plan-card');
    await card.getByRole('button', { name: 'Approve and Start' }).click();
    const report = await frameWith(window, frame =>
      frame.getByRole('heading', { name: 'bakery', exact: true }),
    );
    await desk.row('bakery, done · 4/4').waitFor({ timeout: 120_000 });
    await report.getByRole('button', { name: 'Merge into main' }).waitFor();
    await window.screenshot('try-a-plan-report');
    const journal = readFileSync(join(project(), '.telos', 'plans', 'bakery', 'journal.jsonl'), 'utf8');
    for (const status of ['denied', 'conflict']) assert.match(journal, new RegExp(`"status":"${status}"`));
    assert.match(journal, /"type":"check_ended".*"exitCode":0/);
    // No model was asked, although a key is set, and nothing was written into the person's folder.
    assert.equal(first.session.model.requests.length, 0);
    assert.deepEqual(readdirSync(first.world.workspace), ['mine.txt']);
  });

  it('is a step of the walkthrough, which has a picture and is done once the plan was tried', async () => {
    const { page } = first.workbench;
    // Where there is little room, the editor leaves the picture out.
    await page.setViewportSize({ width: 1760, height: 860 });
    // A view that has just loaded can take the focus, which closes the list.
    await eventually(async () => {
      await runCommand(page, 'Welcome: Open Walkthrough...');
      await first.picked('Get Started with Telos').click({ timeout: 5_000 });
    }, 60_000);
    const step = page.locator('.getting-started-step', { hasText: 'Get something large done' });
    await step.locator('.step-title').click();
    const picture = page.locator('.getting-started-media img');
    await picture.waitFor();
    await eventually(async () =>
      assert.ok(await picture.evaluate(image => (image as HTMLImageElement).naturalWidth > 0)),
    );
    await first.workbench.screenshot('try-a-plan-walkthrough');
    const window = await anotherWindow(first.workbench, () =>
      step.getByRole('button', { name: 'Try a Plan' }).click(),
    );
    desk = new PlanDesk(first.session, {}, window);
    await desk.row('bakery, approve to start').waitFor();
    await step.locator('.codicon-getting-started-step-checked.complete').waitFor();
  });
});
