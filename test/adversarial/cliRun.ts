/** Runs the command line as a process of its own, on a model that obeys a script. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type AnthropicTurn, type ReceivedRequest, startAnthropicServer } from '../fakes/anthropicServer.ts';
import { noteTerminal } from './witness.ts';
import { usualKey, type World } from './world.ts';

export interface CliRun {
  exitCode: number | null;
  stdout: string;
  stderr: string;
  requests: ReceivedRequest[];
  milliseconds: number;
}

export interface CliOptions {
  env?: Readonly<Record<string, string>>;
  /** Called when the process runs; may end it or read from it. */
  onStart?: (child: ReturnType<typeof spawn>) => void;
  /** Put before the program, such as a shell that pipes. */
  shell?: string;
  /** Milliseconds between two writes of the model. */
  chunkDelayMs?: number;
  /** Of the process; a run as another user than root sees permissions as users do. */
  uid?: number;
  /** After which it is killed, in milliseconds. Default: 90 seconds. */
  limitMs?: number;
}

const program = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

/** In `shell`, `"$@"` is the command line. */
export async function runCli(
  world: World,
  args: readonly string[],
  turns: Parameters<typeof startAnthropicServer>[0]['turns'],
  { env = {}, onStart, shell, chunkDelayMs = 0, uid, limitMs = 90_000 }: CliOptions = {},
): Promise<CliRun> {
  const server = await startAnthropicServer({ turns, chunkDelayMs });
  const command = [process.execPath, program, ...args];
  const words = shell ? ['/bin/sh', '-c', shell, 'sh', ...command] : command;
  const start = performance.now();
  const child = spawn(words[0]!, words.slice(1), {
    cwd: world.work,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(uid === undefined ? {} : { uid, gid: uid }),
    env: {
      ...world.env,
      ANTHROPIC_API_KEY: usualKey,
      ANTHROPIC_BASE_URL: server.url,
      ...env,
    },
  });
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', text => {
    stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', text => {
    stderr += text;
  });
  onStart?.(child);
  const limit = setTimeout(() => child.kill('SIGKILL'), limitMs);
  try {
    const exitCode = await new Promise<number | null>(resolve => child.once('close', resolve));
    noteTerminal(world, 'stdout', stdout);
    noteTerminal(world, 'stderr', stderr);
    if (exitCode === null && !onStart)
      world.noted.crashed.push(`the command line was killed or hung for ${limitMs / 1000} s`);
    if (/^\s+at .*(dist\/cli\.js|node:internal)/m.test(stderr) && !env['NODE_OPTIONS'])
      world.noted.crashed.push(`a stack trace: ${stderr.slice(0, 200)}`);
    return { exitCode, stdout, stderr, requests: server.requests, milliseconds: performance.now() - start };
  } finally {
    clearTimeout(limit);
    await server.close();
  }
}

/** One call a turn, then a last word. */
export const turnsFor = (
  calls: readonly { name: string; input: unknown }[],
  words = 'done',
): AnthropicTurn[] => [
  ...calls.map(({ name, input }, at) => ({ toolCalls: [{ id: `toolu_${at}`, name, input }] })),
  { text: [words] },
];
