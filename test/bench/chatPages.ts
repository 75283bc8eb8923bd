/** The three pages that the bench of the chat view compares, and the host that streams an answer into one of them. */
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { Chat } from '../../src/extension/chat/chat.ts';
import type { RunEvent } from '../../src/protocol/run.ts';
import { webviewBuild } from '../../webviewBuild.mjs';
import { buildView, type View, type ViewBundle } from '../webview/harness.ts';
import { end, info, routed, start } from '../webview/scenes.ts';

/** `view` is the product; `plain` appends the text once a frame, `parsed` parses all of it once a frame. */
export type SideName = 'view' | 'plain' | 'parsed';

export async function buildSides(): Promise<Record<SideName, ViewBundle>> {
  const view = await buildView();
  const [plain, parsed] = await Promise.all([baseline('plain', view), baseline('parsed', view)]);
  return { view, plain, parsed };
}

/** Returns the bytes that the page loads before it shows anything, as it is shipped: the main script and what it imports statically. */
export async function startScriptSize(): Promise<number> {
  const { metafile } = await build({
    ...webviewBuild,
    minify: true,
    metafile: true,
    write: false,
    outdir: 'start',
    logLevel: 'silent',
  });
  const loaded = new Set<string>();
  const load = (path: string): void => {
    const file = metafile.outputs[path];
    if (!file || loaded.has(path)) return;
    loaded.add(path);
    for (const { path: next, kind } of file.imports) if (kind === 'import-statement') load(next);
  };
  load('start/main.js');
  return [...loaded].reduce((sum, path) => sum + metafile.outputs[path]!.bytes, 0);
}

async function baseline(side: 'plain' | 'parsed', view: ViewBundle): Promise<ViewBundle> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('chatBaselines.ts', import.meta.url))],
    define: { side: JSON.stringify(side) },
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    logLevel: 'silent',
  });
  const script = outputFiles[0]?.contents;
  return {
    ...(script && { '/main.js': script }),
    ...(view['/main.css'] && { '/main.css': view['/main.css'] }),
  };
}

const deltaLength = 4;
const deltasPerMs = 2;

/** Sends `text` through the real host into the page, 2,000 deltas of 4 characters a second, and waits until its end is drawn. */
export async function streamInto(view: View, text: string, limitMs: number): Promise<void> {
  const chat = new Chat({
    // Like the editor's own `postMessage`, not waited for.
    post: message => void view.page.evaluate(given => window.postMessage(given), message).catch(() => {}),
    readAttachments: async () => ({ attachments: [], missing: [], hidden: [] }),
    openTelos: async () => ({ run: () => answer(text) }),
    readInfo: async () => info,
    isTrusted: () => true,
    changed: () => {},
    approvalAsked: () => {},
    runEnded: () => {},
    ended: () => undefined,
    skillRuns: () => {},
    skillMissed: () => {},
  });
  await chat.show(null, 0);
  chat.submit({ text: 'go' });
  await view.page.waitForFunction(
    () => document.querySelector('.end-completed, [data-ended]') !== null,
    undefined,
    { timeout: limitMs, polling: 500 },
  );
  await chat.end();
}

async function* answer(text: string): AsyncGenerator<RunEvent> {
  yield start('go');
  yield routed;
  const startedAt = performance.now();
  for (let sent = 0; sent * deltaLength < text.length; ) {
    const due = (performance.now() - startedAt) * deltasPerMs;
    for (; sent < due && sent * deltaLength < text.length; sent++) {
      yield { type: 'text', text: text.slice(sent * deltaLength, (sent + 1) * deltaLength) };
    }
    await wait(1);
  }
  yield end;
}
