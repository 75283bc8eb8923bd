/** The view *Runs* in a real VS Code: what was run is listed, found, named, gone on with after a reload, played again, compared, exported and deleted. */
import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Frame, Locator } from 'playwright-core';
import { lineOf } from '../../src/engine/records/runFile.ts';
import { linesOf, writeRun } from '../engine/records/storedRuns.ts';
import { eventually, never, until } from '../eventually.ts';
import type { AnthropicTurn } from '../fakes/anthropicServer.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { type EditorSession, firstStartLimit, openEditorSession } from '../vscode/editorSession.ts';
import { chatFrame, chatFrames, runCommand, type Workbench } from '../vscode/workbench.ts';
import { keptRun, type World } from '../vscode/world.ts';

const dayMs = 24 * 3600 * 1000;

describe('runs view in a real VS Code', () => {
  let session: EditorSession | undefined;
  let world: World;
  let model: FakeServer;
  let workbench: Workbench;
  let chat: Frame;
  let answer: () => AnthropicTurn;

  before(async function () {
    this.timeout(firstStartLimit);
    session = await openEditorSession({
      model: { turns: () => answer(), chunkDelayMs: 30 },
      skills: {
        'garden/skills/barrel/SKILL.md':
          '---\nname: barrel\ndescription: Rain barrel\n---\nTHE BARREL TEXT\n',
      },
      prepare: ({ data }) => keepEarlierRuns(data),
    });
    ({ model, world, workbench } = session);
    chat = await chatFrame(workbench);
    await runCommand(workbench.page, 'Focus on Runs View');
    await row('cut the hedge').waitFor();
  });

  beforeEach(() => {
    answer = () => ({ text: ['The barrel is ', 'half full.'] });
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed') {
      await workbench?.screenshot(`failed-${this.currentTest.title.slice(0, 60).replace(/\W+/g, '-')}`);
    }
  });

  after(() => session?.close());

  /** Yesterday's and older ones, of the same skill and of others. */
  function keepEarlierRuns(data: string): void {
    const at = (daysAgo: number, minute: number): string =>
      new Date(Date.now() - daysAgo * dayMs - minute * 60_000).toISOString();
    const barrel = { agent: 'garden', skill: 'barrel' };
    writeRun(data, {
      ...barrel,
      runId: 'b1',
      request: 'look into the barrel',
      answer: 'Empty.',
      startedAt: at(1, 0),
      cost: 0.02,
    });
    writeRun(data, {
      agent: 'garden',
      skill: 'hedge',
      runId: 'h1',
      request: 'cut the hedge',
      answer: 'A robin lives there.',
      startedAt: at(1, 9),
      conversation: 'c1',
    });
    writeRun(data, {
      agent: 'garden',
      skill: 'hedge',
      runId: 'h2',
      after: 'h1',
      request: 'then leave it',
      startedAt: at(1, 5),
      conversation: 'c1',
      earlier: 2,
    });
    writeRun(data, {
      ...barrel,
      runId: 'old',
      request: 'scare the crows',
      startedAt: at(40, 0),
      outcome: 'failed',
    });
  }

  const tree = (): Locator =>
    workbench.page.locator('.pane', { has: workbench.page.locator('.pane-header', { hasText: 'Runs' }) });
  /** By its name; `state` is what it came to. */
  const row = (name: string, state = ''): Locator =>
    tree().locator(`.monaco-list-row[aria-label^="${name}, ${state}"]`);
  const day = (name: string): Locator =>
    tree().locator(`.monaco-list-row[aria-label^="${name}"][aria-level="1"]`);
  const input = (): Locator => workbench.page.locator('.quick-input-widget input[type="text"]');
  const log = (): Locator => chat.getByRole('log', { name: 'Conversation' });
  const files = (): string[] => readdirSync(join(world.data, 'runs'));

  async function say(text: string): Promise<void> {
    await chat.getByRole('textbox', { name: 'Message Telos' }).fill(text);
    await chat.locator('button.run-button.primary:enabled').waitFor();
    await chat.getByRole('textbox', { name: 'Message Telos' }).press('Enter');
  }

  /** Scrolls to a row: those that are out of sight are not drawn. */
  async function reach(target: Locator): Promise<void> {
    await tree().locator('.monaco-list').hover();
    await workbench.page.mouse.wheel(0, -5_000);
    await eventually(async () => {
      if ((await target.count()) === 0) await workbench.page.mouse.wheel(0, 44);
      assert.ok((await target.count()) > 0);
    });
  }

  async function choose(target: Locator, item: string): Promise<void> {
    await reach(target);
    const menu = workbench.page.locator('.monaco-menu');
    const action = menu.locator('.action-label', { hasText: new RegExp(`^${item}$`) }).first();
    const seen: string[] = [];
    // A menu that has just opened takes no click yet, and a row that has just moved opens another one's.
    for (let tries = 0; tries < 10; tries++) {
      await target.click({ button: 'right' });
      await menu.first().waitFor();
      try {
        await action.click({ timeout: 5_000, delay: 150 });
        await menu.first().waitFor({ state: 'detached', timeout: 5_000 });
        return;
      } catch {
        // Looked at below.
      }
      seen.push((await menu.allInnerTexts()).join(' ').replaceAll('\n', ', '));
      await workbench.page.keyboard.press('Escape');
      await menu.first().waitFor({ state: 'detached' });
    }
    assert.fail(`${item} could not be chosen from: ${seen.join(' | ')}`);
  }

  it('lists runs by day, also one that has just ended and one of another process', async () => {
    await say('look into the barrel today');
    await row('look into the barrel today', 'Completed').waitFor();
    await day('Today').waitFor();
    await day('Yesterday').waitFor();
    writeRun(world.data, { runId: 'other', request: 'from a terminal', startedAt: new Date().toISOString() });
    await row('from a terminal').waitFor();
    await row('cut the hedge').getByText('2 runs').waitFor();
    await workbench.screenshot('runs-view');
  });

  it('finds runs by words of their answers, and shows all again', async () => {
    await runCommand(workbench.page, 'Telos: Search Runs...');
    await input().fill('robin');
    await input().press('Enter');
    await tree().getByText('One conversation with “robin”').waitFor();
    await row('cut the hedge').waitFor();
    await row('look into the barrel').waitFor({ state: 'detached' });
    await workbench.screenshot('runs-searched');
    await runCommand(workbench.page, 'Telos: Show All Runs');
    await row('look into the barrel').waitFor();
  });

  it('shows and undoes what a run changed, by its entry', async () => {
    const note = join(world.workspace, 'note.md');
    const write = { name: 'write_file', input: { path: 'note.md', content: 'Rain\n' } };
    const turns: AnthropicTurn[] = [{ toolCalls: [write] }, { text: ['Written.'] }];
    answer = () => turns.shift() ?? {};
    await runCommand(workbench.page, 'Telos: New Conversation');
    await chat.getByText('What do you want to do?').waitFor();
    await say('write down the barrel');
    await row('write down the barrel', 'Completed').waitFor();
    assert.ok(existsSync(note));
    await choose(row('write down the barrel'), 'Show Changes');
    await workbench.page.locator('.tab', { hasText: 'Changes of a Run' }).waitFor();
    await choose(row('write down the barrel'), 'Undo This Run...');
    const dialog = workbench.page.locator('.monaco-dialog-box');
    await dialog.getByText('note.md (will be deleted)').waitFor();
    await dialog.getByRole('button', { name: 'Undo', exact: true }).click();
    await until(() => !existsSync(note), 'the run is not undone');
    await runCommand(workbench.page, 'View: Close All Editors');
  });

  it('gives a conversation a name', async () => {
    await choose(row('cut the hedge'), 'Rename...');
    await input().fill('The robin');
    await input().press('Enter');
    await row('The robin').waitFor();
    assert.match(
      readFileSync(join(world.data, 'runs', 'h2.jsonl'), 'utf8'),
      /\{"type":"title","title":"The robin"\}\n$/,
    );
  });

  it('opens a conversation in the chat', async () => {
    await row('The robin').click();
    await log().getByText('A robin lives there.').waitFor();
    await log().getByText('then leave it').waitFor();
    await workbench.screenshot('runs-opened');
  });

  it('follows a run that goes on on a command line, to its end', async () => {
    await runCommand(workbench.page, 'Telos: New Conversation');
    const run = { runId: 'there', request: 'from another terminal', answer: 'So far.' };
    const startedAt = new Date().toISOString();
    // The process that runs it is this one.
    const file = writeRun(world.data, { ...run, startedAt, ended: false, pid: process.pid });
    await row(run.request, 'Running').click();
    await log().getByText('So far.').waitFor();
    await log().getByText('Runs on a command line').waitFor();
    assert.equal(await chat.getByRole('button', { name: 'Stop', exact: true }).count(), 0);
    appendFileSync(file, lineOf({ type: 'text', text: ' And a word more.' }));
    await log().getByText('So far. And a word more.').waitFor();
    await workbench.screenshot('runs-followed');
    appendFileSync(file, linesOf(run).slice(-4).map(lineOf).join(''));
    await log().locator('.end-completed').waitFor();
    await log().getByText('Runs on a command line').waitFor({ state: 'detached' });
    await row(run.request, 'Completed').waitFor();
  });

  it('goes on with a run that a reload of the window has interrupted', async () => {
    await runCommand(workbench.page, 'Telos: New Conversation');
    await log().getByText('What do you want to do?').waitFor();
    const text = Array.from({ length: 100 }, (_, at) => `drop${at} `);
    answer = () => ({ text, hold: { behind: 'drop30 ', until: never } });
    await say('check the barrel again');
    await log().getByText('drop5').waitFor();
    await keptRun(world, 'drop5');
    await workbench.page.reload();
    await workbench.page.waitForSelector('.monaco-workbench');
    chat = await chatFrame(workbench);
    await runCommand(workbench.page, 'Focus on Runs View');
    const interrupted = row('check the barrel again', 'Interrupted');
    await interrupted.waitFor();
    await workbench.screenshot('runs-interrupted');
    answer = () => ({ text: ['There were six.'] });
    await choose(interrupted, 'Resume');
    await log().getByText('There were six.').waitFor();
    assert.match(JSON.stringify(model.requests.at(-1)?.body.messages), /check the barrel again.*drop5/);
    await row('check the barrel again', 'Completed').waitFor();
  });

  it('compares two runs of a skill side by side, with what they took', async () => {
    await choose(row('look into the barrel'), 'Compare with...');
    await workbench.page
      .locator('.quick-input-list .monaco-list-row', { hasText: 'scare the crows' })
      .click();
    const diff = workbench.page.locator('.monaco-diff-editor');
    await diff.waitFor();
    await diff.getByText('scare the crows').first().waitFor();
    await diff.getByText('Empty.').first().waitFor();
    await workbench.screenshot('runs-compared');
  });

  it('exports a conversation as a document', async () => {
    await choose(row('The robin'), 'Export...');
    await workbench.page.locator('.quick-input-list .monaco-list-row', { hasText: 'Markdown' }).click();
    await workbench.page.waitForFunction(() =>
      document
        .querySelector<HTMLInputElement>('.quick-input-widget input[type="text"]')
        ?.value.endsWith('the-robin.md'),
    );
    const path = await input().inputValue();
    await input().press('Enter');
    await workbench.page
      .getByText(/Exported to/)
      .first()
      .waitFor();
    assert.match(readFileSync(path, 'utf8'), /^# The robin\n[\s\S]*A robin lives there\./);
  });

  it('plays a conversation again although no model can be reached', async () => {
    await model.close();
    const asked = model.requests.length;
    const kept = files().length;
    const others = await chatFrames(workbench);
    await choose(row('The robin'), 'Replay');
    const replay = await chatFrame(workbench, others);
    await workbench.page.getByRole('tab', { name: 'Replay: The robin' }).waitFor();
    // What is said to screen readers holds the same words.
    const shown = replay.getByRole('log');
    await shown
      .getByText(/This is a replay of a run/)
      .first()
      .waitFor();
    await shown.getByText('A robin lives there.').waitFor();
    await shown.getByText('Here it is.').waitFor();
    await workbench.screenshot('runs-replayed');
    await replay.locator('.end-completed').nth(1).waitFor();
    assert.equal(model.requests.length, asked);
    assert.equal(files().length, kept, 'a replay is no run');
  });

  it('deletes a conversation with its runs, once that is confirmed', async () => {
    await choose(row('The robin'), 'Delete');
    const dialog = workbench.page.locator('.monaco-dialog-box');
    await dialog.getByText('Delete “The robin”?').waitFor();
    await workbench.screenshot('runs-delete');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    assert.ok(existsSync(join(world.data, 'runs', 'h1.jsonl')));
    await choose(row('The robin'), 'Delete');
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await row('The robin').waitFor({ state: 'detached' });
    // The row may go with the first of its files.
    const left = () => files().filter(name => /^h[12]\./.test(name));
    await eventually(() => assert.deepEqual(left(), []));
  });

  it('reads well in a dark theme too', async () => {
    await runCommand(workbench.page, 'Toggle between Light/Dark Themes');
    await workbench.page.locator('.monaco-workbench.vs-dark').waitFor();
    await workbench.screenshot('runs-dark');
  });
});
