/** The page Today: alone in every theme and in 250 pixels, and in a real VS Code after a night, in English and in German. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Frame } from 'playwright-core';
import { loadConfig } from '../../src/engine/config.ts';
import type { Schedule } from '../../src/engine/schedule/schedules.ts';
import { Telos } from '../../src/engine/telos.ts';
import { Journal } from '../../src/plans/journal.ts';
import { MachineSeal } from '../../src/plans/machineSeal.ts';
import type { PageShown } from '../../src/protocol/actionPage.ts';
import type { PlanEvent } from '../../src/protocol/plan.ts';
import { eventually } from '../eventually.ts';
import { sharedChromium } from '../vscode/chromium.ts';
import { type EditorSession, firstStartLimit, openEditorSession } from '../vscode/editorSession.ts';
import { root } from '../vscode/paths.ts';
import { frameWith, runCommand, type Workbench } from '../vscode/workbench.ts';
import { testVariables, type World } from '../vscode/world.ts';
import { buildView, openView, type View, type ViewBundle } from '../webview/harness.ts';
import { themeNames } from '../webview/themes.ts';
import { englishIn, textsIn } from './germanText.ts';

const hour = 3_600_000;
const ago = (ms: number): string => new Date(Date.now() - ms).toISOString();

const scheduleOf = (id: string, request: string, more: Partial<Schedule>): Schedule => ({
  version: 1,
  id,
  request,
  skill: { agent: 'garden', skill: 'barrel' },
  at: 'daily 3:00',
  cwd: '/',
  digest: '',
  missed: 'skip',
  clock: 'none',
  since: ago(0),
  failures: 0,
  ...more,
});

const events: readonly PlanEvent[] = [
  { type: 'plan_created', name: 'bakery', goal: 'Sell bread' },
  { type: 'phase', phase: 'needs_you' },
  {
    type: 'question_parked',
    question: { id: 'q-2', text: 'Which currency do the prices have?' },
  },
  {
    type: 'question_parked',
    question: {
      id: 'q-1',
      text: 'May US-001 use run_command for this? npm publish\nIt reaches the network.',
      choices: ['yes', 'no'],
    },
  },
];

async function night(made: World): Promise<void> {
  const { data, workspace } = made;
  const telos = Telos.open(loadConfig({ env: testVariables(made), home: made.dir }));
  const { digest } = await telos.agentCard('garden');
  const schedules = join(data, 'schedules');
  mkdirSync(schedules, { recursive: true });
  const asked = { dueAt: ago(3 * hour), startedAt: ago(3 * hour), endedAt: ago(3 * hour), pid: 1 };
  const last = {
    ...asked,
    outcome: 'completed' as const,
    needs: ['run_command: curl https://example.org/x'],
  };
  const kept = scheduleOf('sweep', 'sweep the floor', { last, cwd: workspace, digest });
  writeFileSync(join(schedules, 'sweep.json'), JSON.stringify(kept));
  const ended = (outcome: 'completed' | 'failed') => ({ ...asked, outcome });
  const others = { water: ended('completed'), mow: ended('failed') };
  for (const [id, run] of Object.entries(others))
    writeFileSync(
      join(schedules, `${id}.json`),
      JSON.stringify(scheduleOf(id, `${id} the garden`, { last: run, cwd: workspace, digest })),
    );
  const plan = join(workspace, '.telos', 'plans', 'bakery');
  mkdirSync(join(plan, 'prds'), { recursive: true });
  const seal = new MachineSeal(data);
  await seal.ready();
  const journal = await Journal.open(join(plan, 'journal.jsonl'), seal);
  for (const event of events) await journal.append(event);
  await journal.close();
}

const act = (id: string, label: string, isPrimary = false) => ({
  id,
  label,
  about: `${label}: it`,
  isPrimary,
});
const morning: PageShown = {
  title: 'Today',
  cardsTitle: 'Waiting for You',
  sections: [],
  summary: 'Since yesterday, 18:00 · cost $0.4210 · runs of your own: 2',
  problems: ['The plan of /srv/ovens could not be read: journal.jsonl:3 is no event.'],
  actions: [act('day', 'Show Changes of Today...')],
  cards: [
    {
      title: 'The plan bakery asks',
      lines: ['May US-001 use run_command for this? npm publish\nIt reaches the network.', '/srv/bakery'],
      actions: [act('yes', 'yes'), act('no', 'no')],
    },
    {
      title: 'The plan bakery asks',
      lines: ['Which <currency>\u202e do the prices have?', '/srv/bakery'],
      actions: [act('answer', 'Answer...', true)],
    },
    {
      title: 'sweep-the-floor-of-the-bakery-and-the-shop-and-the-yard asked while no one was there',
      lines: ['run_command: curl https://example.org/a-very-long-address/that/does/not/fit/into/one/line'],
      actions: [act('again', 'Run Again', true), act('pause', 'Pause'), act('open', 'Open')],
    },
  ],
  rows: [
    {
      title: 'water the garden',
      when: '3:00 AM',
      facts: ['completed', '$0.0210', 'changed barrel.md'],
      actions: [act('show', 'Open'), act('undo', 'Undo...')],
    },
    {
      title: 'mow the lawn',
      when: '4:00 AM',
      facts: ['failed', 'the mower is away'],
      actions: [act('see', 'Open')],
    },
  ],
};

describe('the page Today, alone', () => {
  let browser: Browser;
  let bundle: ViewBundle;
  let view: View | undefined;
  before(async () => {
    browser = await sharedChromium();
    bundle = await buildView();
  });
  afterEach(async () => {
    await view?.page.close();
    view = undefined;
  });

  const draw = async (more: Partial<PageShown> = {}): Promise<View> => {
    view = await openView(browser, bundle, { entry: 'actionPage', width: 640 });
    await view.say({ type: 'page', page: { ...morning, ...more } });
    return view;
  };
  const acts = async (): Promise<string[]> =>
    ((await view?.asked()) ?? []).flatMap(message => (message.type === 'page_act' ? [message.id] : []));

  it('takes one key for each decision, which the first question has, and none before it could be read', async () => {
    const { page, say } = await draw();
    await page.keyboard.press('1');
    assert.deepEqual(await acts(), [], 'nobody can have read it yet');
    const settled = (name: string) => page.getByRole('button', { name }).hover({ trial: true });
    await settled('yes: it');
    await page.waitForFunction(() => !document.querySelector('.question button[aria-disabled="true"]'));
    await page.keyboard.press('2');
    assert.deepEqual(await acts(), ['no']);
    await say({ type: 'page', page: { ...morning, cards: morning.cards.slice(1) } });
    const keys = await page
      .locator('[aria-keyshortcuts]')
      .evaluateAll(all => all.map(one => one.getAttribute('aria-keyshortcuts')));
    assert.deepEqual(keys, ['1']);
    await page.keyboard.press('2');
    await page.keyboard.press('Control+1');
    assert.deepEqual(await acts(), ['no']);
  });

  it('is read from top to bottom by the keyboard, and shows hidden characters', async () => {
    const { page } = await draw();
    const names: string[] = [];
    for (let count = 0; count < 10; count++) {
      await page.keyboard.press('Tab');
      names.push((await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))) ?? '');
    }
    assert.deepEqual(
      names.map(name => name.replace(': it', '')),
      [
        'Show Changes of Today...',
        'yes',
        'no',
        'Answer...',
        'Run Again',
        'Pause',
        'Open',
        'Open',
        'Undo...',
        'Open',
      ],
    );
    await page.getByText('Which <currency><U+202E> do').waitFor();
  });

  it('has nothing that axe finds fault with, in every theme, and fits into 250 pixels', async function () {
    this.timeout(120_000);
    const axe = await readFile(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
    const faults: string[] = [];
    for (const theme of themeNames) {
      const one = await openView(browser, bundle, { entry: 'actionPage', theme, width: 250 });
      await one.say({ type: 'page', page: morning });
      await one.page.evaluate(axe);
      const found = await one.page.evaluate(async () => {
        const { axe } = window as unknown as {
          axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
        };
        return (await axe.run()).violations.map(({ id, nodes }) => `${id} ${nodes[0]?.html}`);
      });
      faults.push(...found.map(fault => `${theme}: ${fault}`), ...one.problems);
      assert.ok(await one.page.evaluate(() => document.body.scrollWidth <= window.innerWidth));
      await one.page.screenshot({ path: `test-results/today-${theme}.png`, fullPage: true });
      await one.page.close();
    }
    assert.equal(faults.join('\n'), '');
  });
});

describe('the page Today in a real VS Code', () => {
  let session: EditorSession | undefined;
  let world: World;
  let workbench: Workbench;
  let page: Frame;

  before(async function () {
    this.timeout(firstStartLimit);
    session = await openEditorSession({
      model: {
        turns: (_request, index) =>
          index === 0
            ? { toolCalls: [{ name: 'write_file', input: { path: 'barrel.md', content: '# Half full\n' } }] }
            : { text: ['The barrel is half full.'] },
      },
      skills: {
        'garden/agent.toml': 'name = "garden"\ndescription = "rain"\nworking_dir = "."\n',
        'garden/skills/barrel/SKILL.md':
          '---\nname: barrel\ndescription: Rain barrel\n---\nTHE BARREL TEXT\n',
      },
      prepare: night,
    });
    ({ world, workbench } = session);
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed')
      await workbench?.screenshot(`failed-${this.currentTest.title.slice(0, 60).replace(/\W+/g, '-')}`);
  });

  after(() => session?.close());

  it('shows what waits above what ran, and one button answers the plan', async () => {
    await runCommand(workbench.page, 'Telos: Show Today');
    page = await frameWith(workbench, frame => frame.getByRole('heading', { name: 'Waiting for You' }));
    const question = page.getByRole('region', { name: 'The plan bakery asks: May US-001' });
    await question.getByText('It reaches the network.').waitFor();
    await page.getByRole('region', { name: 'The plan bakery asks: Which currency' }).waitFor();
    await page.getByText('run_command: curl https://example.org/x').waitFor();
    const rows = await page.locator('.finish li').allTextContents();
    for (const line of [
      /water the garden.*Completed/,
      /mow the garden.*Failed/,
      /sweep the floor.*Completed · needs input/,
      /Plan bakery.*needs input/,
    ])
      assert.ok(
        rows.some(row => line.test(row)),
        `${line} in ${rows.join('\n')}`,
      );
    assert.equal(rows.length, 4, rows.join('\n'));
    await workbench.screenshot('today');
    await question.getByRole('button', { name: 'yes' }).click();
    await question.waitFor({ state: 'detached' });
    await page.getByRole('region', { name: 'The plan bakery asks: Which currency' }).waitFor();
    await workbench.screenshot('today-answered');
  });

  it('runs a schedule again at once, and undoes what it changed after a question', async () => {
    await page.getByRole('button', { name: 'Run Again: sweep the floor' }).click();
    const file = join(world.workspace, 'barrel.md');
    await eventually(() => assert.ok(existsSync(file)));
    const undo = page.getByRole('button', { name: 'Undo...: sweep the floor' });
    await undo.waitFor();
    await workbench.screenshot('today-ran');
    await undo.click();
    await workbench.page.getByRole('button', { name: 'Undo', exact: true }).click();
    await eventually(() => assert.ok(!existsSync(file)));
    await undo.waitFor({ state: 'detached' });
    await workbench.screenshot('today-undone');
  });

  it('leads to the changes of today, and they lead back', async () => {
    await page.getByRole('button', { name: 'Show Changes of Today...' }).click();
    const list = workbench.page.locator('.quick-input-widget');
    await list.getByText('barrel.md').first().waitFor();
    await runCommand(workbench.page, 'View: Close All Editors');
    await runCommand(workbench.page, 'Telos: Show Changes of Today...');
    await list.locator('.monaco-list-row', { hasText: 'Show Today' }).click();
    page = await frameWith(workbench, frame => frame.getByRole('heading', { name: 'Waiting for You' }));
  });

  it('has a sister for the doctor, which is drawn anew by its button', async () => {
    await runCommand(workbench.page, 'Telos: Doctor');
    const doctor = await frameWith(workbench, frame => frame.locator('details', { hasText: 'Settings' }));
    await workbench.screenshot('doctor-page');
    assert.equal(await doctor.locator('details[open]').count(), 0, 'what is set up is folded');
    const refresh = doctor.getByRole('button', { name: 'Refresh: Telos Doctor' });
    await refresh.click();
    await doctor.locator('main[aria-busy="false"]').waitFor();
    await doctor.getByRole('heading', { name: 'Telos Doctor', level: 1 }).waitFor();
    await runCommand(workbench.page, 'View: Close Editor');
  });

  it('is German in a German window', async function () {
    this.timeout(120_000);
    await workbench.page.addInitScript(() => Object.assign(globalThis, { _VSCODE_NLS_LANGUAGE: 'de' }));
    await workbench.page.reload();
    await workbench.page.waitForSelector('.monaco-workbench');
    await runCommand(workbench.page, 'Telos: Heute anzeigen');
    page = await frameWith(workbench, frame => frame.getByRole('heading', { name: 'Heute', level: 1 }));
    await page.locator('.question').first().waitFor();
    await workbench.screenshot('today-german');
    const read = (path: string): Record<string, string> => JSON.parse(readFileSync(join(root, path), 'utf8'));
    const texts = (await textsIn(page.locator('main'))).flatMap(text => [
      text,
      ...text.split(/ · |, |: |\n/),
    ]);
    assert.deepEqual(englishIn(texts, read('l10n/bundle.l10n.de.json')), []);
  });
});
