/** Finds and ends everything that a command has started, also what has left its process group or its parent. */
import { execFile, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';

/** A command's first process, which leads its own group, and the environment entry `NAME=value` that its children inherit. */
export interface ProcessTree {
  pid: number;
  mark: string;
  /** The start of the first process as the system counts it; what is older cannot belong to the tree. */
  started: number;
}

/** Call it in the turn in which the process was started: later its start may be forgotten. */
export function processTree(pid: number, mark: string): ProcessTree {
  // One that could not be started has no tree.
  const started = process.platform === 'linux' ? Number(rowOf(pid)?.started ?? 0) : 0;
  return { pid, mark, started };
}

interface ProcessRow {
  pid: number;
  parent: number;
  group: number;
  session: number;
  /** With the pid it names a process for good: a pid alone is given out again. */
  started: string;
}

/** Between TERM and KILL, in milliseconds; a cancelled run must be over within half a second or so. */
const grace = 400;
const pollInterval = 40;
const killRounds = 25;
/** Processes that are looked at before anything else gets its turn. */
const rowsAtOnce = 100;

/** The processes of the tree that live, by pid, except for those that have ended and wait to be collected. */
export async function livingProcesses(tree: ProcessTree): Promise<readonly number[]> {
  return [...(await findMembers(tree, new Map())).keys()];
}

/** Ends the tree by TERM, then KILL, and returns when it is gone (or cannot be ended, being another user's). */
export async function endProcessTree(tree: ProcessTree): Promise<void> {
  if (process.platform === 'win32') return endWindowsTree(tree.pid);
  let members = await findMembers(tree, new Map());
  signalAll(members, 'SIGTERM');
  for (const deadline = Date.now() + grace; members.size > 0 && Date.now() < deadline; ) {
    await delay(pollInterval);
    members = await findMembers(tree, members);
  }
  // Something that starts new processes faster than they are listed needs several rounds.
  for (let round = 0; members.size > 0 && round < killRounds; round++) {
    signalAll(members, 'SIGKILL');
    await delay(round === 0 ? 5 : pollInterval);
    members = await findMembers(tree, members);
  }
}

function signalAll(members: ReadonlyMap<number, string>, signal: 'SIGTERM' | 'SIGKILL'): void {
  for (const pid of members.keys()) {
    try {
      process.kill(pid, signal);
    } catch {
      // It ended by itself, or belongs to another user.
    }
  }
}

/** Members by pid, with their start; `known` ones stay members when their parent is gone. */
async function findMembers(
  tree: ProcessTree,
  known: ReadonlyMap<number, string>,
): Promise<Map<number, string>> {
  const { rows, carriesMark } =
    process.platform === 'linux' ? await linuxProcesses() : await posixProcesses();
  const members = new Map<number, string>();
  const add = (row: ProcessRow): void => void members.set(row.pid, row.started);
  for (const row of rows) {
    const own = row.pid === tree.pid || row.group === tree.pid || row.session === tree.pid;
    if (own || known.get(row.pid) === row.started) add(row);
  }
  if (process.platform === 'linux') {
    const others = rows.filter(row => !members.has(row.pid) && Number(row.started) >= tree.started);
    const marked = await Promise.all(others.map(row => carriesMark(row, tree.mark)));
    for (const [index, row] of others.entries()) if (marked[index]) add(row);
  }
  for (let size = -1; size !== members.size; ) {
    size = members.size;
    for (const row of rows) if (members.has(row.parent)) add(row);
  }
  return members;
}

/** All processes of one moment. */
interface Processes {
  rows: readonly ProcessRow[];
  /** Whether its environment holds the entry. */
  carriesMark(row: ProcessRow, mark: string): Promise<boolean>;
}

let current: Promise<Processes> | undefined;
let next: Promise<Processes> | undefined;

/**
 * Going through all processes takes milliseconds, and many commands may end at once: who asks while that is being done shares the next
 * time with all others who do, since each must see what is there after they asked.
 */
function linuxProcesses(): Promise<Processes> {
  next ??= Promise.resolve(current).then(() => {
    next = undefined;
    const listing = listLinuxProcesses().finally(() => {
      if (current === listing) current = undefined;
    });
    current = listing;
    return listing;
  });
  return next;
}

async function listLinuxProcesses(): Promise<Processes> {
  const rows: ProcessRow[] = [];
  for (const [index, name] of readdirSync('/proc').entries()) {
    if (index % rowsAtOnce === rowsAtOnce - 1) await nextTurn();
    const row = /^\d+$/.test(name) ? rowOf(Number(name)) : undefined;
    if (row) rows.push(row);
  }
  const environments = new Map<ProcessRow, Promise<Buffer | undefined>>();
  return {
    rows,
    async carriesMark(row, mark) {
      const read = environments.get(row) ?? readFile(`/proc/${row.pid}/environ`).catch(() => undefined);
      environments.set(row, read);
      return (await read)?.includes(mark) ?? false;
    },
  };
}

/** Undefined for a process that has ended. No disk is asked, so this takes 10 microseconds, and five times that if it is done aside. */
function rowOf(pid: number): ProcessRow | undefined {
  try {
    return linuxRow(pid, readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return undefined;
  }
}

/** The fields behind the name in parentheses, which may itself hold spaces and parentheses: see proc_pid_stat(5). */
function linuxRow(pid: number, stat: string): ProcessRow | undefined {
  const [state, parent, group, session, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const started = rest[15];
  if (state === 'Z' || state === 'X' || started === undefined) return undefined;
  return { pid, parent: Number(parent), group: Number(group), session: Number(session), started };
}

async function posixProcesses(): Promise<Processes> {
  const listed = await new Promise<string>(done => {
    execFile('ps', ['-A', '-o', 'pid=,ppid=,pgid=,stat=,lstart='], { encoding: 'utf8' }, (_error, stdout) =>
      done(stdout),
    );
  });
  const rows = listed.split('\n').flatMap(line => {
    const [pid, parent, group, state, ...started] = line.trim().split(/\s+/);
    if (pid === undefined || pid === '' || state === undefined || state.startsWith('Z')) return [];
    // ps names no session on every system; what left its group is found through its parent.
    return [
      {
        pid: Number(pid),
        parent: Number(parent),
        group: Number(group),
        session: 0,
        started: started.join(' '),
      },
    ];
  });
  return { rows, carriesMark: async () => false };
}

function endWindowsTree(pid: number): Promise<void> {
  return new Promise(done => {
    const taskkill = spawn('taskkill', ['/pid', String(pid), '/T', '/F'], {
      stdio: 'ignore',
      windowsHide: true,
    });
    taskkill.once('error', () => done());
    taskkill.once('exit', () => done());
  });
}
