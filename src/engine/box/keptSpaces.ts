/**
 * The namespaces that the commands of a conversation share. In one network, a server that one command has started is reached by those that
 * run meanwhile. In one namespace of mounts lie the layers, each mounted before its command starts. A shell holds both open and mounts, so
 * no other conversation has a way to them, and they end with this process. Only `nsenter` can lead bubblewrap into them. It enters
 * before the box is made, so that a command has its own processes, mounts, IPC and user namespace as before, is refused `setns`, and
 * inherits no file. The way to granted hosts is not shared: a command's proxy asks for a password that only its own programs have.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { closeSync, openSync, readlinkSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { sentence } from '../../protocol/text.ts';
import { reasonOf, TelosError } from '../errors.ts';

/** Namespaces in which commands can be started. */
export interface KeptSpaces {
  /** Returns the words before those of bubblewrap for a command that enters the network, the mounts or both. */
  start(wanted: { network: boolean; mounts: boolean }): readonly [program: string, ...args: string[]];
  /** Mounts a layer: `count` folders of `own`. Throws TelosError `config` if that cannot be done. */
  mount(own: string, count: number): Promise<void>;
  /** Called when the command has ended. */
  leave(): void;
}

interface Kept {
  opened: Promise<Spaces>;
  commands: number;
  /** Set while no command is in them. */
  idle?: { timer: NodeJS.Timeout; close(): void };
}

/** In milliseconds. Making them takes as long as starting a command, and the next one mostly follows soon. */
const keptFor = 60_000;
/** So that many conversations in a minute, as of evals, hold no more open files than a few. */
const mostIdle = 8;
/** In milliseconds. */
const patience = 5000;

/** By conversation. */
const spaces = new Map<string, Kept>();

/**
 * Returns the namespaces of a conversation, which last until a minute after its last command, or until some others have had theirs since.
 * Throws TelosError `config` if they cannot be made.
 */
export async function enterSpaces(
  conversation: string,
  bubblewrap: string,
  nsenter: string,
  mount?: string,
): Promise<KeptSpaces> {
  const kept = spaces.get(conversation) ?? { opened: openSpaces(bubblewrap, mount), commands: 0 };
  spaces.set(conversation, kept);
  clearTimeout(kept.idle?.timer);
  delete kept.idle;
  kept.commands++;
  const forget = (): void => {
    if (spaces.get(conversation) === kept) spaces.delete(conversation);
  };
  const leave = (): void => {
    kept.commands--;
    if (kept.commands === 0) keepIdle(conversation, kept);
  };
  try {
    const opened = await kept.opened;
    return {
      start: wanted => [nsenter, ...opened.words(wanted)],
      // The next command gets other ones if the shell was ended.
      async mount(own, count) {
        await opened.mount(own, count).catch(error => {
          forget();
          throw error;
        });
      },
      leave,
    };
  } catch (error) {
    forget();
    throw error;
  }
}

/** Closes the namespaces in a minute, and those that have been without a command for longest if there are many. */
function keepIdle(conversation: string, kept: Kept): void {
  const isKnown = spaces.get(conversation) === kept;
  const close = (): void => {
    clearTimeout(kept.idle?.timer);
    if (spaces.get(conversation) === kept) spaces.delete(conversation);
    kept.opened.then(
      each => each.close(),
      () => undefined,
    );
  };
  if (!isKnown) {
    close();
    return;
  }
  kept.idle = { timer: setTimeout(close, keptFor).unref(), close };
  // The last one is the one that was used last.
  spaces.delete(conversation);
  spaces.set(conversation, kept);
  const idle = [...spaces.values()].flatMap(one => one.idle ?? []);
  if (idle.length > mostIdle) idle[0]?.close();
}

/** Returns what `use` returns of namespaces that were made for it; false if they cannot be made or used. */
export async function inSpaces(
  bubblewrap: string,
  mount: string | undefined,
  use: (spaces: Pick<Spaces, 'words' | 'mount'>) => Promise<boolean>,
): Promise<boolean> {
  try {
    const opened = await openSpaces(bubblewrap, mount);
    try {
      return await use(opened);
    } finally {
      opened.close();
    }
  } catch {
    return false;
  }
}

/**
 * Says its pid, then mounts. Each line says how many folders a layer has, and where it is. Relative names need no escapes. A layer is
 * dropped after a power cut, so nothing waits until the disk has it.
 */
const script = `
echo $$
while read -r count own; do
  said= n=0
  while [ $n -lt $count ] && [ -z "$said" ]; do
    options="userxattr,volatile,lowerdir=lower$n,upperdir=upper$n,workdir=work$n"
    why=$(cd "$own" 2>&1 && exec "$0" -n -i -t overlay -o "$options" overlay "merged$n" 2>&1) || said="no $why"
    n=$((n + 1))
  done
  printf '%s\\n' "\${said:-mounted}" '.'
done
`;

/**
 * Makes the namespaces and the shell in them. The user namespace is there since only its owner may enter the others; that of each command
 * lies in it. Only its root can mount. Bubblewrap also opens the network's loopback, and may make namespaces where no other program may.
 */
async function openSpaces(bubblewrap: string, mount = 'false'): Promise<Spaces> {
  const owned = ['--unshare-user', '--uid', '0', '--gid', '0', '--cap-add', 'ALL', '--unshare-net'];
  const words = [...owned, '--dev-bind', '/', '/', '--', '/bin/sh', '-c', script, mount];
  const child = spawn(bubblewrap, words, {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
    stdio: ['pipe', 'pipe', 'pipe'],
    // A signal that ends the group of Telos must not end it before what it serves.
    detached: true,
  });
  const opened = new Spaces(child);
  try {
    await opened.open();
    return opened;
  } catch (error) {
    opened.close();
    throw new TelosError('config', [sentence('The box could not be made: {0}', reasonOf(error))], {
      cause: error,
    });
  }
}

class Spaces {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #files: { kind: string; file: number }[] = [];
  readonly #waiting: { until: string; done: (said: string) => void; fail: (error: Error) => void }[] = [];
  #said = '';
  #errors = '';
  #hasEnded = false;

  constructor(child: ChildProcessByStdio<Writable, Readable, Readable>) {
    this.#child = child;
    child.stdin.on('error', () => undefined);
    child.stdout.setEncoding('utf8').on('data', (text: string) => this.#hear(text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#errors = (this.#errors + text).slice(0, 1000);
    });
    child
      .on('error', error => this.#end(error))
      .on('close', () => this.#end(new Error(this.#errors.trim().split('\n')[0] || 'it was ended')));
  }

  /** Waits until they are there, and keeps them. They stay for as long as the files are open. */
  async open(): Promise<void> {
    const pid = Number(await this.#answer('\n'));
    for (const kind of ['user', 'net', 'mnt']) {
      const file = openSync(`/proc/${pid}/ns/${kind}`, 'r');
      this.#files.push({ kind, file });
      if (readlinkSync(`/proc/self/fd/${file}`) === readlinkSync(`/proc/self/ns/${kind}`))
        throw new Error(`the ${kind} namespace is that of this machine`);
    }
  }

  words({ network, mounts }: { network: boolean; mounts: boolean }): string[] {
    const left = this.#files.filter(({ kind }) =>
      kind === 'net' ? network : kind === 'mnt' ? mounts : true,
    );
    // Named, not handed down: a command would inherit it.
    const entered = left.map(
      ({ kind, file }) => `--${kind === 'mnt' ? 'mount' : kind}=/proc/${process.pid}/fd/${file}`,
    );
    return [...entered, '--preserve-credentials', '--'];
  }

  async mount(own: string, count: number): Promise<void> {
    const answer = this.#answer('\n.\n');
    this.#child.stdin.write(`${count} ${own}\n`);
    const said = await answer;
    if (said !== 'mounted')
      throw new TelosError('config', [
        sentence('The box could not be made: {0}', said.replace(/^no /, '').split('\n')[0] ?? ''),
        sentence('Nothing was run.'),
      ]);
  }

  close(): void {
    for (const { file } of this.#files.splice(0)) closeSync(file);
    this.#child.stdin.end();
  }

  /** Returns the next thing that the shell says. Throws an Error if it has ended, or takes too long. */
  async #answer(until: string): Promise<string> {
    if (this.#hasEnded) throw new Error('it was ended');
    const late = setTimeout(() => this.#child.kill('SIGKILL'), patience);
    for (const each of this.#handles()) each.ref();
    try {
      return await new Promise<string>((done, fail) => this.#waiting.push({ until, done, fail }));
    } finally {
      clearTimeout(late);
      // What waits for nothing keeps no process alive.
      if (this.#waiting.length === 0) for (const each of this.#handles()) each.unref();
    }
  }

  #hear(text: string): void {
    this.#said += text;
    for (let [next] = this.#waiting; next; [next] = this.#waiting) {
      const end = this.#said.indexOf(next.until);
      if (end < 0) return;
      this.#waiting.shift();
      next.done(this.#said.slice(0, end));
      this.#said = this.#said.slice(end + next.until.length);
    }
  }

  #end(error: Error): void {
    this.#hasEnded = true;
    for (const { fail } of this.#waiting.splice(0)) fail(error);
  }

  #handles(): { ref(): void; unref(): void }[] {
    return [this.#child, this.#child.stdin, this.#child.stdout, this.#child.stderr] as never;
  }
}
