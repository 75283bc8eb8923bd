/**
 * Runs commands that only look at files: one program at a time, without a shell, limited in time and size. Where a box works, the programs
 * run in it: between the check of a path and its use another command can put a link there, and the box shows nothing behind it.
 */

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { delimiter } from 'node:path';
import type { Readable } from 'node:stream';
import { shortened } from '@telos/protocol/text';
import { reasonOf } from '../core/errors.ts';
import { isInside, PathProblem } from '../files/paths.ts';
import { settledWithin } from './commandEnd.ts';
import { OutputCapture } from './commandOutput.ts';
import { type LineRange, readFileLines } from './fileLines.ts';
import { flagsForGrep, flagsForRipgrep, secretsAmong, walkForSecrets } from './glob.ts';
import { giveInputs, startProcess } from './processStart.ts';
import { commandPrograms, findProgram, trustedPath } from './programPath.ts';
import { findRipgrep } from './search.ts';
import { type EnclosedCommand, type Tool, type ToolContext, toolError } from './tool.ts';

export type ReadOnlyProgram = 'pwd' | 'ls' | 'find' | 'rg' | 'grep' | 'cat' | 'head' | 'tail' | 'sed';

/** A command that was checked word by word. See `parseReadOnlyCommand` in policy/readOnlyCommand.ts. */
export interface ReadOnlyCommand {
  program: ReadOnlyProgram;
  /** All words after the program's name, passed on unchanged. */
  argv: readonly string[];
  /** All paths that it names, real and absolute. */
  paths: readonly string[];
  /** Which lines of its files `cat`, `head`, `tail` and `sed` show. */
  lines: LineRange;
  /** Real and absolute. */
  cwd: string;
  /** For a recursive search: its paths as they are in `argv`. */
  searched?: readonly string[];
}

/** Bytes of one result, and of a program's error output. */
const outputLimit = 256 * 1024;
const errorLimit = 16 * 1024;
/** A program that prints more bytes than this is ended. */
const floodLimit = 16 * 1024 * 1024;
/** How long the streams may stay open after the program's end, in milliseconds. */
const drainTime = 150;

/** Tools to use if a program is missing. */
const instead: Readonly<Record<string, string>> = {
  ls: 'list_directory',
  find: 'glob',
  rg: 'search_files, or grep',
  grep: 'search_files',
};

/**
 * The command tool of a run that only looks. The policy checks each line, and `runReadOnly` then executes what was checked.
 * A line that arrives in any other way is not run.
 */
export const readOnlyShellTool: Tool = {
  definition: {
    name: 'run_command',
    description:
      "Reads files with one of these programs: pwd, ls, find, rg, grep, cat, head, tail, sed -n 'A,Bp' FILE. There is no shell: no pipes, redirections or variables, and patterns must be quoted. At most 256 KiB and 10 seconds.",
    inputSchema: {
      type: 'object',
      properties: { command: { type: 'string', description: 'One program and its arguments.' } },
      required: ['command'],
    },
  },
  access: 'read',
  wordFailure(input, reason) {
    const line = String(input['command']);
    return JSON.stringify({ error: reason, command: shortened(line, 200) });
  },
  async execute() {
    return toolError('The command was not checked, so it was not run.');
  },
};

/**
 * Returns the command's output, or a sentence that says why there is none. `timeoutMs` is how long it may take. Throws the
 * abort reason on abort.
 */
export async function runReadOnly(
  command: ReadOnlyCommand,
  context: ToolContext,
  timeoutMs: number,
): Promise<{ content: string } | { problem: string }> {
  context.signal.throwIfAborted();
  const looksHere = command.paths.every(path => path === command.cwd);
  if (looksHere && command.program !== 'pwd' && !existsSync(command.cwd))
    return { content: '(empty: the working folder is created at the first write)' };
  switch (command.program) {
    case 'pwd':
      return { content: command.cwd };
    case 'cat':
    case 'head':
    case 'tail':
    case 'sed':
      return showFiles(command, context, timeoutMs);
    default:
      return runProgram(command, context, timeoutMs);
  }
}

const timedOut = (timeoutMs: number): string => `The command timed out after ${timeoutMs / 1000} s.`;

async function showFiles(
  { program, argv, paths, lines }: ReadOnlyCommand,
  { signal }: ToolContext,
  timeoutMs: number,
): Promise<{ content: string } | { problem: string }> {
  const deadline = performance.now() + timeoutMs;
  const checkTime = (): void => {
    signal.throwIfAborted();
    if (performance.now() > deadline) throw new PathProblem('unusable', timedOut(timeoutMs));
  };
  const parts: string[] = [];
  let room = outputLimit;
  try {
    for (const path of paths) {
      const numbered = argv.includes('-n');
      const { text, size } = await readFileLines(path, lines, { limit: room, numbered, checkTime });
      room -= size;
      parts.push(text);
    }
  } catch (error) {
    if (error instanceof PathProblem) return { problem: error.message };
    throw error;
  }
  if (program === 'tail' && argv.includes('-f')) parts.push('\n[The file as it is now; it is not watched.]');
  return { content: parts.join('') || '(no output)' };
}

/** Runs a program. A recursive search leaves out files and folders that contain secrets. */
async function runProgram(
  command: ReadOnlyCommand,
  context: ToolContext,
  timeoutMs: number,
): Promise<{ content: string } | { problem: string }> {
  const { program, argv } = command;
  const file = programFile(program, context);
  if (file === undefined) return { problem: `${program} is not installed. Use ${instead[program]} instead.` };
  if (command.searched === undefined) return runOne(command, file, context, timeoutMs);
  const begun = performance.now();
  const hiding = await hidingFlags(command, file, context, timeoutMs);
  context.signal.throwIfAborted();
  if (hiding === undefined)
    return { problem: `${program} would search too many files. Name a smaller folder.` };
  const end = argv.indexOf('--');
  const careful = { ...command, argv: [...argv.slice(0, end), ...hiding, ...argv.slice(end)] };
  return runOne(careful, file, context, Math.max(0, timeoutMs - (performance.now() - begun)));
}

/** Returns the flags that exclude secrets, or undefined if they could not all be found in time. */
async function hidingFlags(
  { program, argv, paths, searched = [], cwd }: ReadOnlyCommand,
  file: string,
  context: ToolContext,
  timeoutMs: number,
): Promise<string[] | undefined> {
  if (program === 'grep') {
    const deadline = performance.now() + timeoutMs;
    const below = await walkForSecrets(paths, () => context.signal.aborted || performance.now() > deadline);
    return below && flagsForGrep(below);
  }
  const flags = argv.slice(0, argv.indexOf('--')).filter(flag => !/^(-q|--quiet)$/.test(flag));
  const start = await startOf(file, [...flags, '--files', '--null', '--', ...searched], cwd, context);
  if ('problem' in start) return undefined;
  const listing = spawn(start.program, start.args, {
    cwd: start.folder,
    env: start.env,
    stdio: ['ignore', 'pipe', 'ignore', ...pipesFor(start)],
    windowsHide: true,
    signal: AbortSignal.any([context.signal, AbortSignal.timeout(timeoutMs)]),
    killSignal: 'SIGKILL',
  }) as ChildProcessByStdio<null, Readable, null>;
  giveInputs(listing, start.inputs ?? []);
  const names: Buffer[] = [];
  listing.stdout.on('data', (chunk: Buffer) => names.push(chunk));
  const isWhole = await once(listing, 'close').then(
    ([code]) => code !== null,
    () => false,
  );
  await start.end();
  if (!isWhole) return undefined;
  const listed = Buffer.concat(names).toString('utf8').split('\0').filter(Boolean);
  const below = secretsAmong(listed, cwd);
  return below && flagsForRipgrep(below);
}

const environmentOf = (context: ToolContext): Record<string, string> => {
  const { SYSTEMROOT = '' } = context.env;
  const PATH = trustedPath(context).folders.join(delimiter);
  return { PATH, LC_ALL: 'C.UTF-8', ...(SYSTEMROOT ? { SYSTEMROOT } : {}) };
};

/** Returns what to start, in the box if the run has one. `problem` says why nothing may be started. */
async function startOf(
  file: string,
  args: readonly string[],
  cwd: string,
  context: ToolContext,
): Promise<EnclosedCommand | { problem: string }> {
  const { box, workingDir, packDir } = context;
  // Before its first write the working folder need not exist; the command then looks elsewhere.
  const folder = existsSync(cwd) ? cwd : packDir;
  const plain = { program: file, args, env: environmentOf(context), folder };
  // Without a working folder nothing can have been exchanged in it, and there is none to make a box around.
  if (!box || !existsSync(workingDir)) return { ...plain, end: async () => ({ notes: [] }) };
  const { PATH = '' } = commandPrograms(context).env;
  try {
    return await box.enclose({ ...plain, env: { ...plain.env, PATH } });
  } catch (error) {
    return {
      problem: `The command was not run, since it could not be put into its sandbox: ${reasonOf(error)}`,
    };
  }
}

const pipesFor = ({ inputs = [] }: EnclosedCommand): (number | 'pipe')[] =>
  inputs.map(each => (typeof each === 'number' ? each : 'pipe'));

async function runOne(
  command: ReadOnlyCommand,
  file: string,
  context: ToolContext,
  timeoutMs: number,
): Promise<{ content: string } | { problem: string }> {
  const start = await startOf(file, command.argv, command.cwd, context);
  if ('problem' in start) return start;
  try {
    return await runStarted(command.program, start, context, timeoutMs);
  } finally {
    await start.end();
  }
}

async function runStarted(
  program: ReadOnlyProgram,
  start: EnclosedCommand,
  context: ToolContext,
  timeoutMs: number,
): Promise<{ content: string } | { problem: string }> {
  const child = await startProcess(start, start.inputs);
  if (typeof child === 'string') return { problem: `${program} could not be started: ${child}` };
  const stdout = new OutputCapture(outputLimit - errorLimit);
  const stderr = new OutputCapture(errorLimit);
  let stopped: string | undefined;
  const stop = (why: string): void => {
    stopped ??= why;
    endGroup(child.pid);
  };
  child.stdout.on('data', (chunk: Buffer) => {
    stdout.add(chunk);
    if (stdout.total > floodLimit) stop('It printed too much and was ended; request less.');
  });
  child.stderr.on('data', (chunk: Buffer) => stderr.add(chunk));
  const timer = setTimeout(() => stop(timedOut(timeoutMs)), timeoutMs);
  const onAbort = (): void => stop('aborted');
  context.signal.addEventListener('abort', onAbort);
  try {
    const [code] = await child.exited;
    await settledWithin(child.closed, drainTime);
    context.signal.throwIfAborted();
    const failure = start.failureIn?.(stderr.text());
    if (failure !== undefined) return { problem: failure };
    return report(program, stdout.text(), stderr.text(), code, stopped);
  } finally {
    clearTimeout(timer);
    context.signal.removeEventListener('abort', onAbort);
    endGroup(child.pid);
    child.release();
  }
}

/** Returns the program's file. On Windows the commands of these names are different ones. */
function programFile(program: string, context: ToolContext): string | undefined {
  // A box shows the programs of the system and of the PATH, and nothing else below the home folder.
  const { HOME } = context.env;
  if (program === 'rg' && context.box)
    return findProgram('rg', context) ?? outsideOf(HOME, findRipgrep(context));
  if (program === 'rg') return findRipgrep(context);
  return process.platform === 'win32' ? undefined : findProgram(program, context);
}

const outsideOf = (home: string | undefined, file: string | undefined): string | undefined =>
  home !== undefined && file !== undefined && isInside(home, file) ? undefined : file;

function endGroup(pid: number): void {
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

function report(
  program: string,
  stdout: string,
  stderr: string,
  code: number | null,
  stopped: string | undefined,
): { content: string } | { problem: string } {
  // Finding nothing is a valid answer.
  const isFine = code === 0 || (code === 1 && (program === 'rg' || program === 'grep'));
  if (stopped === undefined && isFine && stderr === '') return { content: stdout || '(no output)' };
  if (stdout === '') return { problem: stopped ?? (stderr || `${program} ended with exit code ${code}.`) };
  const parts = [stdout, stderr && `[stderr]\n${stderr}`, stopped && `[${stopped}]`];
  if (stopped === undefined && !isFine) parts.push(`[exit code: ${code}]`);
  return { content: parts.filter(Boolean).join('\n\n') };
}
