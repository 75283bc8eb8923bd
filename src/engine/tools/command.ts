/** Runs one shell command in its folder with a minimal environment, and leaves nothing running when it ends. */

import { existsSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { constants } from 'node:os';
import { basename, delimiter, isAbsolute, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ToolResult } from '@telos/protocol/run';
import { type Sentence, sentence } from '@telos/protocol/text';
import { reasonOf } from '../core/errors.ts';
import { pluginRootOf } from '../files/hostPlugin.ts';
import { escapeInvisible, shellWord } from '../files/plainText.ts';
import { endOf, UnreadOutput } from './background.ts';
import { endAllOf, noteOn, TimeLimit, type TreeLimits, untilExitOrStop } from './commandEnd.ts';
import { type CommandStreams, LiveOutput, OutputCapture, reportOn } from './commandOutput.ts';
import { guardOrphans } from './orphanGuard.ts';
import { startProcess } from './processStart.ts';
import { marked, newMark } from './processTable.ts';
import { processTree } from './processTree.ts';
import { commandPrograms } from './programPath.ts';
import {
  type AskHost,
  type BackgroundPlace,
  type BoxReport,
  type CommandStart,
  type EnclosedCommand,
  type RunFolders,
  type Tool,
  type ToolContext,
  textProperty,
  toolError,
} from './tool.ts';

/** In characters. Linux takes no argument of more than 128 KiB, and no person reads that much on a card. */
const longestCommand = 100_000;
/** In characters, of the reason why a command should leave the box. */
const longestReason = 2000;
/** Bytes kept of the two streams, 1 MiB together. */
const stdoutLimit = 768 * 1024;
const stderrLimit = 256 * 1024;
const allowedNames = new Set(['PATH', 'HOME', 'LANG', 'TERM', 'TMPDIR', 'TZ', 'USER', 'SHELL']);
const allowedOnWindows = new Set([
  ...[
    'PATH',
    'PATHEXT',
    'COMSPEC',
    'SYSTEMROOT',
    'SYSTEMDRIVE',
    'WINDIR',
    'TEMP',
    'TMP',
    'LANG',
    'TZ',
    'HOME',
  ],
  ...[
    'USERPROFILE',
    'USERNAME',
    'HOMEDRIVE',
    'HOMEPATH',
    'APPDATA',
    'LOCALAPPDATA',
    'PROGRAMDATA',
    'PROGRAMFILES',
  ],
]);

/** Variables that say where the user's things are, and how the network is reached. */
const placeNames = /^(?:(?:https?|all|no|ftp)_proxy|VIRTUAL_ENV|JAVA_HOME|NVM_DIR|XDG_[A-Z_]+)$/i;

/**
 * Returns the whole environment of a command: a short list of harmless variables and the skill's folders. It contains no
 * keys. Python keeps its compiled files below `dataDir`, or writes none if that is missing.
 */
export function commandEnvironment(
  env: Readonly<Record<string, string>>,
  folders: Pick<RunFolders, 'packDir' | 'skillDir' | 'pluginData'>,
  dataDir?: string,
): Record<string, string> {
  const onWindows = process.platform === 'win32';
  const allowed = (name: string): boolean =>
    onWindows ? allowedOnWindows.has(name.toUpperCase()) : allowedNames.has(name) || /^LC_[A-Z]+$/.test(name);
  // An address can have a password in it.
  const isPlace = ([name, value]: [string, string]): boolean => placeNames.test(name) && !value.includes('@');
  const { PATH, ...others } = Object.fromEntries(
    Object.entries(env).filter(entry => allowed(entry[0]) || isPlace(entry)),
  );
  return {
    ...(PATH === undefined ? {} : { PATH: wholePlaces(PATH) }),
    ...others,
    ...pythonCache(dataDir),
    TELOS_SKILL_DIR: folders.skillDir,
    CLAUDE_SKILL_DIR: folders.skillDir,
    SKILL_DIR: folders.skillDir,
    SKILL_PATH: folders.skillDir,
    SKILL_ROOT: folders.skillDir,
    CLAUDE_PLUGIN_ROOT: pluginRootOf(folders),
    ...(folders.pluginData !== undefined && { CLAUDE_PLUGIN_DATA: folders.pluginData }),
    TELOS_PACK_DIR: folders.packDir,
  };
}

/**
 * Returns where Python keeps compiled files. Next to a script they would change the folder that the agent's card is bound
 * to. Compiled files that already exist there could contain anything, regardless of the script's source.
 */
const pythonCache = (dataDir: string | undefined): Record<string, string> =>
  dataDir === undefined
    ? { PYTHONDONTWRITEBYTECODE: '1' }
    : { PYTHONPYCACHEPREFIX: join(dataDir, 'python-cache') };

/**
 * Drops relative and empty entries of a PATH, since they mean the command's folder. A file there with a program's name is
 * not that program.
 */
const wholePlaces = (path: string): string => path.split(delimiter).filter(isAbsolute).join(delimiter);

/** Limits of one command: what it may use at a time, and how long it may take unless its call says otherwise. */
export interface CommandLimits extends TreeLimits {
  timeoutMs: number;
  /** Aborts when the time does not count any more. */
  untimed?: AbortSignal;
  /** What it reads as its input. Missing if it has none. */
  stdin?: string;
}

/** Seconds that a call may give its command. */
const mostSeconds = 30 * 60;

/** In milliseconds. */
export const usualTime = 60_000;

const usualLimits: CommandLimits = { timeoutMs: usualTime, processes: 256, memoryBytes: 4 * 1024 ** 3 };

/** In milliseconds. No one waits for what runs in the background. */
const longestInBackground = 24 * 60 * 60 * 1000;

/** Returns how long a call wants its command to take at most, in milliseconds. Undefined if it says nothing that counts. */
export function wantedTime(input: Readonly<Record<string, unknown>>): number | undefined {
  const { timeout_s: seconds } = input;
  return typeof seconds === 'number' && seconds > 0 ? Math.min(seconds, mostSeconds) * 1000 : undefined;
}

/** The shell of commands: for that, most of them are written. */
const shell = existsSync('/bin/bash') ? '/bin/bash' : '/bin/sh';

/** Its name for the model. */
export const shellName = process.platform === 'win32' ? 'cmd' : basename(shell);

const inBox =
  'It runs in a sandbox: it writes in the working folder and a temporary one, and reaches hosts that the user allows.';

/** What a call gives to leave the box. */
const leaving = {
  outside_box: {
    type: 'boolean',
    description:
      "After it failed in the sandbox for want of something outside: runs it with the user's own rights, if the user says yes.",
  },
  why: {
    type: 'string',
    description: 'With outside_box: what it needs there, in one sentence.',
  },
} as const;

/**
 * Returns the tool that runs a command. Set `box` for a run whose commands run in a box: `open` if a command may ask to leave it,
 * `closed` if none may.
 */
export function createCommandTool(
  limits: Partial<CommandLimits> = {},
  box: 'none' | 'open' | 'closed' = 'none',
): Tool {
  const place = box === 'none' ? 'The user is asked first.' : inBox;
  return {
    definition: {
      name: 'run_command',
      description: `Runs a line of ${shellName} and returns its output, errors and exit code. It gets no input and leaves no processes running. ${place}`,
      inputSchema: {
        type: 'object',
        properties: {
          command: textProperty(),
          cwd: {
            type: 'string',
            description: 'Where it runs; if left out, in the folder named for commands.',
          },
          timeout_s: {
            type: 'number',
            description: 'Seconds that it may take: 60 if left out, at most 1800 for builds and tests.',
          },
          ...(box === 'open' && leaving),
        },
        required: ['command'],
      },
    },
    access: 'execute',
    // The first look at the programs of the PATH takes longer than most commands.
    getReady: context => void commandPrograms(context),
    longest: { command: longestCommand, why: longestReason },
    execute: (input, context) => {
      const { cwd } = input;
      const usual = { ...usualLimits, ...limits };
      const unasked =
        context.background && input['background'] === true ? longestInBackground : usual.timeoutMs;
      const own = { ...usual, timeoutMs: wantedTime(input) ?? unasked };
      const commandDir = typeof cwd === 'string' ? cwd : context.commandDir;
      const command = String(input['command']);
      const place = { ...context, commandDir };
      if (!context.background) return runCommand(command, place, own);
      return runOrLeave(
        command,
        { ...place, background: context.background },
        own,
        input['background'] === true,
      );
    },
  };
}

async function runCommand(
  command: string,
  context: ToolContext,
  limits: CommandLimits,
  onOutput?: (chunk: Buffer) => void,
): Promise<ToolResult> {
  const end = await runLine(command, context, limits, onOutput);
  return 'refusal' in end ? toolError(end.refusal) : reportOn(end.streams, end.code, end.note);
}

/** In milliseconds. A command that cannot even start says so within this time. */
const settling = 700;

/**
 * Runs a command to its end, or until it goes on in the background: at once, because the model wants that, or when the person sends it
 * there.
 */
async function runOrLeave(
  command: string,
  context: ToolContext & { background: BackgroundPlace },
  limits: CommandLimits,
  atOnce: boolean,
): Promise<ToolResult> {
  const { background, askHost, onOutput, signal } = context;
  const refusal = atOnce ? background.commands.refusal() : undefined;
  if (refusal !== undefined) return toolError(refusal);
  signal.throwIfAborted();
  const [stop, untimed] = [new AbortController(), new AbortController()];
  const forward = (): void => stop.abort(signal.reason);
  signal.addEventListener('abort', forward);
  let isLeft = false;
  const own: ToolContext = {
    ...context,
    signal: stop.signal,
    onOutput: text => !isLeft && onOutput?.(text),
    ...(askHost && {
      askHost: (wanted, until) => ((isLeft && background.askHost) || askHost)(wanted, until),
    }),
  };
  const output = new UnreadOutput();
  const ended = runCommand(command, own, { ...limits, untimed: untimed.signal }, chunk => output.add(chunk));
  const [moved, move] = promiseOfPerson();
  const noMore = background.commands.runs(background.callId, move);
  try {
    const leave = atOnce ? delay(settling, undefined, { ref: false }) : moved;
    const first = await Promise.race([ended, leave.then(() => undefined)]);
    if (first || stop.signal.aborted) return first ?? (await ended);
    isLeft = true;
  } finally {
    noMore();
    signal.removeEventListener('abort', forward);
  }
  if (!atOnce) untimed.abort();
  const words = ended.then(endOf, () => 'was stopped');
  const left = { command: background.shown(command), ended: words, stop: () => stop.abort(), output };
  const known = background.commands.take(left);
  background.left(known);
  const how = atOnce ? 'runs in the background' : 'was sent to the background by the user, where it goes on';
  return { content: `The command ${how} as ${known.id}.\n\n${known.report()}`, isError: false };
}

function promiseOfPerson(): [Promise<void>, () => void] {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>(done => {
    resolve = done;
  });
  return [promise, resolve];
}

/** How a command line ended. */
export interface LineEnd {
  streams: CommandStreams;
  /** Undefined if it was stopped. */
  code: number | undefined;
  /** Why it was stopped, what it left running, or which of its programs were not used. */
  note: string | undefined;
}

/**
 * Runs a command line as the tool does, or says why it is not started. `onOutput` also gets what is not kept. Throws the abort
 * reason on abort, when nothing of it runs any more.
 */
export async function runLine(
  command: string,
  context: ToolContext,
  limits: Partial<CommandLimits> = {},
  onOutput?: (chunk: Buffer) => void,
): Promise<LineEnd | { refusal: string }> {
  context.signal.throwIfAborted();
  const refusal = reasonNotToStart(command, context);
  if (refusal !== undefined) return { refusal };
  if (context.pluginData !== undefined) mkdirSync(context.pluginData, { recursive: true, mode: 0o700 });
  return runStarted(command, context, { ...usualLimits, ...limits }, onOutput);
}

async function runStarted(
  command: string,
  context: ToolContext,
  limits: CommandLimits,
  onOutput: ((chunk: Buffer) => void) | undefined,
): Promise<LineEnd | { refusal: string }> {
  const programs = commandPrograms(context);
  const mark = newMark();
  const guard = guardOrphans(mark);
  const onWindows = process.platform === 'win32';
  const plain: CommandStart = {
    program: shell,
    args: ['-c', context.approvedLine ?? command],
    env: { ...programs.env, [mark.name]: mark.value },
    folder: context.approvedFolder ?? context.commandDir,
  };
  const time = new TimeLimit(limits.timeoutMs);
  limits.untimed?.addEventListener('abort', () => time.end(), { once: true });
  const enclosed = await enclosedStart(plain, context, time);
  if (typeof enclosed === 'string') {
    guard.release();
    return { refusal: enclosed };
  }
  const inner = enclosed ?? plain;
  const start = onWindows
    ? { program: command, args: [] }
    : (enclosed?.limited?.(mark.lockLimit) ?? marked(mark, inner.program, inner.args));
  const child = await startProcess({ ...inner, ...start }, enclosed?.inputs, onWindows, limits.stdin);
  if (typeof child === 'string') {
    guard.release();
    await enclosed?.end();
    return { refusal: `The command could not be started: ${child}` };
  }
  let report: Promise<BoxReport> | undefined;
  const ending = (): Promise<BoxReport> | undefined => {
    report ??= enclosed?.end();
    return report;
  };
  const tree = processTree(child.pid, mark, child.started);
  guard.watch(child.pid);
  const streams = { stdout: new OutputCapture(stdoutLimit), stderr: new OutputCapture(stderrLimit) };
  const exited = child.exited.then(([code, signal]) => exitCode(code, signal));
  if (onOutput) for (const stream of [child.stdout, child.stderr]) stream.on('data', onOutput);
  const live = context.onOutput && new LiveOutput(context.onOutput);
  if (live)
    for (const name of ['stdout', 'stderr'] as const) child[name].on('data', chunk => live.add(name, chunk));
  try {
    const stopped = await untilExitOrStop(child, exited, streams, tree, context.signal, { ...limits, time });
    const end = await endAllOf(tree, stopped, child.closed, limits, enclosed);
    const note = noteOn(end, limits);
    if (end.stopped === 'abort') {
      if (end.unended.length > 0 && note !== undefined)
        context.onNotice?.(sentence('{0}: {1}', 'run_command', note));
      throw context.signal.reason;
    }
    // A stopped command may never exit if it has become another user's process.
    const code = end.stopped === undefined ? await exited : undefined;
    const failure = code ? enclosed?.failureIn?.(streams.stderr.text()) : undefined;
    if (failure !== undefined) return { refusal: failure };
    const { notes = [], home, temporary } = (await ending()) ?? {};
    const left = [home && writtenAtHome(home), temporary && writtenInTemporary(temporary)].flatMap(
      each => each ?? [],
    );
    for (const { forPerson } of left) if (forPerson) context.onNotice?.(forPerson);
    const all = [
      note ?? (code ? programs.noteOn(command) : undefined),
      code && enclosed?.layer && differingLink.test(streams.stderr.text()) ? howToClone : undefined,
      ...[...notes, ...left.map(({ forModel }) => forModel)].map(each => `[${each}]`),
    ];
    return { streams, code, note: all.filter(Boolean).join('\n') || undefined };
  } finally {
    live?.end();
    guard.release();
    await ending();
    child.release();
  }
}

/** Maximum number of files that are named. */
const mostNamed = 5;

/** Says where it is what a command wrote into the home of the box: it looks like the person's from inside, and is not. */
function writtenAtHome({ folder, files, isWhole, agent }: NonNullable<BoxReport['home']>): {
  forPerson: Sentence;
  forModel: string;
} {
  const named = namedOf(files);
  const kept =
    agent === undefined ? 'It is gone after this conversation.' : 'It is there again in the next run.';
  const where = escapeInvisible(folder);
  if (named === '' || !isWhole)
    return {
      forPerson: sentence(
        'The home folder of the sandbox, {0}, holds too much to say what was written.',
        where,
      ),
      forModel: `What it wrote into ~ is in the home of the sandbox, ${where}, not in the user's home. ${kept}`,
    };
  const copy = copyingLine(folder, files);
  return {
    forPerson:
      agent === undefined
        ? sentence(
            'In the home folder of the sandbox, not in yours: {0} (in {1}). To copy it: {2}',
            named,
            where,
            copy,
          )
        : sentence(
            "In the sandbox's home folder of {0}, not in yours: {1} (in {2}). To copy it: {3}",
            agent,
            named,
            where,
            copy,
          ),
    forModel: `Written into the home of the sandbox, not into the user's home: ${named} (in ${where}). ${kept} Say so if the user expects it in their home.`,
  };
}

/**
 * Says what a command wrote into the temporary files of the box: the person would look in vain for it. They are told of it themselves where
 * the files would be beside their own, as if the command had written next to its folder.
 */
function writtenInTemporary({ folder, files, isWhole }: NonNullable<BoxReport['temporary']>): {
  forPerson?: Sentence;
  forModel: string;
} {
  const where = escapeInvisible(folder);
  const named = namedOf(files, path => `/tmp/${path}`);
  const isTheirs = (path: string): boolean =>
    path.includes('/') && statSync(join('/tmp', path.split('/')[0] ?? ''), noThrow)?.isDirectory() === true;
  const beside = files.filter(isTheirs);
  const copy = copyingLine(folder, beside, '/tmp/');
  return {
    ...(beside.length > 0 && {
      forPerson: sentence(
        'In the temporary files of the sandbox, not in yours: {0} (in {1}). To copy it: {2}',
        ...[namedOf(beside, path => `/tmp/${path}`), where, copy],
      ),
    }),
    forModel: isWhole
      ? `Written into the /tmp of the sandbox, not into the user's: ${named} (in ${where}). Say so if the user expects it there.`
      : `What it wrote into /tmp is in the /tmp of the sandbox, ${where}, not in the user's.`,
  };
}

const noThrow = { throwIfNoEntry: false } as const;

/** Returns the names of a few files, and how many there are more. */
function namedOf(files: readonly string[], shown: (path: string) => string = path => path): string {
  const more = files.length - mostNamed;
  const names = files.slice(0, mostNamed).map(path => escapeInvisible(shown(path)));
  return names.join(', ') + (more > 0 ? ` (+${more})` : '');
}

/** Returns the line of a shell that copies the files to their place, with what is beside them. It asks before it replaces any. */
function copyingLine(folder: string, files: readonly string[], to = '~/'): string {
  const tops = new Set(files.map(path => join(folder, path.split('/')[0] ?? path)));
  const plain = [...tops].filter(path => escapeInvisible(path) === path).slice(0, mostNamed);
  const sources = plain.length > 0 ? plain : [`${folder}/.`];
  return ['cp -ri --', ...sources.map(shellWord), to].join(' ');
}

/** Returns the command as its box starts it, or why it has none although it must. Returns undefined without a box. */
/** A file that a layer links to one outside of it has another number, which Git takes for another file. */
const differingLink = /^fatal: hardlink different from source at /m;
const howToClone = '[In the sandbox Git cannot clone a folder by hard links; give git clone --no-hardlinks.]';

async function enclosedStart(
  start: CommandStart,
  { box, askHost }: ToolContext,
  time: TimeLimit,
): Promise<EnclosedCommand | string | undefined> {
  try {
    const ask: AskHost | undefined = askHost && ((wanted, until) => time.during(askHost(wanted, until)));
    return await box?.enclose({ ...start, folder: realpathSync.native(start.folder) }, ask);
  } catch (error) {
    return `The command was not run, since it could not be put into its sandbox: ${reasonOf(error)}`;
  }
}

function reasonNotToStart(command: string, context: ToolContext): string | undefined {
  if (command.trim() === '') return 'The command is empty. Give a command line.';
  if (command.includes('\0')) return 'The command contains a NUL character. Remove it.';
  if (context.approvedSubject !== undefined && context.approvedSubject !== command)
    return 'The command differs from the one that was approved. Nothing was run.';
  const { approvedFolder, commandDir, workingDir } = context;
  if (commandDir === workingDir) makeFolder(approvedFolder ?? commandDir);
  const missing = reasonAgainst(commandDir);
  if (missing !== undefined) return missing;
  if (approvedFolder !== undefined && realpathSync.native(commandDir) !== approvedFolder)
    return `${commandDir} now means another folder than ${approvedFolder}, for which the command was decided on. Nothing was run.`;
  return undefined;
}

/** Returns why no command can run in a folder. One on a network may be there and not answer. */
function reasonAgainst(folder: string): string | undefined {
  try {
    if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return undefined;
    return `The folder for commands does not exist: ${folder}.`;
  } catch (error) {
    return `The folder for commands, ${folder}, cannot be read: ${reasonOf(error)}. Nothing was run.`;
  }
}

/** Makes the working folder, as the first write does. Never throws: a folder that is missing afterwards is reported. */
function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch {
    // The caller says what is missing.
  }
}

function exitCode(code: number | null, signal: NodeJS.Signals | null): number {
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}
