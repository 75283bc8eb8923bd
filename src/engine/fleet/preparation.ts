/** Lets one worker at a time prepare the database: the engine takes no lock, and two that make its tables at once break them for good. */
import { setTimeout as delay } from 'node:timers/promises';
import { TelosError } from '../errors.ts';
import { type DatabaseAddress, problemOf } from './databaseAddress.ts';
import { loadPostgres, type PostgresClient } from './dbos.ts';

/** The number of the advisory lock in PostgreSQL. Every version of Telos must take the same. */
export const preparationLock = 8_367_101_108;

/** How long a worker waits for the one that prepares, and the pause between two looks. In milliseconds. */
const patienceMs = 60_000;
const lookMs = 100;

/**
 * Runs `prepare` while no other worker does, on whichever machine. Throws TelosError `config` if another one does not end, or if the
 * database refuses a connection.
 */
export async function preparedAlone(address: DatabaseAddress, prepare: () => Promise<void>): Promise<void> {
  const { Client } = loadPostgres();
  const client = new Client({ connectionString: address.url, connectionTimeoutMillis: 10_000 });
  // A connection that is lost has let go of the lock. What the engine does on its own connections says so too.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const deadline = performance.now() + patienceMs;
    // Not pg_advisory_lock: a statement that waits would hold up CREATE INDEX CONCURRENTLY, which the other one may be at.
    while (!(await locked(client))) {
      if (performance.now() > deadline)
        throw new TelosError(
          'config',
          `Another worker has been preparing the database ${address.shown} for over a minute. End it, and start this one again.`,
        );
      await delay(lookMs);
    }
    await prepare();
  } catch (error) {
    throw problemOf(error, address);
  } finally {
    await Promise.race([client.end().catch(() => undefined), delay(1_000, undefined, { ref: false })]);
  }
}

async function locked(client: PostgresClient): Promise<boolean> {
  const { rows } = await client.query('select pg_try_advisory_lock($1) as locked', [preparationLock]);
  return rows[0]?.['locked'] === true;
}
