/**
 * Calls the command line with a home folder that belongs to one test: in this process, or as a person would, the built one in a process
 * of its own.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { cpSync, existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Surroundings } from '../../src/cli/surroundings.ts';
import { type LogRecord, logPath, readLog } from '../../src/engine/records/logFile.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import { type Machine, openMachine } from '../harness/machine.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const packageFile = new URL('../../package.json', import.meta.url);

let copiedProgram: string | undefined;

/** A copy of what was built, so that a build during the tests does not disturb them; gone when the process ends. */
export function program(): string {
  if (copiedProgram) return copiedProgram;
  const built = join(root, 'dist/cli.js');
  if (!existsSync(built)) throw new Error(`${built} is missing: run \`npm run build\` first.`);
  const copy = tempFolder();
  process.once('exit', () => copy.remove());
  for (const part of [
    'dist/cli.js',
    'dist/agent.js',
    'dist/chunks/bot',
    'dist/runner.js',
    'dist/chunks/cli',
    'media/demo',
    'media/gallery',
    'media/plan-demo',
    'package.json',
  ]) {
    cpSync(join(root, part), join(copy.path, part), { recursive: true });
  }
  copiedProgram = join(copy.path, 'dist/cli.js');
  return copiedProgram;
}

export interface CliResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A call that goes on, in this process or in one of its own. */
export interface OngoingCli {
  result: Promise<CliResult>;
  /** Settles when stdout and stderr together hold the text. */
  says(text: string): Promise<void>;
  /** Returns what it has said until now. */
  said(): string;
  /** Sends SIGTERM. */
  stop(): void;
}

export interface RunningCli extends OngoingCli {
  child: ChildProcess;
}

export interface StartOptions {
  /** In addition to those of the machine; undefined takes one away. */
  env?: Variables;
  node?: string;
  /** Text for stdin. If missing, stdin is closed. */
  input?: string;
  /** Another copy of what was built. */
  program?: string;
}

export interface CliHome {
  folder: TempFolder;
  skillsDir: string;
  dataDir: string;
  workDir: string;
  env: Record<string, string>;
  /** Calls it in this process. For what is about neither a start, signals, pipes nor a terminal. */
  run(args: readonly string[], more?: Pick<StartOptions, 'env'>): Promise<CliResult>;
  /** As `run`, while it goes on. */
  call(args: readonly string[], more?: Pick<StartOptions, 'env'>): OngoingCli;
  /** Starts the built one in a process of its own. */
  start(args: readonly string[], more?: StartOptions): RunningCli;
  /** As `start`, until it has ended. */
  runProcess(args: readonly string[], more?: StartOptions): Promise<CliResult>;
  log(): Promise<LogRecord[]>;
  remove(): void;
}

/** `files` lie in the home folder: `skills/…`, `work/…`, `config/…`. No key and no provider is set. */
export function cliHome(files: Readonly<Record<string, string>> = {}): CliHome {
  const machine = openMachine({ files: { 'work/.keep': '', ...files } });
  const { folder, skills, data, work, env, remove } = machine;
  const call: CliHome['call'] = (args, { env: more = {} } = {}) => beginCall(work, { ...env, ...more }, args);
  const start: CliHome['start'] = (args, more) => startCli(machine, args, more);
  return {
    folder,
    skillsDir: skills,
    dataDir: data,
    workDir: work,
    env,
    run: (args, more) => call(args, more).result,
    call,
    start,
    runProcess: (args, more) => start(args, more).result,
    log: async () => (await readLog(logPath(data))).records,
    remove,
  };
}

type Variables = Readonly<Record<string, string | undefined>>;

/** Calls the command line in this process, as if it was started in a folder with these variables. There is no terminal. */
export const callCli = (work: string, env: Variables, args: readonly string[]): Promise<CliResult> =>
  beginCall(work, env, args).result;

/** As `callCli`, while it goes on. */
function beginCall(work: string, env: Variables, args: readonly string[]): OngoingCli {
  const ofNode = Object.keys(env).find(name => name.startsWith('NODE_'));
  if (ofNode !== undefined) throw new Error(`${ofNode} is read when a process starts: use runProcess.`);
  const said = { stdout: '', stderr: '' };
  const news = new EventEmitter().setMaxListeners(0);
  const collected = (name: keyof typeof said): Writable =>
    new Writable({
      decodeStrings: false,
      write(text: string, _encoding, done) {
        said[name] += text;
        news.emit('said');
        done();
      },
    });
  const signals = new EventEmitter();
  const surroundings: Surroundings = {
    env,
    get argv() {
      return [process.execPath, program(), ...args];
    },
    stdin: Readable.from([]),
    stdout: collected('stdout'),
    stderr: collected('stderr'),
    cwd: () => work,
    on: (signal, hear) => signals.on(signal, hear),
    off: (signal, hear) => signals.off(signal, hear),
    exit: code => assert.fail(`It ended at once, with ${code}.`),
  };
  const call = async (): Promise<CliResult> => {
    const { runCommandLine } = await import('../../src/cli/commandLine.ts');
    const code = await withTemporaryFolder(env['TMPDIR'], () =>
      runCommandLine(args, packageFile, surroundings),
    );
    return { code: Number(surroundings.exitCode ?? 0) || code, ...said };
  };
  const result = call().finally(() => news.emit('ended'));
  const says = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => void ((said.stdout + said.stderr).includes(text) && resolve());
      news.on('said', look);
      news.once('ended', () =>
        reject(new Error(`Ended without saying '${text}': ${said.stdout}${said.stderr}`)),
      );
      look();
    });
  return { result, says, said: () => said.stdout + said.stderr, stop: () => void signals.emit('SIGTERM') };
}

let isTemporaryFolderTaken = false;

/** Node has one folder for temporary files in a process, so that one call at a time can have its own. */
async function withTemporaryFolder<T>(folder: string | undefined, call: () => Promise<T>): Promise<T> {
  if (folder === undefined) return call();
  if (isTemporaryFolderTaken) throw new Error('Another call has its own TMPDIR: use runProcess.');
  const before = process.env['TMPDIR'];
  isTemporaryFolderTaken = true;
  process.env['TMPDIR'] = folder;
  try {
    return await call();
  } finally {
    isTemporaryFolderTaken = false;
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
  }
}

/** Starts the command line on a machine. There is no terminal, as in a pipe. */
export function startCli(
  { work, env }: Pick<Machine, 'work' | 'env'>,
  args: readonly string[],
  { env: more = {}, node = process.execPath, input, program: file = program() }: StartOptions = {},
): RunningCli {
  const child = spawn(node, [file, ...args], {
    cwd: work,
    env: { ...env, ...more },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  }) as ChildProcess & { stdout: Readable; stderr: Readable };
  child.stdin?.on('error', () => undefined); // a program that asks nothing has ended before it reads
  child.stdin?.end(input);
  const pieces: string[] = [];
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => pieces.push(piece));
  child.stderr.setEncoding('utf8').on('data', (piece: string) => {
    stderr += piece;
  });
  const result = new Promise<CliResult>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', code => resolve({ code, stdout: pieces.join(''), stderr }));
  });
  const says = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if ((pieces.join('') + stderr).includes(text)) resolve();
      };
      child.stdout.on('data', look);
      child.stderr.on('data', look);
      child.once('close', () =>
        reject(new Error(`Ended without saying '${text}': ${pieces.join('')}${stderr}`)),
      );
      look();
    });
  return {
    child,
    result,
    says,
    said: () => pieces.join('') + stderr,
    stop: () => void child.kill('SIGTERM'),
  };
}

/** Every Node on this machine that the product promises to run under, one of each major version. */
export function installedNodes(): { version: string; path: string }[] {
  const candidates = [
    process.execPath,
    join(root, 'node_modules/node/bin/node'),
    ...(process.env['PATH'] ?? '').split(delimiter).map(folder => join(folder, 'node')),
  ];
  const found = new Map<string, string>();
  for (const path of candidates.filter(candidate => existsSync(candidate))) {
    const version = versionOf(path);
    if (version && !found.has(version)) found.set(version, path);
  }
  return [...found].map(([version, path]) => ({ version, path }));
}

function versionOf(path: string): string | undefined {
  const { stdout } = spawnSync(path, ['-p', 'process.versions.node'], { encoding: 'utf8', timeout: 5000 });
  return stdout?.split('.')[0];
}

export const packageVersion = (): string =>
  (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version;
