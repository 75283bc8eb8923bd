/** A running VS Code server on a fresh profile, with the built extension in it. */
import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { endTree, ownGroup } from './processTree.ts';

export interface ServerOptions {
  /** The folder that `fetchCodeServer` returned. */
  vscode: string;
  /** A fresh folder for everything the server keeps. */
  profile: string;
  /** Holds one folder per extension; created when missing. */
  extensions: string;
  /** 0 takes a free one. */
  port: number;
  /** Opened when the address names no other. */
  folder: string;
  /** User settings on top of the quiet defaults. */
  settings?: Readonly<Record<string, unknown>>;
  env: NodeJS.ProcessEnv;
  /** Every folder counts as trusted. Without it VS Code asks, and starts in Restricted Mode. */
  trusted: boolean;
  /** Lets a page start mocha inside the extension host. */
  testDriver?: boolean;
}

export interface RunningServer {
  /** `http://127.0.0.1:PORT`, without a slash at the end. */
  url: string;
  port: number;
  pid: number;
  /** Resolves when the server has ended by itself or by `stop`. */
  ended: Promise<void>;
  /** What the server has said so far, for a report when something failed. */
  output(): string;
  /** Ends the server and all it has started. */
  stop(): Promise<void>;
}

/** A first look without noise: the tree on the left, the chat on the right, nothing else asking for attention. */
const quietSettings = {
  'workbench.startupEditor': 'none',
  'workbench.tips.enabled': false,
  'workbench.secondarySideBar.defaultVisibility': 'visible',
  'workbench.layoutControl.enabled': false,
  'chat.disableAIFeatures': true,
  'telemetry.telemetryLevel': 'off',
  'update.mode': 'none',
  'extensions.autoUpdate': false,
  'extensions.autoCheckUpdates': false,
  'extensions.ignoreRecommendations': true,
  'git.openRepositoryInParentFolders': 'never',
  'security.workspace.trust.startupPrompt': 'never',
  'window.commandCenter': false,
};

const running = new Set<RunningServer>();

/** Ends the servers of this process that still run. */
export async function stopServers(): Promise<void> {
  await Promise.all([...running].map(server => server.stop()));
}

/** The first start of a cold disk takes a while. Milliseconds. */
const startLimitMs = 60_000;

export async function startServer(options: ServerOptions): Promise<RunningServer> {
  await writeSettings(options.profile, options.settings ?? {});
  await mkdir(options.extensions, { recursive: true });
  const child = spawn(process.execPath, serverArguments(options), {
    cwd: options.profile,
    env: hostEnvironment(options),
    stdio: ['ignore', 'pipe', 'pipe'],
    ...ownGroup,
  });
  let output = '';
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-100_000);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const ended = new Promise<void>(resolve => child.once('close', () => resolve()));
  const stop = (): Promise<void> => endTree(child);
  try {
    const port = await listeningPort(() => output, ended);
    const server = {
      url: `http://127.0.0.1:${port}`,
      port,
      pid: child.pid ?? 0,
      ended,
      output: () => output,
      stop,
    };
    running.add(server);
    void ended.then(() => running.delete(server));
    return server;
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Writes the user settings of a profile: the quiet ones, and `settings` on top. */
export async function writeSettings(
  profile: string,
  settings: Readonly<Record<string, unknown>>,
): Promise<void> {
  await mkdir(join(profile, 'User'), { recursive: true });
  const text = JSON.stringify({ ...quietSettings, ...settings }, undefined, 2);
  await writeFile(join(profile, 'User', 'settings.json'), text);
}

function serverArguments(options: ServerOptions): string[] {
  return [
    '--import',
    import.meta.resolve('./loopbackGuard.mjs'),
    join(options.vscode, 'out', 'server-main.js'),
    '--host',
    '127.0.0.1',
    '--port',
    String(options.port),
    '--without-connection-token',
    '--accept-server-license-terms',
    '--user-data-dir',
    options.profile,
    '--server-data-dir',
    options.profile,
    '--extensions-dir',
    options.extensions,
    '--default-folder',
    options.folder,
    '--disable-telemetry',
    '--disable-getting-started-override',
    ...(options.trusted ? ['--disable-workspace-trust'] : []),
    ...(options.testDriver ? ['--enable-smoke-test-driver'] : []),
  ];
}

/** Variables that npm and an outer VS Code set for their own children would change how the inner one behaves. */
function hostEnvironment({ env, profile }: ServerOptions): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(
    ([name]) => !/^(npm_|VSCODE_|ELECTRON_|NODE_OPTIONS$|INIT_CWD$)/i.test(name),
  );
  return {
    ...Object.fromEntries(kept),
    // No gallery: the window would ask one for updates at each start, and a test must not need a network.
    EXTENSIONS_GALLERY: '{}',
    // Its sockets outlive a server that is ended; here they go with the profile.
    XDG_RUNTIME_DIR: profile,
  };
}

async function listeningPort(output: () => string, ended: Promise<void>): Promise<number> {
  const deadline = Date.now() + startLimitMs;
  let over = false;
  void ended.then(() => {
    over = true;
  });
  while (!over && Date.now() < deadline) {
    const port = /Extension host agent listening on (\d+)/.exec(output())?.[1];
    if (port) return Number(port);
    await new Promise(resolve => setTimeout(resolve, 50));
  }
  const what = over ? 'ended before it listened' : `did not listen within ${startLimitMs / 1000} s`;
  throw new Error(`The VS Code server ${what}. It said:\n${output().trim().slice(-3000)}`);
}
