/** Decides until when a command runs, and ends what is left of it then. */

import { setTimeout as delay } from 'node:timers/promises';
import { codePointOf, grouped, unseen } from '@telos/protocol/text';
import type { ProcessRow } from '../files/liveProcess.ts';
import { loadRegularFile, readRegularFile } from '../files/regularFile.ts';
import type { CommandStreams, OutputCapture } from './commandOutput.ts';
import type { StartedProcess } from './processStart.ts';
import { endProcessTree, isMoreThan, livingProcesses, type ProcessTree } from './processTree.ts';
import type { EnclosedCommand } from './tool.ts';

/** Why a command was stopped. */
type Stop = 'timeout' | 'flood' | 'abort' | Exceeded;

/** How a command ended. `stopped` is undefined if it ended by itself. */
interface CommandEnd {
  stopped: Stop | undefined;
  /** True if it left a process running. */
  leftBehind: boolean;
  /** Processes that keep running, because they belong to another user or the system holds them. */
  unended: readonly Pick<ProcessRow, 'pid' | 'name'>[];
}

/**
 * In milliseconds. How long the streams may stay open after the command's end. After that, the processes that hold them are
 * ended.
 */
const drainTime = 150;

/**
 * Collects output until the command's own process exits, or until the command must be stopped. Returns undefined in the
 * first case.
 */
export async function untilExitOrStop(
  child: Pick<StartedProcess, 'stdout' | 'stderr'>,
  exited: Promise<number>,
  { stdout, stderr }: CommandStreams,
  tree: ProcessTree,
  signal: AbortSignal,
  limits: TreeLimits & { time: TimeLimit },
): Promise<Stop | undefined> {
  let stop: (why: Stop) => void = () => undefined;
  const stopped = new Promise<Stop>(resolve => {
    stop = resolve;
  });
  const collect = (capture: OutputCapture) => (chunk: Buffer) => {
    capture.add(chunk);
    if (stdout.total + stderr.total > floodLimit) stop('flood');
  };
  child.stdout.on('data', collect(stdout));
  child.stderr.on('data', collect(stderr));
  limits.time.start(() => stop('timeout'));
  const onAbort = (): void => stop('abort');
  signal.addEventListener('abort', onAbort);
  // It may have come while the box was made.
  if (signal.aborted) onAbort();
  const watching = new AbortController();
  // The command still runs if processes cannot be listed.
  watchTree(tree, limits, stop, watching.signal).catch(() => undefined);
  try {
    return await Promise.race([stopped, exited.then(() => undefined)]);
  } finally {
    watching.abort();
    limits.time.end();
    signal.removeEventListener('abort', onAbort);
  }
}

/** Ends the processes that are still alive and waits for the rest of the output. */
export async function endAllOf(
  tree: ProcessTree,
  stopped: Stop | undefined,
  closed: Promise<unknown>,
  limits: TreeLimits,
  enclosed: EnclosedCommand | undefined,
): Promise<CommandEnd> {
  let why = stopped;
  if (stopped === undefined) {
    await settledWithin(closed, drainTime);
    // To look through all processes of the machine takes longer than most commands, and longer than a box takes to end.
    if ((await isBoxOver(enclosed)) || isTheLast(tree)) return { stopped, leftBehind: false, unended: [] };
    const left = (await livingProcesses(tree)).length;
    if (left === 0) return { stopped, leftBehind: false, unended: [] };
    if (left > limits.processes) why = 'processes';
  }
  const unended = await endProcessTree(tree, { atOnce: why === 'processes' || why === 'memory' });
  await settledWithin(closed, drainTime);
  return { stopped: why, leftBehind: why === undefined, unended };
}

/** In milliseconds. No machine gives out all its pids in this time and then the same ones again: a core starts 40 processes in one. */
const roundOfPids = 25;

/** Returns true if nothing was started on this machine since the first process of the tree. */
const isTheLast = ({ pid, mark }: ProcessTree): boolean =>
  startedSoFar().newest === String(pid) && performance.now() - mark.made < roundOfPids;

/** In milliseconds, the first one and all together. */
const boxWait = 1;
const mostBoxWait = 31;

async function isBoxOver(enclosed: EnclosedCommand | undefined): Promise<boolean> {
  if (!enclosed?.isOver) return false;
  for (let wait = boxWait; !enclosed.isOver(); wait *= 2) {
    if (wait > mostBoxWait) return false;
    await delay(wait);
  }
  return true;
}

/** Resolves when `pending` has resolved, or after that time. */
export async function settledWithin(pending: Promise<unknown>, milliseconds: number): Promise<void> {
  const timer = new AbortController();
  const timeout = delay(milliseconds, undefined, { signal: timer.signal }).catch(() => undefined);
  await Promise.race([pending, timeout]);
  timer.abort();
}

/** A command that prints more bytes than this is ended. */
const floodLimit = 64 * 1024 * 1024;
/** Number of processes that a note names. */
const namedProcesses = 10;

export function noteOn(end: CommandEnd, limits: TreeLimits & { timeoutMs: number }): string | undefined {
  const { stopped, leftBehind, unended } = end;
  const why = stopped ? reasonOf(stopped, limits) : leftBehind ? leftBehindText : undefined;
  if (unended.length === 0) {
    if (stopped === 'timeout') return `[${why}: the command and all its processes were ended]`;
    return leftBehind ? `[${why}; it was ended]` : why && `[${why}]`;
  }
  const names = unended.slice(0, namedProcesses).map(({ pid, name }) => `${pid} (${plainName(name)})`);
  const more = unended.length > names.length ? ` and ${unended.length - names.length} more` : '';
  const count = unended.length === 1 ? '1 process' : `${unended.length} processes`;
  return `[${why}; ${count} could not be ended: ${names.join(', ')}${more}]`;
}

const leftBehindText = 'the command left a process running in the background';

function reasonOf(
  stopped: Stop,
  { timeoutMs, processes, memoryBytes }: TreeLimits & { timeoutMs: number },
): string {
  switch (stopped) {
    case 'timeout':
      return `timed out after ${timeoutMs / 1000} s`;
    case 'flood':
      return `ended because it printed more than ${grouped(floodLimit)} bytes; print less`;
    case 'processes':
      return `ended because it ran more than ${grouped(processes)} processes at a time; start fewer`;
    case 'memory':
      return `ended because it used more than ${memoryBytes / 1024 ** 3} GiB of memory; use less`;
    case 'abort':
      return 'cancelled';
  }
}

/** Escapes unseen characters, since a process chooses its own name. */
const plainName = (name: string): string => unseen.replacedIn(name, codePointOf);

/** Limits of a command and everything that it starts, at any one time. */
export interface TreeLimits {
  processes: number;
  memoryBytes: number;
}

type Exceeded = 'processes' | 'memory';

/** Time between two glances at how much was started on the machine, in milliseconds. A glance takes microseconds. */
const glance = 20;
/**
 * Time between two looks at the tree: while something is started, and while nothing is. In milliseconds. Memory is checked
 * at the slower interval.
 */
const interval = 50;
const slowInterval = 250;
/** Share of the time that looks may take. `longest` limits the pause between them, in milliseconds. */
const shareOfTime = 0.05;
const longest = 200;
/** How long to wait for a process to report which of its memory it shares, in milliseconds. */
const patience = 300;

/** Checks the tree repeatedly until the signal aborts. `onExceeded` is called at most once. */
async function watchTree(
  tree: ProcessTree,
  limits: TreeLimits,
  onExceeded: (what: Exceeded) => void,
  signal: AbortSignal,
): Promise<void> {
  if (process.platform === 'win32') return;
  let last = startedSoFar();
  // Most commands have ended by then, and to look through all processes takes longer than they do.
  let [lookAt, memoryAt] = [performance.now() + interval, performance.now() + slowInterval];
  while (await passed(glance, signal)) {
    const now = performance.now();
    const soFar = startedSoFar();
    if (soFar.tasks - last.tasks > limits.processes && (await isMoreThan(limits.processes, tree)))
      return onExceeded('processes');
    const isMemoryDue = now >= memoryAt;
    if (now < lookAt || (soFar.newest === last.newest && !isMemoryDue)) continue;
    last = soFar;
    const members = await livingProcesses(tree);
    if (signal.aborted) return;
    if (members.length > limits.processes) return onExceeded('processes');
    if (isMemoryDue && (await isLarger(members, limits.memoryBytes)))
      return signal.aborted ? undefined : onExceeded('memory');
    if (isMemoryDue) memoryAt = now + slowInterval;
    const took = performance.now() - now;
    lookAt = now + Math.min(longest, Math.max(interval, took / shareOfTime));
  }
}

/** Resolves to false if the signal aborts earlier. */
const passed = (milliseconds: number, signal: AbortSignal): Promise<boolean> =>
  delay(milliseconds, true, { signal, ref: false }).catch(() => false);

/**
 * Returns the number of processes and threads, and the last pid given out. While that pid stays the same, nothing was
 * started.
 */
function startedSoFar(): { tasks: number; newest: string } {
  try {
    const [, tasks, newest] = /\/(\d+) (\d+)/.exec(readRegularFile('/proc/loadavg').toString('latin1')) ?? [];
    return { tasks: Number(tasks), newest: newest ?? '' };
  } catch {
    return { tasks: 0, newest: '' };
  }
}

/**
 * Returns true if the processes use more memory than `bytes`. Shared memory, as between children and their parent, counts
 * once. Finding that out takes time, so it is checked last.
 */
async function isLarger(members: readonly ProcessRow[], bytes: number): Promise<boolean> {
  const resident = members.map(row => row.residentBytes ?? kibibytes(statusOf(row.pid), 'VmRSS'));
  if (sum(resident) <= bytes) return false;
  const own = members.map(async ({ pid }, index) => {
    const rollup = loadRegularFile(`/proc/${pid}/smaps_rollup`)
      .then(bytes => bytes.toString('latin1'))
      .catch(() => '');
    const text = await Promise.race([rollup, delay(patience, '', { ref: false })]);
    return text === '' ? (resident[index] ?? 0) : kibibytes(text, 'Pss');
  });
  return sum(await Promise.all(own)) > bytes;
}

function statusOf(pid: number): string {
  try {
    return readRegularFile(`/proc/${pid}/status`).toString('latin1');
  } catch {
    return '';
  }
}

/** Parses a line such as `VmRSS: 1234 kB` and returns bytes. */
function kibibytes(text: string, name: string): number {
  const [, count = '0'] = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text) ?? [];
  return Number(count) * 1024;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

/** The time that a command has. It stands still while a person is asked for the command. */
export class TimeLimit {
  #left: number;
  #began = 0;
  #questions = 0;
  #timer: NodeJS.Timeout | undefined;
  #over: (() => void) | undefined;

  constructor(milliseconds: number) {
    this.#left = milliseconds;
  }

  /** Calls `over` when the time is over, unless `end` is called before. */
  start(over: () => void): void {
    this.#over = over;
    this.#goOn();
  }

  end(): void {
    this.#over = undefined;
    clearTimeout(this.#timer);
  }

  /** Stops the time until the question is answered. */
  async during<Answer>(question: Promise<Answer>): Promise<Answer> {
    if (this.#questions++ === 0 && this.#over) {
      clearTimeout(this.#timer);
      this.#left -= performance.now() - this.#began;
    }
    try {
      return await question;
    } finally {
      if (--this.#questions === 0) this.#goOn();
    }
  }

  #goOn(): void {
    if (!this.#over) return;
    this.#began = performance.now();
    this.#timer = setTimeout(this.#over, Math.max(0, this.#left));
  }
}
