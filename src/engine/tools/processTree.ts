/** Finds and ends every process that a command has started, even outside its group, its parent and its environment. */

import { spawn } from 'node:child_process';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { type ProcessRow, rowOf } from '../files/liveProcess.ts';
import {
  listedPids,
  lockLimitOf,
  type ProcessMark,
  type ProcessTable,
  processTable,
} from './processTable.ts';

/** A command's first process and what is known of the processes that it has started. Each look adds to that. */
export interface ProcessTree {
  pid: number;
  mark: ProcessMark;
  /** Start of the first process as the system counts it. An older process cannot belong to the tree. */
  started: number;
  /** Pid and start of the members of the last look. They stay members when their parent is gone. */
  known: Map<number, string>;
  /** Groups and sessions that a member leads. No other process can join them while a member is alive. */
  led: Set<number>;
  /** Pid and start of processes without the mark. The mark is inherited, so they never get it. */
  strangers: Map<number, string>;
  /** The last look. Looks run one after another, since each continues from what is known. */
  latest: Promise<unknown>;
}

/**
 * Creates the tree. Must be called in the turn in which the process was started, unless its start is given: later it may no longer be
 * available.
 */
export function processTree(pid: number, mark: ProcessMark, start?: string): ProcessTree {
  // A process that could not be started has no tree.
  const started = process.platform === 'linux' ? Number(start ?? rowOf(pid)?.started ?? 0) : 0;
  const known = new Map(started === 0 ? [] : [[pid, String(started)]]);
  return { pid, mark, started, known, led: new Set([pid]), strangers: new Map(), latest: Promise.resolve() };
}

/** Time between TERM and KILL, in milliseconds. A cancelled run must be over within about half a second. */
const grace = 400;
const pollInterval = 40;
/** How long KILL is repeated for processes that do not end at once, in milliseconds. */
const killTime = 2000;
/** Passes over the processes in which new members may appear while all are being stopped. */
const stopPasses = 50;
/** Number of these passes before other work gets its turn. */
const passesAtOnce = 5;
/** How often a pass reads the list again for new processes. */
const listings = 20;

/** Returns the living processes of the tree, without those that have ended and wait to be collected. */
export async function livingProcesses(tree: ProcessTree): Promise<readonly ProcessRow[]> {
  return [...(await findMembers(tree)).values()];
}

/**
 * Returns true if the tree has more than `count` processes; then it stays stopped. Stops everything before it counts, since
 * a tree that multiplies leaves no time for that.
 */
export async function isMoreThan(count: number, tree: ProcessTree): Promise<boolean> {
  const members = await stopAll(tree);
  if (members.size > count) return true;
  signalAll(members, 'SIGCONT');
  return false;
}

/**
 * Ends the tree by TERM, then KILL, and resolves when it is gone. Returns the processes that cannot be ended because they
 * belong to another user. With `atOnce` there is no TERM, for trees that must not grow any further.
 */
export async function endProcessTree(
  tree: ProcessTree,
  { atOnce = false } = {},
): Promise<readonly ProcessRow[]> {
  if (process.platform === 'win32') return endWindowsTree(tree.pid);
  let left = atOnce ? await stopAll(tree) : await endGently(tree);
  for (let [wait, until] = [5, performance.now() + killTime]; left.size > 0 && performance.now() < until; ) {
    const unreachable = signalAll(await stopAll(tree), 'SIGKILL');
    await delay(wait);
    wait = pollInterval;
    left = await findMembers(tree);
    if ([...left.keys()].every(pid => unreachable.has(pid))) break;
  }
  return [...left.values()];
}

/** Returns the members that are left after they had time to end in an orderly way. */
async function endGently(tree: ProcessTree): Promise<Map<number, ProcessRow>> {
  let members = await findMembers(tree);
  const most = 2 * members.size;
  signalAll(members, 'SIGTERM');
  // A stopped process handles TERM only when it continues.
  signalAll(members, 'SIGCONT');
  for (const deadline = performance.now() + grace; members.size > 0 && performance.now() < deadline; ) {
    await delay(pollInterval);
    members = await findMembers(tree);
    if (members.size > most) break;
  }
  return members;
}

/** Sends the signal and returns the members that belong to another user. */
function signalAll(members: ReadonlyMap<number, ProcessRow>, signal: NodeJS.Signals): Set<number> {
  return new Set([...members.keys()].filter(pid => !send(pid, signal)));
}

/** Returns false if the process belongs to another user. Also returns true if it has already ended. */
function send(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'EPERM';
  }
}

/**
 * Stops the whole tree, so that nothing starts another process while the others are ended. Each process is stopped at the
 * moment it is found. One that keeps starting its successor and ending is elsewhere a millisecond later.
 */
async function stopAll(tree: ProcessTree): Promise<Map<number, ProcessRow>> {
  // A whole group takes one call. Ids that are not a group, or have ended, are skipped.
  for (const pid of [...tree.led].map(id => -id).concat(...tree.known.keys())) send(pid, 'SIGSTOP');
  const stopped = new Map(tree.known);
  for (let pass = 1; pass <= stopPasses && process.platform === 'linux'; pass++) {
    if (stopNew(tree, stopped) === 0) break;
    if (pass % passesAtOnce === 0) await nextTurn();
  }
  return findMembers(tree);
}

/** Stops new members. Returns their number, including those that ended before anything could be read of them. */
function stopNew(tree: ProcessTree, stopped: Map<number, string>): number {
  let count = 0;
  const seen = new Set<number>();
  for (let listing = 0, before = -1; before !== seen.size && listing < listings; listing++) {
    before = seen.size;
    // The newest first: the oldest are already stopped.
    for (const pid of listedPids().reverse()) {
      if (seen.has(pid)) continue;
      seen.add(pid);
      const row = rowOf(pid);
      if (!row && listing > 0) count++;
      if (!row || stopped.get(pid) === row.started || !isMember(row, tree, stopped)) continue;
      send(pid, 'SIGSTOP');
      stopped.set(pid, row.started);
      count++;
    }
  }
  return count;
}

function isMember(row: ProcessRow, tree: ProcessTree, stopped: ReadonlyMap<number, string>): boolean {
  if (belongs(row, tree) || stopped.has(row.parent)) return true;
  return mayBelong(row, tree) && hasLimit(lockLimitOf(row.pid), tree);
}

/** Returns true if the process is a member by what is already known. */
function belongs({ pid, group, session, started }: ProcessRow, tree: ProcessTree): boolean {
  if (tree.started === 0 && pid === tree.pid) return true;
  return tree.led.has(group) || tree.led.has(session) || tree.known.get(pid) === started;
}

const mayBelong = ({ pid, started }: ProcessRow, tree: ProcessTree): boolean =>
  Number(started) >= tree.started && tree.strangers.get(pid) !== started;

const hasLimit = (limit: number | undefined, { mark }: ProcessTree): boolean =>
  limit !== undefined && limit === mark.lockLimit;

/** Returns all members by pid, and records them in the tree. */
function findMembers(tree: ProcessTree): Promise<Map<number, ProcessRow>> {
  const look = tree.latest.then(() => lookAt(tree));
  tree.latest = look.catch(() => undefined);
  return look;
}

async function lookAt(tree: ProcessTree): Promise<Map<number, ProcessRow>> {
  const table = await processTable();
  const members = new Map<number, ProcessRow>();
  const others = table.rows.filter(row => {
    if (!belongs(row, tree)) return mayBelong(row, tree);
    members.set(row.pid, row);
    return false;
  });
  const areMarked = await Promise.all(others.map(row => carriesMark(row, table, tree)));
  for (const [index, row] of others.entries()) if (areMarked[index]) members.set(row.pid, row);
  for (let size = -1; size !== members.size; ) {
    size = members.size;
    for (const row of table.rows) if (members.has(row.parent)) members.set(row.pid, row);
  }
  for (const { pid, started } of others) if (!members.has(pid)) tree.strangers.set(pid, started);
  remember(tree, members);
  return members;
}

function remember(tree: ProcessTree, members: ReadonlyMap<number, ProcessRow>): void {
  const rows = [...members.values()];
  const ids = rows.flatMap(({ group, session }) => [group, session]);
  tree.led = new Set(ids.filter(id => tree.led.has(id) || members.has(id)));
  tree.known = new Map(rows.map(({ pid, started }) => [pid, started]));
}

async function carriesMark(row: ProcessRow, table: ProcessTable, tree: ProcessTree): Promise<boolean> {
  if (hasLimit(table.lockLimitOf(row), tree)) return true;
  return (await table.environmentOf(row))?.includes(`${tree.mark.name}=${tree.mark.value}`) ?? false;
}

function endWindowsTree(pid: number): Promise<readonly ProcessRow[]> {
  // By its path: Windows looks for a name in the current folder first.
  const program = `${process.env['SystemRoot'] || 'C:\\Windows'}\\System32\\taskkill.exe`;
  return new Promise(done => {
    const taskkill = spawn(program, ['/pid', String(pid), '/T', '/F'], {
      stdio: 'ignore',
      windowsHide: true,
    });
    taskkill.once('error', () => done([]));
    taskkill.once('exit', () => done([]));
  });
}
