/**
 * Starts git for work of Telos: without hooks, prompts and tidying, and without what a variable of the environment would change.
 * The program is the one that `findGit` has found.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { endOf } from '@telos/protocol/text';

export type GitEnvironment = Readonly<Record<string, string | undefined>>;

const always = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'submodule.recurse=false',
];

/** Returns the options with the settings of every call, and with `own`, which are those of this one. */
export const gitSettings = (...own: readonly string[]): string[] =>
  [...always, ...own].flatMap(setting => ['-c', setting]);

/** Returns the environment without git's own variables, but for those of `own`. */
export const gitEnvironment = (env: GitEnvironment, own: GitEnvironment = {}): GitEnvironment => ({
  ...Object.fromEntries(Object.entries(env).filter(([name]) => !/^GIT_/i.test(name))),
  LC_ALL: 'C',
  GIT_TERMINAL_PROMPT: '0',
  GIT_OPTIONAL_LOCKS: '0',
  ...own,
});

/** Variables for a call that reads a repository as it is, and fetches nothing that is missing there. */
export const readsAlone: GitEnvironment = {
  GIT_LITERAL_PATHSPECS: '1',
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_NO_LAZY_FETCH: '1',
  GIT_ALLOW_PROTOCOL: 'none',
};

/** Returns the environment for a call that reaches a server in the user's way, with their credentials, and asks no one. */
export function serverEnvironment(env: GitEnvironment, own: GitEnvironment = {}): GitEnvironment {
  const ways = Object.entries(env).filter(([name]) => /^GIT_(?:SSH|SSH_COMMAND|SSL_\w+)$/.test(name));
  // Git reads this one only in small letters.
  const proxy = env['http_proxy'] || env['HTTP_PROXY'];
  return gitEnvironment(env, {
    ...(proxy && { http_proxy: proxy }),
    GIT_SSH_COMMAND: 'ssh -oBatchMode=yes',
    ...Object.fromEntries(ways),
    GIT_ASKPASS: '',
    SSH_ASKPASS: '',
    GIT_LFS_SKIP_SMUDGE: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    ...own,
  });
}

interface Start {
  cwd: string;
  env: GitEnvironment;
  /** It leads a group of its own, with the helpers that it starts. */
  detached?: boolean;
}

/** Returns the process, whose input and output are pipes. */
export const startGit = (
  program: string,
  args: readonly string[],
  start: Start,
): ChildProcessWithoutNullStreams =>
  spawn(program, args, { ...start, stdio: ['pipe', 'pipe', 'pipe'], windowsHide: true });

/** Longer than any call takes, even on a slow disk or of a large push. In milliseconds. */
export const gitPatience = 10 * 60_000;

export interface GitRun extends Omit<Start, 'detached'> {
  input?: string;
  signal?: AbortSignal;
  /** It is ended if it prints more. In bytes. */
  mostOutput?: number;
}

export interface GitEnd {
  /** Null if it was ended: by the signal, after `gitPatience`, or for too much output. */
  code: number | null;
  stdout: Buffer;
  /** Its last 20,000 characters. */
  stderr: string;
}

/** Runs git to its end, which also ends the helpers that it has started. Rejects with the system's error if it cannot be started. */
export async function runGit(
  program: string,
  args: readonly string[],
  { input = '', signal, mostOutput = Number.POSITIVE_INFINITY, ...start }: GitRun,
): Promise<GitEnd> {
  const child = startGit(program, args, { ...start, detached: process.platform !== 'win32' });
  const stop = (): void => endGroup(child.pid);
  const timer = setTimeout(stop, gitPatience);
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted) stop();
  const parts: Buffer[] = [];
  let [size, stderr] = [0, ''];
  child.stdout.on('data', (part: Buffer) => {
    size += part.length;
    if (size <= mostOutput) parts.push(part);
    else stop();
  });
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    stderr = endOf(`${stderr}${part}`, 20_000);
  });
  // It may end before it has read all of it.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  try {
    const code = await new Promise<number | null>((done, fail) => {
      child.once('error', fail);
      child.once('close', done);
    });
    return { code, stdout: Buffer.concat(parts), stderr };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}
