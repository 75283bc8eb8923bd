/** Drives a VS Code window in Chromium: opens it, finds the chat view's page inside, and keeps what explains a failure. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { BrowserContextOptions, Frame, Locator, Page } from 'playwright-core';
import { until } from '../eventually.ts';
import { launchChromium } from './chromium.ts';
import { resultsDir } from './paths.ts';

export interface Workbench {
  page: Page;
  /** Lines of the window's console. */
  console(): string;
  /** Writes `test-results/NAME.png` and returns its path. */
  screenshot(name: string): Promise<string>;
  close(): Promise<void>;
}

/** A busy machine needs a while for a first window, and for each thing in it. Milliseconds. */
const windowLimitMs = 60_000;

/** How the pages of windows are. Each frame of a spinner is drawn by the processor here. */
export const windowOptions = {
  viewport: { width: 1280, height: 860 },
  reducedMotion: 'reduce',
} as const satisfies BrowserContextOptions;

/** Opens a window in a Chromium of its own. */
export async function openWorkbench(
  url: string,
  prepare?: (page: Page) => Promise<void>,
): Promise<Workbench> {
  const browser = await launchChromium();
  try {
    const page = await browser.newPage(windowOptions);
    return await showWindow(page, url, () => browser.close(), prepare);
  } catch (error) {
    await browser.close();
    throw error;
  }
}

/** Opens a window in this page. `close` is what its `close` does. */
export async function showWindow(
  page: Page,
  url: string,
  close: () => Promise<void>,
  prepare?: (page: Page) => Promise<void>,
): Promise<Workbench> {
  const workbench = workbenchOf(page, close);
  await prepare?.(page);
  await page.goto(url);
  await page.waitForSelector('.monaco-workbench');
  return workbench;
}

/** Returns the window that `open` has VS Code open besides this one. It ends with this one. */
export async function anotherWindow({ page }: Workbench, open: () => Promise<void>): Promise<Workbench> {
  const [other] = await Promise.all([
    page.context().waitForEvent('page', { timeout: windowLimitMs }),
    open(),
  ]);
  const workbench = workbenchOf(other, () => other.close());
  await other.waitForSelector('.monaco-workbench');
  return workbench;
}

function workbenchOf(page: Page, close: () => Promise<void>): Workbench {
  let lines = '';
  page.on('console', message => {
    lines = `${lines}${message.text()}\n`.slice(-200_000);
  });
  page.setDefaultTimeout(windowLimitMs);
  return {
    page,
    console: () => lines,
    async screenshot(name) {
      await mkdir(resultsDir, { recursive: true });
      const path = join(resultsDir, `${name}.png`);
      await page.screenshot({ path });
      return path;
    },
    close,
  };
}

/** The page of a chat, two frames deep, once its textbox is there; one that is not among `others`. */
export async function chatFrame(workbench: Workbench, others: readonly Frame[] = []): Promise<Frame> {
  const deadline = Date.now() + windowLimitMs;
  while (Date.now() < deadline) {
    const found = (await chatFrames(workbench)).find(frame => !others.includes(frame));
    if (found) return found;
    await workbench.page.waitForTimeout(100);
  }
  throw new Error(`The chat did not appear.\n${workbench.console().slice(-3000)}`);
}

/** The pages of all chats that are shown now. */
export async function chatFrames(workbench: Workbench): Promise<Frame[]> {
  const found: Frame[] = [];
  // By its place: to ask for a role and a name takes long in a page that is just being drawn, and many are asked again and again.
  for (const frame of pagesOf(workbench))
    if (await has(frame.locator('.composer textarea'))) found.push(frame);
  return found;
}

/** The frames in which a page of an extension may be. */
const pagesOf = ({ page }: Workbench): Frame[] => page.frames().filter(frame => frame !== page.mainFrame());

/** Whether there is such a thing now. Its frame may go away while it is asked. */
async function has(what: Locator): Promise<boolean> {
  return (await what.count().catch(() => 0)) > 0;
}

/**
 * Resolves once the window has stored what it must know again after a reload: a value with these words. By itself it stores its layout
 * only when it is idle, and nothing at the reload; it also does when the person turns to another window, so that is what it is given.
 */
export const untilStored = (page: Page, words: string): Promise<void> =>
  untilStores(page, stored => stored.some(([, value]) => value.includes(words)), `nothing with "${words}"`);

/** The same for a page in an editor with this title: resolves once these words are in what the page has kept by itself. */
export const untilPageStored = (page: Page, title: string, words: string): Promise<void> =>
  untilStores(
    page,
    stored =>
      stored
        .flatMap(([key, value]) => (key === layoutKey ? pagesIn(value) : []))
        .some(page => page.title === title && page.state.includes(words)),
    `no page "${title}" with ${words}`,
  );

/** A key and a text. */
type Stored = readonly [key: string, value: string];

const layoutKey = 'memento/workbench.parts.editor';

function untilStores(
  page: Page,
  isThere: (stored: readonly Stored[]) => boolean,
  what: string,
): Promise<void> {
  return until(
    async () => {
      await page.evaluate(turnAway);
      await page.waitForTimeout(300);
      return isThere(await page.evaluate(storedValues));
    },
    `the window has stored ${what}`,
    windowLimitMs,
  );
}

/** Returns the pages in editors as a layout has them. */
function pagesIn(layout: string): { title: string; state: string }[] {
  const found: { title: string; state: string }[] = [];
  JSON.parse(layout, (_key, value) => {
    if (value?.id !== 'workbench.editors.webviewInput') return value;
    const { title, state = null } = JSON.parse(value.value);
    found.push({ title, state: typeof state === 'string' ? state : JSON.stringify(state) });
    return value;
  });
  return found;
}

/** Runs in the window, which then loses the focus and has it again. */
function turnAway(): void {
  for (const [event, isFocused] of Object.entries({ focus: true, blur: false })) {
    Object.defineProperty(document, 'hasFocus', { configurable: true, value: () => isFocused });
    window.dispatchEvent(new Event(event));
  }
  Reflect.deleteProperty(document, 'hasFocus');
  window.dispatchEvent(new Event('focus'));
}

/** Runs in the window. Returns the texts that it has stored. */
async function storedValues(): Promise<Stored[]> {
  const found: Stored[] = [];
  const answer = <Value>(asked: IDBRequest<Value>): Promise<Value> =>
    new Promise((resolve, reject) => {
      asked.onsuccess = () => resolve(asked.result);
      asked.onerror = () => reject(asked.error);
    });
  for (const { name = '' } of await indexedDB.databases()) {
    if (!name.startsWith('vscode-web-state-db-')) continue;
    const database = await answer(indexedDB.open(name));
    try {
      for (const table of database.objectStoreNames) {
        const store = database.transaction(table).objectStore(table);
        const [keys, values] = await Promise.all([answer(store.getAllKeys()), answer(store.getAll())]);
        values.forEach((value, at) => {
          if (typeof value === 'string') found.push([String(keys[at]), value]);
        });
      }
    } finally {
      database.close();
    }
  }
  return found;
}

/** The page of a webview in which `find` finds something. */
export async function frameWith(workbench: Workbench, find: (frame: Frame) => Locator): Promise<Frame> {
  let found: Frame | undefined;
  await until(
    async () => {
      for (const frame of pagesOf(workbench)) if (await has(find(frame))) found = frame;
      if (!found) await workbench.page.waitForTimeout(200);
      return found !== undefined;
    },
    'the page did not appear',
    windowLimitMs,
  );
  if (!found) throw new Error('The page did not appear.');
  return found;
}

/** Runs a command by its title in the command palette. */
export const runCommand = (page: Page, title: string): Promise<void> => pick(page, 'F1', `>${title}`, title);

/** Opens the context menu of a row and chooses in it. A menu that has just opened takes no click yet: then it is opened again. */
export async function chooseInMenu(page: Page, row: Locator, label: string): Promise<void> {
  const menu = page.locator('.monaco-menu');
  for (let tries = 5; ; tries--) {
    await row.click({ button: 'right' });
    try {
      await menu.locator('.action-label', { hasText: label }).first().click({ timeout: 5_000, delay: 150 });
      await menu.first().waitFor({ state: 'detached', timeout: 5_000 });
      return;
    } catch (error) {
      if (tries === 1) throw error;
      await page.keyboard.press('Escape');
    }
  }
}

/**
 * Opens a file of the workspace by its name, and waits for its tab. A folder tells it from others of that name, also from those that
 * were deleted, which the list still has.
 */
export async function openFile(page: Page, name: string, folder = ''): Promise<void> {
  await pick(page, 'ControlOrMeta+p', join(folder, name), name, folder);
  await page.getByRole('tab', { name: new RegExp(name), selected: true }).waitFor();
}

async function pick(page: Page, key: string, typed: string, shown: string, place = ''): Promise<void> {
  const widget = page.locator('.quick-input-widget');
  // A click: which row Enter takes is another one while the list still sorts itself.
  const rows = page.locator('.quick-input-list .monaco-list-row', { hasText: shown });
  const row = rows.filter({ hasText: place }).first();
  // What a failed try has left open. A list that is closed may give way to the one before it, a moment later.
  for (let open = 5; open > 0 && (await widget.isVisible()); open--) {
    await page.keyboard.press('Escape');
    await page.waitForTimeout(300);
  }
  // An editor that is just opening takes the focus, and with it closes the palette; a window that is just loading has none yet. Then it
  // is opened again, for longer each time.
  const deadline = performance.now() + windowLimitMs;
  for (let timeout = 3_000; ; timeout = Math.min(20_000, timeout * 1.5)) {
    await page.keyboard.press(key);
    try {
      await widget.locator('input[type="text"]').fill(typed, { timeout });
      await row.click({ timeout });
      return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await page.keyboard.press('Escape');
    }
  }
}
