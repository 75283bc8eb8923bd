/** The process table as an outsider sees it, for whether anything is left. Linux alone. */
import { readdirSync, readFileSync } from 'node:fs';

/** A pid alone is given out again; with its start it names one process. */
export interface SeenProcess {
  pid: number;
  started: string;
}

interface Row extends SeenProcess {
  parent: number;
}

export const canSeeProcesses = process.platform === 'linux';

/** Everything that `root` has started, and what that has, as long as the chain of parents holds. */
export function descendantsOf(root: number): SeenProcess[] {
  const rows = allRows();
  const found = new Map<number, Row>();
  for (let size = -1; size !== found.size; ) {
    size = found.size;
    for (const row of rows) if (row.parent === root || found.has(row.parent)) found.set(row.pid, row);
  }
  return [...found.values()];
}

/** Whose environment or command line holds the text, this process left out. */
export function processesWith(part: 'environ' | 'cmdline', text: string): SeenProcess[] {
  return allRows().filter(({ pid }) => {
    if (pid === process.pid) return false;
    try {
      return readFileSync(`/proc/${pid}/${part}`, 'utf8').includes(text);
    } catch {
      return false;
    }
  });
}

export function isAlive({ pid, started }: SeenProcess): boolean {
  return rowOf(String(pid))?.started === started;
}

function allRows(): Row[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(name => rowOf(name) ?? []);
}

/** Undefined for one that is gone, or dead and waits to be collected. */
function rowOf(pid: string): Row | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    return { pid: Number(pid), parent: Number(fields[1]), started: fields[19] ?? '' };
  } catch {
    return undefined;
  }
}
