/** Puts into words for the model how a command has ended. */
import type { ToolResult } from '../../protocol/run.ts';
import { codePointOf, unseen } from '../../protocol/unseen.ts';
import type { OutputCapture } from './commandOutput.ts';
import { grouped } from './plainText.ts';
import type { ProcessRow } from './processTable.ts';
import type { Exceeded, TreeLimits } from './processWatch.ts';

/** Why a command was ended. */
export type Stop = 'timeout' | 'flood' | 'abort' | Exceeded;

/** `stopped` is undefined for one that ended by itself. */
export interface CommandEnd {
  stopped: Stop | undefined;
  /** It left something running. */
  leftBehind: boolean;
  /** What runs on, as it belongs to another user or the system holds it. */
  unended: readonly Pick<ProcessRow, 'pid' | 'name'>[];
}

export interface CommandStreams {
  stdout: OutputCapture;
  stderr: OutputCapture;
}

/** A command that prints more bytes than this is ended. */
export const floodLimit = 64 * 1024 * 1024;
/** Processes that are named. */
const namedProcesses = 10;

export function noteOn(end: CommandEnd, limits: TreeLimits & { timeoutMs: number }): string | undefined {
  const { stopped, leftBehind, unended } = end;
  const why = stopped ? reasonOf(stopped, limits) : leftBehind ? leftBehindText : undefined;
  if (unended.length === 0) {
    if (stopped === 'timeout') return `[${why}: the command and everything that it started have been ended]`;
    return leftBehind ? `[${why}; it has been ended]` : why && `[${why}]`;
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
      return `ended after more than ${grouped(floodLimit)} bytes of output; print less`;
    case 'processes':
      return `ended at more than ${grouped(processes)} processes at a time; start fewer`;
    case 'memory':
      return `ended at more than ${memoryBytes / 1024 ** 3} GiB of memory; use less`;
    case 'abort':
      return 'cancelled';
  }
}

/** A process chooses its name. */
const plainName = (name: string): string => name.replace(new RegExp(unseen.source, 'gu'), codePointOf);

/** `code` is undefined when the command was stopped. */
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
