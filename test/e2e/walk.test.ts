/**
 * The first hour of a newcomer in a real VS Code, in English and in German, on a machine without a skill and without a key. Each step
 * leaves a picture in test-results. It takes minutes, so it runs with TELOS_WALK=1 alone.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Frame, Locator, Page } from 'playwright-core';
import { mendText } from '../../src/engine/skills/lint.ts';
import { eventually, gate } from '../eventually.ts';
import { type AnthropicTurn, startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { fetchCodeServer } from '../vscode/codeServer.ts';
import { firstStartLimit } from '../vscode/editorSession.ts';
import { root } from '../vscode/paths.ts';
import { startServer } from '../vscode/server.ts';
import { frameWith, openWorkbench, runCommand, type Workbench } from '../vscode/workbench.ts';
import { freshWorld, testVariables, type World } from '../vscode/world.ts';
import { englishIn, textsIn } from './germanText.ts';

const table = (file: string): Record<string, string> => JSON.parse(readFileSync(join(root, file), 'utf8'));
const bundle = table('l10n/bundle.l10n.de.json');
const titles = { en: table('package.nls.json'), de: table('package.nls.de.json') };

const rightKey = 'sk-ant-right-0123456789';
/** A value with a colon, which YAML takes for another key. */
const defective = '---\nname: sums\ndescription: fix: the sums of the month\n---\nMend them.\n';
const deadServer = {
  'agent.toml': 'name = "radio"\ndescription = "Plays stations"\n',
  'mcp.json': JSON.stringify({ mcpServers: { stations: { command: 'program-that-is-missing' } } }),
  'skills/tune/SKILL.md': '---\nname: tune\ndescription: Tunes to a station\n---\nTune.\n',
};
const tidy =
  '---\nname: tidy\ndescription: Tidies up notes and the files around them\n---\nTidy up what the person names.\n';

for (const language of process.env['TELOS_WALK'] ? (['en', 'de'] as const) : []) {
  describe(`the first hour in the editor, ${language}`, function () {
    this.timeout(3 * 60_000);
    let world: World;
    let model: FakeServer;
    let workbench: Workbench;
    let page: Page;
    let chat: Frame;
    let answer: () => AnthropicTurn = () => ({ text: ['Done.'] });
    let step = 0;
    const undo: (() => unknown)[] = [];

    /** The text in the language of the walk. */
    const t = (text: string, ...values: string[]): string => {
      const said = language === 'de' ? bundle[text] : text;
      assert.ok(said !== undefined, `no German for ${text}`);
      return said.replace(/\{(\d)\}/g, (_, index) => values[Number(index)] ?? '');
    };

    before(async function () {
      this.timeout(firstStartLimit);
      const vscode = await fetchCodeServer(console.log, AbortSignal.timeout(firstStartLimit));
      model = await startAnthropicServer({ turns: () => answer(), chunkDelayMs: 20, key: rightKey });
      undo.push(() => model.close());
      const nothing = tempFolder({});
      const work = tempFolder({
        'prices.py': 'def total(a, b):\n    return a - b\n',
        'notes.md': '# Notes\n\n- water the roses\n- water the roses\n',
      });
      world = await freshWorld({ skills: nothing.path, workspace: work.path });
      nothing.remove();
      work.remove();
      undo.push(() => world.remove());
      const server = await startServer({
        vscode,
        profile: world.profile,
        extensions: world.extensions,
        folder: world.workspace,
        port: 0,
        env: {
          ...testVariables(world),
          ANTHROPIC_BASE_URL: model.url,
          OLLAMA_BASE_URL: 'http://127.0.0.1:9',
          TELOS_ROUTING_MODE: 'local',
        },
        trusted: true,
      });
      undo.push(() => server.stop());
      workbench = await openWorkbench(server.url, async opened => {
        if (language === 'de')
          await opened.addInitScript(() => Object.assign(globalThis, { _VSCODE_NLS_LANGUAGE: 'de' }));
      });
      undo.push(() => workbench.close());
      page = workbench.page;
      chat = await theChat();
    });

    afterEach(async function () {
      if (this.currentTest?.state === 'failed')
        await workbench?.screenshot(`walk-${language}-failed-${step}`);
    });

    after(async () => {
      for (const one of undo.splice(0).reverse()) await one();
    });

    async function theChat(): Promise<Frame> {
      for (let tries = 0; tries < 900; tries++) {
        for (const frame of page.frames())
          if (
            (await frame
              .locator('textarea')
              .count()
              .catch(() => 0)) > 0 &&
            (await frame.locator('.composer').count()) > 0
          )
            return frame;
        await page.waitForTimeout(100);
      }
      throw new Error('no chat appeared');
    }

    /** Keeps a picture, and finds no sentence of Telos in English in a German window. */
    async function seen(name: string): Promise<void> {
      step += 1;
      await page.waitForTimeout(400);
      await workbench.screenshot(`walk-${language}-${String(step).padStart(2, '0')}-${name}`);
      if (language !== 'de') return;
      const places = [
        chat.locator('body'),
        page.locator('.quick-input-widget:visible'),
        page.locator('.notifications-toasts'),
      ];
      // A chat that is out of sight has no page.
      const texts = (await Promise.all(places.map(place => textsIn(place).catch(() => [])))).flat();
      assert.deepEqual(englishIn(texts, bundle), [], `English in the German window at ${name}`);
    }

    const textbox = () => chat.locator('textarea');
    const log = () => chat.getByRole('log');
    const button = (name: string | RegExp) => chat.getByRole('button', { name });
    const input = () =>
      page
        .locator('.quick-input-widget input[type="text"], .quick-input-widget input[type="password"]')
        .first();
    const row = (words: string | RegExp): Locator =>
      page.locator('.quick-input-list .monaco-list-row', { hasText: words }).first();
    const ends = () => chat.locator('.end');
    const toast = () => page.locator('.notification-toast', { hasText: 'Telos' }).first();

    /** Takes a row of a list. Its own tooltip may lie over it, until the mouse is elsewhere. */
    async function take(of: Locator): Promise<void> {
      await eventually(async () => {
        await page.mouse.move(640, 500);
        await of.click({ timeout: 2_000 });
      });
    }

    /** Makes the chat as wide as this, by dragging its edge. */
    async function chatWidth(width: number): Promise<void> {
      const { x, y, width: now, height } = (await page.locator('.part.auxiliarybar').boundingBox())!;
      await page.mouse.move(x - 2, y + height / 2);
      await page.mouse.down();
      await page.mouse.move(x - 2 + now - width, y + height / 2, { steps: 8 });
      await page.mouse.up();
      await page.mouse.move(640, 500);
    }

    /** Fails if something in the chat is wider than its view. */
    async function fits(): Promise<void> {
      const [wide, view] = await chat.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wide! <= view!, `${wide} pixels in a view of ${view}`);
    }

    async function command(id: string): Promise<void> {
      const title = `Telos: ${titles[language][`${id}.title`]}`;
      for (let tries = 6; tries > 0; tries--) {
        await page.keyboard.press('F1');
        try {
          await input().fill(`>${title}`, { timeout: 5_000 });
          // A click could meet another row while the list still sorts itself.
          await page
            .locator('.quick-input-list .monaco-list-row.focused', { hasText: title })
            .waitFor({ timeout: 10_000 });
          await page.keyboard.press('Enter');
          return;
        } catch (error) {
          if (tries === 1) throw error;
          await page.keyboard.press('Escape');
        }
      }
    }

    async function say(text: string): Promise<void> {
      await textbox().fill(text);
      await button(t('Send')).and(chat.locator(':enabled')).waitFor();
      await textbox().press('Enter');
    }

    async function closeToasts(): Promise<void> {
      for (const one of await page.locator('.notification-toast').all()) {
        await one.hover({ timeout: 2_000 }).catch(() => undefined);
        await one
          .locator('.codicon-notifications-clear')
          .click({ timeout: 2_000 })
          .catch(() => undefined);
      }
    }

    it('begins with an empty view that offers the sample and a model', async () => {
      await button(t('Try the Sample')).waitFor();
      await page
        .getByText(titles[language]['telos.trySample.title'] ?? '')
        .first()
        .waitFor();
      await seen('empty');
    });

    it('says which agents there are not', async () => {
      await say('tidy my notes');
      await ends().first().waitFor();
      await seen('no-skill');
    });

    it('makes a first skill', async () => {
      await command('telos.newSkill');
      await input().fill('personal');
      await seen('new-agent');
      await page.keyboard.press('Enter');
      await page.waitForTimeout(500);
      await input().fill('tidy');
      await seen('new-skill');
      await page.keyboard.press('Enter');
      await page.locator('.tab', { hasText: 'SKILL.md' }).waitFor();
      await page.waitForTimeout(1500);
      await seen('new-skill-file');
      await writeFile(join(world.skills, 'personal', 'skills', 'tidy', 'SKILL.md'), tidy);
      await writeFiles(join(world.skills, 'personal'), {
        'skills/weekly-report/SKILL.md':
          '---\nname: weekly-report\ndescription: Writes the report of the week\nmetadata: {"openclaw": {"requires": {"bins": ["pandoc-that-is-missing"]}}}\n---\nWrite it.\n',
      });
      await page.getByRole('treeitem', { name: /weekly-report/ }).waitFor();
      await seen('tree');
    });

    it('says what helps without a model', async () => {
      await say('/tidy my notes');
      await button(t('Set API Key…')).last().waitFor();
      await button(t('Choose Model…')).last().waitFor();
      await seen('no-model');
    });

    it('refuses a wrong key, takes the right one, and offers the models', async () => {
      await button(t('Set API Key…')).last().click();
      await row('Anthropic').waitFor();
      await seen('which-provider');
      await take(row('Anthropic'));
      await input().fill('sk-ant-wrong');
      await seen('enter-key');
      await page.keyboard.press('Enter');
      await page
        .getByText(t('{0} rejected this key. Check it, or enter another one.', 'Anthropic'))
        .first()
        .waitFor();
      await seen('key-refused');
      await input().fill(rightKey);
      await page.keyboard.press('Enter');
      await row('claude').waitFor();
      await seen('choose-model');
      await take(row('claude'));
      await closeToasts();
    });

    it('asks before a command runs', async () => {
      let round = 0;
      answer = () =>
        [
          {
            text: ['I look at what the tests say.'],
            toolCalls: [{ name: 'run_command', input: { command: 'npm test -- --reporter dot' } }],
          },
          { toolCalls: [{ name: 'run_command', input: { command: 'rm -rf ../other && echo gone' } }] },
          { text: ['I left the folder as it is.'] },
        ][round++] ?? { text: ['Done.'] };
      await button(t('Retry')).last().click();
      await button(t('Allow Once')).first().waitFor();
      await seen('approval');
      await button(t('Allow Once')).first().click();
      await chat.locator('.approval.danger, .danger').first().waitFor();
      await seen('danger');
    });

    it('fits a dangerous question into 250 pixels', async () => {
      await chatWidth(250);
      await fits();
      await seen('danger-narrow');
      await button(t('Deny')).first().click();
      await log().getByText('I left the folder').waitFor();
      await fits();
      await seen('denied-narrow');
      await chatWidth(320);
      await seen('denied');
    });

    it('shows the modes, and the one that is chosen', async () => {
      await chat.locator('.mode').click();
      const stop = (name: string) => chat.getByRole('menuitemradio', { name: new RegExp(`^${t(name)}`) });
      await stop('Look only').waitFor();
      await seen('modes');
      await stop('Look only').click();
      await chat.locator('.mode.chosen').waitFor();
      await seen('plan');
      await chat.locator('.mode').click();
      await stop('Edit this workspace').click();
    });

    it('takes a selection, and starts a skill while another runs', async () => {
      const until = gate();
      undo.push(() => until.open());
      answer = () => ({
        text: ['One moment, ', 'I am at it ', 'now.'],
        hold: { behind: 'moment', until: until.opened },
      });
      await say('/tidy the notes once more');
      await log().getByText('One moment').waitFor();
      await page.keyboard.press('ControlOrMeta+P');
      await input().fill('prices.py');
      await take(row('prices.py'));
      await page.locator('.tab', { hasText: 'prices.py' }).waitFor();
      await page.locator('.monaco-editor .view-lines').first().click();
      await page.keyboard.press('ControlOrMeta+A');
      await command('telos.runSkillOnSelection');
      await row('tidy').waitFor();
      await seen('on-selection');
      await take(row('tidy'));
      await page.waitForTimeout(500);
      await seen('on-selection-target');
      await page.keyboard.press('Enter');
      await page.waitForTimeout(500);
      await seen('on-selection-words');
      await input().fill('fix the sum');
      await page.keyboard.press('Enter');
      await page.waitForTimeout(700);
      await seen('while-running');
      await page.keyboard.press('Enter');
      await page.waitForTimeout(700);
      await seen('queued');
      until.open();
      answer = () => ({ text: ['The sum is right now.'] });
      await log().getByText('The sum is right now').first().waitFor();
      await seen('selection-chip');
    });

    it('shows a question that waits while the chat is out of sight', async () => {
      let round = 0;
      answer = () =>
        round++ === 0
          ? {
              toolCalls: [
                {
                  name: 'write_file',
                  input: { path: 'notes.md', content: '# Notes\n\n- water the roses\n' },
                },
                { name: 'run_command', input: { command: 'make tidy' } },
              ],
            }
          : { text: ['Tidied.'] };
      await say('/tidy up');
      await page.keyboard.press('ControlOrMeta+Alt+B');
      await toast().waitFor();
      await seen('waiting');
      await toast()
        .getByRole('button', { name: t('Show') })
        .click();
      chat = await theChat();
      await button(t('Deny')).first().waitFor();
      await closeToasts();
      await seen('shown-again');
      await button(t('Deny')).first().click();
      await log().getByText('Tidied.').waitFor();
    });

    it('takes back what a run has written', async () => {
      await chat.locator('.run-changes').last().scrollIntoViewIfNeeded();
      await seen('changes');
      await button(t('Undo This Run')).last().click();
      await page
        .locator('.monaco-dialog-box')
        .waitFor({ timeout: 5_000 })
        .catch(() => undefined);
      await seen('undo');
      await page.keyboard.press('Enter');
      await page.waitForTimeout(1_000);
      await seen('undone');
      assert.match(await readFile(join(world.workspace, 'notes.md'), 'utf8'), /roses\n- water/);
      await closeToasts();
    });

    it('checks the set-up, and shows what is granted', async () => {
      await command('telos.doctor');
      await page.locator('.tab', { hasText: 'Telos Doctor' }).waitFor();
      await frameWith(workbench, frame => frame.locator('details', { hasText: t('Settings') }));
      await seen('doctor');
      await command('telos.managePermissions');
      await row(t('Add Rule...')).waitFor();
      await seen('permissions');
      await take(row(t('Switch Tools Off or On...')));
      await row(t('Run commands')).waitFor();
      await seen('switches');
      await page.keyboard.press('Escape');
      await command('telos.reviewAgent');
      await take(row('personal'));
      await page.locator('.tab', { hasText: 'personal' }).waitFor();
      await frameWith(workbench, frame => frame.getByRole('button', { name: t('Approve and Start') }));
      await seen('review');
      await closeToasts();
    });

    it('says which MCP server is dead, before the run goes on without it', async () => {
      await writeFiles(join(world.skills, 'radio'), deadServer);
      await page.getByRole('treeitem', { name: /^tune/ }).waitFor();
      let round = 0;
      answer = () =>
        round++ === 0
          ? { toolCalls: [{ name: 'connect_mcp_servers', input: {} }] }
          : { text: ['There is no radio here.'] };
      await say('/tune to jazz');
      await button(t('Allow Once')).last().waitFor();
      await seen('server-question');
      await button(t('Allow Once')).last().click();
      await log().getByText('There is no radio here.').waitFor();
      await seen('dead-mcp-server');
    });

    it('marks a defect in a skill file, and mends it as lint --fix does', async () => {
      const file = join(world.skills, 'personal', 'skills', 'sums', 'SKILL.md');
      await writeFiles(join(world.skills, 'personal'), { 'skills/sums/SKILL.md': defective });
      await page.getByRole('treeitem', { name: /^sums/ }).click();
      await page.locator('.view-line', { hasText: 'the sums of the month' }).click();
      await page.locator('.squiggly-warning').first().waitFor();
      await page.keyboard.press('ControlOrMeta+.');
      await page.locator('.action-widget .monaco-list-row').first().waitFor();
      await seen('quick-fix');
      await page.keyboard.press('Enter');
      await page.locator('.view-line', { hasText: '"fix: the sums of the month"' }).waitFor();
      await page.keyboard.press('ControlOrMeta+S');
      await eventually(async () =>
        assert.equal(await readFile(file, 'utf8'), mendText(defective, file), 'another text than lint --fix'),
      );
      await seen('mended');
    });

    it('lists commands behind a slash, shows the keys, and brings the last request back', async () => {
      await textbox().fill('/');
      await chat.getByRole('option', { name: /\/help/ }).waitFor();
      await seen('slash');
      await textbox().fill('/help');
      await textbox().press('Enter');
      await chat.locator('.help').waitFor();
      await seen('help');
      await button(t('Close')).click();
      await textbox().press('ArrowUp');
      assert.equal(await textbox().inputValue(), '/tune to jazz');
      await textbox().fill('');
    });

    for (const [name, theme, kind] of [
      ['dark', 'Dark Modern', 'vs-dark'],
      ['high-contrast', 'Dark High Contrast', 'hc-black'],
      ['high-contrast-light', 'Light High Contrast', 'hc-light'],
      ['light', 'Light Modern', 'vs'],
    ] as const) {
      it(`looks the same in ${name}`, async () => {
        await runCommand(page, 'Preferences: Color Theme');
        await input().fill(theme);
        await take(row(theme));
        await page.locator(`.monaco-workbench.${kind}`).waitFor();
        let round = 0;
        answer = () =>
          round++ === 0
            ? {
                text: ['I clear *all* of it:\n\n```sh\nrm -rf ../other\n```\n'],
                toolCalls: [{ name: 'run_command', input: { command: 'rm -rf ../other' } }],
              }
            : { text: ['It stays.'] };
        await command('telos.newConversation');
        await chat.locator('.welcome').waitFor();
        await textbox().fill('/');
        await chat.getByRole('option').first().waitFor();
        await seen(`${name}-welcome`);
        await say('/tidy the rest');
        await chat.locator('.approval.danger, .danger').first().waitFor();
        await seen(`${name}-danger`);
        await button(t('Deny')).first().click();
        await log().getByText('It stays.').waitFor();
        await command('telos.doctor');
        await frameWith(workbench, frame => frame.locator('details', { hasText: t('Settings') }));
        await seen(`${name}-doctor`);
      });
    }

    it('disables a skill, and greys its row', async () => {
      const tidyRow = page.getByRole('treeitem').filter({ hasText: 'Tidies up' }).last();
      await tidyRow.click({ button: 'right' });
      await page.waitForTimeout(600);
      await seen('skill-menu');
      await page.keyboard.press('Escape');
      await page.keyboard.press('Escape');
      await tidyRow.click({ button: 'right' });
      const entry = titles[language]['telos.disableSkill.title'] ?? '';
      // A menu that has just opened takes no click.
      await page.waitForTimeout(600);
      await page.getByRole('menuitem', { name: entry }).click();
      await tidyRow.filter({ hasText: t('disabled') }).waitFor();
      await seen('disabled');
    });

    it('says that a server is dead, with what helps', async () => {
      await model.close();
      await textbox().fill('/weekly-report please');
      await textbox().press('Enter');
      await button(t('Choose Model…')).last().waitFor({ timeout: 120_000 });
      await seen('dead-server');
    });
  });
}

async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
}
