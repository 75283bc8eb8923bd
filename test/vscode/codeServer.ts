/** Gets a whole VS Code server from npm, once: the way to a real VS Code that needs no download page and no compiler. */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheDir } from './paths.ts';
import { runProgram } from './processTree.ts';

/** The package holds VS Code 1.139.1. */
const codeServerVersion = '4.139.1';

/**
 * The folder of the unpacked VS Code (the one that holds `out/server-main.js`). The first call fetches about 590 MB into the
 * cache; an interrupted fetch leaves nothing that a later call would take for whole.
 */
export async function fetchCodeServer(report: (line: string) => void, signal: AbortSignal): Promise<string> {
  const home = join(cacheDir, `code-server-${codeServerVersion}`);
  if (existsSync(home)) return home;
  await mkdir(cacheDir, { recursive: true });
  const work = await mkdtemp(join(cacheDir, 'fetching-'));
  const seconds = stopwatch();
  try {
    report(
      `Fetching VS Code for the first time (code-server ${codeServerVersion} from npm, about 590 MB unpacked).`,
    );
    report('  1 of 3: the package');
    await npm(
      ['pack', `code-server@${codeServerVersion}`, '--pack-destination', work, '--loglevel=error'],
      work,
      signal,
    );
    const archive = (await readdir(work)).find(name => name.endsWith('.tgz'));
    if (!archive) throw new Error(`npm pack wrote no archive to ${work}.`);
    report(`  2 of 3: unpacking (${seconds()} s so far)`);
    await runProgram('tar', ['-xzf', archive], work, signal);
    const vscode = join(work, 'package', 'lib', 'vscode');
    report(`  3 of 3: its libraries (${seconds()} s so far)`);
    const quiet = ['--no-audit', '--no-fund', '--loglevel=error'];
    await npm(['install', '--omit=dev', '--ignore-scripts', ...quiet], vscode, signal);
    await settle(vscode, home);
    report(`VS Code is ready (${seconds()} s).`);
    return home;
  } catch (error) {
    throw new Error(
      `VS Code could not be fetched from npm: ${error instanceof Error ? error.message : String(error)}\n` +
        `Check that "npm view code-server@${codeServerVersion} version" works here (proxy, registry, disk space), then start again.`,
    );
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Moves the finished folder to its name; when another process was faster, its copy stays. */
async function settle(finished: string, home: string): Promise<void> {
  try {
    await rename(finished, home);
  } catch (error) {
    if (!existsSync(home)) throw error;
  }
}

/** Runs npm by the copy that runs us, so that its version and settings are the user's own. */
function npm(args: readonly string[], cwd: string, signal: AbortSignal): Promise<void> {
  const script = process.env['npm_execpath'];
  if (script?.endsWith('npm-cli.js')) return runProgram(process.execPath, [script, ...args], cwd, signal);
  return runProgram(process.platform === 'win32' ? 'npm.cmd' : 'npm', args, cwd, signal);
}

function stopwatch(): () => number {
  const start = Date.now();
  return () => Math.round((Date.now() - start) / 1000);
}
