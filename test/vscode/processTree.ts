/** Ends a program together with everything it has started, also what moved to a session of its own (terminals, commands of skills). */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

/** Start options under which `endTree` can reach the whole group. */
export const ownGroup = { detached: process.platform !== 'win32' } as const;

/** Runs a program to its end. Rejects with the tail of its output when it fails, or when the signal ends it. */
export async function runProgram(
  program: string,
  args: readonly string[],
  cwd: string,
  signal: AbortSignal = AbortSignal.timeout(10 * 60_000),
): Promise<void> {
  signal.throwIfAborted();
  const child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'], ...ownGroup });
  let tail = '';
  const keep = (chunk: Buffer): void => {
    tail = (tail + chunk.toString()).slice(-2000);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const stop = (): void => void endTree(child);
  signal.addEventListener('abort', stop);
  try {
    const code = await new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', resolve);
    });
    signal.throwIfAborted();
    if (code !== 0) throw new Error(`"${program} ${args[0]}" ended with ${code}.\n${tail.trim()}`);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

interface ProcessRow {
  pid: number;
  parent: number;
}

/** Every living process; one that only waits to be reaped is not counted. POSIX only. */
export async function processTable(): Promise<ProcessRow[]> {
  if (process.platform === 'linux') return procTable();
  const rows = (await output('ps', ['-A', '-o', 'pid=,ppid=,stat=']))
    .split('\n')
    .map(line => line.trim().split(/\s+/));
  return rows
    .filter(([, , state]) => state && !state.startsWith('Z'))
    .map(([pid, parent]) => ({ pid: Number(pid), parent: Number(parent) }));
}

/** Small Linux images have no `ps`. */
async function procTable(): Promise<ProcessRow[]> {
  const names = (await readdir('/proc')).filter(name => /^\d+$/.test(name));
  const rows = await Promise.all(
    names.map(async name => {
      const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '');
      // The program's name is in brackets and may itself contain brackets and spaces.
      const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return { pid: Number(name), parent: Number(parent), state };
    }),
  );
  return rows.filter(row => row.state && row.state !== 'Z');
}

/** All living descendants of a process, itself not included. */
export async function descendants(root: number): Promise<number[]> {
  const table = await processTable();
  const found: number[] = [];
  const open = [root];
  for (let pid = open.pop(); pid !== undefined; pid = open.pop()) {
    const own = table.filter(row => row.parent === pid).map(row => row.pid);
    found.push(...own);
    open.push(...own);
  }
  return found;
}

/** Our parent, its parent and so on, at most `count`. Windows keeps no such list; there it is the parent alone. */
export async function ancestors(count: number): Promise<number[]> {
  const found = [process.ppid];
  if (process.platform === 'win32') return found;
  const table = await processTable();
  while (found.length < count) {
    const parent = table.find(row => row.pid === found.at(-1))?.parent;
    if (!parent || parent <= 1) break;
    found.push(parent);
  }
  return found;
}

/** True while a process has that number, also when it is another user's. */
export function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Asks the tree to end, waits up to `patienceMs`, then ends it by force. Safe to call for a process that is gone. */
export async function endTree(child: ChildProcess, patienceMs = 3000): Promise<void> {
  const root = child.pid;
  if (root === undefined) return;
  if (process.platform === 'win32') {
    await output('taskkill', ['/PID', String(root), '/T', '/F']);
    return;
  }
  // Taken before anything ends: a child whose parent is gone can no longer be found.
  const tree = new Set([root, ...(await descendants(root))]);
  send(-root, 'SIGTERM');
  if (await allEnded(tree, patienceMs)) return;
  send(-root, 'SIGKILL');
  for (const { pid } of await processTable()) if (tree.has(pid)) send(pid, 'SIGKILL');
  await allEnded(tree, patienceMs);
}

/** Waits up to `patienceMs` until these processes have ended by themselves, then ends them by force. */
export async function endAll(pids: readonly number[], patienceMs: number): Promise<void> {
  if (await allEnded(new Set(pids), patienceMs)) return;
  for (const { pid } of await processTable()) if (pids.includes(pid)) send(pid, 'SIGKILL');
  if (!(await allEnded(new Set(pids), patienceMs))) throw new Error(`Not ended: ${pids.map(commandOf)}`);
}

/** The command line of a process, empty for one that is gone. Linux only. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

async function allEnded(pids: ReadonlySet<number>, limitMs: number): Promise<boolean> {
  const deadline = Date.now() + limitMs;
  while ((await processTable()).some(row => pids.has(row.pid))) {
    if (Date.now() > deadline) return false;
    await delay(50);
  }
  return true;
}

function send(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // Already gone.
  }
}

function output(program: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { maxBuffer: 16 << 20 }, (error, stdout) => {
      if (error && stdout === '') reject(error);
      else resolve(stdout);
    });
  });
}
