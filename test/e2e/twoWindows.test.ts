/** Two windows of a real VS Code and two rows of command lines work on the same folders at once; afterwards everything is there. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Frame } from 'playwright-core';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import { commandLines } from '../faults/doorLines.ts';
import { type Door, problemsAfter, roundsOf, seedFiles, turnOf } from '../faults/doorsWorld.ts';
import { fetchCodeServer } from '../vscode/codeServer.ts';
import { startServer } from '../vscode/server.ts';
import { chatFrame, openWorkbench, type Workbench } from '../vscode/workbench.ts';
import { freshWorld, testVariables } from '../vscode/world.ts';

const rounds = process.env['TELOS_NIGHTLY'] === '1' ? 4 : 2;
const doors: readonly Door[] = [
  { name: 'w1', isWindow: true, rounds },
  { name: 'w2', isWindow: true, rounds },
  { name: 'c1', isWindow: false, rounds },
  { name: 'c2', isWindow: false, rounds },
];

describe('two windows and a command line', () => {
  const undo: (() => unknown)[] = [];
  const windows: Workbench[] = [];

  afterEach(async function () {
    if (this.currentTest?.state === 'failed')
      for (const [index, window] of windows.entries())
        console.error(`A window at the failure: ${await window.screenshot(`two-windows-failed-${index}`)}`);
    for (const step of undo.splice(0).reverse()) await step();
  });

  it('lose nothing of what each other grants, accepts, installs and logs', async function () {
    // The first run on a machine fetches VS Code.
    this.timeout(10 * 60_000);
    const vscode = await fetchCodeServer(console.log, AbortSignal.timeout(10 * 60_000));
    const model = await startAnthropicServer({ turns: turnOf });
    undo.push(() => model.close());
    const world = await freshWorld();
    undo.push(() => world.remove());
    for (const [path, text] of Object.entries(seedFiles(doors))) {
      await mkdir(dirname(join(world.dir, path)), { recursive: true });
      await writeFile(join(world.dir, path), text);
    }
    const env = {
      ...testVariables(world),
      ANTHROPIC_BASE_URL: model.url,
      ANTHROPIC_API_KEY: 'key-for-a-test',
      TELOS_ROUTING_MODE: 'name',
    };
    const { profile, extensions, workspace: folder } = world;
    const server = await startServer({ vscode, profile, extensions, folder, port: 0, env, trusted: true });
    undo.push(() => server.stop());
    for (const _ of [1, 2]) {
      const window = await openWorkbench(server.url);
      windows.push(window);
      undo.push(() => window.close());
    }
    const chats = await Promise.all(windows.map(window => chatFrame(window)));
    const [told] = await Promise.all([
      Promise.all(doors.slice(2).map(door => commandLines(door, world.dir, world.workspace, env))),
      ...chats.map((chat, index) => chatRounds(chat, doors[index]!)),
    ]);
    assert.deepEqual(told.flat(), []);
    assert.deepEqual(await problemsAfter(world.dir, doors, 'chat'), []);
  });
});

/** Each round a skill of another agent, whose card and command are allowed for always. */
async function chatRounds(chat: Frame, door: Door): Promise<void> {
  const conversation = chat.getByRole('log', { name: 'Conversation' });
  for (const [index, key] of roundsOf(door).entries()) {
    await chat.getByRole('textbox', { name: 'Message Telos' }).fill(`round ${key} with one-${key}`);
    await chat.locator('button.run-button.primary:enabled').waitFor();
    await chat.getByRole('textbox', { name: 'Message Telos' }).press('Enter');
    const run = conversation.locator('.run').nth(index);
    await run.getByRole('button', { name: 'More answers' }).click();
    await run.getByRole('button', { name: /^(?:Always Allow|Trust )/ }).click();
    await run.locator('.end-completed').waitFor();
  }
}
