/** Loads the durable engine, which is installed only where jobs go over a database. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { TelosError } from '../errors.ts';

export type Dbos = typeof import('@dbos-inc/dbos-sdk');

/** A connection of the driver, which comes without types. */
export interface PostgresClient {
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
export function loadPostgres(): Postgres {
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
