/**
 * Opens the chat view alone in Chromium, with a stand-in for the editor around it. Run as a program it takes pictures of
 * every scene in every theme into test-results/webview.
 */
import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { Browser, Page } from 'playwright-core';
import { webviewPage } from '../../src/extension/base/webviewPage.ts';
import type { FromActionPage, ToActionPage } from '../../src/protocol/actionPage.ts';
import type { FromInstallPage, ToInstallPage } from '../../src/protocol/installPage.ts';
import type { FromPlanPage, PlanPagePlace, ToPlanPage } from '../../src/protocol/planPage.ts';
import type { ToHost, ToWebview } from '../../src/protocol/webview.ts';
import { webviewBuild } from '../../webviewBuild.mjs';
import { launchChromium } from '../vscode/chromium.ts';
import { scenes } from './scenes.ts';
import { type ThemeName, themeNames, themeSheet } from './themes.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const address = 'http://chat.test/';

export interface View {
  page: Page;
  /** Gives messages to the view as the host does, and resolves once they are drawn. */
  say(...messages: (ToWebview | ToPlanPage | ToInstallPage | ToActionPage)[]): Promise<void>;
  /** Messages of the view to the host so far. */
  posted(): Promise<ToHost[]>;
  /** The same of a page about a plan, or of *Today*. */
  asked(): Promise<(FromPlanPage | FromActionPage)[]>;
  /** The same of a page about an install. */
  answered(): Promise<FromInstallPage[]>;
  /** Exceptions, console errors and requests that the content policy refused. */
  problems: string[];
}

/** The built files by their path: the entries, and what they load on first use. */
export type ViewBundle = Readonly<Record<string, Uint8Array>>;

let built: Promise<ViewBundle> | undefined;

/** The view as it is shipped, but not minified. It is built once in a process. */
export function buildView(): Promise<ViewBundle> {
  built ??= bundled();
  return built;
}

async function bundled(): Promise<ViewBundle> {
  const { outputFiles = [] } = await build({
    ...webviewBuild,
    outdir: '/',
    write: false,
    logLevel: 'silent',
  });
  return Object.fromEntries(outputFiles.map(({ path, contents }) => [path, contents]));
}

/** The types of the page's files, by their endings. */
export const types: Readonly<Record<string, string>> = {
  css: 'text/css',
  js: 'text/javascript',
  woff2: 'font/woff2',
};

/** Opens the view in a page of its own. `entry` is the page's program. `kept` is what an earlier view left with `setState`, `place` what a page about a plan is about. */
export async function openView(
  browser: Browser,
  bundle: ViewBundle,
  options: {
    entry?: 'main' | 'planPage' | 'actionPage' | 'installPage';
    /** In which the page is drawn, with its words by the English ones. English if missing. */
    language?: { tag: string; words: Readonly<Record<string, string>> };
    theme?: ThemeName;
    width?: number;
    height?: number;
    kept?: unknown;
    place?: PlanPagePlace;
  } = {},
): Promise<View> {
  const { entry = 'main', theme = 'dark', width = 420, height = 760, kept, place, language } = options;
  const textOf = (path: string): string => {
    const contents = bundle[path];
    if (!contents) throw new Error(`The bundle has no ${path}.`);
    return new TextDecoder().decode(contents);
  };
  const page = await browser.newPage({ viewport: { width, height } });
  const problems: string[] = [];
  page.on('pageerror', error => problems.push(String(error)));
  page.on('console', message => {
    if (message.type() === 'error') problems.push(message.text());
  });
  const html = webviewPage({
    cspSource: address,
    scriptUri: `${address}${entry}.js`,
    styleUri: `${address}${entry}.css`,
    ...(place && { place }),
    ...(language && { language: language.tag, words: language.words }),
  });
  const files: Record<string, [type: string, body: string]> = {
    '/': ['text/html', html.replace('<body>', `<body class="vscode-${theme}">`)],
    [`/${entry}.js`]: ['text/javascript', textOf(`/${entry}.js`)],
    [`/${entry}.css`]: ['text/css', `${themeSheet(theme)}\n${textOf(`/${entry}.css`)}`],
  };
  await page.route('**/*', async route => {
    const { pathname, origin } = new URL(route.request().url());
    const file = files[pathname];
    if (file) return route.fulfill({ contentType: file[0], body: file[1] });
    const later = `${origin}/` === address ? bundle[pathname] : undefined;
    const contentType = types[pathname.split('.').at(-1) ?? ''];
    // A frame without an origin gets nothing of the page's, in the editor neither.
    if (later && contentType) return route.fulfill({ contentType, body: Buffer.from(later) });
    problems.push(`asked for ${route.request().url()}`);
    return route.abort();
  });
  await page.addInitScript(standInForEditor, kept);
  await page.goto(address);
  return {
    page,
    problems,
    posted: () => page.evaluate(() => (window as unknown as { posted: ToHost[] }).posted),
    asked: () =>
      page.evaluate(() => (window as unknown as { posted: (FromPlanPage | FromActionPage)[] }).posted),
    answered: () => page.evaluate(() => (window as unknown as { posted: FromInstallPage[] }).posted),
    say: (...messages) => page.evaluate(tell, messages),
  };
}

/** Runs in the page: gives the view messages as the host does, and resolves once they are drawn. */
export function tell(
  messages: readonly (ToWebview | ToPlanPage | ToInstallPage | ToActionPage)[],
): Promise<void> {
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
