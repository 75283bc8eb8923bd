/**
 * The network that the commands of a conversation share, so that a server which one has started is reached by those that run
 * meanwhile. It is nothing but two namespaces that this process holds open: no process waits in them, no other conversation has a way
 * to them, and they end with this process. Only `nsenter` can lead bubblewrap into them. It enters before the box is made, so that a
 * command has its own processes, mounts, IPC and user namespace as before, is refused `setns`, and inherits neither file. The way to
 * granted hosts is not shared: a command's proxy asks for a password that only its own programs have.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readlinkSync } from 'node:fs';
import { sentence } from '../../protocol/text.ts';
import { TelosError } from '../errors.ts';

/** A network in which commands can be started. */
export interface SharedNetwork {
  /** The words before those of bubblewrap. */
  start: readonly [program: string, ...args: string[]];
  /** Called when the command has ended. */
  leave(): void;
}

interface Namespaces {
  words: readonly string[];
  close(): void;
}

interface Kept {
  opened: Promise<Namespaces>;
  commands: number;
  /** Set while no command is in it. */
  idle?: { timer: NodeJS.Timeout; close(): void };
}

/** In milliseconds. Making one takes as long as starting a command, and the next one mostly follows soon. */
const keptFor = 60_000;
/** So that many conversations in a minute, as of evals, hold no more open files than a few. */
const mostIdle = 8;
/** In milliseconds. */
const patience = 5000;

/** By conversation. */
const networks = new Map<string, Kept>();

/**
 * Returns the network of a conversation, which lasts until a minute after its last command, or until some others have had theirs since.
 * Throws TelosError `config` if it cannot be made.
 */
export async function enterNetwork(
  conversation: string,
  bubblewrap: string,
  nsenter: string,
): Promise<SharedNetwork> {
  const kept = networks.get(conversation) ?? { opened: openNamespaces(bubblewrap), commands: 0 };
  networks.set(conversation, kept);
  clearTimeout(kept.idle?.timer);
  delete kept.idle;
  kept.commands++;
  const leave = (): void => {
    kept.commands--;
    if (kept.commands === 0) keepIdle(conversation, kept);
  };
  try {
    return { start: [nsenter, ...(await kept.opened).words], leave };
  } catch (error) {
    networks.delete(conversation);
    throw error;
  }
}

/** Closes the network in a minute, and the one that has been without a command for longest if there are many. */
function keepIdle(conversation: string, kept: Kept): void {
  const isKnown = networks.get(conversation) === kept;
  const close = (): void => {
    clearTimeout(kept.idle?.timer);
    if (networks.get(conversation) === kept) networks.delete(conversation);
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
  networks.delete(conversation);
  networks.set(conversation, kept);
  const idle = [...networks.values()].flatMap(one => one.idle ?? []);
  if (idle.length > mostIdle) idle[0]?.close();
}

/** Returns whether bubblewrap starts in a network that was made before. `words` are those of a start that does nothing. */
export async function canShare(
  bubblewrap: string,
  nsenter: string,
  starts: (program: string, args: readonly string[]) => Promise<boolean>,
): Promise<boolean> {
  try {
    const { words, close } = await openNamespaces(bubblewrap);
    try {
      return await starts(nsenter, words);
    } finally {
      close();
    }
  } catch {
    return false;
  }
}

/**
 * Makes the namespaces of a program that ends at once, and keeps them. The user namespace is there since only its owner may enter the
 * network; that of each command lies in it. Bubblewrap also opens the network's loopback.
 */
async function openNamespaces(bubblewrap: string): Promise<Namespaces> {
  const words = ['--unshare-user', '--unshare-net', '--ro-bind', '/', '/', '--', '/bin/sh', '-c'];
  const child = spawn(bubblewrap, [...words, 'echo $$; read -r _'], {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
    timeout: patience,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const ended = once(child, 'close');
  let [said, errors] = ['', ''];
  child.stdin.on('error', () => undefined);
  child.stderr.on('data', chunk => {
    errors += chunk;
  });
  try {
    await Promise.race([
      ended,
      new Promise<void>(resolve => {
        child.stdout.on('data', chunk => {
          said += chunk;
          if (said.endsWith('\n')) resolve();
        });
      }),
    ]);
    return held(Number(said));
  } catch (error) {
    const why = errors.trim().split('\n')[0] || String((error as Error).message);
    throw new TelosError('config', [sentence('The network of the box could not be made: {0}', why)], {
      cause: error,
    });
  } finally {
    child.stdin.end();
  }
}

/** Opens the namespaces of a process. They stay for as long as the files are open, whatever becomes of it. */
function held(pid: number): Namespaces {
  const files: number[] = [];
  const close = (): void => files.splice(0).forEach(file => void closeSync(file));
  try {
    const words = ['user', 'net'].map(kind => {
      const file = openSync(`/proc/${pid}/ns/${kind}`, 'r');
      files.push(file);
      if (readlinkSync(`/proc/self/fd/${file}`) === readlinkSync(`/proc/self/ns/${kind}`))
        throw new Error(`the ${kind} namespace is that of this machine`);
      // Named, not handed down: a command would inherit it.
      return `--${kind}=/proc/${process.pid}/fd/${file}`;
    });
    return { words: [...words, '--preserve-credentials', '--'], close };
  } catch (error) {
    close();
    throw error;
  }
}
