/** The processes of this machine at one moment, as the system lists them. */
import { execFile } from 'node:child_process';
import { randomInt, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';

export interface ProcessMark {
  /** The environment entry that children inherit, unless they are started with an empty environment. */
  name: string;
  value: string;
  /**
   * Linux alone: a limit that every child inherits, that only the system's administrator can raise, and that no kernel since 2.4 obeys, so it
   * limits nothing. Anybody may read it, also of another user's process.
   */
  lockLimit: number | undefined;
}

export function newMark(): ProcessMark {
  return {
    name: 'TELOS_COMMAND',
    value: randomUUID(),
    lockLimit: process.platform === 'linux' ? newLockLimit() : undefined,
  };
}

/** Also where the system counts in 32 bits. */
const highestLimit = 2 ** 31 - 1;

/** Below our own: in a command of another Telos there is a limit already, which can only be lowered. */
function newLockLimit(): number | undefined {
  const highest = Math.min(lockLimitOf(process.pid) ?? highestLimit, highestLimit);
  return highest > 1000 ? randomInt(Math.floor(highest / 2), highest) : undefined;
}

/** The shells of Linux call the limit -w or -x. The program takes the place of the shell, so the pid stays. */
const script = `
ulimit -w "$0" 2>/dev/null || ulimit -x "$0" 2>/dev/null
command -v -- "$1" >/dev/null || { echo "there is no program '$1'" >&2; exit 127; }
exec "$@"
`;

/** How to start a program so that it carries the mark, given that its environment holds the entry. */
export function marked(
  mark: ProcessMark,
  program: string,
  args: readonly string[],
): { program: string; args: string[] } {
  if (mark.lockLimit === undefined) return { program, args: [...args] };
  return { program: '/bin/sh', args: ['-c', script, String(mark.lockLimit), program, ...args] };
}

export interface ProcessRow {
  pid: number;
  parent: number;
  group: number;
  session: number;
  /** With the pid it names a process for good: a pid alone is given out again. */
  started: string;
  /** What the process calls itself; it may hold any character. */
  name: string;
  /** Memory that it holds; undefined where the list does not say so. */
  residentBytes: number | undefined;
}

export interface ProcessTable {
  rows: readonly ProcessRow[];
  /** Undefined where it cannot be read. */
  environmentOf(row: ProcessRow): Promise<Buffer | undefined>;
  /** See `lockLimitOf`; read once for all who ask. */
  lockLimitOf(row: ProcessRow): number | undefined;
}

/** Processes that are looked at before anything else gets its turn. */
const rowsAtOnce = 100;
/** How often new processes are looked for while some end as they are looked at. */
const passes = 8;

let current: Promise<ProcessTable> | undefined;
let next: Promise<ProcessTable> | undefined;

/**
 * Going through all processes takes milliseconds, and many commands may end at once: who asks while that is being done shares the next
 * time with all others who do, since each must see what is there after they asked.
 */
export function processTable(): Promise<ProcessTable> {
  next ??= Promise.resolve(current).then(() => {
    next = undefined;
    const listing = (process.platform === 'linux' ? linuxTable() : posixTable()).finally(() => {
      if (current === listing) current = undefined;
    });
    current = listing;
    return listing;
  });
  return next;
}

async function linuxTable(): Promise<ProcessTable> {
  const rows: ProcessRow[] = [];
  const seen = new Set<number>();
  // One that ended before it was looked at may have started another one that the list does not hold yet.
  // Where they come by the hundred, the next look sees them.
  for (let [pass, missed, before] = [0, true, 0]; missed && pass < passes; pass++) {
    if (pass > 1 && seen.size - before > rowsAtOnce) break;
    missed = false;
    before = seen.size;
    for (const pid of listedPids()) {
      if (seen.has(pid)) continue;
      seen.add(pid);
      if (seen.size % rowsAtOnce === 0) await nextTurn();
      const row = rowOf(pid);
      if (row) rows.push(row);
      else missed = true;
    }
  }
  const environments = new Map<ProcessRow, Promise<Buffer | undefined>>();
  const limits = new Map<ProcessRow, number | undefined>();
  return {
    rows,
    environmentOf(row) {
      const read = environments.get(row) ?? readFile(`/proc/${row.pid}/environ`).catch(() => undefined);
      environments.set(row, read);
      return read;
    },
    lockLimitOf(row) {
      if (!limits.has(row)) limits.set(row, lockLimitOf(row.pid));
      return limits.get(row);
    },
  };
}

/** Every process that Linux lists, in the order in which pids are given out, unless they have begun again from below. */
export function listedPids(): number[] {
  return readdirSync('/proc').filter(isNumber).map(Number);
}

const isNumber = (name: string): boolean => /^\d+$/.test(name);

/** Linux alone. Undefined for a process that has ended. No disk is asked, so this takes 10 microseconds, and five times that if it is done aside. */
export function rowOf(pid: number): ProcessRow | undefined {
  try {
    return linuxRow(pid, readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return undefined;
  }
}

/** The fields behind the name in parentheses, which may itself hold spaces and parentheses: see proc_pid_stat(5). */
function linuxRow(pid: number, stat: string): ProcessRow | undefined {
  const nameEnd = stat.lastIndexOf(')');
  const [state, parent, group, session, ...rest] = stat.slice(nameEnd + 2).split(' ');
  const [threads, started] = [rest[13], rest[15]];
  // One whose first thread has ended looks dead while its other threads go on.
  const isDead = state === 'X' || (state === 'Z' && !(Number(threads) > 1));
  if (isDead || started === undefined) return undefined;
  return {
    pid,
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    started,
    name: stat.slice(stat.indexOf('(') + 1, nameEnd),
    residentBytes: undefined,
  };
}

/** Linux alone: to how many file locks a process may raise its limit, which no kernel has obeyed for twenty years; undefined without a limit. */
export function lockLimitOf(pid: number): number | undefined {
  try {
    const [, limit] =
      /^Max file locks +\S+ +(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'latin1')) ?? [];
    return limit === undefined ? undefined : Number(limit);
  } catch {
    return undefined;
  }
}

const psColumns = 'pid=,ppid=,pgid=,stat=,rss=,lstart=,comm=';

async function posixTable(): Promise<ProcessTable> {
  const listed = await new Promise<string>(done => {
    const options = { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } } as const;
    execFile('ps', ['-A', '-o', psColumns], options, (_error, stdout) => done(stdout));
  });
  const rows = listed.split('\n').flatMap(line => {
    const [pid, parent, group, state, kibibytes, ...rest] = line.trim().split(/\s+/);
    if (pid === undefined || pid === '' || state === undefined || state.startsWith('Z')) return [];
    return [
      {
        pid: Number(pid),
        parent: Number(parent),
        group: Number(group),
        // ps names no session on every system; what left its group is found through its parent.
        session: 0,
        // A date as "Mon Jan 5 10:44:04 2026".
        started: rest.slice(0, 5).join(' '),
        name: rest.slice(5).join(' ').replace(/^.*\//, ''),
        residentBytes: Number(kibibytes) * 1024,
      },
    ];
  });
  return { rows, environmentOf: async () => undefined, lockLimitOf: () => undefined };
}
