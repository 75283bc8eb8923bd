/** Finds and ends everything that a command has started, also what has left its process group, its parent and its environment. */

import { spawn } from 'node:child_process';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import {
  listedPids,
  lockLimitOf,
  type ProcessMark,
  type ProcessRow,
  type ProcessTable,
  processTable,
  rowOf,
} from './processTable.ts';

/** A command's first process and what is known of those that it has started. Each look at it makes that more. */
export interface ProcessTree {
  pid: number;
  mark: ProcessMark;
  /** The start of the first process as the system counts it; what is older cannot belong to the tree. */
  started: number;
  /** Pid and start of the members of the last look: they stay members when their parent is gone. */
  known: Map<number, string>;
  /** Groups and sessions that a member leads: nothing else can be in them as long as one of them lives. */
  led: Set<number>;
  /** Pid and start of processes without the mark: it is inherited, so they never get it. */
  strangers: Map<number, string>;
  /** The last look at it; one waits for the other, since each goes on from what is known. */
  latest: Promise<unknown>;
}

/** Call it in the turn in which the process was started: later its start may be forgotten. */
export function processTree(pid: number, mark: ProcessMark): ProcessTree {
  // One that could not be started has no tree.
  const started = process.platform === 'linux' ? Number(rowOf(pid)?.started ?? 0) : 0;
  const known = new Map(started === 0 ? [] : [[pid, String(started)]]);
  return { pid, mark, started, known, led: new Set([pid]), strangers: new Map(), latest: Promise.resolve() };
}

/** Between TERM and KILL, in milliseconds; a cancelled run must be over within half a second or so. */
const grace = 400;
const pollInterval = 40;
/** How long it is tried to end what KILL does not end at once, in milliseconds. */
const killTime = 2000;
/** Passes over the processes in which new members may turn up while all are being stopped. */
const stopPasses = 50;
/** Of those, how many are made before anything else gets its turn. */
const passesAtOnce = 5;
/** How often a pass reads the list again for what has come meanwhile. */
const listings = 20;

/** The processes of the tree that live, except for those that have ended and wait to be collected. */
export async function livingProcesses(tree: ProcessTree): Promise<readonly ProcessRow[]> {
  return [...(await findMembers(tree)).values()];
}

/** Stops all of it before it counts, since what multiplies leaves no time for that; if it is more than so many, it stays stopped. */
export async function isMoreThan(count: number, tree: ProcessTree): Promise<boolean> {
  const members = await stopAll(tree);
  if (members.size > count) return true;
  signalAll(members, 'SIGCONT');
  return false;
}

/**
 * Ends the tree by TERM, then KILL, and returns when it is gone, with what cannot be ended, being another user's. With `atOnce` there is no TERM,
 * as for what must not grow any more.
 */
export async function endProcessTree(
  tree: ProcessTree,
  { atOnce = false } = {},
): Promise<readonly ProcessRow[]> {
  if (process.platform === 'win32') return endWindowsTree(tree.pid);
  let left = atOnce ? await stopAll(tree) : await endGently(tree);
  for (let [wait, until] = [5, Date.now() + killTime]; left.size > 0 && Date.now() < until; ) {
    const unreachable = signalAll(await stopAll(tree), 'SIGKILL');
    await delay(wait);
    wait = pollInterval;
    left = await findMembers(tree);
    if ([...left.keys()].every(pid => unreachable.has(pid))) break;
  }
  return [...left.values()];
}

/** What is left when everything had its time to end in good order, or would not. */
async function endGently(tree: ProcessTree): Promise<Map<number, ProcessRow>> {
  let members = await findMembers(tree);
  const most = 2 * members.size;
  signalAll(members, 'SIGTERM');
  // What is stopped heeds it only when it goes on.
  signalAll(members, 'SIGCONT');
  for (const deadline = Date.now() + grace; members.size > 0 && Date.now() < deadline; ) {
    await delay(pollInterval);
    members = await findMembers(tree);
    if (members.size > most) break;
  }
  return members;
}

/** Those that belong to another user. */
function signalAll(members: ReadonlyMap<number, ProcessRow>, signal: NodeJS.Signals): Set<number> {
  return new Set([...members.keys()].filter(pid => !send(pid, signal)));
}

/** False when it belongs to another user; true also when it has ended by itself. */
function send(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'EPERM';
  }
}

/**
 * Stops the whole tree, so that nothing starts another process while the others are ended. Each is stopped in the moment in which it is
 * found: one that starts its successor and ends, again and again, is elsewhere a millisecond later.
 */
async function stopAll(tree: ProcessTree): Promise<Map<number, ProcessRow>> {
  // A whole group takes one call. What is no group, or has ended, is passed by.
  for (const pid of [...tree.led].map(id => -id).concat(...tree.known.keys())) send(pid, 'SIGSTOP');
  const stopped = new Map(tree.known);
  for (let pass = 1; pass <= stopPasses && process.platform === 'linux'; pass++) {
    if (stopNew(tree, stopped) === 0) break;
    if (pass % passesAtOnce === 0) await nextTurn();
  }
  return findMembers(tree);
}

/** Returns how many there were, together with those that ended before anything could be seen of them. */
function stopNew(tree: ProcessTree, stopped: Map<number, string>): number {
  let count = 0;
  const seen = new Set<number>();
  for (let listing = 0, before = -1; before !== seen.size && listing < listings; listing++) {
    before = seen.size;
    // The newest first: the oldest have been stopped.
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

/** By what is known already. */
function belongs({ pid, group, session, started }: ProcessRow, tree: ProcessTree): boolean {
  if (tree.started === 0 && pid === tree.pid) return true;
  return tree.led.has(group) || tree.led.has(session) || tree.known.get(pid) === started;
}

const mayBelong = ({ pid, started }: ProcessRow, tree: ProcessTree): boolean =>
  Number(started) >= tree.started && tree.strangers.get(pid) !== started;

const hasLimit = (limit: number | undefined, { mark }: ProcessTree): boolean =>
  limit !== undefined && limit === mark.lockLimit;

/** All members by pid; the tree knows them from now on. */
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
  return new Promise(done => {
    const taskkill = spawn('taskkill', ['/pid', String(pid), '/T', '/F'], {
      stdio: 'ignore',
      windowsHide: true,
    });
    taskkill.once('error', () => done([]));
    taskkill.once('exit', () => done([]));
  });
}

export interface OrphanGuard {
  /** The first process of what is guarded, which leads its own group. */
  watch(pid: number): void;
  /** Nothing is left to guard. */
  release(): void;
}

const unguarded: OrphanGuard = { watch: () => undefined, release: () => undefined };

/**
 * A shell whose input ends with this process, however that ends. Then it does what processTree.ts would have done: by group, and where the
 * system has /proc by the mark, TERM once and KILL for two seconds more, since what is hit may start others.
 */
const script = `
read -r leader
read -r rest
signal=TERM
for round in 1 2 3 4 5 6; do
  if [ -n "$leader" ]; then kill -s $signal -- "-$leader"; fi
  for file in $(grep -lsE "^Max file locks .* $2 " /proc/[0-9]*/limits; grep -lsF -- "$1" /proc/[0-9]*/environ); do
    pid=\${file#/proc/}
    kill -s $signal "\${pid%/*}"
  done
  sleep 0.4
  signal=KILL
done
`;

/** `mark` is that of what will be started; call it before that, so that no moment is without a guard. */
export function guardOrphans({ name, value, lockLimit }: ProcessMark): OrphanGuard {
  if (process.platform === 'win32') return unguarded;
  const guard = spawn('/bin/sh', ['-c', script, 'sh', `${name}=${value}`, String(lockLimit)], {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin:/usr/sbin:/sbin' },
    stdio: ['pipe', 'ignore', 'ignore'],
    // A group of its own: what ends the group of Telos must not end its guard.
    detached: true,
  });
  // Without a guard the command still runs, and ends with its run.
  guard.on('error', () => undefined);
  guard.stdin.on('error', () => undefined);
  guard.unref();
  return {
    watch: pid => void guard.stdin.write(`${pid}\n`),
    release() {
      guard.kill('SIGKILL');
      guard.stdin.destroy();
    },
  };
}
