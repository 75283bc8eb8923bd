/** Loads the durable engine, which is installed only where jobs go over a database, and has it prepare that database. */

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { TelosError } from '@telos/engine/errors';
import { type DatabaseAddress, problemOf } from './databaseAddress.ts';

export type Dbos = typeof import('@dbos-inc/dbos-sdk');

/** A connection of the driver, which comes without types. */
interface PostgresClient {
  connect(): Promise<void>;
  query(text: string, values: readonly unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
  end(): Promise<void>;
  on(event: 'error', heard: (error: Error) => void): void;
}

interface Postgres {
  Client: new (options: { connectionString: string; connectionTimeoutMillis: number }) => PostgresClient;
}

const packageName = '@dbos-inc/dbos-sdk';
/** The version that this Telos is tested with. The one in package.json must be the same. */
const wanted = '@dbos-inc/dbos-sdk@5.3.0';

let loaded: Dbos | undefined;
let loadedFrom = import.meta.url;

/**
 * Returns the engine, from beside Telos or from the data folder. Throws TelosError `config`, with what installs it, if it is in neither.
 * Once it was loaded, it is returned without a data folder too.
 */
export async function loadDbos(dataDir?: string): Promise<Dbos> {
  if (loaded) return loaded;
  // Its driver for PostgreSQL warns of its own next version, which is nothing to a person here.
  process.noDeprecation = true;
  loaded = (await besideTelos()) ?? (await inDataFolder(dataDir));
  if (loaded) return loaded;
  const install = dataDir === undefined ? `npm install ${wanted}` : dbosInstall(dataDir);
  throw new TelosError('config', `Workers need a package that is not installed. Install it with: ${install}`);
}

/** Returns the engine's own driver for PostgreSQL. The engine must be loaded. */
function loadPostgres(): Postgres {
  const engine = createRequire(loadedFrom).resolve(packageName);
  return createRequire(engine)('pg') as Postgres;
}

/** Returns the command that installs the engine for this user. */
export const dbosInstall = (dataDir: string): string =>
  `npm install --prefix ${JSON.stringify(packagesFolder(dataDir))} ${wanted}`;

/** Returns true if the engine can be loaded. */
export const hasDbos = (dataDir: string): boolean =>
  [import.meta.url, join(packagesFolder(dataDir), 'package.json')].some(
    from => placeFrom(from) !== undefined,
  );

const packagesFolder = (dataDir: string): string => join(dataDir, 'packages');

function placeFrom(from: string): string | undefined {
  try {
    return createRequire(from).resolve(packageName);
  } catch {
    return undefined;
  }
}

async function besideTelos(): Promise<Dbos | undefined> {
  try {
    return await import('@dbos-inc/dbos-sdk');
  } catch (error) {
    if (/^(?:ERR_)?MODULE_NOT_FOUND$/.test((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

async function inDataFolder(dataDir: string | undefined): Promise<Dbos | undefined> {
  if (dataDir === undefined) return undefined;
  const from = join(packagesFolder(dataDir), 'package.json');
  const place = placeFrom(from);
  if (place === undefined) return undefined;
  loadedFrom = from;
  return import(pathToFileURL(place).href);
}

/** The number of the advisory lock in PostgreSQL. Every version of Telos must take the same. */
export const preparationLock = 8_367_101_108;

/** After how long a worker says that it waits for the one that prepares, and gives up; and the pause between two looks. In milliseconds. */
const slowMs = 3_000;
const patienceMs = 60_000;
const lookMs = 100;

/**
 * Runs `prepare` while no other worker does, on whichever machine: the engine takes no lock, and two that make its tables at once break
 * them for good. Throws TelosError `config` if another one does not end, or if the database refuses a connection.
 */
export async function preparedAlone(
  address: DatabaseAddress,
  log: (line: string) => void,
  prepare: () => Promise<void>,
): Promise<void> {
  const { Client } = loadPostgres();
  const client = new Client({ connectionString: address.url, connectionTimeoutMillis: 10_000 });
  // A connection that is lost has let go of the lock. What the engine does on its own connections says so too.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await waitForLock(client, address, log);
    await prepare();
  } catch (error) {
    throw problemOf(error, address);
  } finally {
    await Promise.race([client.end().catch(() => undefined), delay(1_000, undefined, { ref: false })]);
  }
}

async function waitForLock(
  client: PostgresClient,
  { shown }: DatabaseAddress,
  log: (line: string) => void,
): Promise<void> {
  // Not pg_advisory_lock: a statement that waits would hold up CREATE INDEX CONCURRENTLY, which the other one may be at.
  for (let waited = 0; !(await isLocked(client)); waited += lookMs) {
    if (waited === slowMs)
      log(`Another worker is preparing the database ${shown}. Waiting until it has ended.`);
    if (waited >= patienceMs)
      throw new TelosError(
        'config',
        `Another worker has been preparing the database ${shown} for over a minute. End it, and start this one again.`,
      );
    await delay(lookMs);
  }
}

async function isLocked(client: PostgresClient): Promise<boolean> {
  const { rows } = await client.query('select pg_try_advisory_lock($1) as locked', [preparationLock]);
  return rows[0]?.['locked'] === true;
}
