/** Back to before an earlier request in a real VS Code: files to the byte with those of a command, the way back, a reload, and a branch. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Frame, Locator } from 'playwright-core';
import { findBox } from '../../src/engine/box/findBox.ts';
import type { AnthropicTurn } from '../fakes/anthropicServer.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { skipBecause } from '../skipBecause.ts';
import {
  type EditorSession,
  firstStartLimit,
  openEditorSession,
  reloadShowing,
} from '../vscode/editorSession.ts';
import { chatFrame, runCommand, type Workbench } from '../vscode/workbench.ts';
import type { World } from '../vscode/world.ts';

const oldPlan = 'Water the beds\r\nCut the hedge';
const asked = 'Sow leeks\n';
/** What is written of it: the line ends of a file stay. */
const written = 'Sow leeks\r\n';

/** What the model does for each request, by a word of it. */
const answers: Readonly<Record<string, AnthropicTurn>> = {
  WRITE: { toolCalls: [{ name: 'write_file', input: { path: 'plan.md', content: asked } }] },
  COMMAND: {
    toolCalls: [
      {
        name: 'run_command',
        input: { command: 'rm plan.md && mkdir -p beds && printf "leeks\\r" > beds/north.bin' },
      },
      {
        name: 'run_command',
        input: { command: 'touch shed.txt', outside_box: true, why: 'The shed has a key of its own.' },
      },
    ],
  },
};

describe('restoring a conversation in a real VS Code', () => {
  let session: EditorSession | undefined;
  let model: FakeServer;
  let world: World;
  let workbench: Workbench;
  let chat: Frame;

  before(async function () {
    this.timeout(firstStartLimit);
    session = await openEditorSession({
      model: {
        turns: ({ body }, index) => {
          const last = JSON.stringify((body.messages as unknown[]).at(-1));
          const word = Object.keys(answers).find(each => last.includes(each));
          return (word !== undefined && answers[word]) || { text: [`Answer ${index + 1}.`] };
        },
      },
      skills: {
        'garden/skills/plan/SKILL.md': '---\nname: plan\ndescription: Plans beds\n---\nPlan.\n',
      },
      workspace: { 'plan.md': oldPlan },
      settings: { 'files.autoSave': 'off' },
      variables: { TELOS_SANDBOX: 'auto' },
    });
    ({ model, world, workbench } = session);
    chat = await chatFrame(workbench);
  });

  beforeEach(async () => {
    await writeFile(plan(), oldPlan);
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed')
      console.error(`The window at the failure: ${await workbench.screenshot('restore-failed')}`);
    await runCommand(workbench.page, 'View: Close All Editors');
    await runCommand(workbench.page, 'Telos: New Conversation');
    // A conversation that was restored to its beginning looks like a new one, which would then take away what is typed.
    await chat.locator('.line.restored').waitFor({ state: 'detached' });
    await log().getByText('What do you want to do?').waitFor();
  });

  after(() => session?.close());

  const plan = (): string => join(world.workspace, 'plan.md');
  const made = (): string => join(world.workspace, 'beds', 'north.bin');
  const log = (): Locator => chat.getByRole('log', { name: 'Conversation' });
  const runs = (): Locator => log().locator('.run');
  const dialog = (): Locator => workbench.page.locator('.monaco-dialog-box');
  const textbox = (): Locator => chat.getByRole('textbox', { name: 'Message Telos' });
  const sent = (): string => JSON.stringify(model.requests.at(-1)?.body.messages);

  async function say(text: string): Promise<void> {
    const before = await log().locator('.line.end').count();
    await textbox().fill(text);
    await chat.locator('button.run-button.primary:enabled').waitFor();
    await textbox().press('Enter');
    if (text.includes('COMMAND')) await chat.getByRole('button', { name: 'Allow Once' }).click();
    await log().locator('.line.end').nth(before).waitFor();
  }

  /** Presses a button of a request, which shows its buttons below the mouse. */
  async function press(request: number, name: string): Promise<void> {
    await runs().nth(request).locator('.request').hover();
    await runs().nth(request).getByRole('button', { name, exact: true }).click();
  }

  const restore = (request: number): Promise<void> =>
    press(request, 'Restore files and conversation to here');

  it('restores files and conversation, undoes that, and knows it after a reload', async function () {
    const box = await findBox({ env: { PATH: process.env['PATH'] ?? '' } });
    if (!box.works) return skipBecause(this, box.why);
    await say('run plan WRITE it');
    await say('now the COMMAND');
    await say('and a question');
    assert.deepEqual([existsSync(plan()), await readFile(made(), 'latin1')], [false, 'leeks\r']);
    await restore(1);
    await dialog().getByText('Restore files and conversation to before this request?').waitFor();
    await dialog().getByText('north.bin (will be deleted)').waitFor();
    await dialog().getByText('Ran outside the sandbox, and is not undone: touch shed.txt').waitFor();
    await workbench.screenshot('restore-asked');
    await dialog().getByRole('button', { name: 'Cancel' }).click();
    assert.equal(await runs().count(), 3);
    await restore(1);
    await dialog().getByRole('button', { name: 'Restore', exact: true }).click();
    await chat.getByText('Files and conversation were restored to here.').waitFor();
    assert.equal(await readFile(plan(), 'utf8'), written);
    const isThere = (name: string): boolean => existsSync(join(world.workspace, name));
    assert.deepEqual([isThere('beds'), isThere('shed.txt')], [false, true]);
    assert.equal(await runs().count(), 1);
    assert.equal(await textbox().inputValue(), 'now the COMMAND');
    await workbench.screenshot('restore-done');
    await chat.getByRole('button', { name: 'Undo Restore' }).click();
    await dialog().getByText('Undo this restore?').waitFor();
    await dialog().getByRole('button', { name: 'Undo', exact: true }).click();
    await runs().nth(2).waitFor();
    assert.deepEqual([existsSync(plan()), await readFile(made(), 'latin1')], [false, 'leeks\r']);
    // All the way back, over a write and a command.
    await restore(1);
    await dialog().getByRole('button', { name: 'Restore', exact: true }).click();
    await chat.getByText('Files and conversation were restored to here.').waitFor();
    chat = await reloadShowing(session!, 'run plan WRITE it');
    await log().locator('.line.end').waitFor();
    assert.equal(await runs().count(), 1);
    await textbox().fill('');
    await say('where are we?');
    assert.match(sent(), /run plan WRITE it.*where are we\?/);
    assert.doesNotMatch(sent(), /COMMAND|and a question/);
    await restore(0);
    await dialog().getByRole('button', { name: 'Restore', exact: true }).click();
    await log().getByText('What do you want to do?').waitFor();
    assert.ok((await readFile(plan())).equals(Buffer.from(oldPlan)));
  });

  it('leaves what was edited since, and says so first', async () => {
    await say('run plan WRITE it');
    await writeFile(plan(), 'My own words');
    await restore(0);
    await dialog()
      .getByText(/Not changed: plan\.md has been edited since then/)
      .waitFor();
    await dialog().getByRole('button', { name: 'Restore', exact: true }).click();
    await log().getByText('What do you want to do?').waitFor();
    assert.equal(await readFile(plan(), 'utf8'), 'My own words');
  });

  it('branches off: a new conversation with what was said before, also after a reload, and the old one stays', async () => {
    await say('run plan first');
    await say('second words');
    await press(1, 'Branch from here');
    await runs().nth(1).waitFor({ state: 'detached' });
    assert.equal(await textbox().inputValue(), 'second words');
    await textbox().fill('');
    await say('another way');
    assert.match(sent(), /run plan first.*another way/);
    assert.doesNotMatch(sent(), /second words/);
    chat = await reloadShowing(session!, 'another way');
    await log().getByText('another way').waitFor();
    await say('and on');
    assert.match(sent(), /run plan first.*another way.*and on/);
    await runCommand(workbench.page, 'Telos: Open Conversation...');
    await workbench.page.locator('.quick-input-list').getByText('second words').first().click();
    await log().getByText('second words').waitFor();
    assert.equal(await log().getByText('another way').count(), 0);
  });
});
