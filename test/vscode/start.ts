/** `npm start`: Telos in a real VS Code in the browser, on a sample workspace, with nothing to set up first. */
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { parseArgs } from 'node:util';
import { fetchCodeServer } from './codeServer.ts';
import { ancestors, exists } from './processTree.ts';
import { type RunningServer, startServer } from './server.ts';
import { freshWorld, type World, worldVariables } from './world.ts';

const usualPort = 8123;

const usage = 'Usage: npm start -- [--port N] [--no-open]';

const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  // Stays registered: a second Ctrl-C must not end us before the server's processes are gone.
  process.on(name, () => stopping.abort(new Error(name)));
}

// npm hands some signals to its shell alone, or dies of them, and leaves us behind.
const starters = await ancestors(process.env['npm_lifecycle_event'] ? 2 : 1);
const startersWatch = setInterval(() => {
  if (process.ppid !== starters[0] || !starters.every(exists))
    stopping.abort(new Error('the starter is gone'));
}, 500);

try {
  await start(process.argv.slice(2), stopping.signal);
} catch (error) {
  if (!stopping.signal.aborted) {
    console.error(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
  }
} finally {
  clearInterval(startersWatch);
}

async function start(args: readonly string[], signal: AbortSignal): Promise<void> {
  const { wanted, open } = readArguments(args);
  const port = await choosePort(wanted);
  const vscode = await fetchCodeServer(console.log, signal);
  const world = await freshWorld();
  try {
    await serve(vscode, world, port, open, signal);
  } finally {
    await world.remove();
  }
}

async function serve(
  vscode: string,
  world: World,
  port: number,
  open: boolean,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const server = await startServer({
    vscode,
    profile: world.profile,
    extensions: world.extensions,
    folder: world.workspace,
    port,
    env: { ...process.env, ...worldVariables(world) },
    trusted: true,
  });
  try {
    console.log(`\n  Telos runs in VS Code on ${server.url}`);
    console.log(`  The sample workspace is ${world.workspace}; it is removed at the end.`);
    console.log('  Press Send in the chat view to run the sample skill. Ctrl-C ends everything.\n');
    if (open) openBrowser(server.url);
    await stoppedOrEnded(server, signal);
  } finally {
    await server.stop();
  }
}

/** Resolves at a signal; a server that ends by itself is an error. */
async function stoppedOrEnded(server: RunningServer, signal: AbortSignal): Promise<void> {
  const stopped = new Promise<void>(resolve =>
    signal.addEventListener('abort', () => resolve(), { once: true }),
  );
  await Promise.race([server.ended, signal.aborted ? undefined : stopped]);
  if (!signal.aborted)
    throw new Error(`The VS Code server has ended by itself. It said:\n${server.output().slice(-3000)}`);
}

function readArguments(args: readonly string[]): { wanted: number | undefined; open: boolean } {
  const options = { port: { type: 'string' }, 'no-open': { type: 'boolean' } } as const;
  try {
    const { values } = parseArgs({ args: [...args], options, strict: true });
    const wanted = values.port === undefined ? undefined : Number(values.port);
    if (wanted !== undefined && !(Number.isInteger(wanted) && wanted >= 0 && wanted <= 65535)) {
      throw new Error(`--port wants a number from 0 to 65535, not "${values.port}".`);
    }
    return { wanted, open: !values['no-open'] };
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}\n${usage}`);
  }
}

/** The usual port, or any free one when it is taken; a port that was asked for is an error when it is taken. */
async function choosePort(wanted: number | undefined): Promise<number> {
  if (await isFree(wanted ?? usualPort)) return wanted ?? usualPort;
  if (wanted === undefined) return 0;
  throw new Error(`Port ${wanted} is taken. Name another with --port, or leave it out for any free one.`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}

/** Does nothing where there is no screen: the address is printed anyway. */
function openBrowser(url: string): void {
  const [program, ...args] =
    process.platform === 'darwin'
      ? ['open', url]
      : process.platform === 'win32'
        ? ['cmd', '/c', 'start', '', url]
        : ['xdg-open', url];
  if (process.platform === 'linux' && !process.env['DISPLAY'] && !process.env['WAYLAND_DISPLAY']) return;
  const child = spawn(program ?? '', args, { stdio: 'ignore', detached: true });
  child.on('error', () => {});
  child.unref();
}
