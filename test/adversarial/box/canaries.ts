/** What nobody in the box may reach: sockets of every family that note who knocks, and a program of the person's. */
import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { mkdirSync } from 'node:fs';
import { createServer, type ListenOptions } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { secretText } from '../world.ts';

/** Any address of the machine, in both families: loopback, the metadata address, a private and a public one. */
const tcpPorts = [22, 53, 80, 443, 2375, 6010, 7001, 8080, 11434];
const udpPorts = [53, 123, 7002];

/** Sockets as desktops, containers and editors have them. */
const unixPaths = (home: string): string[] => [
  '/run/docker.sock',
  '/run/podman/podman.sock',
  '/run/containerd/containerd.sock',
  '/run/dbus/system_bus_socket',
  '/run/systemd/private',
  '/run/nscd/socket',
  '/run/user/1000/bus',
  '/run/user/1000/wayland-0',
  '/run/user/1000/pulse/native',
  '/run/user/1000/gnupg/S.gpg-agent',
  '/run/user/1000/keyring/ssh',
  '/run/user/1000/vscode-ipc-canary.sock',
  '/run/user/1000/podman/podman.sock',
  '/dev/shm/canary.sock',
  '/tmp/.X11-unix/X77',
  '/tmp/.X11-unix/agent.1',
  `${home}/.gnupg/S.gpg-agent`,
  `${home}/.docker/run/docker.sock`,
  `${home}/agent.sock`,
];

export interface Canaries {
  /** Who has knocked since the last question. */
  knocks(): string[];
  /** Listens in a folder too, as a server of the person does. */
  listenIn(folder: string): Promise<void>;
  close(): void;
}

export async function openCanaries(home: string): Promise<Canaries> {
  let knocks: string[] = [];
  const closers: (() => void)[] = [];
  const listen = async (what: string, where: ListenOptions): Promise<void> => {
    const server = createServer({ allowHalfOpen: true }, socket => {
      knocks.push(what);
      socket.on('error', () => undefined).on('data', () => undefined);
      socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${secretText.length}\r\n\r\n${secretText}`);
    });
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(where, resolve));
    closers.push(() => server.close());
  };
  for (const port of tcpPorts) await listen(`tcp ${port}`, { port, host: '::' });
  for (const path of unixPaths(home)) {
    mkdirSync(dirname(path), { recursive: true });
    await listen(`unix ${path}`, { path });
  }
  for (const name of ['telos-canary', '/tmp/.X11-unix/X77', 'dbus-canary'])
    await listen(`abstract ${name}`, { path: `\0${name}` });
  for (const port of udpPorts) {
    const socket = createSocket({ type: 'udp6', ipv6Only: false });
    socket.on('message', () => knocks.push(`udp ${port}`));
    await new Promise<void>(resolve => socket.bind(port, '::', resolve));
    closers.push(() => socket.close());
  }
  return {
    knocks() {
      const seen = [...new Set(knocks)].sort();
      knocks = [];
      return seen;
    },
    listenIn: folder => listen('unix of the working folder', { path: join(folder, 'dev.sock') }),
    close() {
      for (const close of closers) close();
    },
  };
}

export interface Victim {
  pid: number;
  tty: string;
  address: number;
  length: number;
  /** What was done to it since the last question; undefined if it is gone or does not answer. */
  seen(): Promise<string | undefined>;
  close(): void;
}

/** Starts a program that notes what is done to it. */
export async function startVictim(env: Readonly<Record<string, string>>): Promise<Victim> {
  const script = new URL('victim.py', import.meta.url).pathname;
  const child = spawn('/usr/bin/python3', [script, 'canary-victim'], {
    env: { ...env, VICTIM_SECRET: secretText },
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  child.stdin.on('error', () => undefined);
  const waiting: ((line: string | undefined) => void)[] = [];
  createInterface({ input: child.stdout }).on('line', line => waiting.shift()?.(line));
  child.on('exit', () => {
    for (const give of waiting.splice(0)) give(undefined);
  });
  const next = (): Promise<string | undefined> =>
    new Promise(resolve => {
      const timer = setTimeout(() => resolve(undefined), 3000);
      waiting.push(line => {
        clearTimeout(timer);
        resolve(line);
      });
    });
  const places = JSON.parse((await next()) ?? '{}');
  return {
    ...places,
    async seen() {
      if (child.exitCode !== null || child.signalCode !== null) return undefined;
      const answer = next();
      child.stdin.write('look\n');
      return answer;
    },
    close: () => void child.kill('SIGKILL'),
  };
}
