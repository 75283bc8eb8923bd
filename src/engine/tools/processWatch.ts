/** Follows what a command starts while it runs, and says when that is more than a command may have. */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { ProcessRow } from './processTable.ts';
import { isMoreThan, livingProcesses, type ProcessTree } from './processTree.ts';

/** What a command and all that it starts may have at a time. */
export interface TreeLimits {
  processes: number;
  memoryBytes: number;
}

export type Exceeded = 'processes' | 'memory';

/** Between two glances at how much was started on the machine, which take microseconds, in milliseconds. */
const glance = 20;
/** Between two looks at the tree while something is started, and while nothing is; the memory is looked at in the latter. In milliseconds. */
const interval = 50;
const slowInterval = 250;
/** A look may take this share of the time, unless that makes them rarer than `longest`, in milliseconds. */
const shareOfTime = 0.05;
const longest = 200;
/** How long it is waited for a process to say which of its memory it shares, in milliseconds. */
const patience = 300;

/** Looks at the tree again and again until the signal aborts. `onExceeded` is called once at most. */
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

/** False when the signal aborts before. */
const passed = (milliseconds: number, signal: AbortSignal): Promise<boolean> =>
  delay(milliseconds, true, { signal, ref: false }).catch(() => false);

/** How many processes and threads there are, and the pid that was given out last: as long as that stays, nothing was started. */
function startedSoFar(): { tasks: number; newest: string } {
  try {
    const [, tasks, newest] = /\/(\d+) (\d+)/.exec(readFileSync('/proc/loadavg', 'latin1')) ?? [];
    return { tasks: Number(tasks), newest: newest ?? '' };
  } catch {
    return { tasks: 0, newest: '' };
  }
}

/** What processes share, as children do with their parent, counts once; finding that out takes time, so it is asked last. */
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

/** A line such as `VmRSS:     1234 kB`, in bytes. */
function kibibytes(text: string, name: string): number {
  const [, count = '0'] = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text) ?? [];
  return Number(count) * 1024;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
