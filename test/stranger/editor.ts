/** A newcomer in a real VS Code with an empty home folder, into which the packed extension was installed. */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Frame, Locator } from 'playwright-core';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { fetchCodeServer } from '../vscode/codeServer.ts';
import { firstStartLimit } from '../vscode/editor.ts';
import { root } from '../vscode/paths.ts';
import { startServer } from '../vscode/server.ts';
import { anotherWindow, chatFrame, openWorkbench, runCommand, type Workbench } from '../vscode/workbench.ts';
import type { Step } from './steps.ts';

const run = promisify(execFile);
const key = 'sk-ant-good-0123456789';

/** Returns the steps, with pictures in `pictures`. `copy` is a built copy of the repository. */
export async function inEditor(copy: string, pictures: string): Promise<Step[]> {
  const vscode = await fetchCodeServer(console.log, AbortSignal.timeout(firstStartLimit));
  const folder = tempFolder({
    'home/project/tasks.md': '# Tasks\n',
    'profile/.keep': '',
    'extensions/.keep': '',
  });
  const undo: (() => unknown)[] = [() => folder.remove()];
  try {
    const [home, extensions, profile] = ['home', 'extensions', 'profile'].map(name =>
      join(folder.path, name),
    );
    const vsix = await packExtension(copy, folder.path);
    const began = performance.now();
    await run(process.execPath, [
      join(vscode, 'out', 'server-main.js'),
      '--install-extension',
      vsix,
      ...['--extensions-dir', extensions!, '--server-data-dir', profile!, '--accept-server-license-terms'],
    ]);
    const installed = (performance.now() - began) / 1000;
    const model = await startAnthropicServer({ key, turns: [{ text: ['Hello from a model.'] }] });
    undo.push(() => model.close());
    const server = await startServer({
      vscode,
      profile: profile!,
      extensions: extensions!,
      folder: join(home!, 'project'),
      port: 0,
      env: {
        PATH: process.env['PATH'],
        HOME: home,
        ANTHROPIC_BASE_URL: model.url,
        OLLAMA_BASE_URL: 'http://127.0.0.1:9',
      },
      settings: { 'workbench.secondarySideBar.defaultVisibility': 'visibleInWorkspace' },
      trusted: true,
    });
    undo.push(() => server.stop());
    const workbench = await openWorkbench(server.url);
    undo.push(() => workbench.close());
    return await walk(workbench, installed, pictures);
  } finally {
    for (const one of undo.reverse()) await one();
  }
}

async function packExtension(copy: string, folder: string): Promise<string> {
  const file = join(copy, 'package.json');
  const manifest = JSON.parse(readFileSync(file, 'utf8'));
  // It is built already.
  delete manifest.scripts['vscode:prepublish'];
  writeFileSync(file, JSON.stringify(manifest));
  const vsix = join(folder, 'telos.vsix');
  await run(
    process.execPath,
    [join(root, 'node_modules/@vscode/vsce/vsce'), 'package', '--no-dependencies', '--out', vsix],
    { cwd: copy },
  );
  return vsix;
}

async function walk(workbench: Workbench, installed: number, pictures: string): Promise<Step[]> {
  mkdirSync(pictures, { recursive: true });
  const { page } = workbench;
  const steps: Step[] = [];
  let clicks = 0;
  const click = async (what: Locator): Promise<void> => {
    await what.click();
    clicks += 1;
  };
  const step = async (name: string, act: () => Promise<Workbench>): Promise<void> => {
    const began = performance.now();
    clicks = 0;
    const shown = await act();
    const seconds = (performance.now() - began) / 1000;
    const picture = join(pictures, `editor-${steps.length + 1}.png`);
    await shown.page.screenshot({ path: picture });
    steps.push({ on: 'editor', name, seconds, clicks, picture });
  };
  const buttonIn = (frame: Frame, name: string): Locator => frame.getByRole('button', { name }).first();

  await step('First answer without a key', async () => {
    await click(page.locator('.activitybar').getByRole('tab', { name: 'Telos' }));
    const sample = await anotherWindow(workbench, () =>
      click(page.getByRole('button', { name: 'Try the Sample' }).first()),
    );
    const chat = await chatFrame(sample);
    await click(buttonIn(chat, 'Send'));
    await chat.getByText('Your plan is in').first().waitFor();
    return sample;
  });
  steps[0]!.seconds += installed;

  await step('First answer with a key', async () => {
    await page.bringToFront();
    await runCommand(page, 'Telos: Set API Key...');
    clicks += 1;
    await click(page.locator('.quick-input-list .monaco-list-row', { hasText: 'Anthropic' }).first());
    const input = page.locator('.quick-input-widget input[type="password"]').first();
    await input.fill(key);
    await input.press('Enter');
    await click(page.locator('.quick-input-list .monaco-list-row', { hasText: 'claude' }).first());
    await page.keyboard.press('ControlOrMeta+K');
    await page.keyboard.press('ControlOrMeta+G');
    clicks += 1;
    const chat = await chatFrame(workbench);
    await chat.locator('.composer textarea').fill('Say hello');
    await click(buttonIn(chat, 'Send'));
    await chat.getByText('Hello from a model.').first().waitFor();
    return workbench;
  });
  return steps;
}
