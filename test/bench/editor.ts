/**
 * What Telos costs in a real VS Code, beside a bare extension in the same windows: its activation, as the editor itself counts it, and the
 * way of a key press to the model.
 */
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import type { Frame, Locator, Page } from 'playwright-core';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { fetchCodeServer } from '../vscode/codeServer.ts';
import { root } from '../vscode/paths.ts';
import { startServer } from '../vscode/server.ts';
import { chatFrame, openWorkbench, runCommand, type Workbench } from '../vscode/workbench.ts';
import { freshWorld, testVariables } from '../vscode/world.ts';
import { type Figure, figureLine, median } from './measure.ts';

const windows = 5;
const requestsPerSide = 11;

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
    await cp(
      join(root, 'test', 'fixtures', 'bare-extension'),
      join(world.extensions, 'telos.telos-bare-0.0.1'),
      { recursive: true },
    );
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
    const activations: Ways = { ours: [], bare: [] };
    let ways: Ways = { ours: [], bare: [] };
    for (let index = 1; index <= windows; index++) {
      const workbench = await openWorkbench(server.url);
      try {
        const chat = await chatFrame(workbench);
        activations.ours.push(await activationTime(workbench.page, 'Telos'));
        activations.bare.push(await activationTime(workbench.page, 'telos-bare'));
        if (index === windows) ways = await keyPresses(workbench, chat, model);
      } finally {
        await workbench.close();
      }
    }
    console.log(
      `(activations: ${whole(activations.ours)} ms, of a bare extension ${whole(activations.bare)} ms; key presses: ${whole(ways.ours)} ms, in a bare extension ${whole(ways.bare)} ms)`,
    );
    return [
      {
        name: 'activation in VS Code, load and activate()',
        unit: 'ms',
        ours: median(activations.ours),
        // The editor counts whole milliseconds.
        bare: Math.max(1, median(activations.bare)),
        limit: 25,
      },
      {
        name: 'key press in the chat to first request, warm',
        unit: 'ms',
        ours: median(ways.ours),
        bare: median(ways.bare),
        limit: 2,
      },
    ];
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

const whole = (values: readonly number[]): string => values.map(Math.round).join(', ');

/** Times of Telos and of the bare extension, in milliseconds. */
interface Ways {
  ours: number[];
  bare: number[];
}

/** Sends requests from the chat and from a bare extension in the same window, in turn. */
async function keyPresses(workbench: Workbench, chat: Frame, model: FakeServer): Promise<Ways> {
  const ways: Ways = { ours: [], bare: [] };
  await runCommand(workbench.page, 'Bare: Open');
  const bare = await bareFrame(workbench.page);
  const run = chat.locator('button.run-button.primary:enabled');
  for (let turn = 0; turn <= requestsPerSide; turn++) {
    const ours = await keyPress(chat.getByRole('textbox', { name: 'Message Telos' }), model, {
      ready: () => run.waitFor(),
      answered: () => chat.locator('.end-completed').nth(turn).waitFor(),
    });
    const other = await keyPress(bare.getByRole('textbox', { name: 'Message Bare' }), model, {
      answered: () => bare.getByText(`answer ${turn + 1}`, { exact: true }).waitFor(),
    });
    // The first one loads what a run needs.
    if (turn === 0) continue;
    ways.ours.push(ours);
    ways.bare.push(other);
  }
  return ways;
}

async function keyPress(
  textbox: Locator,
  { requests }: FakeServer,
  { ready, answered }: { ready?: () => Promise<void>; answered: () => Promise<void> },
): Promise<number> {
  const before = requests.length;
  await textbox.fill('look into the barrel');
  await ready?.();
  const pressedAt = performance.now();
  await textbox.press('Enter');
  await answered();
  return (requests[before]?.arrivedAt ?? Number.NaN) - pressedAt;
}

async function bareFrame(page: Page): Promise<Frame> {
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; ) {
    for (const frame of page.frames()) {
      const fields = await frame
        .getByRole('textbox', { name: 'Message Bare' })
        .count()
        .catch(() => 0);
      if (fields > 0) return frame;
    }
    await page.waitForTimeout(100);
  }
  throw new Error('The bare extension shows no text field.');
}

/** What the list *Running Extensions* says about an extension: reading its code and `activate()` together. */
async function activationTime(page: Page, name: string): Promise<number> {
  await runCommand(page, 'Developer: Show Running Extensions');
  const named = page.locator('.name', { hasText: new RegExp(`^${name}$`) });
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
  if (!time) throw new Error(`The editor says no activation time of ${name}: ${text}`);
  return Number(time);
}

if (import.meta.main) for (const figure of await editorFigures()) console.log(figureLine(figure));
