/** What Telos costs in a real VS Code: its activation, as the editor itself counts it, and the way of a key press to the model. */
import type { Page } from 'playwright-core';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { fetchCodeServer } from '../vscode/codeServer.ts';
import { startServer } from '../vscode/server.ts';
import { chatFrame, openWorkbench, runCommand } from '../vscode/workbench.ts';
import { freshWorld, testVariables } from '../vscode/world.ts';
import { type Figure, median } from './measure.ts';

const windows = 5;
const requestsPerWindow = 7;

/** Opens several windows one after the other, each with an extension host of its own, and sends requests in the last one. */
export async function editorFigures(): Promise<Figure[]> {
  const vscode = await fetchCodeServer(console.log, AbortSignal.timeout(10 * 60_000));
  const undo: (() => unknown)[] = [];
  try {
    const model = await startAnthropicServer({ turns: [{ text: ['ok'] }] });
    undo.push(() => model.close());
    const pack = tempFolder({
      'garden/skills/barrel/SKILL.md': '---\nname: barrel\ndescription: Rain barrel\n---\nLook.\n',
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
        ANTHROPIC_API_KEY: 'bench-key-0123456789',
      },
      trusted: true,
    });
    undo.push(() => server.stop());
    const activations: number[] = [];
    const ways: number[] = [];
    for (let index = 1; index <= windows; index++) {
      const workbench = await openWorkbench(server.url);
      try {
        const chat = await chatFrame(workbench);
        activations.push(await activationTime(workbench.page));
        if (index < windows) continue;
        const textbox = chat.getByRole('textbox', { name: 'Message Telos' });
        for (let turn = 0; turn <= requestsPerWindow; turn++) {
          const before = model.requests.length;
          await textbox.fill('look into the barrel');
          await chat.locator('button.run-button.primary:enabled').waitFor();
          const pressedAt = performance.now();
          await textbox.press('Enter');
          await chat.locator('.end-completed').nth(turn).waitFor();
          // The first one loads what a run needs.
          if (turn > 0) ways.push((model.requests[before]?.arrivedAt ?? Number.NaN) - pressedAt);
        }
      } finally {
        await workbench.close();
      }
    }
    console.log(
      `(activations: ${activations.join(', ')} ms; key presses: ${ways.map(Math.round).join(', ')} ms)`,
    );
    return [
      alone('activation in VS Code, load and activate()', median(activations)),
      alone('key press in the chat to first request, warm', median(ways)),
    ];
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

const alone = (name: string, ours: number): Figure => ({
  name,
  unit: 'ms',
  ours,
  bare: undefined,
  limit: 50,
});

/** What the list *Running Extensions* says about Telos: reading its code and `activate()` together. */
async function activationTime(page: Page): Promise<number> {
  await runCommand(page, 'Developer: Show Running Extensions');
  const named = page.locator('.name', { hasText: /^Telos$/ });
  const list = page.locator('.runtime-extensions-editor');
  const row = list.locator('.extension').filter({ has: named });
  await list.locator('.extension').first().waitFor();
  // The list draws only what is in sight, with what has taken longest first.
  await list.locator('.monaco-list').first().focus();
  for (let pages = 0; pages < 20 && (await row.count()) === 0; pages++) {
    await page.keyboard.press('PageDown');
    await page.waitForTimeout(100);
  }
  const text = (await row.locator('.activation-time').textContent()) ?? '';
  const time = /(\d+)\s*ms/.exec(text)?.[1];
  if (!time) throw new Error(`The editor says no activation time of Telos: ${text}`);
  return Number(time);
}
