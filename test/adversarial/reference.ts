/** Runs commands in a plain shell, whose result an allowed command must have too. */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { inTime } from './checks.ts';
import { survivors } from './witness.ts';
import type { World } from './world.ts';

export interface Reference {
  stdout: Buffer;
  stderr: string;
  /** Missing when it did not end by itself. */
  exitCode?: number;
  /** It said more than is kept. */
  flooded: boolean;
  /** Processes that outlived it. */
  leftProcesses: boolean;
}

const tame =
  /^(printf|echo|exit|read|sleep|true|false|nohup|setsid|trap|head|tail|seq|yes|cat|kill|pwd|ls|find|rg|sed|git|npm|wc|test|\[|:|(sh |bash )?\.?[\w./-]*scripts\/\S+)$/;

/** Undefined for commands that are not run without a guard. */
export async function referenceRun(
  world: World,
  command: string,
  {
    cwd,
    env = {},
    limitMs = 3000,
    limitBytes = 4 * 1024 * 1024,
  }: { cwd: string; env?: Record<string, string>; limitMs?: number; limitBytes?: number },
): Promise<Reference | undefined> {
  const words = command
    .split(/&&|\|\||[;|&\n]/)
    .map(part => /^(?:(?:sh|bash)\s+)?\S*/.exec(part.trim())?.[0] ?? '');
  if (!words.every(word => word === '' || tame.test(word))) return undefined;
  const child = spawn('/bin/sh', ['-c', command], {
    cwd,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], HOME: world.home, LANG: 'C.UTF-8', TERM: 'dumb', ...env },
  });
  const pieces: Buffer[] = [];
  let bytes = 0;
  let stderr = '';
  let flooded = false;
  const end = (): void => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // It has ended.
    }
  };
  child.stdout.on('data', (piece: Buffer) => {
    bytes += piece.length;
    if (bytes <= limitBytes) pieces.push(piece);
    else {
      flooded = true;
      end();
    }
  });
  child.stderr.setEncoding('utf8').on('data', text => {
    stderr += text;
  });
  let ranOut = false;
  const limit = setTimeout(() => {
    ranOut = true;
    flooded ||= bytes > 1024 * 1024;
    end();
  }, inTime(limitMs));
  const code = await new Promise<number | null>(resolve =>
    child
      .once('error', () => resolve(null))
      .once('exit', (status, signal) => resolve(status ?? 128 + (signal ? constants.signals[signal] : 0))),
  );
  clearTimeout(limit);
  await delay(50); // what it has said by now has its time to arrive
  const left = survivors(world);
  end();
  for (const pid of left) process.kill(pid, 'SIGKILL');
  const ended = !ranOut && !flooded && code !== null;
  return {
    stdout: Buffer.concat(pieces),
    stderr,
    ...(ended ? { exitCode: code } : {}),
    flooded,
    leftProcesses: left.length > 0,
  };
}

/** The same lines, in whatever order. */
export const sameLines = (one: string, other: string): boolean =>
  one.trim().split('\n').sort().join('\n') === other.trim().split('\n').sort().join('\n');

/** No byte of it is a sign of bytes that are not text. */
export function isBinary(bytes: Buffer): boolean {
  return bytes.includes(0) || bytes.toString('utf8').includes('\ufffd');
}
