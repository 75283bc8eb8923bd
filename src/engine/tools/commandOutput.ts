/** Follows a running command: keeps what it writes within limits, and reports when what it starts exceeds its limits. */

import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { ToolResult } from '../../protocol/run.ts';
import { codePointOf, grouped, unseen } from '../../protocol/text.ts';
import {
  decodeUtf8,
  describeBinary,
  looksBinary,
  withoutPartialEnd,
  withoutPartialStart,
} from '../files/plainText.ts';
import type { ProcessRow } from './processTable.ts';
import { isMoreThan, livingProcesses, type ProcessTree } from './processTree.ts';

/** One stream of a command. Keeps at most `limit` bytes (an even number), half of them from the beginning. */
export class OutputCapture {
  readonly #half: number;
  readonly #head: Buffer[] = [];
  #headSize = 0;
  /**
   * The last bytes in a ring, created when the head is full. The next byte goes to `#total - #headSize` modulo its size.
   */
  #tail: Buffer | undefined;
  #total = 0;

  constructor(limit: number) {
    this.#half = limit / 2;
  }

  /** All bytes received, kept or not. */
  get total(): number {
    return this.#total;
  }

  /** True if a part between the beginning and the end was not kept. */
  get isCut(): boolean {
    return this.#total > 2 * this.#half;
  }

  add(chunk: Buffer): void {
    const forHead = chunk.subarray(0, this.#half - this.#headSize);
    if (forHead.length > 0) this.#head.push(forHead);
    this.#headSize += forHead.length;
    this.#total += forHead.length;
    const rest = chunk.subarray(forHead.length);
    if (rest.length > 0) this.#addToTail(rest);
  }

  #addToTail(chunk: Buffer): void {
    this.#tail ??= Buffer.alloc(this.#half);
    const end = this.#total + chunk.length;
    const kept = chunk.subarray(-this.#half);
    const position = (end - kept.length - this.#headSize) % this.#half;
    const copied = kept.copy(this.#tail, position);
    kept.copy(this.#tail, 0, copied);
    this.#total = end;
  }

  /**
   * Returns the kept output as text without its last newlines. Says how much was left out, and describes binary output
   * instead of showing it.
   */
  text(): string {
    const head = Buffer.concat(this.#head);
    if (looksBinary(head)) return describeBinary('output', head, this.#total);
    const tail = this.#tailBytes();
    const leftOut = this.#total - head.length - tail.length;
    if (leftOut === 0) return trimmed(decodeUtf8(Buffer.concat([head, tail])));
    const note = `[Cut: ${grouped(leftOut)} of ${grouped(this.#total)} bytes are left out here.]`;
    return `${decodeUtf8(withoutPartialEnd(head))}\n${note}\n${trimmed(decodeUtf8(withoutPartialStart(tail)))}`;
  }

  #tailBytes(): Buffer {
    const size = this.#total - this.#headSize;
    if (this.#tail === undefined) return Buffer.alloc(0);
    if (size <= this.#half) return this.#tail.subarray(0, size);
    const next = size % this.#half;
    return Buffer.concat([this.#tail.subarray(next), this.#tail.subarray(0, next)]);
  }
}

const trimmed = (text: string): string => text.replace(/(?:\r?\n)+$/, '');

/** Why a command was stopped. */
export type Stop = 'timeout' | 'flood' | 'abort' | Exceeded;

/** How a command ended. `stopped` is undefined if it ended by itself. */
export interface CommandEnd {
  stopped: Stop | undefined;
  /** True if it left a process running. */
  leftBehind: boolean;
  /** Processes that keep running, because they belong to another user or the system holds them. */
  unended: readonly Pick<ProcessRow, 'pid' | 'name'>[];
}

export interface CommandStreams {
  stdout: OutputCapture;
  stderr: OutputCapture;
}

/** A command that prints more bytes than this is ended. */
export const floodLimit = 64 * 1024 * 1024;
/** Number of processes that a note names. */
const namedProcesses = 10;

export function noteOn(end: CommandEnd, limits: TreeLimits & { timeoutMs: number }): string | undefined {
  const { stopped, leftBehind, unended } = end;
  const why = stopped ? reasonOf(stopped, limits) : leftBehind ? leftBehindText : undefined;
  if (unended.length === 0) {
    if (stopped === 'timeout') return `[${why}: the command and all its processes were ended]`;
    return leftBehind ? `[${why}; it was ended]` : why && `[${why}]`;
  }
  const names = unended.slice(0, namedProcesses).map(({ pid, name }) => `${pid} (${plainName(name)})`);
  const more = unended.length > names.length ? ` and ${unended.length - names.length} more` : '';
  const count = unended.length === 1 ? '1 process' : `${unended.length} processes`;
  return `[${why}; ${count} could not be ended: ${names.join(', ')}${more}]`;
}

const leftBehindText = 'the command left a process running in the background';

function reasonOf(
  stopped: Stop,
  { timeoutMs, processes, memoryBytes }: TreeLimits & { timeoutMs: number },
): string {
  switch (stopped) {
    case 'timeout':
      return `timed out after ${timeoutMs / 1000} s`;
    case 'flood':
      return `ended because it printed more than ${grouped(floodLimit)} bytes; print less`;
    case 'processes':
      return `ended because it ran more than ${grouped(processes)} processes at a time; start fewer`;
    case 'memory':
      return `ended because it used more than ${memoryBytes / 1024 ** 3} GiB of memory; use less`;
    case 'abort':
      return 'cancelled';
  }
}

/** Escapes unseen characters, since a process chooses its own name. */
const plainName = (name: string): string => unseen.replacedIn(name, codePointOf);

/** Returns the result for the model. `code` is undefined if the command was stopped. */
export function reportOn(
  { stdout, stderr }: CommandStreams,
  code: number | undefined,
  note: string | undefined,
): ToolResult {
  const errors = stderr.text();
  const parts = [
    stdout.text(),
    errors === '' ? '' : `[stderr]\n${errors}`,
    note ?? '',
    code === undefined || code === 0 ? '' : `[exit code: ${code}]`,
  ];
  const content = parts.filter(part => part !== '').join('\n\n');
  const isCut = stdout.isCut || stderr.isCut;
  return {
    content: content === '' ? '(no output)' : content,
    isError: code !== 0,
    ...(isCut ? { wholeSize: stdout.total + stderr.total } : {}),
  };
}

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
  // Most commands have ended by then, and to look through all processes takes longer than they do.
  let [lookAt, memoryAt] = [performance.now() + interval, performance.now() + slowInterval];
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

/** The time that a command has. It stands still while a person is asked for the command. */
export class TimeLimit {
  #left: number;
  #began = 0;
  #questions = 0;
  #timer: NodeJS.Timeout | undefined;
  #over: (() => void) | undefined;

  constructor(milliseconds: number) {
    this.#left = milliseconds;
  }

  /** Calls `over` when the time is over, unless `end` is called before. */
  start(over: () => void): void {
    this.#over = over;
    this.#goOn();
  }

  end(): void {
    this.#over = undefined;
    clearTimeout(this.#timer);
  }

  /** Stops the time until the question is answered. */
  async during<Answer>(question: Promise<Answer>): Promise<Answer> {
    if (this.#questions++ === 0 && this.#over) {
      clearTimeout(this.#timer);
      this.#left -= performance.now() - this.#began;
    }
    try {
      return await question;
    } finally {
      if (--this.#questions === 0) this.#goOn();
    }
  }

  #goOn(): void {
    if (!this.#over) return;
    this.#began = performance.now();
    this.#timer = setTimeout(this.#over, Math.max(0, this.#left));
  }
}
