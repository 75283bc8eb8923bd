/** Chats in editors of a real VS Code: two runs side by side, each asked about in its own place. */
import assert from 'node:assert/strict';
import type { Frame, Locator } from 'playwright-core';
import { gate, never } from '../eventually.ts';
import type { AnthropicTurn } from '../fakes/anthropicServer.ts';
import type { FakeServer, ReceivedRequest } from '../fakes/loopback.ts';
import { type EditorSession, firstStartLimit, openEditorSession } from '../vscode/editorSession.ts';
import { chatFrame, chatFrames, runCommand, untilPageStored, type Workbench } from '../vscode/workbench.ts';
import { keptRun } from '../vscode/world.ts';

describe('chats in editors of a real VS Code', () => {
  let session: EditorSession | undefined;
  let model: FakeServer;
  let workbench: Workbench;
  let answer: (request: ReceivedRequest, index: number) => AnthropicTurn;

  before(async function () {
    this.timeout(firstStartLimit);
    session = await openEditorSession({
      model: {
        turns: (request, index) => answer(request, index),
        chunkDelayMs: 30,
      },
      skills: {
        'garden/skills/barrel/SKILL.md':
          '---\nname: barrel\ndescription: Rain barrel\n---\nTHE BARREL TEXT\n',
        'garden/skills/hedge/SKILL.md':
          '---\nname: hedge\ndescription: Cuts the hedge\n---\nTHE HEDGE TEXT\n',
      },
    });
    ({ model, workbench } = session);
    await chatFrame(workbench);
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed') {
      console.error(`The window at the failure: ${await workbench.screenshot('panel-failed')}`);
    }
  });

  after(() => session?.close());

  /** Opens a chat in an editor and returns its page. */
  async function openPanel(): Promise<Frame> {
    const before = await chatFrames(workbench);
    await runCommand(workbench.page, 'Telos: Open Chat in Editor');
    return chatFrame(workbench, before);
  }

  async function say(chat: Frame, text: string): Promise<void> {
    await chat.getByRole('textbox', { name: 'Message Telos' }).fill(text);
    await chat.locator('button.run-button.primary:enabled').waitFor();
    await chat.getByRole('textbox', { name: 'Message Telos' }).press('Enter');
  }

  /** The chats whose conversation begins with this request, once there is one. */
  async function panelsOf(request: string): Promise<Frame[]> {
    for (;;) {
      const found: Frame[] = [];
      for (const frame of await chatFrames(workbench)) {
        const first = await frame
          .locator('.request')
          .first()
          .textContent({ timeout: 200 })
          .catch(() => '');
        if (first?.includes(request)) found.push(frame);
      }
      if (found.length > 0) return found;
      await workbench.page.waitForTimeout(200);
    }
  }

  /** The page of the chat in the sidebar, in which nothing was asked yet. */
  async function emptyChat(): Promise<Frame> {
    for (;;) {
      for (const frame of await chatFrames(workbench))
        if ((await frame.getByText('What do you want to do?').count()) > 0) return frame;
      await workbench.page.waitForTimeout(100);
    }
  }

  const tab = (name: string | RegExp) => workbench.page.getByRole('tab', { name });

  it('runs two side by side, and takes the answer to each question to its own run', async () => {
    answer = request => {
      const said = JSON.stringify(request.body.messages);
      const what = said.includes('THE BARREL TEXT') ? 'barrel' : 'hedge';
      if (said.includes('tool_result'))
        return { text: [`The ${what} is done: ${/DONE-\w+/.exec(said)?.[0]}.`] };
      const command = `node -e "console.log('DONE-${what}')"`;
      return { toolCalls: [{ name: 'run_command', input: { command } }] };
    };
    const barrel = await openPanel();
    await say(barrel, 'look into the barrel');
    await barrel.getByRole('button', { name: 'Allow Once' }).waitFor();
    await runCommand(workbench.page, 'View: Split Editor Right');
    const hedge = await openPanel();
    await say(hedge, 'cut the hedge');
    await hedge.getByRole('button', { name: 'Allow Once' }).waitFor();
    await workbench.screenshot('panels-asking');
    await tab(/look into the barrel/)
      .first()
      .waitFor();
    await tab(/cut the hedge/).waitFor();
    await hedge.getByRole('button', { name: 'Allow Once' }).click();
    await hedge.getByRole('log').getByText('The hedge is done: DONE-hedge.').waitFor();
    assert.equal(await barrel.getByRole('button', { name: 'Allow Once' }).count(), 1);
    await barrel.getByRole('button', { name: 'Allow Once' }).click();
    await barrel.getByRole('log').getByText('The barrel is done: DONE-barrel.').waitFor();
    await workbench.screenshot('panels-done');
  });

  it('shows both again after the window was reloaded in the middle of a run, and goes on with it', async () => {
    const log = (chat: Frame): Locator => chat.getByRole('log', { name: 'Conversation' });
    const drops = Array.from({ length: 100 }, (_, at) => `drop${at} `);
    answer = () => ({ text: drops, hold: { behind: 'drop30 ', until: never } });
    const [barrel] = await panelsOf('look into the barrel');
    assert.ok(barrel);
    await say(barrel, 'and how deep is it?');
    await log(barrel).getByText('drop9').waitFor();
    await keptRun(session!.world, 'drop9');
    const asked = model.requests.length;
    for (const title of ['look into the barrel', 'cut the hedge'])
      await untilPageStored(workbench.page, title, '"id":"');
    await workbench.page.reload();
    await workbench.page.waitForSelector('.monaco-workbench');
    await tab(/look into the barrel/)
      .first()
      .click();
    const [again] = await panelsOf('look into the barrel');
    assert.ok(again);
    await log(again).getByText('The barrel is done: DONE-barrel.').waitFor();
    await log(again).getByText('drop9').waitFor();
    await log(again).getByText('Interrupted').waitFor();
    assert.equal(model.requests.length, asked, 'something ran by itself');
    await workbench.screenshot('panel-interrupted');
    answer = () => ({ text: ['It is deep.'] });
    await again.getByRole('button', { name: 'Resume' }).click();
    await log(again).getByText('It is deep.').waitFor();
    await log(again).locator('.end-completed').nth(1).waitFor();
    const said = JSON.stringify(model.requests.at(-1)?.body.messages);
    assert.match(
      said,
      /THE BARREL TEXT.*DONE-barrel.*how deep is it.*drop9.*Go on where you were interrupted/,
    );
    assert.equal(said.split('THE BARREL TEXT').length, 2);
    await tab(/cut the hedge/).click();
    const [hedge] = await panelsOf('cut the hedge');
    assert.ok(hedge);
    await log(hedge).getByText('The hedge is done: DONE-hedge.').waitFor();
  });

  it('lets a run go on whose editor is closed, and shows it again', async () => {
    const closed = gate();
    const text = Array.from({ length: 100 }, (_, at) => `drop${at} `);
    answer = () => ({ text, hold: { behind: 'drop60 ', until: closed.opened } });
    const barrel = await openPanel();
    await say(barrel, 'look into the barrel once more');
    await barrel.getByRole('log').getByText('drop9').waitFor();
    await runCommand(workbench.page, 'View: Close Editor');
    const message = workbench.page.locator('.notification-toast').filter({ hasText: 'runs on' });
    await message.getByRole('button', { name: 'Show' }).click();
    closed.open();
    const [again] = await panelsOf('look into the barrel once more');
    assert.ok(again);
    await again.locator('.end-completed').waitFor();
    await again.getByRole('log').getByText('drop0 drop1').waitFor();
    assert.equal(
      model.requests.filter(({ body }) => /once more/.test(JSON.stringify(body.messages))).length,
      1,
    );
  });

  it('points to a question that waits out of sight, and says once that a run there has ended', async () => {
    const { page } = workbench;
    const asks = gate();
    answer = request => {
      const said = JSON.stringify(request.body.messages);
      if (said.includes('tool_result')) return { text: ['The moss is gone.'] };
      const toolCalls = [{ name: 'run_command', input: { command: 'node -e "console.log(1)"' } }];
      return { text: ['Moss ', 'first.'], hold: { behind: 'Moss ', until: asks.opened }, toolCalls };
    };
    const moss = await openPanel();
    await say(moss, 'rid the hedge of moss');
    await moss.getByRole('log').getByText('Moss', { exact: true }).waitFor();
    await runCommand(page, 'File: New Untitled Text File');
    asks.open();
    const toasts = page.locator('.notification-toast');
    await toasts.filter({ hasText: 'Telos waits for your answer: Run this command?' }).waitFor();
    const status = page.locator('.statusbar-item', { hasText: '1 question' });
    assert.match((await status.getAttribute('class')) ?? '', /warning-kind/);
    await page.locator('.activitybar .badge-content', { hasText: '1' }).waitFor();
    await workbench.screenshot('question-out-of-sight');
    await status.locator('a').click();
    const [again] = await panelsOf('rid the hedge of moss');
    assert.ok(again);
    await again.getByRole('button', { name: 'Allow Once' }).waitFor();
    assert.equal(await page.locator('.quick-input-widget:visible').count(), 0, 'a list was opened');
    await again.getByRole('button', { name: 'Allow Once' }).click();
    await again.getByRole('log').getByText('The moss is gone.').waitFor();
    await status.waitFor({ state: 'detached' });
    const water = gate();
    answer = () => ({ text: ['Water ', 'it.'], hold: { behind: 'Water ', until: water.opened } });
    await say(again, 'and then?');
    await again.getByRole('log').getByText('Water', { exact: true }).waitFor();
    await runCommand(page, 'File: New Untitled Text File');
    water.open();
    const ended = toasts.filter({ hasText: 'Telos is done: rid the hedge of moss' });
    await ended.waitFor();
    assert.equal(await ended.count(), 1);
    await ended.getByRole('button', { name: 'Show' }).click();
    await tab(/rid the hedge of moss/)
      .first()
      .waitFor();
  });

  it('asks once where a skill runs while the chat of the sidebar is running', async () => {
    const { page } = workbench;
    const ends = gate();
    answer = request =>
      JSON.stringify(request.body.messages).includes('THE BARREL TEXT')
        ? { text: ['The barrel is full.'] }
        : { text: ['Long ', 'work.'], hold: { behind: 'Long ', until: ends.opened } };
    const chat = await emptyChat();
    await say(chat, 'cut the hedge of the sidebar');
    await chat.getByRole('log').getByText('Long', { exact: true }).waitFor();
    await runCommand(page, 'Telos: Run Skill...');
    const list = page.locator('.quick-input-list .monaco-list-row');
    await list.filter({ hasText: 'barrel' }).first().click();
    const box = page.locator('.quick-input-widget', { hasText: 'Run barrel' }).locator('input[type="text"]');
    await box.fill('how full');
    // Whoever looks something up in the chat finds the box and its words again.
    await chat.getByRole('textbox', { name: 'Message Telos' }).click();
    assert.equal(await box.inputValue(), 'how full');
    await box.fill('how full is it');
    await box.press('Enter');
    await list.filter({ hasText: 'Wait for Its End' }).waitFor();
    await workbench.screenshot('second-chat-asked');
    await list.filter({ hasText: 'Open a Second Chat' }).click();
    const [second] = await panelsOf('how full is it');
    await second!.getByRole('log').getByText('The barrel is full.').waitFor();
    assert.equal(await chat.locator('.end-completed').count(), 0, 'the first run was disturbed');
    ends.open();
    await chat.locator('.end-completed').waitFor();
  });
});
