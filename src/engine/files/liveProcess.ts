/** Tells whether the process that wrote something down is still there. A pid alone says nothing: it is given out again. */

import { execFileSync } from 'node:child_process';
import { readlinkSync } from 'node:fs';
import { hostname, uptime } from 'node:os';
import { readText } from './regularFile.ts';

/** What tells a process from all others, here and on other machines, before and after a restart. */
export interface ProcessIdentity {
  pid: number;
  /** Start of the machine: pids of another one say nothing. */
  boot: string;
  /** Pids count within it. Empty where the system has none such. */
  namespace: string;
  /** Start of the process as the system counts it. Empty on Windows, which tells it to no one who does not wait long. */
  started: string;
}

let own: ProcessIdentity | undefined;

/** Returns who this process is, for what it writes down. */
export function thisProcess(): ProcessIdentity {
  if (own?.pid !== process.pid) own = { pid: process.pid, ...machine(), started: startOf(process.pid) ?? '' };
  return own;
}

/**
 * Returns whether that process still runs; undefined if it is one of another machine, of another container or of a time before the last
 * start of this machine, or not said whole. It asks the system and no clock, but on Windows, where the pid and the time of the
 * machine's start have to do.
 */
export function isStillRunning(one: Partial<ProcessIdentity>): boolean | undefined {
  const { pid, boot, namespace, started } = one;
  if (!Number.isInteger(pid) || [boot, namespace, started].some(each => typeof each !== 'string'))
    return undefined;
  const here = thisProcess();
  if (!isSameBoot(boot ?? '', here.boot) || namespace !== here.namespace) return undefined;
  const now = startOf(pid ?? 0);
  return now !== undefined && (started === '' || now === '' || now === started);
}

/** What a file says of the process that works on it. */
export interface Owned {
  pid: number;
  owner?: Omit<ProcessIdentity, 'pid'>;
}

/** Returns what a file says of this process, besides its pid. */
export function ownerHere(): Omit<ProcessIdentity, 'pid'> {
  const { pid: _pid, ...owner } = thisProcess();
  return owner;
}

/** Returns true if the process that a file names surely still runs. One whose file was brought from elsewhere has ended. */
export const isOwnerRunning = ({ pid, owner }: Owned): boolean => isStillRunning({ ...owner, pid }) === true;

function machine(): Pick<ProcessIdentity, 'boot' | 'namespace'> {
  if (process.platform === 'linux')
    return {
      boot: readText('/proc/sys/kernel/random/boot_id').trim(),
      namespace: readlinkSync('/proc/self/ns/pid'),
    };
  const session = process.platform === 'darwin' ? said('/usr/sbin/sysctl', '-n', 'kern.bootsessionuuid') : '';
  return { boot: session || `${hostname()} ${Math.round(Date.now() / 1000 - uptime())}`, namespace: '' };
}

/** Seconds by which a clock that is set moves the start that is reckoned from it. */
const bootTolerance = 60;

function isSameBoot(one: string, other: string): boolean {
  const [host, second] = one.split(' ');
  const [hostHere, secondHere] = other.split(' ');
  if (host !== hostHere || second === undefined || secondHere === undefined) return one === other;
  return Math.abs(Number(second) - Number(secondHere)) < bootTolerance;
}

/** Returns the start of a process as the system counts it, empty where that is not known; undefined if there is no such process. */
function startOf(pid: number): string | undefined {
  if (process.platform === 'linux') return rowOf(pid)?.started;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return undefined;
  }
  return process.platform === 'win32' ? '' : said('/bin/ps', '-o', 'lstart=', '-p', String(pid));
}

/** Returns what a program of the system prints; empty if it cannot. */
function said(program: string, ...args: readonly string[]): string {
  try {
    const env = { LC_ALL: 'C', TZ: 'UTC' };
    return execFileSync(program, args, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return '';
  }
}

export interface ProcessRow {
  pid: number;
  parent: number;
  group: number;
  session: number;
  /** Identifies a process together with the pid, since a pid alone is reused. */
  started: string;
  /** The name that the process gives itself; it may contain any character. */
  name: string;
  /** Resident memory. Undefined if the list does not contain it. */
  residentBytes: number | undefined;
}

/**
 * Linux only. Returns undefined for a process that has ended. It reads no disk, so it takes 10 microseconds; asynchronously
 * it would take five times that.
 */
export function rowOf(pid: number): ProcessRow | undefined {
  try {
    return linuxRow(pid, readText(`/proc/${pid}/stat`));
  } catch {
    return undefined;
  }
}

/** The flag of a process that runs no more code of its own. */
const exiting = 0x4;

/**
 * Parses the fields after the name in parentheses, which may itself contain spaces and parentheses. See proc_pid_stat(5).
 */
function linuxRow(pid: number, stat: string): ProcessRow | undefined {
  const nameEnd = stat.lastIndexOf(')');
  const [state, parent, group, session, ...rest] = stat.slice(nameEnd + 2).split(' ');
  const [flags, threads, started] = [rest[2], rest[13], rest[15]];
  // The first process of a box has run its last instruction tens of milliseconds before the kernel has taken its namespaces apart.
  const hasEnded = state === 'Z' || (Number(flags) & exiting) !== 0;
  // A process whose first thread has ended looks dead while its other threads continue.
  const isDead = state === 'X' || (hasEnded && !(Number(threads) > 1));
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
