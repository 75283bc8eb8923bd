/** A git server on loopback that takes pushes, which can be away and come back. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { tempFolder } from '../fakes/tempFolder.ts';

export interface GitDaemon {
  /** Makes an empty repository, and returns its address. */
  repository(name: string): string;
  /** Runs git in the repository on the server. */
  git(name: string, ...args: readonly string[]): string;
  folder(name: string): string;
  start(): Promise<void>;
  stop(): Promise<void>;
  remove(): Promise<void>;
}

export async function startGitDaemon(): Promise<GitDaemon> {
  const root = tempFolder();
  const port = await freePort();
  const program = join(execFileSync('git', ['--exec-path'], { encoding: 'utf8' }).trim(), 'git-daemon');
  let child: ChildProcess | undefined;
  const daemon: GitDaemon = {
    folder: name => join(root.path, `${name}.git`),
    repository(name) {
      mkdirSync(daemon.folder(name));
      execFileSync('git', ['init', '-q', '--bare', '-b', 'main', daemon.folder(name)]);
      return `git://127.0.0.1:${port}/${name}.git`;
    },
    git: (name, ...args) =>
      execFileSync('git', args, {
        cwd: daemon.folder(name),
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
      }).trim(),
    async start() {
      const options = ['--reuseaddr', '--export-all', '--enable=receive-pack', '--listen=127.0.0.1'];
      child = spawn(program, [...options, `--port=${port}`, `--base-path=${root.path}`], {
        stdio: 'ignore',
        detached: true,
        env: { PATH: process.env['PATH'], HOME: root.path },
      });
      while (!(await answers(port))) await delay(20);
    },
    async stop() {
      const ended = child;
      child = undefined;
      if (ended?.pid === undefined) return;
      const gone = new Promise(done => ended.once('close', done));
      // Those that it has started for a connection go with it.
      process.kill(-ended.pid, 'SIGKILL');
      await gone;
    },
    async remove() {
      await daemon.stop();
      root.remove();
    },
  };
  await daemon.start();
  return daemon;
}

const answers = (port: number): Promise<boolean> =>
  new Promise(done => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.once('connect', () => done(true));
    socket.once('error', () => done(false));
    socket.once('close', () => socket.destroy());
    socket.unref();
    socket.once('connect', () => socket.end());
  });

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise(resolve => server.close(resolve));
  return port;
}
