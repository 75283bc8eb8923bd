/**
 * What the tree costs in a real VS Code: the worst pause of the extension host while 1,249 skills are listed beside a host that does nothing,
 * and how soon a new one shows beside a status bar item that follows the same folder.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { cp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { tempFolder } from '../fakes/tempFolder.ts';
import { fetchCodeServer } from '../vscode/codeServer.ts';
import { root } from '../vscode/paths.ts';
import { startServer } from '../vscode/server.ts';
import { openWorkbench, runCommand } from '../vscode/workbench.ts';
import { freshWorld, testVariables } from '../vscode/world.ts';
import { type Figure, figureLine, median } from './measure.ts';

/** As many as the public collection that Telos is tried on. */
const skillCount = 1249;
const skillsPerAgent = 50;
const windows = 3;
const addedSkills = 5;

/** Each window has an extension host of its own, which has read nothing yet. */
export async function treeFigures(): Promise<Figure[]> {
  const vscode = await fetchCodeServer(console.log, AbortSignal.timeout(10 * 60_000));
  const undo: (() => unknown)[] = [];
  try {
    const packs = tempFolder(manySkills());
    undo.push(() => packs.remove());
    const world = await freshWorld({ skills: packs.path });
    undo.push(() => world.remove());
    await cp(
      join(root, 'test', 'fixtures', 'delay-extension'),
      join(world.extensions, 'telos.telos-delay-0.0.1'),
      { recursive: true },
    );
    const delayFile = join(world.dir, 'delay.json');
    const server = await startServer({
      vscode,
      profile: world.profile,
      extensions: world.extensions,
      folder: world.workspace,
      port: 0,
      env: { ...testVariables(world), TELOS_DELAY_FILE: delayFile },
      trusted: true,
    });
    undo.push(() => server.stop());
    const idle: number[] = [];
    const listing: number[] = [];
    const shown: Shown[] = [];
    for (let index = 1; index <= windows; index++) {
      const workbench = await openWorkbench(server.url);
      try {
        const { page } = workbench;
        await tree(page).locator('.monaco-list-row').filter({ hasText: 'task-0' }).first().waitFor();
        idle.push(await worstDelay(page, delayFile, () => page.waitForTimeout(2_000)));
        listing.push(await worstDelay(page, delayFile, () => listAll(page)));
        if (index < windows) continue;
        for (let added = 0; added < addedSkills; added++)
          shown.push(await timeToShow(page, world.skills, added));
      } catch (error) {
        throw new Error(`The window is in ${await workbench.screenshot('bench-tree')}.`, { cause: error });
      } finally {
        await workbench.close();
      }
    }
    console.log(
      `(worst delay of the host: ${whole(idle)} ms doing nothing, ${whole(listing)} ms listing ${skillCount} skills; shown after ${whole(shown.map(({ row }) => row))} ms, in a bare status bar item after ${whole(shown.map(({ bare }) => bare))} ms)`,
    );
    return [
      {
        name: `worst pause of the host, tree of ${skillCount} skills`,
        unit: 'ms',
        ours: median(listing),
        bare: median(idle),
        limit: 6,
      },
      {
        name: 'a SKILL.md is written to its row in the tree',
        unit: 'ms',
        ours: median(shown.map(({ row }) => row)),
        bare: median(shown.map(({ bare }) => bare)),
        // Telos waits for more changes before it looks, which the item does not.
        limit: 40,
      },
    ];
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

const whole = (times: readonly number[]): string => times.map(Math.round).join(', ');

function manySkills(): Record<string, string> {
  const files: Record<string, string> = {};
  for (let index = 0; index < skillCount; index++) {
    const agent = `area-${Math.floor(index / skillsPerAgent)}`;
    files[`${agent}/skills/task-${index}/SKILL.md`] =
      `---\nname: task-${index}\ndescription: Does task ${index}, when somebody asks for it.\nmetadata: {"openclaw": {"requires": {"bins": ["git"]}}}\n---\n# Task ${index}\n\n${'Do what is asked, in small steps.\n'.repeat(40)}`;
  }
  return files;
}

/** In milliseconds, between the two commands of the extension that measures. */
async function worstDelay(page: Page, file: string, work: () => Promise<unknown>): Promise<number> {
  await rm(file, { force: true });
  await runCommand(page, 'Delay of the Host: Start');
  await work();
  await runCommand(page, 'Delay of the Host: Stop');
  for (let tries = 0; tries < 100; tries++) {
    const text = await readFile(file, 'utf8').catch(() => '');
    if (text) return Number(JSON.parse(text).worstMs);
    await page.waitForTimeout(50);
  }
  throw new Error('The extension that measures the host has written nothing.');
}

/** Has all files read again, goes to the tree's last row, and waits for the rest. */
async function listAll(page: Page): Promise<void> {
  await runCommand(page, 'Telos: Refresh');
  await tree(page).locator('.monaco-list').first().focus();
  await page.keyboard.press('End');
  await tree(page).locator('.monaco-list-row').filter({ hasText: 'area-9' }).first().waitFor();
  await page.waitForTimeout(3_000);
}

/** From the end of the write, in milliseconds: to the row of Telos, and to the status bar item. */
interface Shown {
  row: number;
  bare: number;
}

/**
 * The row is the tree's first, so it is in sight when it comes. The page itself looks at each of its frames: a locator looks only twice in
 * the first second and a half, which is the figure then.
 */
async function timeToShow(page: Page, skills: string, index: number): Promise<Shown> {
  await page.keyboard.press('Home');
  const name = `added-${index}`;
  const folder = join(skills, 'area-0', 'skills', name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'SKILL.md'), `---\nname: ${name}\ndescription: Just added.\n---\nDo it.\n`);
  const written = performance.now();
  const until = async (selector: string, text: string): Promise<number> => {
    await page.waitForFunction(
      ([where, words]) =>
        [...document.querySelectorAll(where!)].some(element => element.textContent.includes(words!)),
      [selector, text],
      { polling: 'raf' },
    );
    return performance.now() - written;
  };
  const [row, bare] = await Promise.all([
    until('.monaco-list-row', name),
    until('.statusbar-item', `bare ${name}`),
  ]);
  return { row, bare };
}

const tree = (page: Page) =>
  page
    .locator('.pane')
    .filter({ has: page.getByText('Agents & Skills') })
    .first();

if (import.meta.main) for (const figure of await treeFigures()) console.log(figureLine(figure));
