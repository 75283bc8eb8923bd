/** The small process that starts programs for a large one. It runs from the text of `launch`, which therefore uses nothing outside of it. */
import type { ChildProcess, SpawnOptions } from 'node:child_process';

/** A program to start. Of `inputs`, a text is bytes in base64, and a number a descriptor that the large process has open. */
export interface LaunchRequest {
  id: number;
  program: string;
  args: readonly string[];
  cwd: string;
  env: Readonly<Record<string, string>>;
  inputs: readonly (string | number)[];
  /** What it reads as its usual input. Missing if it has none. */
  stdin?: string;
}

/** Nothing more of this program's output is read. */
export interface LeaveRequest {
  id: number;
}

/** What the launcher reports of a program. Before the content come its number and these, as 4 bytes, 1 byte and 4 bytes of length. */
export const reports = { started: 0, failed: 1, stdout: 2, stderr: 3, exited: 4, ready: 5 } as const;
export const headBytes = 9;

/** Returns the program of the launcher for `node -e`. */
export const launcherScript = (): string =>
  `(${launch.toString()})(require,${JSON.stringify(reports)},${headBytes})`;

/**
 * Reads requests, each a line of JSON, until its input ends. What the large process has open is opened once more, with the same rights:
 * the entry of a descriptor leads to the very file, whatever its path means by now. Content is written where programs inherit nothing.
 */
function launch(load: NodeJS.Require, kinds: typeof reports, headLength: number): void {
  const { spawn } = load('node:child_process') as typeof import('node:child_process');
  const { closeSync, openSync, readFileSync } = load('node:fs') as typeof import('node:fs');
  const { Socket } = load('node:net') as typeof import('node:net');
  process.title = 'telos launcher';
  const parent = `/proc/${process.ppid}`;
  const running = new Map<number, ChildProcess>();
  const out = new Socket({ fd: 1 });
  out.on('error', () => process.exit()).setMaxListeners(0);

  const say = (id: number, kind: number, content: Buffer): boolean => {
    const head = Buffer.alloc(headLength);
    head.writeUInt32BE(id);
    head[4] = kind;
    head.writeUInt32BE(content.length, 5);
    out.cork();
    out.write(head);
    const takesMore = out.write(content);
    out.uncork();
    return takesMore;
  };
  const tell = (id: number, kind: number, value: unknown): boolean =>
    say(id, kind, Buffer.from(JSON.stringify(value)));

  const openAgain = (descriptor: number): number => {
    const [, flags = ''] =
      /^flags:\s*(\d+)/m.exec(readFileSync(`${parent}/fdinfo/${descriptor}`, 'latin1')) ?? [];
    // Without O_CLOEXEC and O_NOFOLLOW.
    return openSync(`${parent}/fd/${descriptor}`, Number.parseInt(flags, 8) & ~0o2400000);
  };

  const spawned = ({ program, args, cwd, env, inputs, stdin }: LaunchRequest): ChildProcess | undefined => {
    const files: number[] = [];
    try {
      const further = inputs.map(each => {
        if (typeof each === 'string') return 'pipe';
        const file = openAgain(each);
        files.push(file);
        return file;
      });
      const options: SpawnOptions = {
        cwd,
        env,
        stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe', ...further],
        detached: true,
      };
      return spawn(program, args, options);
    } catch {
      return undefined;
    } finally {
      for (const file of files) closeSync(file);
    }
  };

  const startOf = (pid: number): string => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '0';
    } catch {
      return '0';
    }
  };

  const pass = (id: number, kind: number, stream: ChildProcess['stdout']): void => {
    stream
      ?.on('data', (chunk: Buffer) => {
        if (say(id, kind, chunk)) return;
        stream.pause();
        out.once('drain', () => stream.resume());
      })
      .on('error', () => undefined)
      .on('close', () => say(id, kind, Buffer.alloc(0)));
  };

  const start = (request: LaunchRequest): void => {
    const { id, inputs, stdin } = request;
    const child = spawned(request);
    if (!child) return void tell(id, kinds.failed, null);
    child.on('error', error => tell(id, kinds.failed, error.message));
    if (child.pid === undefined) return;
    tell(id, kinds.started, { pid: child.pid, started: startOf(child.pid) });
    running.set(id, child);
    child.stdin?.on('error', () => undefined).end(stdin);
    for (const [index, each] of inputs.entries()) {
      const stream = child.stdio[index + 3];
      if (typeof each === 'string' && stream && 'end' in stream)
        stream.on('error', () => undefined).end(Buffer.from(each, 'base64'));
    }
    pass(id, kinds.stdout, child.stdout);
    pass(id, kinds.stderr, child.stderr);
    child.on('exit', (code, signal) => tell(id, kinds.exited, [code, signal]));
    child.on('close', () => running.delete(id));
  };

  const leave = ({ id }: LeaveRequest): void => {
    const child = running.get(id);
    child?.stdout?.destroy();
    child?.stderr?.destroy();
  };

  let rest = '';
  process.stdin
    .setEncoding('utf8')
    .on('end', () => process.exit())
    .on('data', text => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const request = JSON.parse(line) as LaunchRequest | LeaveRequest;
        if ('program' in request) start(request);
        else leave(request);
      }
    });
  tell(0, kinds.ready, true);
}
