/** Plans in a German window of a real VS Code: no text of Telos is left in English, from the form of the interview to the merge. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import { firstStartLimit } from '../vscode/editorSession.ts';
import { root } from '../vscode/paths.ts';
import { frameWith } from '../vscode/workbench.ts';
import { englishIn, textsIn } from './germanText.ts';
import { PlanDesk } from './planDesk.ts';

const tableIn = (path: string): Record<string, string> => JSON.parse(readFileSync(join(root, path), 'utf8'));

/** All that Telos can say, its commands and settings too. */
const table: Record<string, string> = {
  ...tableIn('l10n/bundle.l10n.de.json'),
  ...Object.fromEntries(
    Object.entries(tableIn('package.nls.json')).map(([key, english]) => [
      english,
      tableIn('package.nls.de.json')[key] ?? english,
    ]),
  ),
};

describe('plans in a German VS Code', () => {
  let desk: PlanDesk;

  before(async function () {
    this.timeout(firstStartLimit);
    desk = await PlanDesk.open();
    const { page } = desk.workbench;
    await page.addInitScript(() => Object.assign(globalThis, { _VSCODE_NLS_LANGUAGE: 'de' }));
    await page.reload();
    await page.waitForSelector('.monaco-workbench');
    desk.title = 'Pläne';
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed') await desk?.workbench.screenshot('failed-german-plans');
  });

  after(() => desk?.close());

  /** Looks at the places, at the view, and at the status bar. */
  async function isGerman(name: string, ...places: readonly Locator[]): Promise<void> {
    await desk.workbench.screenshot(`german-plans-${name}`);
    const own = [desk.tree, desk.workbench.page.locator('.statusbar-item[id*="telos"]'), ...places];
    const texts = (await Promise.all(own.map(textsIn))).flat();
    const parts = texts.flatMap(text => [text, ...text.split(/ · |, |: |\n/)]);
    assert.deepEqual(englishIn(parts, table), [], `English at ${name}`);
  }

  it('says everything of a plan in German', async function () {
    this.timeout(240_000);
    const { page } = desk.workbench;
    const pane = page.locator('.pane-header', { hasText: 'Pläne' });
    await pane.waitFor();
    if ((await pane.getAttribute('aria-expanded')) !== 'true') await pane.click();
    await isGerman('empty');
    await desk.tree.locator('.monaco-button', { hasText: 'Neuer Plan...' }).click();
    await desk.widget.getByText('Neuer Plan').first().waitFor();
    await isGerman('goal', desk.widget);
    await desk.type('Bakery');
    const chat = await frameWith(desk.workbench, frame => frame.getByText('Was soll Telos wissen?'));
    const many = chat.getByRole('textbox', { name: /From how many rolls on is there a discount/ });
    await many.waitFor();
    await isGerman('form', chat.locator('body'));
    await desk.sends(many, 'bakery, plan.md freigeben');
    await desk.lens('Freigeben').waitFor();
    await isGerman('plan', page.locator('.codelens-decoration'), chat.locator('body'));
    await desk.lens('Freigeben').click();
    const card = await frameWith(desk.workbench, frame =>
      frame.getByRole('heading', { name: 'Bevor bakery startet' }),
    );
    await isGerman('card', card.locator('body'));
    desk.inParallel('bakery');
    await card.getByRole('button', { name: 'Genehmigen und starten' }).click();
    await card.getByRole('button', { name: 'Ausführen', exact: true }).click();
    await desk.row('bakery, läuft').waitFor();
    await isGerman('running', card.locator('body'));
    await desk.row('bakery, fertig · 4/4').waitFor({ timeout: 120_000 });
    await desk.row('US-001').click();
    const story = await frameWith(desk.workbench, frame => frame.getByRole('heading', { name: 'Versuch 2' }));
    await isGerman('story', story.locator('body'));
    await desk.row('bakery, fertig').click({ button: 'right' });
    await page.locator('.context-view .action-label').first().waitFor();
    await isGerman('menu', page.locator('.context-view'));
    await page.keyboard.press('Escape');
    await desk.press(desk.row('bakery, fertig'), 'Bericht anzeigen');
    const report = await frameWith(desk.workbench, frame =>
      frame.getByRole('heading', { name: 'bakery', exact: true }),
    );
    await isGerman('report', report.locator('body'));
    await report.getByRole('button', { name: 'In main zusammenführen' }).click();
    await desk.row('bakery, zusammengeführt').waitFor();
    await report.getByText('In main zusammengeführt').waitFor();
    await isGerman('merged', report.locator('body'));
  });
});
