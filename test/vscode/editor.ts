/**
 * A VS Code server that serves one test file after the other. Between two of them its windows, what runs below it and all that they
 * have written go away; what takes long to begin stays: the server, the installed extension, and what Chromium has compiled.
 */
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { BrowserContext } from 'playwright-core';
import { closeSharedChromium, sharedChromium } from './chromium.ts';
import { fetchCodeServer } from './codeServer.ts';
import { commandOf, descendants, endAll } from './processTree.ts';
import { type RunningServer, startServer } from './server.ts';
import { showWindow, type Workbench, windowOptions } from './workbench.ts';
import { freshWorld, testVariables, type World } from './world.ts';

/** What only a new server can change. Editors are shared by those who want the same. */
export interface EditorKind {
  /** Every folder counts as trusted. */
  trusted: boolean;
  /** Variables that the person has set. */
  variables: Readonly<Record<string, string>>;
  /** Whether a model's server and a key for it are set. */
  hasAccount: boolean;
  /** Folders of other extensions, by the name of the installed one. */
  extensions: Readonly<Record<string, string>>;
}

/** The first start on a machine fetches VS Code. Milliseconds; for `this.timeout` of a hook that opens a session. */
export const firstStartLimit = 10 * 60_000;

/** A window's processes end by themselves when it is left, as a rule. In milliseconds. */
const patienceMs = 2_000;

export class Editor {
  readonly world: World;
  readonly server: RunningServer;
  readonly #door: ModelDoor;
  readonly #context: BrowserContext;

  private constructor(world: World, server: RunningServer, door: ModelDoor, context: BrowserContext) {
    this.world = world;
    this.server = server;
    this.#door = door;
    this.#context = context;
  }

  static async start(kind: EditorKind): Promise<Editor> {
    const undo: (() => unknown)[] = [];
    try {
      const vscode = await fetchCodeServer(console.log, AbortSignal.timeout(firstStartLimit));
      const door = await openDoor();
      undo.push(() => door.close());
      const world = await freshWorld({}, kind.extensions);
      undo.push(() => world.remove());
      const server = await startServer({
        vscode,
        profile: world.profile,
        extensions: world.extensions,
        folder: world.workspace,
        port: 0,
        env: { ...testVariables(world), ...(kind.hasAccount && accountAt(door.url)), ...kind.variables },
        trusted: kind.trusted,
      });
      undo.push(() => server.stop());
      const context = await (await sharedChromium()).newContext(windowOptions);
      const editor = new Editor(world, server, door, context);
      running.add(editor);
      return editor;
    } catch (error) {
      for (const step of undo.reverse()) await step();
      throw error;
    }
  }

  /** From now on the windows find this server of a model at the address that they know. */
  leadTo(model: { url: string }): void {
    this.#door.leadTo(Number(new URL(model.url).port));
  }

  /** Opens a window. `path` is the rest of its address, `language` the one in which extensions speak. */
  async openWindow(path = '', language?: string): Promise<Workbench> {
    const page = await this.#context.newPage();
    const close = (): Promise<void> => page.close();
    return showWindow(page, `${this.server.url}/${path}`, close, async () => {
      if (!language) return;
      // The editor's own texts would come with a language pack; what it tells extensions is this.
      await page.addInitScript(tag => Object.assign(globalThis, { _VSCODE_NLS_LANGUAGE: tag }), language);
    });
  }

  /** Closes all windows, ends what runs for them, and has Chromium forget what they have stored. */
  async closeWindows(): Promise<void> {
    const running = (await descendants(this.server.pid)).filter(pid => !isOfServer(pid));
    // To be left, and not just torn down, is what a window is told before it goes.
    const pages = this.#context.pages();
    await Promise.all(pages.map(page => page.goto('about:blank').catch(() => undefined)));
    await endAll(running, patienceMs);
    const last = await this.#context.newPage();
    const session = await this.#context.newCDPSession(last);
    await session.send('Storage.clearDataForOrigin', { origin: this.server.url, storageTypes: 'all' });
    await this.#context.clearCookies();
    await Promise.all([...pages, last].map(page => page.close().catch(() => undefined)));
  }

  async stop(): Promise<void> {
    running.delete(this);
    await this.#context.close().catch(() => undefined);
    await this.server.stop();
    await this.#door.close();
    await this.world.remove();
  }
}

/** A model in Anthropic's wire format; requests are routed without it. */
const accountAt = (url: string): Record<string, string> => ({
  ANTHROPIC_BASE_URL: url,
  ANTHROPIC_API_KEY: 'key-for-a-test-0123456789',
  TELOS_ROUTING_MODE: 'local',
});

/** The terminals' host belongs to the server and not to a window. */
const isOfServer = (pid: number): boolean => commandOf(pid).includes('--type=ptyHost');

/** An address that stays while the servers behind it come and go. */
interface ModelDoor {
  readonly url: string;
  leadTo(port: number): void;
  close(): Promise<void>;
}

async function openDoor(): Promise<ModelDoor> {
  const open = new Set<Socket>();
  let port = 0;
  const server: Server = createServer(near => {
    const far = connect(port, '127.0.0.1');
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        open.delete(one);
        other.destroySoon();
      });
      one.pipe(other);
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The door has no port.');
  return {
    url: `http://127.0.0.1:${address.port}`,
    leadTo: next => {
      port = next;
    },
    close: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
}

const running = new Set<Editor>();
/** Editors that nobody uses just now, by their kind. */
const idle = new Map<string, Editor[]>();

/** Returns an editor of this kind with no window: one that is idle, or a new one. */
export async function takeEditor(kind: EditorKind): Promise<Editor> {
  return idle.get(JSON.stringify(kind))?.pop() ?? Editor.start(kind);
}

/** Keeps an editor for the next who wants such a one. It ends instead if its windows cannot be closed. */
export async function giveBack(kind: EditorKind, editor: Editor): Promise<void> {
  try {
    await editor.closeWindows();
  } catch (error) {
    await editor.stop();
    throw error;
  }
  const key = JSON.stringify(kind);
  idle.set(key, [...(idle.get(key) ?? []), editor]);
}

/** Ends all editors, and the Chromium that they share. */
export async function endEditors(): Promise<void> {
  idle.clear();
  await Promise.all([...running].map(editor => editor.stop()));
  await closeSharedChromium();
}
