/** The page of cards as the doctor has it: its buttons and folds by the keyboard, in every theme, in German and in 250 pixels. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import type { PageShown } from '../../src/protocol/actionPage.ts';
import { sharedChromium } from '../vscode/chromium.ts';
import { resultsDir, root } from '../vscode/paths.ts';
import { buildView, openView, type View, type ViewBundle } from '../webview/harness.ts';
import { themeNames } from '../webview/themes.ts';

const act = (id: string, label: string, isPrimary = false) => ({
  id,
  label,
  about: `${label}: Telos Doctor`,
  isPrimary,
});

const doctor: PageShown = {
  title: 'Telos Doctor',
  summary: '1 problem to fix.',
  cardsTitle: 'Problems',
  cards: [
    {
      level: 'error',
      title: 'No key for anthropic is set.',
      lines: [],
      actions: [act('key', 'Set API Key…'), act('model', 'Choose Model…')],
    },
    {
      level: 'warning',
      title: 'The skill scan of papers is not ready.',
      lines: [
        'The program pdf\u202etotext is missing.',
        'Install it with: sudo apt-get install poppler-utils',
      ],
      actions: [],
    },
  ],
  rows: [],
  sections: [
    {
      title: 'Settings',
      rows: [
        ['provider', 'chosen automatically', 'default'],
        ['ANTHROPIC_API_KEY', '(not set)', 'default'],
        ['model', 'claude-sonnet-with-a-very-long-name-2026', '/home/ada/.config/telos/config.toml'],
      ],
    },
    { title: 'Provider', rows: [['none']] },
    { title: 'MCP servers: none', rows: [] },
  ],
  problems: [],
  actions: [act('refresh', 'Refresh', true), act('permissions', 'Manage Permissions...')],
};

describe('the page of the doctor', () => {
  let browser: Browser;
  let bundle: ViewBundle;
  const views: View[] = [];

  before(async () => {
    bundle = await buildView();
    browser = await sharedChromium();
    await mkdir(resultsDir, { recursive: true });
  });

  afterEach(async () => {
    for (const { page, problems } of views.splice(0)) {
      await page.close();
      assert.deepEqual(problems, []);
    }
  });

  async function open(options: Parameters<typeof openView>[2] = {}): Promise<View> {
    const view = await openView(browser, bundle, { entry: 'actionPage', width: 700, ...options });
    views.push(view);
    await view.say({ type: 'page', page: doctor });
    return view;
  }

  it('says first what does not work, with a button for what helps, and folds the rest', async () => {
    const { page, asked } = await open();
    const broken = page.getByRole('region', { name: 'No key for anthropic is set.' });
    await broken.getByRole('img', { name: 'Error' }).waitFor();
    await page.getByText('pdf<U+202E>totext').waitFor();
    const key = broken.getByRole('button', { name: 'Set API Key…: Telos Doctor' });
    await key.hover({ trial: true });
    await page.waitForFunction(() => !document.querySelector('.question button[aria-disabled="true"]'));
    await page.keyboard.press('1');
    assert.deepEqual((await asked()).at(-1), { type: 'page_act', id: 'key' });
    const path = page.getByText('/home/ada/.config/telos/config.toml');
    assert.equal(await path.isVisible(), false);
    await page.locator('summary', { hasText: 'Settings' }).press('Enter');
    assert.equal(await path.isVisible(), true);
    assert.equal(
      await page.locator('summary', { hasText: 'MCP servers: none' }).count(),
      0,
      'nothing to unfold',
    );
  });

  it('says that it checks anew, and keeps what it has found until then', async () => {
    const { page, say } = await open();
    await say({ type: 'page', page: { ...doctor, summary: 'Checking the setup of Telos', isBusy: true } });
    await page.locator('main[aria-busy="true"]').waitFor();
    await page.getByRole('status').getByText('Checking the setup of Telos').waitFor();
    await page.getByText('No key for anthropic is set.').waitFor();
  });

  it('has nothing that axe finds fault with, in every theme, unfolded, and fits into 250 pixels', async function () {
    this.timeout(5 * 60_000);
    const axe = await readFile(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
    const words = JSON.parse(readFileSync(join(root, 'l10n/bundle.l10n.de.json'), 'utf8'));
    for (const theme of themeNames)
      for (const width of [250, 700]) {
        const { page } = await open({ theme, width, language: { tag: 'de', words } });
        for (const summary of await page.locator('summary').all()) await summary.press('Enter');
        await page.getByRole('img', { name: 'Fehler' }).waitFor();
        await page.evaluate(axe);
        const findings = await page.evaluate(async () => {
          const { axe } = window as unknown as {
            axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
          };
          return (await axe.run()).violations.map(({ id, nodes }) => `${id} ${nodes[0]?.html}`);
        });
        await page.screenshot({ path: join(resultsDir, `doctor-${theme}-${width}.png`), fullPage: true });
        assert.deepEqual(findings, [], `${theme}, ${width}`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${theme}: ${wide} pixels too wide`);
      }
  });
});
