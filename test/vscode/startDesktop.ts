/** `npm run start:desktop`: Telos in an installed desktop VS Code, on a sample workspace, apart from the user's own settings. */
import { spawn } from 'node:child_process';
import { root } from './paths.ts';
import { endTree, ownGroup } from './processTree.ts';
import { writeSettings } from './server.ts';
import { freshWorld, worldVariables } from './world.ts';

/** The program `code`, or the one that `TELOS_CODE` names (`code-insiders`, `codium`). */
const program = process.env['TELOS_CODE'] ?? 'code';

const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => stopping.abort());

const world = await freshWorld();
try {
  await writeSettings(world.profile, {});
  console.log(
    `Telos opens in "${program}" on ${world.workspace}. Close the window, or press Ctrl-C, to end.`,
  );
  await openDesktop();
} catch (error) {
  console.error(explained(error));
  process.exitCode = 1;
} finally {
  await world.remove();
}

/** Resolves when the window is closed. */
async function openDesktop(): Promise<void> {
  const args = [
    world.workspace,
    '--new-window',
    '--wait',
    '--disable-workspace-trust',
    `--extensionDevelopmentPath=${root}`,
    `--user-data-dir=${world.profile}`,
    `--extensions-dir=${world.extensions}`,
  ];
  const env = { ...process.env, ...worldVariables(world) };
  // On Windows `code` is a batch file, which only a shell can start.
  const shell = process.platform === 'win32';
  const child = spawn(program, shell ? args.map(arg => `"${arg}"`) : args, {
    env,
    shell,
    stdio: 'inherit',
    ...ownGroup,
  });
  const stop = (): void => void endTree(child);
  stopping.signal.addEventListener('abort', stop);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  if (code !== 0 && !stopping.signal.aborted)
    throw new Error(`"${program}" ended with ${code ?? 'a signal'}.`);
}

function explained(error: unknown): string {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
    return error instanceof Error ? error.message : String(error);
  return (
    `There is no program "${program}" on this machine's PATH.\n` +
    'Install VS Code and its command line ("Shell Command: Install \'code\' command in PATH"), or name the program in TELOS_CODE.\n' +
    'Without a desktop VS Code, "npm start" opens Telos in the browser.'
  );
}
