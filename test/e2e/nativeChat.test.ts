/** Telos in the editor's own places, as a person sees them: `@telos` in the Chat view, and the question before another extension's call. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { eventually, until } from '../eventually.ts';
import { type EditorSession, firstStartLimit, openEditorSession } from '../vscode/editorSession.ts';
import { root } from '../vscode/paths.ts';
import { frameWith, runCommand, type Workbench } from '../vscode/workbench.ts';
import type { World } from '../vscode/world.ts';

describe('Telos in the places of VS Code', () => {
  let session: EditorSession | undefined;
  let world: World;
  let workbench: Workbench;

  before(async function () {
    this.timeout(firstStartLimit);
    const tasks = [{ type: 'telos', label: 'plan the day', request: 'run daily kickoff' }];
    session = await openEditorSession({
      withoutAccount: true,
      extensions: { 'telos.telos-lm-0.0.1': join(root, 'test', 'fixtures', 'lm-extension') },
      settings: {
        'telos.provider': 'replay',
        'chat.disableAIFeatures': false,
        // Draws the text of a terminal as text.
        'terminal.integrated.gpuAcceleration': 'off',
      },
      prepare: async ({ workspace }) => {
        await mkdir(join(workspace, '.vscode'));
        const file = join(workspace, '.vscode', 'tasks.json');
        await writeFile(file, JSON.stringify({ version: '2.0.0', tasks }));
      },
    });
    ({ world, workbench } = session);
    await workbench.page.getByRole('treeitem', { name: /kickoff/ }).waitFor();
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed') console.error(await workbench.screenshot('native-failed'));
  });

  after(() => session?.close());

  async function command(page: Page, title: string): Promise<void> {
    await runCommand(page, title);
    await page.locator('.quick-input-widget').waitFor({ state: 'hidden' });
  }

  /** Types a request into the editor's own Chat view. */
  async function say(page: Page, text: string): Promise<void> {
    const input = page.locator('.interactive-input-part .monaco-editor').first();
    const written = async () =>
      ((await input.locator('.view-lines').textContent()) ?? '').replaceAll('\u00a0', ' ').trim();
    // Nothing can be sent while an answer is being written.
    await until(async () => (await page.locator('.chat-response-loading').count()) === 0);
    await input.click();
    await page.keyboard.type(text);
    await eventually(async () => assert.equal(await written(), text));
    // The list of completions may open at any time; then Enter is for it, and nothing is sent.
    await eventually(async () => {
      await page.keyboard.press('Escape');
      await page.keyboard.press('Enter');
      await until(async () => (await written()) === '', 'the request is still in the sandbox', 1_000);
    });
  }

  it('asks the person, by the name of the skill, before a call of another extension runs it', async () => {
    const { page } = workbench;
    await command(page, 'Test Models: Call the Tool of Telos');
    const dialog = page.locator('.monaco-dialog-box');
    await dialog.getByText('Run the skill kickoff of kairos?').waitFor();
    await workbench.screenshot('tool-confirmation');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await page.locator('.view-line', { hasText: 'Refused' }).waitFor();
    assert.equal(existsSync(join(world.workspace, 'today.md')), false);
  });

  it('answers as @telos in the Chat view with no account, down to the written file', async () => {
    const { page } = workbench;
    await command(page, 'Test Models: Open the Chat View');
    await say(page, '@telos run daily kickoff');
    const answer = page.locator('.interactive-response').last();
    await answer.getByText('kickoff (kairos): named in your request').first().waitFor();
    await answer.getByRole('button', { name: 'Open Log' }).waitFor();
    await answer.getByRole('button', { name: 'Show Changes' }).waitFor();
    await workbench.screenshot('native-chat');
    // What came before the answer is folded by then; these stay in sight.
    await answer.getByText('kickoff (kairos): named in your request').last().waitFor();
    await answer.getByText('today.md').last().waitFor();
    assert.match(await readFile(join(world.workspace, 'today.md'), 'utf8'), /^# /);
  });

  it('runs a skill as a task of tasks.json without asking anything about its output, and shows its Markdown', async () => {
    const { page } = workbench;
    const written = join(world.workspace, 'today.md');
    await rm(written, { force: true });
    await runCommand(page, 'Tasks: Run Task');
    await page.locator('.quick-input-list .monaco-list-row', { hasText: 'plan the day' }).first().click();
    while (!existsSync(written)) await page.waitForTimeout(100);
    const shown = page.locator('.xterm-rows');
    await shown.filter({ hasText: /Let\sgo\sof\stoday:/ }).waitFor();
    await workbench.screenshot('task');
    assert.doesNotMatch((await shown.textContent()) ?? '', /\*\*/);
  });

  it('lists with /list, shows the choice with /route without running it, and runs by name with /run', async () => {
    const { page } = workbench;
    const answer = (text: string) => page.locator('.interactive-response').filter({ hasText: text });
    await say(page, '@telos /list');
    await answer('weekly-summary of kairos').first().waitFor();
    await say(page, '@telos /route weekly summary');
    await answer('Nothing was run').getByRole('button', { name: 'Pick Another...' }).waitFor();
    const written = join(world.workspace, 'today.md');
    await rm(written);
    await say(page, '@telos /run kickoff please');
    while (!existsSync(written)) await page.waitForTimeout(100);
    await workbench.screenshot('native-chat-commands');
  });

  it('begins a plan with /plan, whose interview Telos holds in its own chat', async () => {
    await say(workbench.page, '@telos /plan Sell cakes');
    const chat = await frameWith(workbench, frame => frame.getByRole('log').getByText('/plan Sell cakes'));
    await chat.getByRole('log').getByText('is not in a git repository').waitFor();
  });

  it('leads through its six steps, and marks one as done once its command has run', async () => {
    const { page } = workbench;
    await command(page, 'Test Models: Open the Walkthrough of Telos');
    const steps = page.locator('.getting-started-step');
    await steps.first().waitFor();
    assert.equal(await steps.count(), 6);
    const done = steps.filter({ hasText: 'Stay in charge' }).locator('.complete');
    assert.equal(await done.count(), 0);
    await steps.filter({ hasText: 'Stay in charge' }).click();
    const open = page.locator('.getting-started-step.expanded', { hasText: 'Stay in charge' });
    await open.locator('.monaco-button').first().click();
    await done.first().waitFor();
    await workbench.screenshot('walkthrough');
  });
});
