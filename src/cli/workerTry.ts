/** Starts the database of `telos worker --try`, and offers to install what it needs. */

import { spawn } from 'node:child_process';
import { chmodSync } from 'node:fs';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { makeOwnFolders } from '@telos/engine/files';
import { databaseVariable, loadDbos } from '@telos/fleet/executors';
import {
  findPostgres,
  startTryDatabase,
  type TryDatabase,
  tryFolder,
  tryPackage,
} from '@telos/fleet/workers';
import { npmProgram, programPlaces } from '@telos/packs/install';
import type { Terminal } from './terminal.ts';
import { agrees } from './terminalHuman.ts';
import { terminalText } from './terminalText.ts';

/** Returns the database, with its address shown. Throws TelosError `config` if it cannot be had, or the person did not agree to install it. */
export async function tryDatabase(config: Config, terminal: Terminal): Promise<TryDatabase> {
  await loadDbos(config.dataDir);
  const native = findPostgres(config.dataDir) ?? (await offer(config, terminal));
  const database = await startTryDatabase(native, config.dataDir, programPlaces(config));
  terminal.out(
    `${[
      'A temporary PostgreSQL runs here, for this machine only, until this worker ends.',
      'In another terminal: telos eval --live --workers, with this in its environment:',
      `${databaseVariable}=${database.url}`,
    ].join('\n')}\n`,
  );
  return database;
}

async function offer(config: Config, terminal: Terminal): Promise<string> {
  const { dataDir } = config;
  const folder = tryFolder(dataDir);
  const args = ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', tryPackage];
  const word = (text: string): string =>
    /^[\w./@:\\-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
  const command = `npm ${args.map(word).join(' ')}`;
  const about = terminalText(
    `The temporary PostgreSQL is not installed. This installs it (60 MB):\n${command}`,
  );
  if (!(await agrees(about, 'Run it now?', about, terminal)))
    throw new TelosError('config', 'There is no database to try workers with.');
  makeOwnFolders(folder);
  // Another user runs it then. There are only programs in it.
  if (process.getuid?.() === 0) chmodSync(folder, 0o755);
  const code = await runNpm(args, folder, config);
  const native = findPostgres(dataDir);
  if (code !== 0 || !native) throw new TelosError('config', 'npm has not installed PostgreSQL.');
  return native;
}

/**
 * Runs the person's npm: the yes was to that, not to a file of its name that a run has written. Returns its exit code, or null if it could
 * not be started. Exported for its test.
 */
export async function runNpm(
  args: readonly string[],
  folder: string,
  config: Pick<Config, 'env' | 'home'>,
): Promise<number | null> {
  const own = npmProgram(config);
  if (own === undefined) return null;
  const { program, ...how } = own;
  return new Promise(resolve => {
    const npm = spawn(program, args, { ...how, cwd: folder, stdio: ['ignore', 2, 2] });
    npm.once('error', () => resolve(null));
    npm.once('close', resolve);
  });
}
