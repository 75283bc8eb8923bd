/** Follows what a command starts while it runs, and reports when that exceeds the limits. */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { ProcessRow } from './processTable.ts';
import { isMoreThan, livingProcesses, type ProcessTree } from './processTree.ts';

/** Limits of a command and everything that it starts, at any one time. */
export interface TreeLimits {
  processes: number;
  memoryBytes: number;
}

export type Exceeded = 'processes' | 'memory';

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
export async function watchTree(
  tree: ProcessTree,
  limits: TreeLimits,
  onExceeded: (what: Exceeded) => void,
  signal: AbortSignal,
): Promise<void> {
  if (process.platform === 'win32') return;
  let last = startedSoFar();
  let [lookAt, memoryAt] = [0, performance.now() + slowInterval];
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
    const [, tasks, newest] = /\/(\d+) (\d+)/.exec(readFileSync('/proc/loadavg', 'latin1')) ?? [];
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
    const rollup = readFile(`/proc/${pid}/smaps_rollup`, 'latin1').catch(() => '');
    const text = await Promise.race([rollup, delay(patience, '', { ref: false })]);
    return text === '' ? (resident[index] ?? 0) : kibibytes(text, 'Pss');
  });
  return sum(await Promise.all(own)) > bytes;
}

function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'latin1');
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
