/** A plan in a real VS Code by the keyboard alone: begun, asked about, approved, accepted, run, looked at and merged. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { Frame } from 'playwright-core';
import { eventually } from '../eventually.ts';
import { firstStartLimit } from '../vscode/editorSession.ts';
import { frameWith } from '../vscode/workbench.ts';
import { PlanDesk } from './planDesk.ts';

describe('a plan by the keyboard alone', () => {
  let desk: PlanDesk;

  before(async function () {
    this.timeout(firstStartLimit);
    desk = await PlanDesk.open();
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed') await desk?.workbench.screenshot('failed-plan-keyboard');
  });

  after(() => desk?.close());

  const press = (key: string): Promise<void> => desk.workbench.page.keyboard.press(key);

  /** Runs a command from the palette, once it stands first. */
  async function command(title: string): Promise<void> {
    const first = desk.widget.locator('.monaco-list-row.focused', { hasText: title });
    await eventually(async () => {
      await press('F1');
      await desk.widget.locator('input[type="text"]').waitFor({ timeout: 3_000 });
      await desk.workbench.page.keyboard.type(title);
      await first.waitFor({ timeout: 5_000 });
    }, 60_000);
    await press('Enter');
  }

  const focused = (frame: Frame): Promise<string> =>
    frame.evaluate(() => (document.hasFocus() ? (document.activeElement?.textContent ?? '') : ''));

  /** Goes to the next place until it is the wanted one. */
  async function tabTo(frame: Frame, label: string, key = 'Tab'): Promise<void> {
    for (let steps = 0; steps < 60; steps++) {
      if ((await focused(frame)) === label)
        return eventually(async () =>
          assert.notEqual(
            await frame.evaluate(() => document.activeElement?.getAttribute('aria-disabled')),
            'true',
          ),
        );
      await press(key);
    }
    assert.fail(`"${label}" cannot be reached; at last "${await focused(frame)}" had the focus`);
  }

  it('goes from its goal to the merge', async function () {
    this.timeout(240_000);
    const { page } = desk.workbench;
    // A view that loads just then takes the focus.
    await eventually(async () => {
      await command('Telos: New Plan...');
      await desk.widget.getByText('What do you want to build?').waitFor({ timeout: 5_000 });
      await page.keyboard.type('Bakery');
      assert.equal(await desk.widget.locator('input[type="text"]').inputValue(), 'Bakery');
    }, 60_000);
    await press('Enter');
    const chat = await frameWith(desk.workbench, frame => frame.getByText('What should Telos know?'));
    // The form takes no focus by itself.
    await eventually(async () => {
      await press('Control+Enter');
      assert.equal(
        await chat.evaluate(() => document.hasFocus() && document.activeElement?.tagName),
        'INPUT',
      );
    });
    await desk.workbench.screenshot('plan-keyboard-form');
    await press('Enter');
    await desk.lens('Approve').waitFor();
    await command('Telos: Approve plan.md');
    const card = await frameWith(desk.workbench, frame =>
      frame.getByRole('heading', { name: 'Before bakery starts' }),
    );
    desk.inParallel('bakery');
    await tabTo(card, 'Approve and Start');
    await press('Enter');
    await card.getByText('Approved. This applies').waitFor();
    await tabTo(card, 'Run');
    await press('Enter');
    await desk.row('bakery, done · 4/4').waitFor({ timeout: 120_000 });
    // The button has gone; the page has the focus still.
    assert.equal(await focused(card), 'Before bakery starts');
    await command('Focus on Plans View');
    await eventually(async () => {
      if ((await desk.row('US-001').getAttribute('class'))?.includes('focused')) return;
      await press('ArrowDown');
      assert.fail('US-001 has not the focus');
    });
    await press('Enter');
    const story = await frameWith(desk.workbench, frame => frame.getByRole('heading', { name: 'Attempt 2' }));
    await tabTo(story, 'Show Changes');
    await desk.workbench.screenshot('plan-keyboard-story');
    await press('Enter');
    await page.locator('.multiDiffEntry').first().waitFor();
    await command('Telos: Show Report');
    const report = await frameWith(desk.workbench, frame =>
      frame.getByRole('heading', { name: 'bakery', exact: true }),
    );
    await tabTo(report, 'Merge into main');
    await press('Enter');
    await desk.row('bakery, merged').waitFor();
    await report.getByText('Merged into main').waitFor();
    assert.equal(await focused(report), 'bakery');
    await desk.workbench.screenshot('plan-keyboard-merged');
    assert.equal(desk.git('rev-parse', 'HEAD'), desk.git('rev-parse', 'telos/bakery'));
    assert.match(readFileSync(desk.file('bakery', 'interview.md'), 'utf8'), /\nA: 10 % from ten rolls on\n/);
  });
});
