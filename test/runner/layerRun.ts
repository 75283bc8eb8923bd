/** Runs the program of one layer, with a limit and a log, and says what it took. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { type Flake, type Results, resultsInText, resultsOf } from './outcomes.ts';
import type { Layer, LayerCommand } from './table.ts';

export const root = fileURLToPath(new URL('../../', import.meta.url));

export interface LayerResult extends Results {
  name: string;
  /** Whether the program ended with 0, in time. */
  ok: boolean;
  /** Whether it ended by itself, after its last test. */
  ended: boolean;
  /** Why it is not, where no test says so. */
  why?: string;
  wallSeconds: number;
  /** Of the program and all that it waited for. Undefined where the system has no `sh`. */
  cpuSeconds: number | undefined;
  /** What failed, and passed at its second try. */
  flaky: Flake[];
  /** The whole output. */
  log: string;
}

export interface LayerRunOptions {
  /** For logs and outcomes. It exists. */
  folder: string;
  isNight: boolean;
  /** Only these files of a layer of mocha's. */
  files?: readonly string[];
  /** Also prints what the layer prints. */
  echoes?: boolean;
  /** After this, a layer hangs and is stopped, in milliseconds. Default: 45 minutes by day, 90 at night: a slow machine is no hang. */
  limitMs?: number;
  /** How long after its last test a layer of mocha's may take to end, in milliseconds. Default: 30 seconds. */
  waitMs?: number;
}

const usualLimitMs = { day: 45 * 60_000, night: 90 * 60_000 };

const running = new Set<ChildProcess>();

/** Ends what runs, with all that it started. */
export function endAll(): void {
  for (const child of running) end(child);
}

export async function runLayer(layer: Layer, options: LayerRunOptions): Promise<LayerResult> {
  const { folder, isNight, files } = options;
  const name = files ? `${layer.name}-again` : layer.name;
  const [log, outcomes] = [join(folder, `${name}.log`), join(folder, `${name}.jsonl`)];
  rmSync(outcomes, { force: true });
  const ended = await runProgram(programOf(layer.command, files), {
    log,
    echoes: options.echoes ?? false,
    limitMs: options.limitMs ?? usualLimitMs[isNight ? 'night' : 'day'],
    env: {
      ...process.env,
      TELOS_TEST_OUTCOMES: outcomes,
      ...(options.waitMs !== undefined && { TELOS_TEST_WAIT_MS: `${options.waitMs}` }),
      ...(isNight && { TELOS_NIGHTLY: '1' }),
    },
  });
  const results = existsSync(outcomes)
    ? resultsOf(readFileSync(outcomes, 'utf8'))
    : resultsInText(readFileSync(log, 'utf8'));
  const hasTests =
    layer.command.kind === 'mocha' || (layer.command.kind === 'node' && layer.command.prints === 'mocha');
  const ranNone = hasTests && results.passed + results.failed.length === 0;
  const stays = isNight && results.left !== undefined;
  const why =
    ended.why ?? (ranNone ? 'It ran no test.' : stays ? `It left open: ${results.left}.` : undefined);
  return {
    ...ended,
    ...results,
    ok: ended.ok && !ranNone && !stays,
    name: layer.name,
    flaky: [],
    log,
    ...(why && { why }),
  };
}

function programOf(command: LayerCommand, files: readonly string[] | undefined): [string, ...string[]] {
  if (command.kind === 'npm') {
    const script = process.env['npm_execpath'];
    return script?.endsWith('.js')
      ? [process.execPath, script, 'run', '--silent', command.script]
      : ['npm', 'run', '--silent', command.script];
  }
  if (command.kind === 'node') return [process.execPath, ...command.args, ...(files ?? [])];
  const { specs, ignore = [], testLimitMs, jobs } = command;
  return [
    process.execPath,
    'node_modules/mocha/bin/mocha.js',
    ...['--no-config', '--reporter', join(root, 'test/runner/reporter.ts'), '--timeout', `${testLimitMs}`],
    ...(jobs === undefined || files ? [] : ['--parallel', '--jobs', `${jobs}`]),
    ...ignore.flatMap(glob => ['--ignore', glob]),
    ...(files ?? specs),
  ];
}

interface ProgramOptions {
  log: string;
  echoes: boolean;
  limitMs: number;
  env: NodeJS.ProcessEnv;
}

type Ended = Pick<LayerResult, 'ok' | 'ended' | 'why' | 'wallSeconds' | 'cpuSeconds'>;

/** `sh` counts the time of all children that were waited for, which Node does not tell. */
const counting = '"$@" 3>&-; code=$?; times >&3; exit $code';

async function runProgram(program: [string, ...string[]], options: ProgramOptions): Promise<Ended> {
  const start = performance.now();
  const [file, ...args] = process.platform === 'win32' ? program : ['sh', '-c', counting, 'sh', ...program];
  const child = spawn(file!, args, {
    cwd: root,
    env: options.env,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    // A group of its own can be ended whole.
    detached: process.platform !== 'win32',
  });
  running.add(child);
  const log = createWriteStream(options.log);
  let times = '';
  for (const stream of [child.stdout, child.stderr] as Readable[])
    stream.on('data', (chunk: Buffer) => {
      log.write(chunk);
      if (options.echoes) process.stdout.write(chunk);
    });
  (child.stdio[3] as Readable).on('data', (chunk: Buffer) => {
    times += chunk.toString();
  });
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    end(child);
  }, options.limitMs);
  const ending = await new Promise<{ code: number | null; error?: Error }>(resolve => {
    child.once('error', error => resolve({ code: null, error }));
    child.once('close', code => resolve({ code }));
    // What the layer left behind may keep its output open.
    child.once('exit', code => setTimeout(() => resolve({ code }), 2_000));
  });
  clearTimeout(timer);
  end(child);
  running.delete(child);
  await new Promise(resolve => log.end(resolve));
  return {
    ok: ending.code === 0,
    // By `sh`, a signal is a code above 128.
    ended: ending.code !== null && ending.code <= 128 && !late,
    ...whyOf(ending, late, options.limitMs),
    wallSeconds: (performance.now() - start) / 1000,
    cpuSeconds: secondsIn(times),
  };
}

function whyOf(
  ending: { code: number | null; error?: Error },
  late: boolean,
  limit: number,
): { why?: string } {
  if (ending.error) return { why: `It could not be started: ${ending.error.message}` };
  if (late) return { why: `It did not end within ${limit / 60_000} minutes and was stopped.` };
  return ending.code === 0 ? {} : { why: `It ended with ${ending.code ?? 'a signal'}.` };
}

/** Ends the group of a program: what it left running, too. */
function end(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    if (process.platform === 'win32') child.kill('SIGKILL');
    else process.kill(-child.pid, 'SIGKILL');
  } catch {
    // Nothing of it is left.
  }
}

/** Returns the seconds of the second line of what `times` prints: user and system time of the children. */
function secondsIn(times: string): number | undefined {
  const parts = [...(times.split('\n')[1] ?? '').matchAll(/(\d+)m([\d.]+)s/g)];
  return parts.length === 0
    ? undefined
    : parts.reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds), 0);
}
