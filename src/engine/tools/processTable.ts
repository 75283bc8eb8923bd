/** Lists the processes of this machine at one moment, as the system reports them. */

import { execFile } from 'node:child_process';
import { randomInt, randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type ProcessRow, rowOf } from '../files/liveProcess.ts';
import { loadRegularFile, readRegularFile } from '../files/regularFile.ts';
import { findProgram } from './programPath.ts';

export interface ProcessMark {
  /** The environment entry that children inherit, unless they are started with an empty environment. */
  name: string;
  value: string;
  /**
   * Linux only: a limit that every child inherits and that only the system's administrator can raise. No kernel since 2.4
   * enforces it, so it limits nothing. It can be read without any rights, even for another user's process.
   */
  lockLimit: number | undefined;
  /** When it was made, which is before anything is started with it. As `performance.now()` says it. */
  made: number;
}

export function newMark(): ProcessMark {
  return {
    name: 'TELOS_COMMAND',
    value: randomUUID(),
    lockLimit: process.platform === 'linux' ? newLockLimit() : undefined,
    made: performance.now(),
  };
}

/** Also valid if the system counts in 32 bits. */
const highestLimit = 2 ** 31 - 1;

/** Returns a limit below our own. In a command of another Telos a limit is already set, and it can only be lowered. */
function newLockLimit(): number | undefined {
  const highest = Math.min(lockLimitOf(process.pid) ?? highestLimit, highestLimit);
  return highest > 1000 ? randomInt(Math.floor(highest / 2), highest) : undefined;
}

/**
 * The shells of Linux call the limit -w or -x. No image of the memory is written at a crash. The program replaces the shell, so the
 * pid stays the same.
 */
const script = `
ulimit -c 0 2>/dev/null
ulimit -w "$0" 2>/dev/null || ulimit -x "$0" 2>/dev/null
command -v -- "$1" >/dev/null || { echo "the program '$1' was not found" >&2; exit 127; }
exec "$@"
`;

/** Returns how to start a program so that it carries the mark. Its environment must contain the entry. */
export function marked(
  mark: ProcessMark,
  program: string,
  args: readonly string[],
): { program: string; args: string[] } {
  if (mark.lockLimit === undefined) return { program, args: [...args] };
  return { program: '/bin/sh', args: ['-c', script, String(mark.lockLimit), program, ...args] };
}

export interface ProcessTable {
  rows: readonly ProcessRow[];
  /** Returns undefined if it cannot be read. */
  environmentOf(row: ProcessRow): Promise<Buffer | undefined>;
  /** See `lockLimitOf`; read once for all callers. */
  lockLimitOf(row: ProcessRow): number | undefined;
}

/** Number of processes that are examined before other work gets its turn. */
const rowsAtOnce = 100;
/** How often the list is read again while some processes end as they are examined. */
const passes = 8;

let current: Promise<ProcessTable> | undefined;
let next: Promise<ProcessTable> | undefined;

/**
 * Returns a listing that starts after the call. Listing all processes takes milliseconds, and many commands may end at
 * once. Callers that arrive during a listing share the next one, since each must see the state after its call.
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
  // A process that ended before it was examined may have started another one that is not in the list yet. If new processes
  // come by the hundred, the next look sees them.
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
      const read =
        environments.get(row) ?? loadRegularFile(`/proc/${row.pid}/environ`).catch(() => undefined);
      environments.set(row, read);
      return read;
    },
    lockLimitOf(row) {
      if (!limits.has(row)) limits.set(row, lockLimitOf(row.pid));
      return limits.get(row);
    },
  };
}

/** Returns every process that Linux lists, in the order in which pids are given out, unless pids have wrapped around. */
export function listedPids(): number[] {
  return readdirSync('/proc').filter(isNumber).map(Number);
}

const isNumber = (name: string): boolean => /^\d+$/.test(name);

/**
 * Linux only. Returns the number of file locks to which a process may raise its limit, or undefined without a limit. No
 * kernel has enforced this limit for twenty years.
 */
export function lockLimitOf(pid: number): number | undefined {
  try {
    const [, limit] =
      /^Max file locks +\S+ +(\d+)/m.exec(readRegularFile(`/proc/${pid}/limits`).toString('latin1')) ?? [];
    return limit === undefined ? undefined : Number(limit);
  } catch {
    return undefined;
  }
}

const psColumns = 'pid=,ppid=,pgid=,stat=,rss=,lstart=,comm=';

/** The folders of the system itself, in which no run writes: what is listed here is ended. */
const systemPath = '/usr/bin:/bin:/usr/sbin:/sbin';

async function posixTable(): Promise<ProcessTable> {
  const program = findProgram('ps', { env: { PATH: systemPath } }) ?? '/bin/ps';
  const listed = await new Promise<string>(done => {
    const options = { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } } as const;
    execFile(program, ['-A', '-o', psColumns], options, (_error, stdout) => done(stdout));
  });
  const rows = listed.split('\n').flatMap(line => {
    const [pid, parent, group, state, kibibytes, ...rest] = line.trim().split(/\s+/);
    if (pid === undefined || pid === '' || state === undefined || state.startsWith('Z')) return [];
    return [
      {
        pid: Number(pid),
        parent: Number(parent),
        group: Number(group),
        // ps does not report sessions on every system. A process that left its group is found through its parent.
        session: 0,
        // A date such as "Mon Jan 5 10:44:04 2026".
        started: rest.slice(0, 5).join(' '),
        name: rest.slice(5).join(' ').replace(/^.*\//, ''),
        residentBytes: Number(kibibytes) * 1024,
      },
    ];
  });
  return { rows, environmentOf: async () => undefined, lockLimitOf: () => undefined };
}
