/** Chats in editors of a real VS Code: two runs side by side, each asked about in its own place. */
import assert from 'node:assert/strict';
import type { Frame } from 'playwright-core';
import { type AnthropicTurn, startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { FakeServer, ReceivedRequest } from '../fakes/loopback.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { fetchCodeServer } from '../vscode/codeServer.ts';
import { startServer } from '../vscode/server.ts';
import { chatFrame, chatFrames, openWorkbench, runCommand, type Workbench } from '../vscode/workbench.ts';
import { freshWorld, testVariables } from '../vscode/world.ts';

describe('chats in editors of a real VS Code', () => {
  let model: FakeServer;
  let workbench: Workbench;
  let answer: (request: ReceivedRequest, index: number) => AnthropicTurn;
  const undo: (() => unknown)[] = [];

  before(async function () {
    // The first run on a machine fetches VS Code.
    this.timeout(10 * 60_000);
    const vscode = await fetchCodeServer(console.log, AbortSignal.timeout(10 * 60_000));
    model = await startAnthropicServer({
      turns: (request, index) => answer(request, index),
      chunkDelayMs: 30,
    });
    undo.push(() => model.close());
    const pack = tempFolder({
      'garden/skills/barrel/SKILL.md': '---\nname: barrel\ndescription: Rain barrel\n---\nTHE BARREL TEXT\n',
      'garden/skills/hedge/SKILL.md': '---\nname: hedge\ndescription: Cuts the hedge\n---\nTHE HEDGE TEXT\n',
    });
    undo.push(() => pack.remove());
    const world = await freshWorld({ skills: pack.path });
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
        ANTHROPIC_API_KEY: 'key-for-a-test',
        TELOS_ROUTING_MODE: 'local',
      },
      trusted: true,
    });
    undo.push(() => server.stop());
    workbench = await openWorkbench(server.url);
    undo.push(() => workbench.close());
    await chatFrame(workbench);
  });

  afterEach(async function () {
    if (this.currentTest?.state === 'failed') {
      console.error(`The window at the failure: ${await workbench.screenshot('panel-failed')}`);
    }
  });

  after(async () => {
    for (const step of undo.splice(0).reverse()) await step();
  });

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
    await barrel.getByRole('button', { name: 'Allow once' }).waitFor();
    await runCommand(workbench.page, 'View: Split Editor Right');
    const hedge = await openPanel();
    await say(hedge, 'cut the hedge');
    await hedge.getByRole('button', { name: 'Allow once' }).waitFor();
    await workbench.screenshot('panels-asking');
    await tab(/look into the barrel/)
      .first()
      .waitFor();
    await tab(/cut the hedge/).waitFor();
    await hedge.getByRole('button', { name: 'Allow once' }).click();
    await hedge.getByText('The hedge is done: DONE-hedge.').waitFor();
    assert.equal(await barrel.getByRole('button', { name: 'Allow once' }).count(), 1);
    await barrel.getByRole('button', { name: 'Allow once' }).click();
    await barrel.getByText('The barrel is done: DONE-barrel.').waitFor();
    await workbench.screenshot('panels-done');
  });
});
