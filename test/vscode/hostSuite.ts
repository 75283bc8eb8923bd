/** Runs the suite of `suite/` with mocha inside the extension host of a real VS Code, and prints what mocha says. */
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fetchCodeServer } from './codeServer.ts';
import { root } from './paths.ts';
import { type RunningServer, startServer } from './server.ts';
import { reportMark } from './suite/runSuite.ts';
import { buildSuite } from './suiteBuild.ts';
import { openWorkbench } from './workbench.ts';
import { freshWorld, testVariables, type World } from './world.ts';

/** The whole suite takes less than a minute, some on a busy machine; what is not done by then hangs. Milliseconds. */
const suiteLimitMs = 8 * 60_000;

const bound = AbortSignal.timeout(10 * 60_000);
process.exitCode = await runInHost();

async function runInHost(): Promise<number> {
  const vscode = await fetchCodeServer(console.log, bound);
  const world = await freshWorld();
  try {
    return await runInWorld(vscode, world);
  } finally {
    await world.remove();
  }
}

async function runInWorld(vscode: string, world: World): Promise<number> {
  const suite = await buildSuite(world.extension);
  await cp(join(root, 'test', 'fixtures', 'lm-extension'), join(world.extensions, 'telos.telos-lm-0.0.1'), {
    recursive: true,
  });
  const server = await startServer({
    vscode,
    profile: world.profile,
    extensions: world.extensions,
    folder: world.workspace,
    port: 0,
    env: testVariables(world),
    trusted: true,
    testDriver: true,
  });
  try {
    return await runInWindow(suiteAddress(server, world, suite));
  } finally {
    await server.stop();
  }
}

function suiteAddress(server: RunningServer, world: World, suite: string): string {
  const remote = (path: string): string => `vscode-remote://127.0.0.1:${server.port}${path}`;
  const payload = [
    ['extensionDevelopmentPath', remote(world.extension)],
    ['extensionTestsPath', remote(suite)],
    ['skipWelcome', 'true'],
  ];
  return `${server.url}/?folder=${encodeURIComponent(world.workspace)}&payload=${encodeURIComponent(JSON.stringify(payload))}`;
}

/** Resolves with the exit code that the host reports, or 1 when it reports none in time. */
async function runInWindow(address: string): Promise<number> {
  let end: (code: number) => void = () => {};
  const ended = new Promise<number>(resolve => {
    end = resolve;
  });
  const workbench = await openWorkbench(address, async page => {
    await page.exposeFunction('codeAutomationLog', (_type: string, args: unknown[]) => printLine(args));
    await page.exposeFunction('codeAutomationExit', (code: number) => end(code));
  });
  const giveUp = new AbortController();
  try {
    const late = delay(suiteLimitMs, 'late' as const, { signal: giveUp.signal });
    const result = await Promise.race([ended, late]);
    if (result !== 'late') return result;
    const picture = await workbench.screenshot('host-suite-hangs');
    console.error(`The suite did not end within ${suiteLimitMs / 1000} s; the window is in ${picture}.`);
    console.error(workbench.console().slice(-5000));
    return 1;
  } finally {
    giveUp.abort();
    await workbench.close();
  }
}

/** Prints mocha's report and leaves out what the window says besides; the console is printed whole when the suite hangs. */
function printLine(args: readonly unknown[]): void {
  const text = args.map(String).join(' ');
  if (text.startsWith(reportMark)) console.log(text.slice(reportMark.length));
}
