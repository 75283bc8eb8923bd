/**
 * Starts programs. Linux does that by a copy of this process, for which a large one, such as an editor's extension host, stands still for
 * 20 ms and more, and after which its first write to each page of memory is slow. So a large process has a small one start them.
 */
import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { headBytes, type LaunchRequest, type LeaveRequest, launcherScript, reports } from './launcher.ts';
import type { CommandStart } from './tool.ts';

/** What a program gets as its descriptors 3, 4 and so on: bytes that it reads, or files that are open. */
export type Inputs = readonly (Uint8Array | number)[];

type Exit = [code: number | null, signal: NodeJS.Signals | null];

/** A program that runs, and leads a group of its own. */
export interface StartedProcess {
  pid: number;
  /** When it was started, as the system counts it. Undefined if its entry in the list of processes must be read for that. */
  started: string | undefined;
  stdout: Readable;
  stderr: Readable;
  exited: Promise<Exit>;
  /** Resolves when it has exited and no process writes its output any more. */
  closed: Promise<unknown>;
  /** Reads no more of its output, and lets this process end before it. */
  release(): void;
}

/** In bytes of memory. To start a program from a smaller process takes less than the way around. */
const largeProcess = 128 * 1024 ** 2;

const isLarge = (): boolean => process.platform === 'linux' && process.memoryUsage.rss() > largeProcess;

/** Says that a program will probably be started: what starts it then is ready by the time that the person has answered. */
export function expectProcess(): void {
  if (isLarge()) launcherFor();
}

/**
 * Returns the process, or the message of the error if there is none. With `shell`, the program is a line for the system's shell. It has
 * no input but `stdin`.
 */
export async function startProcess(
  start: CommandStart,
  inputs: Inputs = [],
  shell = false,
  stdin?: string,
): Promise<StartedProcess | string> {
  return (
    (isLarge() && (await launcherFor()?.start(start, inputs, stdin))) ||
    startHere(start, inputs, shell, stdin)
  );
}

async function startHere(
  { program, args, folder, env }: CommandStart,
  inputs: Inputs,
  shell: boolean,
  stdin: string | undefined,
): Promise<StartedProcess | string> {
  const child = spawn(program, args, {
    shell,
    cwd: folder,
    env,
    stdio: [
      stdin === undefined ? 'ignore' : 'pipe',
      ...['pipe' as const, 'pipe' as const],
      ...inputs.map(each => (typeof each === 'number' ? each : 'pipe')),
    ],
    detached: process.platform !== 'win32',
    windowsHide: true,
  });
  const { pid, stdout, stderr } = child;
  if (pid === undefined || !stdout || !stderr) return ((await once(child, 'error'))[0] as Error).message;
  giveInputs(child, inputs);
  child.stdin?.on('error', () => undefined).end(stdin);
  return {
    pid,
    started: undefined,
    stdout,
    stderr,
    exited: once(child, 'exit') as Promise<Exit>,
    closed: once(child, 'close'),
    release() {
      stdout.destroy();
      stderr.destroy();
      child.unref();
    },
  };
}

/** Writes what the process reads from its further descriptors. */
export function giveInputs(child: ChildProcess, inputs: Inputs): void {
  for (const [index, input] of inputs.entries()) {
    const stream = child.stdio[index + 3];
    if (typeof input === 'number' || !stream || !('write' in stream)) continue;
    // A process that ends early reads nothing.
    stream.on('error', () => undefined);
    stream.end(input);
  }
}

/** How long the launcher waits for the next program, and how long it may take until it is ready, in milliseconds. */
const idleTime = 10_000;
const bootTime = 10_000;

let launcher: Launcher | undefined;
/** Set once a launcher was not ready or could not be started: the next one would not be either. */
let isImpossible = false;

function launcherFor(): Launcher | undefined {
  if (isImpossible) return undefined;
  if (launcher) return launcher;
  // A group of its own: a signal that ends the group of Telos does not end what is launched before its run has ended it.
  const child = spawn(process.execPath, ['-e', launcherScript()], {
    cwd: '/',
    env: { ELECTRON_RUN_AS_NODE: '1' },
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: true,
  });
  child.on('error', () => undefined);
  isImpossible = child.pid === undefined;
  if (!isImpossible) launcher = new Launcher(child);
  return launcher;
}

/** A program that is started or runs, as long as it or its output has not ended. */
interface Launched {
  /** Gets undefined if nothing was started, a message if that failed. */
  begun: (said: Pick<StartedProcess, 'pid' | 'started'> | string | undefined) => void;
  ended: (exit: Exit) => void;
  hasExited: boolean;
  stdout: PassThrough;
  stderr: PassThrough;
}

class Launcher {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  /** Resolves to false if it will never be ready. */
  readonly #ready: Promise<boolean>;
  #setReady: (isReady: boolean) => void = () => undefined;
  #isReady = false;
  readonly #launched = new Map<number, Launched>();
  #latest = 0;
  #unread: Buffer = Buffer.alloc(0);
  #idle: NodeJS.Timeout | undefined;

  constructor(child: ChildProcessByStdio<Writable, Readable, null>) {
    this.#child = child;
    AbortSignal.timeout(bootTime).addEventListener('abort', () => this.#isReady || child.kill('SIGKILL'));
    this.#ready = new Promise(resolve => {
      this.#setReady = resolve;
    });
    child.stdin.on('error', () => undefined);
    child.stdout.on('error', () => undefined).on('data', (chunk: Buffer) => this.#read(chunk));
    child.once('close', () => this.#gone());
    this.#rest();
  }

  /** Returns the process, a message if there is none, or undefined if nothing can be launched in this way. */
  async start(
    start: CommandStart,
    inputs: Inputs,
    stdin: string | undefined,
  ): Promise<StartedProcess | undefined | string> {
    const id = ++this.#latest;
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const closed = Promise.all([stdout, stderr].map(stream => once(stream, 'close')));
    // Output that no one reads holds up nothing, as with a process that is started here. Whoever reads it begins when this has returned.
    for (const stream of [stdout, stderr])
      stream.once('finish', () => setImmediate(() => stream.readableFlowing === null && stream.resume()));
    let ended: Launched['ended'] = () => undefined;
    const exited = new Promise<Exit>(resolve => {
      ended = resolve;
    });
    const said = await new Promise<Parameters<Launched['begun']>[0]>(begun => {
      this.#launched.set(id, { begun, ended, hasExited: false, stdout, stderr });
      this.#keep();
      void this.#ready.then(isReady =>
        isReady ? this.#request(id, start, inputs, stdin) : begun(undefined),
      );
    });
    if (typeof said !== 'object') {
      this.#forget(id);
      return said;
    }
    const release = (): void => {
      if (this.#launched.has(id)) this.#say({ id });
      this.#forget(id);
      stdout.destroy();
      stderr.destroy();
    };
    return { ...said, stdout, stderr, exited, closed: Promise.all([exited, closed]), release };
  }

  #request(
    id: number,
    { program, args, folder, env }: CommandStart,
    inputs: Inputs,
    stdin: string | undefined,
  ): void {
    const plain = inputs.map(each =>
      typeof each === 'number' ? each : Buffer.from(each).toString('base64'),
    );
    this.#say({ id, program, args, cwd: folder, env, inputs: plain, ...(stdin !== undefined && { stdin }) });
  }

  #say(request: LaunchRequest | LeaveRequest): void {
    this.#child.stdin.write(`${JSON.stringify(request)}\n`);
  }

  #read(chunk: Buffer): void {
    let bytes = this.#unread.length > 0 ? Buffer.concat([this.#unread, chunk]) : chunk;
    while (bytes.length >= headBytes) {
      const end = headBytes + bytes.readUInt32BE(5);
      if (bytes.length < end) break;
      this.#hear(bytes.readUInt32BE(0), bytes[4] ?? 0, bytes.subarray(headBytes, end));
      bytes = bytes.subarray(end);
    }
    this.#unread = bytes;
  }

  #hear(id: number, kind: number, content: Buffer): void {
    if (kind === reports.ready) {
      this.#isReady = true;
      this.#setReady(true);
      return;
    }
    const one = this.#launched.get(id);
    if (!one) return;
    if (kind === reports.stdout || kind === reports.stderr) {
      const stream = kind === reports.stdout ? one.stdout : one.stderr;
      if (content.length > 0) stream.write(content);
      else stream.end();
    } else {
      const said = JSON.parse(content.toString());
      if (kind === reports.exited) {
        one.hasExited = true;
        one.ended(said);
      } else one.begun(said ?? undefined);
    }
    if (one.hasExited && one.stdout.writableEnded && one.stderr.writableEnded) this.#forget(id);
  }

  /** Keeps this process for what runs. */
  #keep(): void {
    clearTimeout(this.#idle);
    for (const each of this.#handles()) each.ref();
  }

  #forget(id: number): void {
    if (this.#launched.delete(id) && this.#launched.size === 0) this.#rest();
  }

  /** Lets this process end, and the launcher if nothing is started for a while. */
  #rest(): void {
    for (const each of this.#handles()) each.unref();
    this.#idle = setTimeout(() => {
      if (this.#launched.size > 0) return;
      if (launcher === this) launcher = undefined;
      this.#child.stdin.end();
    }, idleTime).unref();
  }

  #handles(): { ref(): void; unref(): void }[] {
    return [this.#child, this.#child.stdin, this.#child.stdout] as never;
  }

  /** Ends what has lost its launcher for whoever waits: what still runs of it is found by its mark. */
  #gone(): void {
    if (launcher === this) launcher = undefined;
    isImpossible ||= !this.#isReady;
    this.#setReady(false);
    for (const one of this.#launched.values()) {
      // It may have been started, and nothing is started twice.
      one.begun(this.#isReady ? lost : undefined);
      one.ended([null, 'SIGKILL']);
      one.stdout.end();
      one.stderr.end();
    }
    this.#launched.clear();
  }
}

const lost = 'the process that starts others was ended. Try again.';
