/** The built chat view in a real Chromium, served over HTTP with its own page and policy; nothing is held back from the network. */
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { webviewPage } from '../../src/extension/base/webviewPage.ts';
import type { RunEvent } from '../../src/protocol/run.ts';
import type { ToHost, ToWebview } from '../../src/protocol/webview.ts';
import { launchChromium } from '../vscode/chromium.ts';
import { tell, types } from '../webview/harness.ts';
import { conversation, end, routed, start, text } from '../webview/scenes.ts';

export interface ChatWindow {
  page: Page;
  say(message: ToWebview): Promise<void>;
  /** Messages of the view to its host. */
  posted(): Promise<ToHost[]>;
  /** Dialogs, windows and pages that were opened, and where the page went. */
  strayed: string[];
  /** Lets `work` be the only thing that happens in a window of its own. */
  close(): Promise<void>;
}

let browser: Promise<Browser> | undefined;

/** All cases share one browser; whoever has run them ends it. */
export async function closeBrowser(): Promise<void> {
  const open = browser;
  browser = undefined;
  await (await open)?.close();
}

/** Without `policy` the page has none, as no product of ours would show it: what it would then let through is seen. */
export async function openChat({ policy = true } = {}): Promise<ChatWindow> {
  browser ??= launchChromium();
  const { server, origin } = await serveView(policy);
  const context = await (await browser).newContext({ viewport: { width: 420, height: 760 } });
  const page = await context.newPage();
  const strayed: string[] = [];
  page.on('dialog', dialog => {
    strayed.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.addInitScript(standIn);
  await page.goto(origin);
  context.on('page', other => strayed.push(`window: ${other.url()}`));
  // A diagram is drawn in a frame that has no address, not even before its page.
  page.on('framenavigated', frame => {
    const isDiagram = frame !== page.mainFrame() && ['', 'about:blank', 'about:srcdoc'].includes(frame.url());
    if (!isDiagram) strayed.push(`went to ${frame.url()}`);
  });
  return {
    page,
    strayed,
    posted: () => page.evaluate(() => (window as unknown as { posted: ToHost[] }).posted),
    say: message => page.evaluate(tell, [message]),
    async close() {
      await context.close();
      server.close();
      server.closeAllConnections();
    },
  };
}

async function serveView(policy: boolean): Promise<{ server: Server; origin: string }> {
  const fileOf = (name: string): string =>
    fileURLToPath(new URL(`../../dist/webview/${name}`, import.meta.url));
  if (!existsSync(fileOf('main.js'))) throw new Error('the chat view has not been built');
  const server = createServer((request, response) => {
    const origin = `http://${request.headers.host}`;
    const parts = { cspSource: origin, scriptUri: `${origin}/main.js`, styleUri: `${origin}/main.css` };
    const files: Record<string, [type: string, body: () => string | Buffer]> = {
      '/': [
        'text/html',
        () => (policy ? webviewPage(parts) : webviewPage(parts).replace(/<meta http-equiv.*>/, '')),
      ],
    };
    const [, name = '', ending = ''] = /^\/([\w/-]+\.(js|css|woff2))$/.exec(request.url ?? '') ?? [];
    if (types[ending] && existsSync(fileOf(name)))
      files[`/${name}`] = [types[ending], () => readFileSync(fileOf(name))];
    const file = files[request.url ?? ''];
    if (file) response.writeHead(200, { 'content-type': file[0] }).end(file[1]());
    else response.writeHead(404).end();
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** The editor's side of the page. */
function standIn(): void {
  const posted: unknown[] = [];
  Object.assign(window, {
    posted,
    longest: 0,
    acquireVsCodeApi: () => ({
      postMessage: (message: unknown) => posted.push(message),
      getState: () => undefined,
      setState: () => undefined,
    }),
  });
  new PerformanceObserver(list => {
    const held = window as unknown as { longest: number };
    for (const { duration } of list.getEntries()) held.longest = Math.max(held.longest, duration);
  }).observe({ type: 'longtask' });
}

/** Gives the view an answer in these pieces, as a run that has come to its end. */
export async function showAnswer(chat: ChatWindow, pieces: readonly string[]): Promise<void> {
  await chat.say(conversation([start('go'), routed]));
  const events: RunEvent[] = [...pieces.map(text), end];
  for (const [index, event] of events.entries())
    await chat.say({ type: 'events', id: 'c1', from: 2 + index, events: [event] });
}
