/** Serves folders of git with `git daemon`, under an https address that the person's own git configuration leads there. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:net';

export interface GitDaemon {
  /** `https://git.example/`, and the lines of a git configuration that lead it to the daemon. */
  base: string;
  config: string;
  close(): Promise<void>;
}

export async function gitDaemon(folder: string): Promise<GitDaemon> {
  const port = await freePort();
  const child = spawn(
    'git',
    [
      'daemon',
      '--export-all',
      `--base-path=${folder}`,
      '--listen=127.0.0.1',
      `--port=${port}`,
      '--reuseaddr',
      '--informative-errors',
      folder,
    ],
    { stdio: 'ignore', detached: true },
  );
  await listening(port, child);
  const base = 'https://git.example/';
  return {
    base,
    config: `[url "git://127.0.0.1:${port}/"]\n\tinsteadOf = ${base}\n`,
    close: () =>
      new Promise(done => {
        child.once('close', () => done());
        // git starts the daemon as a child of its own.
        process.kill(-child.pid!, 'SIGTERM');
      }),
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  await new Promise(done => server.close(done));
  return port;
}

async function listening(port: number, child: ChildProcess): Promise<void> {
  for (let tries = 0; child.exitCode === null && tries < 500; tries++) {
    const isOpen = await new Promise<boolean>(done => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.destroy();
        done(true);
      }).once('error', () => done(false));
    });
    if (isOpen) return;
    await new Promise(done => setTimeout(done, 20));
  }
  throw new Error('git daemon does not listen.');
}
