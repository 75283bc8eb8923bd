/** The main job as a user does it: in a real VS Code, through the chat view, down to the file on disk and the log. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Frame, Locator } from 'playwright-core';
import type { ToWebview } from '../../src/protocol/webview.ts';
import { eventually } from '../eventually.ts';
import type { AnthropicTurn } from '../fakes/anthropicServer.ts';
import { fetchCodeServer } from '../vscode/codeServer.ts';
import { type EditorSession, firstStartLimit, openEditorSession } from '../vscode/editorSession.ts';
import { chatFrame, runCommand } from '../vscode/workbench.ts';
import type { World } from '../vscode/world.ts';

const barrel = {
  'garden/skills/barrel/SKILL.md':
    '---\nname: barrel\ndescription: Looks into the rain barrel.\n---\nLook into the barrel.\n',
};

describe('chat in a real VS Code', () => {
  let session: EditorSession | undefined;
  /** What the model of the garden answers from now on, in this order. */
  let turns: AnthropicTurn[] = [];
  let garden: EditorSession | undefined;

  before(async function () {
    this.timeout(firstStartLimit);
    await fetchCodeServer(console.log, AbortSignal.timeout(firstStartLimit));
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed' && session) {
      const picture = await session.workbench.screenshot('e2e-failed');
      console.error(`The window at the failure: ${picture}`);
    }
  });

  after(() => session?.close());

  /** Opens the sample, or a new conversation about the garden with a model of its own. */
  async function open(
    what: 'sample' | 'garden',
    answers: AnthropicTurn[] = [],
  ): Promise<EditorSession & { chat: Frame }> {
    turns = answers;
    if (what === 'sample' || !garden) {
      await session?.close();
      session = undefined;
      garden = undefined;
      session = await openEditorSession(
        what === 'sample'
          ? { withoutAccount: true }
          : { skills: barrel, model: { turns: () => turns.shift() ?? {} } },
      );
      if (what === 'garden') garden = session;
    } else await runCommand(garden.workbench.page, 'Telos: New Conversation');
    const chat = await chatFrame(session!.workbench);
    if (what === 'garden') await chat.getByText('What do you want to do?').waitFor();
    return { ...session!, chat };
  }

  it('runs the sample skill from Send to the written file, with no account', async () => {
    const { chat, workbench, world } = await open('sample');
    const tree = workbench.page.getByRole('treeitem', { name: /kickoff/ });
    await tree.waitFor();
    await chat.getByRole('button', { name: /^kickoff/ }).waitFor();
    await workbench.screenshot('first-look');

    const told = await watchHost(chat);
    await chat.getByRole('textbox', { name: 'Message Telos' }).fill('run daily kickoff');
    await chat.getByRole('button', { name: 'Send' }).click();
    const conversation = chat.getByRole('log', { name: 'Conversation' });
    await conversation.getByText('kickoff (kairos): named in your request').waitFor();
    await conversation.getByRole('group', { name: 'Wrote today.md' }).waitFor();
    await ended(conversation);
    await workbench.screenshot('sample-run');

    const batches = (await told()).flatMap(message => (message.type === 'events' ? [message.events] : []));
    const firstCall = batches.findIndex(events => events.some(({ type }) => type === 'tool_start'));
    const steps = batches.slice(0, firstCall).filter(events => events.some(({ type }) => type === 'text'));
    assert.ok(steps.length > 2, `the first text arrived in ${steps.length} steps`);
    assert.match(await readFile(join(world.workspace, 'today.md'), 'utf8'), /^# /);
    const log = await logRecords(world);
    const tools = log.filter(record => record.event === 'tool_call').map(record => record.tool);
    assert.deepEqual(tools, ['list_directory', 'read_file', 'read_file', 'read_file', 'write_file']);
    assert.equal(log.at(0)?.event, 'skill_start');
    assert.equal(log.at(-1)?.event, 'skill_end');
    assert.equal(log.length, tools.length + 2);
  });

  it('draws the formula and the diagram of an answer in the editor, too', async () => {
    const answer = 'It is $E = mc^2$.\n\n```mermaid\ngraph TD\n  A[Rain] --> B[Barrel]\n```\n';
    const { chat, workbench } = await open('garden', [{ text: [answer] }]);
    await chat.getByRole('textbox', { name: 'Message Telos' }).fill('check the barrel');
    await chat.getByRole('button', { name: 'Send', disabled: false }).waitFor();
    await chat.getByRole('textbox', { name: 'Message Telos' }).press('Enter');
    const conversation = chat.getByRole('log', { name: 'Conversation' });
    await ended(conversation);
    await conversation.locator('.formula .katex').waitFor();
    await conversation.locator('.diagram img').waitFor();
    assert.match(
      await conversation
        .locator('.mathnormal')
        .first()
        .evaluate(one => getComputedStyle(one).fontFamily),
      /KaTeX_Math/,
    );
    await workbench.screenshot('answer');
  });

  it('runs a command once it is allowed, and not before', async () => {
    const command = '/bin/echo the barrel is full > barrel.txt && cat barrel.txt';
    const { chat, workbench, world, model } = await open('garden', [
      { text: ['I look ', 'into the barrel.'], toolCalls: [{ name: 'run_command', input: { command } }] },
      { text: ['The barrel is full, ', 'so no rain is needed.'] },
    ]);

    await chat.getByRole('textbox', { name: 'Message Telos' }).fill('check the barrel');
    // Until the host has told the view what there is, nothing can be sent; a person is never that fast.
    await chat.getByRole('button', { name: 'Send', disabled: false }).waitFor();
    await chat.getByRole('textbox', { name: 'Message Telos' }).press('Enter');
    const conversation = chat.getByRole('log', { name: 'Conversation' });
    const card = conversation.getByRole('group', { name: 'Approval: Run this command?' });
    await card.getByRole('button', { name: 'Allow Once' }).waitFor();
    await workbench.screenshot('approval');
    assert.match((await card.textContent()) ?? '', /cat barrel\.txt/);
    const written = join(world.workspace, 'barrel.txt');
    assert.equal(existsSync(written), false, 'the command ran before it was allowed');

    await card.getByRole('button', { name: 'Allow Once' }).click();
    await conversation.getByText('so no rain is needed').waitFor();
    await ended(conversation);
    await conversation.getByRole('group', { name: /^Ran / }).waitFor();
    assert.equal((await readFile(written, 'utf8')).trim(), 'the barrel is full');
    assert.match(JSON.stringify(model.requests.at(-1)?.body), /tool_result.*the barrel is full/);
    await workbench.screenshot('approved-run');
  });

  it('leaves the keyboard to who is writing while it asks', async () => {
    const question = { question: 'Which bed?', choices: ['north', 'south'] };
    const { chat, workbench, world, model } = await open('garden', [
      { toolCalls: [{ name: 'run_command', input: { command: 'cd .. && echo full > barrel.txt' } }] },
      { toolCalls: [{ name: 'write_file', input: { path: '../outside.md', content: 'x' } }] },
      { toolCalls: [{ name: 'ask_user', input: question }] },
      { text: ['Nothing was done.'] },
    ]);
    const { keyboard } = workbench.page;
    const textbox = chat.getByRole('textbox', { name: 'Message Telos' });
    await textbox.fill('check the barrel');
    await chat.getByRole('button', { name: 'Send', disabled: false }).waitFor();
    await textbox.press('Enter');
    let typed = '';
    for (const [asked, refuse] of [
      ['Run this command?', 'Deny'],
      ['Write outside.md?', 'Deny'],
      ['Question from the skill', 'Skip'],
    ] as const) {
      const card = chat.getByRole('group', { name: `Approval: ${asked}` });
      for (const letter of 'no wait ') await keyboard.press(letter === ' ' ? 'Space' : letter);
      await card.getByRole('button', { name: refuse, disabled: false }).waitFor();
      await keyboard.type('stop ');
      typed += 'no wait stop ';
      assert.equal(await textbox.inputValue(), typed);
      await eventually(async () => {
        await keyboard.press('Escape');
        assert.equal(await card.getByRole('button').count(), 0);
      });
    }
    await chat.getByText('Nothing was done.').waitFor();
    for (const name of ['barrel.txt', 'outside.md'])
      assert.equal(existsSync(join(world.workspace, '..', name)), false, name);
    const said = JSON.stringify(model.requests.at(-1)?.body);
    assert.match(said, /The user denied this.*The user denied this.*The user skipped the question/);
    await textbox.fill('');
  });
});

/** The run's last line, which says how it ended. */
async function ended(conversation: Locator): Promise<void> {
  await conversation.locator('.end-completed').waitFor();
}

/** Collects what the host says to the view, for the question whether text arrives bit by bit. */
async function watchHost(chat: Frame): Promise<() => Promise<ToWebview[]>> {
  await chat.evaluate(() => {
    const told: unknown[] = [];
    Object.assign(window, { told });
    window.addEventListener('message', ({ data }) => told.push(data));
  });
  return () => chat.evaluate(() => (window as unknown as { told: ToWebview[] }).told);
}

async function logRecords(world: World): Promise<{ event: string; tool?: string }[]> {
  const folder = join(world.data, 'logs');
  const [file] = (await readdir(folder)).filter(name => name.endsWith('.jsonl'));
  assert.ok(file, 'no log was written');
  const lines = (await readFile(join(folder, file), 'utf8')).trim().split('\n');
  return lines.map(line => JSON.parse(line));
}
