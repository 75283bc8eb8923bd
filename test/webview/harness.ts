/**
 * Opens the chat view alone in Chromium, with a stand-in for the editor around it. Run as a program it takes pictures of
 * every scene in every theme into test-results/webview.
 */
import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { Browser, Page } from 'playwright-core';
import { chatPage } from '../../src/extension/chat/chatPage.ts';
import type { ToHost, ToWebview } from '../../src/protocol/webview.ts';
import { launchChromium } from '../vscode/chromium.ts';
import { scenes } from './scenes.ts';
import { type ThemeName, themeNames, themeSheet } from './themes.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const address = 'http://chat.test/';

export interface View {
  page: Page;
  /** Gives messages to the view as the host does, and resolves once they are drawn. */
  say(...messages: ToWebview[]): Promise<void>;
  /** Messages of the view to the host so far. */
  posted(): Promise<ToHost[]>;
  /** Exceptions, console errors and requests that the content policy refused. */
  problems: string[];
}

export interface ViewBundle {
  script: string;
  style: string;
}

/** The view as it is shipped, but not minified. */
export async function buildView(): Promise<ViewBundle> {
  const result = await build({
    entryPoints: { main: `${root}webview/main.tsx` },
    outdir: '/',
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    logLevel: 'silent',
  });
  const textOf = (ending: string) => result.outputFiles.find(file => file.path.endsWith(ending))!.text;
  return { script: textOf('.js'), style: textOf('.css') };
}

/** Opens the view in a page of its own. `kept` is what an earlier view left with `setState`. */
export async function openView(
  browser: Browser,
  bundle: ViewBundle,
  options: { theme?: ThemeName; width?: number; height?: number; kept?: unknown } = {},
): Promise<View> {
  const { theme = 'dark', width = 420, height = 760, kept } = options;
  const page = await browser.newPage({ viewport: { width, height } });
  const problems: string[] = [];
  page.on('pageerror', error => problems.push(String(error)));
  page.on('console', message => {
    if (message.type() === 'error') problems.push(message.text());
  });
  const html = chatPage({
    cspSource: address,
    scriptUri: `${address}main.js`,
    styleUri: `${address}main.css`,
  });
  const files: Record<string, [type: string, body: string]> = {
    '/': ['text/html', html.replace('<body>', `<body class="vscode-${theme}">`)],
    '/main.js': ['text/javascript', bundle.script],
    '/main.css': ['text/css', `${themeSheet(theme)}\n${bundle.style}`],
  };
  await page.route('**/*', async route => {
    const file = files[new URL(route.request().url()).pathname];
    if (file) return route.fulfill({ contentType: file[0], body: file[1] });
    problems.push(`asked for ${route.request().url()}`);
    return route.abort();
  });
  await page.addInitScript(standInForEditor, kept);
  await page.goto(address);
  return {
    page,
    problems,
    posted: () => page.evaluate(() => (window as unknown as { posted: ToHost[] }).posted),
    say: (...messages) => page.evaluate(tell, messages),
  };
}

/** Runs in the page: gives the view messages as the host does, and resolves once they are drawn. */
export function tell(messages: readonly ToWebview[]): Promise<void> {
  return new Promise(resolve => {
    let left = messages.length;
    // A frame applies what has arrived, the next one has drawn it, and what follows the drawing comes right behind.
    const whenDrawn = (): void =>
      void requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve)));
    const onMessage = (): void => {
      left -= 1;
      if (left > 0) return;
      window.removeEventListener('message', onMessage);
      whenDrawn();
    };
    // Behind the view's own listener.
    window.addEventListener('message', onMessage);
    for (const message of messages) window.postMessage(message);
  });
}

/** Runs in the page before the view's own script. */
function standInForEditor(kept: unknown) {
  const posted: unknown[] = [];
  let state: unknown = kept ?? undefined;
  Object.assign(window, {
    posted,
    keptState: () => state,
    acquireVsCodeApi: () => ({
      postMessage: (message: unknown) => posted.push(message),
      getState: () => state,
      setState: (value: unknown) => {
        state = value;
      },
    }),
  });
}

async function takePictures(): Promise<void> {
  const folder = `${root}test-results/webview`;
  await mkdir(folder, { recursive: true });
  const bundle = await buildView();
  const browser = await launchChromium();
  try {
    for (const theme of themeNames) {
      for (const width of theme === 'dark' ? [250, 420, 900] : [420]) {
        for (const [name, scene] of Object.entries(scenes)) {
          const view = await openView(browser, bundle, { theme, width });
          await view.say(scene);
          await view.page.screenshot({ path: `${folder}/${name}-${theme}-${width}.png` });
          for (const problem of view.problems) console.error(`${name}, ${theme}, ${width}: ${problem}`);
          if (view.problems.length > 0) process.exitCode = 1;
          await view.page.close();
        }
      }
    }
    console.log(`Pictures are in ${folder}.`);
  } finally {
    await browser.close();
  }
}

if (import.meta.main) await takePictures();
