/** Keeps the beginning and the end of a command's output, whatever its size, and words it for the model. */

import type { ToolResult } from '../../protocol/run.ts';
import { codePointOf, unseen } from '../../protocol/text.ts';
import {
  decodeUtf8,
  describeBinary,
  grouped,
  looksBinary,
  withoutPartialEnd,
  withoutPartialStart,
} from '../files/plainText.ts';
import type { ProcessRow } from './processTable.ts';
import type { Exceeded, TreeLimits } from './processWatch.ts';

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
const plainName = (name: string): string => name.replace(new RegExp(unseen.source, 'gu'), codePointOf);

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
