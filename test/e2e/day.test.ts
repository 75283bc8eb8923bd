/**
 * A day of work in a real VS Code, with forty skills, a git project, and two MCP servers of which one is dead. What it measures is what
 * a person would leave for: lines around an answer, words that nobody else uses, a yes that was none, a menu far from its button. Each
 * state leaves its pictures in test-results.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Frame, Locator } from 'playwright-core';
import { eventually } from '../eventually.ts';
import type { AnthropicTurn } from '../fakes/anthropicServer.ts';
import { type EditorSession, firstStartLimit, openEditorSession } from '../vscode/editorSession.ts';
import { anotherWindow, chatFrame, frameWith, runCommand, type Workbench } from '../vscode/workbench.ts';
import {
  chatWidth,
  commitProject,
  dayProject,
  daySkills,
  fits,
  paletteCommands,
  privateWordsIn,
  saidIn,
  themes,
  useTheme,
} from './dayDesk.ts';

const usualWidth = 340;

describe('a day in a real VS Code', function () {
  this.timeout(5 * 60_000);
  let session: EditorSession;
  let workbench: Workbench;
  let chat: Frame;
  let turns: AnthropicTurn[] = [];
  const said = new Set<string>();

  before(async function () {
    this.timeout(firstStartLimit);
    session = await openEditorSession({
      model: { turns: () => turns.shift() ?? { text: ['Done.'] } },
      skills: daySkills,
      workspace: dayProject,
      prepare: commitProject,
    });
    ({ workbench } = session);
    chat = await chatFrame(workbench);
    await button('Send').waitFor();
    await chatWidth(workbench.page, usualWidth);
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed') console.error(await workbench?.screenshot('day-failed'));
  });

  after(() => session?.close());

  const button = (name: string | RegExp): Locator => chat.getByRole('button', { name });
  const textbox = (): Locator => chat.getByRole('textbox', { name: 'Message Telos' });
  const log = (): Locator => chat.getByRole('log', { name: 'Conversation' });
  const lastRun = (): Locator => log().locator('.run').last();
  const calls = (name: string, input: unknown): AnthropicTurn => ({ toolCalls: [{ name, input }] });

  async function say(text: string, ...answers: AnthropicTurn[]): Promise<void> {
    turns = answers;
    // A theme that was just chosen has left the focus elsewhere.
    await textbox().click();
    await textbox().fill(text);
    await button('Send').and(chat.locator(':enabled')).waitFor();
    await textbox().press('Enter');
  }

  const ends = (): Promise<void> => lastRun().locator('.end').waitFor();

  async function listen(): Promise<void> {
    for (const text of await saidIn(workbench, [chat])) said.add(text);
  }

  /** Keeps pictures of a state: in four themes, and at 250 pixels, where it must fit. */
  async function seen(name: string): Promise<void> {
    await listen();
    const { page } = workbench;
    for (const [theme, label, kind] of themes) {
      await useTheme(page, label, kind);
      await page.waitForTimeout(300);
      await workbench.screenshot(`day-${name}-${theme}`);
    }
    await chatWidth(page, 250);
    await eventually(() => fits(chat, name));
    await workbench.screenshot(`day-${name}-250`);
    await chatWidth(page, usualWidth);
  }

  /** The lines that Telos itself writes around an answer: neither the request, nor the answer, nor what tools did. */
  const linesAround = (run: Locator): Promise<string[]> =>
    run.evaluate(element =>
      [...element.querySelectorAll<HTMLElement>('.line, .run-mode, .teaching')]
        .filter(line => line.offsetParent !== null)
        .map(line => line.innerText.replaceAll(/\s+/g, ' ')),
    );

  it('begins with what it can do', async () => {
    await seen('morning');
  });

  it('answers a question at once, with at most two lines around it', async () => {
    await say('where does the total come from?', calls('read_file', { path: 'src/cart.js' }), {
      text: ['From `total` in [cart.js](src/cart.js).'],
    });
    await log().getByText('From total in').waitFor();
    await ends();
    const lines = await linesAround(lastRun());
    assert.ok(lines.length <= 2, lines.join(' | '));
    const bytes = JSON.stringify(session.model.requests[0]?.body).length;
    console.log(`      the first request has ${bytes} bytes`);
    await seen('answer');
  });

  it('runs a skill that is named, with at most two lines around it', async () => {
    await say('/prune the roses', { text: ['Cut above the third bud.'] });
    await log().getByText('third bud').waitFor();
    await ends();
    const lines = await linesAround(lastRun());
    assert.ok(lines.length <= 2, lines.join(' | '));
    await listen();
    await button('Let Telos choose the skill').click();
  });

  it('mends a file of the workspace without a question, and takes it back', async () => {
    const file = join(session.world.workspace, 'src/cart.js');
    await say(
      'fix the bug in cart.js',
      calls('edit_file', { path: 'src/cart.js', old_text: 'price + count', new_text: 'price * count' }),
      { text: ['It adds in place of multiplying. I changed that.'] },
    );
    await log().getByText('in place of multiplying').waitFor();
    await ends();
    assert.match(await readFile(file, 'utf8'), /price \* count/);
    await seen('changed');
    await button('Undo This Run').last().click();
    const dialog = workbench.page.locator('.monaco-dialog-box');
    await dialog.waitFor();
    await listen();
    await workbench.screenshot('day-undo');
    await dialog.getByRole('button', { name: 'Undo', exact: true }).click();
    await eventually(async () => assert.match(await readFile(file, 'utf8'), /price \+ count/));
  });

  it('is allowed nothing by letters, a space or Enter in the textbox', async () => {
    const outside = join(session.world.dir, 'elsewhere.md');
    await say('write it down', calls('write_file', { path: outside, content: 'x\n' }), {
      text: ['I left it.'],
    });
    await button(/^Allow Once/).waitFor();
    await textbox().focus();
    await workbench.page.keyboard.type('no wait, y yes allow once ', { delay: 20 });
    await workbench.page.waitForTimeout(600);
    await workbench.page.keyboard.type('y n a ', { delay: 20 });
    assert.equal(existsSync(outside), false);
    assert.match(await textbox().inputValue(), /^no wait, y yes allow once y n a $/);
    await seen('question');
    await textbox().click();
    await textbox().fill('');
    await workbench.page.keyboard.press('Escape');
    await log().getByText('I left it.').waitFor();
    await ends();
    assert.equal(existsSync(outside), false);
    await seen('denied');
  });

  it('opens every menu at its button', async () => {
    for (const [name, kind] of [
      [/^Mode: /, 'mode'],
      [/^Model: /, 'model'],
    ] as const) {
      await button(name).click();
      const menu = chat.locator('.picker');
      await menu.getByRole('menuitemradio').first().waitFor();
      const [list, at] = [await menu.boundingBox(), await button(name).boundingBox()];
      assert.ok(Math.abs(list!.y + list!.height - at!.y) < 16, `the menu of ${kind} is not at its button`);
      assert.ok(list!.x < at!.x + at!.width && at!.x < list!.x + list!.width, `${kind} is beside its button`);
      await seen(`menu-${kind}`);
      await menu.getByRole('menuitemradio').first().press('Escape');
      await menu.waitFor({ state: 'detached' });
    }
    await textbox().click();
    await textbox().fill('/');
    const options = chat.getByRole('option');
    await options.first().waitFor();
    const [list, at] = [
      await chat.getByRole('listbox').boundingBox(),
      await chat.locator('.composer-box').boundingBox(),
    ];
    assert.ok(Math.abs(list!.y + list!.height - at!.y) < 16, 'the completions are not at the textbox');
    await chat.getByText(/^4\d skills and commands$/).waitFor();
    await seen('completions');
    await textbox().click();
    await textbox().fill('');
  });

  it('says once in a conversation that a server is dead, and goes on', async () => {
    const connects = calls('connect_mcp_servers', {});
    await say('/podcast about spring', connects, { text: ['Without the stations, here is a plan.'] });
    for (const wanted of ['here is a plan', undefined]) {
      const yes = button(/^Allow Once/).last();
      const next = wanted ? log().getByText(wanted) : log().getByText('One more idea');
      if (!wanted) await say('and one more', connects, { text: ['One more idea: birds.'] });
      await eventually(async () => {
        if (await yes.isVisible()) await yes.click({ timeout: 1_000 }).catch(() => undefined);
        assert.ok(await next.isVisible());
      });
      await ends();
    }
    assert.equal(await log().locator('.notice-warning', { hasText: 'stations' }).count(), 1);
    await log().getByRole('button', { name: 'Switch Off' }).waitFor();
    await log().getByRole('button', { name: 'Show Log' }).waitFor();
    await seen('dead-server');
  });

  it('says what failed and what helps, where the model is gone', async () => {
    await say('still there?', { status: 401 } as AnthropicTurn);
    await button('Set API Key…').last().waitFor();
    await seen('failed');
  });

  it('counts in the doctor what needs the person, and folds the rest', async () => {
    const { page } = workbench;
    await runCommand(page, 'Telos: Doctor');
    await page.locator('.tab', { hasText: 'Telos Doctor' }).waitFor();
    const doctor = await frameWith(workbench, frame => frame.getByText('No errors.'));
    // Nobody has approved the agent of the servers, so that they were not looked at.
    const untried = doctor.getByRole('region', { name: 'MCP servers: all of radio' });
    await untried.getByRole('button', { name: 'Review Agent' }).waitFor();
    const setup = doctor.locator('details');
    assert.ok((await setup.count()) >= 5);
    assert.equal(await doctor.locator('details[open]').count(), 0, 'what is set up is folded');
    for (const text of await doctor.locator('main').allInnerTexts()) said.add(text);
    await seen('doctor');
    await runCommand(page, 'View: Close All Editors');
  });

  it('has at most 40 commands in the palette of an empty window', async () => {
    const empty = await anotherWindow(workbench, () => runCommand(workbench.page, 'New Window'));
    try {
      await empty.page.locator('.part.sidebar, .part.activitybar').first().waitFor();
      const commands = await eventually(async () => {
        const found = await paletteCommands(empty.page, 'Telos: ');
        assert.ok(found.length > 10, found.join(', '));
        return found;
      }, 120_000);
      console.log(`      ${commands.length} commands`);
      assert.ok(commands.length <= 40, `${commands.length}: ${commands.join(', ')}`);
      assert.deepEqual(privateWordsIn(commands), []);
    } catch (error) {
      await empty.screenshot('day-empty-failed');
      throw error;
    } finally {
      await empty.close();
    }
  });

  it('says nothing in words that only its makers use', () => {
    assert.ok(said.size > 100, `${said.size} texts`);
    assert.deepEqual(privateWordsIn(['Runs in the box', 'Its card', 'Round 2']).length, 3);
    assert.deepEqual(privateWordsIn([...said]), []);
  });
});
