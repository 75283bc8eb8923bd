/** A conversation in a real VS Code against a server in wire format: follow-up, edit and resend, stop, a reload in the middle, code into the editor. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import type { Frame, Locator } from 'playwright-core';
import { gate, never } from '../eventually.ts';
import type { AnthropicTurn } from '../fakes/anthropicServer.ts';
import type { FakeServer, ReceivedRequest } from '../fakes/loopback.ts';
import {
  type EditorSession,
  firstStartLimit,
  openEditorSession,
  reloadShowing,
} from '../vscode/editorSession.ts';
import { descendants } from '../vscode/processTree.ts';
import { chatFrame, runCommand, type Workbench } from '../vscode/workbench.ts';
import { keptRun } from '../vscode/world.ts';

/** The process below the server in which extensions run. */
async function extensionHostOf(server: number): Promise<number> {
  for (const pid of await descendants(server)) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command.includes('--type=extensionHost')) return pid;
  }
  return assert.fail('no extension host runs below the server');
}

describe('conversation in a real VS Code', () => {
  let session: EditorSession | undefined;
  let serverPid: number;
  let model: FakeServer;
  let workbench: Workbench;
  let chat: Frame;
  /** What the model answers next; by default the number of the request. */
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
    serverPid = session.server.pid;
    chat = await chatFrame(workbench);
  });

  beforeEach(() => {
    answer = (_request, index) => ({ text: [`Answer ${index + 1}.`] });
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed') {
      console.error(`The window at the failure: ${await workbench.screenshot('conversation-failed')}`);
    }
    await runCommand(workbench.page, 'Telos: New Conversation');
    await log().getByText('What do you want to do?').waitFor();
  });

  after(() => session?.close());

  /** An answer that stops in its middle, until it is released. */
  const drops = (count: number, last: number, until: Promise<unknown> = never) => ({
    text: Array.from({ length: count }, (_, at) => `drop${at} `),
    hold: { behind: `drop${last} `, until },
  });

  const log = (): Locator => chat.getByRole('log', { name: 'Conversation' });
  const button = (name: string): Locator => chat.getByRole('button', { name, exact: true });
  const runs = (): Locator => log().locator('.run');
  const lastMessages = (): string => JSON.stringify(model.requests.at(-1)?.body.messages);

  async function say(text: string): Promise<void> {
    await chat.getByRole('textbox', { name: 'Message Telos' }).fill(text);
    await chat.locator('button.run-button.primary:enabled').waitFor();
    await chat.getByRole('textbox', { name: 'Message Telos' }).press('Enter');
  }

  async function completed(count: number): Promise<void> {
    await log()
      .locator('.end-completed')
      .nth(count - 1)
      .waitFor();
  }

  it('goes on with the skill of the first run, changes to another that is named, and sends all that was said', async () => {
    await say('look into the barrel');
    await completed(1);
    await say('is it enough for a week?');
    await completed(2);
    assert.equal(await log().locator('.route').count(), 1);
    assert.match(lastMessages(), /THE BARREL TEXT.*Answer 1\..*is it enough for a week/);
    assert.equal(lastMessages().split('THE BARREL TEXT').length, 2);
    await chat.getByRole('button', { name: /^Next request: barrel of garden/ }).waitFor();
    await workbench.screenshot('two-turns');
    await say('then cut the hedge');
    await log().getByText('hedge (garden): named in your request').waitFor();
    await completed(3);
    assert.match(lastMessages(), /Answer 2\..*THE HEDGE TEXT/);
  });

  it('drops what came behind a request that is edited and sent again', async () => {
    await say('look into the barrel');
    await completed(1);
    await say('is it enough for a week?');
    await completed(2);
    await runs().first().locator('.request').hover();
    await runs().first().getByRole('button', { name: 'Edit request' }).click();
    await chat.getByRole('textbox', { name: 'Edit request' }).fill('look into the barrel and the well');
    await chat.getByRole('textbox', { name: 'Edit request' }).press('Enter');
    await log().getByText('look into the barrel and the well').waitFor();
    await completed(1);
    assert.equal(await runs().count(), 1);
    assert.doesNotMatch(lastMessages(), /Answer|enough/);
  });

  it('compacts the conversation on a word, shows its summary, and takes it back', async () => {
    answer = request =>
      /Write that summary/.test(JSON.stringify(request.body.messages))
        ? { text: ['The barrel holds THREE HUNDRED litres.'] }
        : { text: [`It is long: ${'rain and more rain. '.repeat(300)}`] };
    await say('look into the barrel');
    await completed(1);
    await chat.getByRole('button', { name: /^Context 0%: \d+ of 1,000,000 tokens$/ }).click();
    await workbench.screenshot('context-parts');
    await button('Compact').click();
    const row = log().getByText(/Compacted: the model is sent about [\d,]+ tokens in place of [\d,]+/);
    await row.click();
    await log().getByText('The barrel holds THREE HUNDRED litres.').waitFor();
    await workbench.screenshot('compacted');
    await completed(2);
    await say('how much?');
    await completed(3);
    assert.match(lastMessages(), /THE BARREL TEXT.*THREE HUNDRED.*how much/);
    assert.doesNotMatch(lastMessages().replace(/how much.*/, ''), /more rain/);
    await button('Undo').click();
    await log()
      .getByText('The compaction is undone: the model is sent the whole conversation again.')
      .waitFor();
    await completed(4);
    await say('and now?');
    await completed(5);
    assert.match(lastMessages(), /THE BARREL TEXT.*more rain.*how much/);
    assert.doesNotMatch(lastMessages(), /THREE HUNDRED/);
  });

  it('stops at once, and lets what waits wait', async () => {
    answer = () => drops(1_000, 500);
    await say('look into the barrel');
    await button('Stop').waitFor();
    await log().getByText('barrel (garden): named in your request').first().waitFor();
    await say('and the well');
    await chat.getByRole('list', { name: 'Waiting requests' }).getByText('and the well').waitFor();
    const stopMs = await chat.evaluate(async () => {
      const done = new Promise<number>(resolve => {
        const look = (): void => {
          if (document.querySelector('.end-cancelled')) resolve(performance.now());
          else requestAnimationFrame(look);
        };
        look();
      });
      const from = performance.now();
      document.querySelector<HTMLButtonElement>('button[aria-label="Stop"]')?.click();
      return (await done) - from;
    });
    console.log(`      from the press of Stop to the cancelled run: ${stopMs.toFixed(0)} ms`);
    answer = () => ({ text: ['The well is deep.'] });
    await button('Send now').click();
    await completed(1);
    await log().getByText('The well is deep.').waitFor();
  });

  it('shows all of a run whose view was reloaded in its middle, and what was typed', async () => {
    const seen = gate();
    answer = () => drops(100, 60, seen.opened);
    await say('look into the barrel');
    await log().getByText('drop5').waitFor();
    await chat.getByRole('textbox', { name: 'Message Telos' }).fill('half a thought');
    const old = chat;
    await runCommand(workbench.page, 'Developer: Reload Webviews');
    while (!old.isDetached()) await workbench.page.waitForTimeout(50);
    chat = await chatFrame(workbench);
    await log().getByText('drop0 ').waitFor();
    assert.equal(await log().locator('.end-completed').count(), 0, 'the run was over before the reload');
    await workbench.screenshot('reloaded-in-the-middle');
    seen.open();
    await completed(1);
    const shown = (await log().locator('.markdown').textContent()) ?? '';
    assert.equal(shown.trim(), Array.from({ length: 100 }, (_, at) => `drop${at}`).join(' '));
    assert.equal(await chat.getByRole('textbox', { name: 'Message Telos' }).inputValue(), 'half a thought');
    await chat.getByRole('textbox', { name: 'Message Telos' }).fill('');
  });

  it("shows the sidebar's conversation again in a reloaded window, and opens an older one", async () => {
    await say('look into the barrel');
    await completed(1);
    const first = (await log().locator('.markdown').first().textContent())?.trim() ?? '';
    await runCommand(workbench.page, 'Telos: New Conversation');
    await log().getByText('What do you want to do?').waitFor();
    await say('cut the hedge');
    await completed(1);
    chat = await reloadShowing(session!, 'cut the hedge');
    await completed(1);
    await log().getByText('hedge (garden): named in your request').waitFor();
    await runCommand(workbench.page, 'Telos: Open Conversation...');
    const rows = workbench.page.locator('.quick-input-list .monaco-list-row');
    await rows.filter({ hasText: 'look into the barrel' }).first().click();
    await log().getByText('barrel (garden): named in your request').waitFor();
    await log().getByText(first).waitFor();
    await say('is it enough for a week?');
    await completed(2);
    assert.match(lastMessages(), /THE BARREL TEXT.*is it enough for a week/);
    assert.ok(lastMessages().includes(first));
  });

  it('says of a run that it was interrupted when its extension host was killed, and runs it again', async () => {
    const text = Array.from({ length: 100 }, (_, at) => `drip${at} `);
    answer = () => ({ text, hold: { behind: 'drip30 ', until: never } });
    await say('look into the barrel');
    await log().getByText('drip9').waitFor();
    await keptRun(session!.world, 'drip9');
    const old = chat;
    process.kill(await extensionHostOf(serverPid), 'SIGKILL');
    while (!old.isDetached()) await workbench.page.waitForTimeout(50);
    chat = await chatFrame(workbench);
    await log().getByText('drip5').waitFor();
    await log().getByText('Interrupted').waitFor();
    await workbench.screenshot('host-restarted');
    answer = () => ({ text: ['It is deep.'] });
    await button('Retry').click();
    await completed(1);
    assert.equal(await log().locator('.run').count(), 1);
    assert.doesNotMatch(lastMessages(), /drip5/);
  });

  it('puts code at the cursor and into a new file', async () => {
    answer = () => ({ text: ['Here:\n\n```python\nprint("rain")\n```\n'] });
    await say('look into the barrel');
    await completed(1);
    await button('Open code in a new file').click();
    const editor = workbench.page.locator('.monaco-editor .view-lines').first();
    await editor.getByText('print("rain")').waitFor();
    await workbench.page.getByRole('button', { name: 'Python' }).waitFor();
    await button('Insert code at the cursor').click();
    await workbench.page.waitForFunction(
      () => document.querySelector('.monaco-editor .view-lines')?.textContent?.split('rain').length === 3,
    );
    await workbench.screenshot('code-inserted');
  });
});
