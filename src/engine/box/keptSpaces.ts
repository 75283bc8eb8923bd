/**
 * The namespaces that the commands of a conversation share. In one network, a server that one command has started is reached by those that
 * run meanwhile. In one namespace of mounts lie the layers, each mounted before its command starts. A shell holds both open and mounts, so
 * no other conversation has a way to them, and they end with this process. Only `nsenter` can lead bubblewrap into them. It enters
 * before the box is made, so that a command has its own processes, mounts, IPC and user namespace as before, is refused `setns`, and
 * inherits no file. The way to granted hosts is not shared: a command's proxy asks for a password that only its own programs have.
 */
import { closeSync, openSync, readlinkSync } from 'node:fs';
import { sentence } from '@telos/protocol/text';
import { reasonOf, TelosError } from '../core/errors.ts';
import { Helper } from './helper.ts';
import { KeptForwarder, type WayIn } from './keptForwarder.ts';

/** Namespaces in which commands can be started. */
export interface KeptSpaces {
  /** Returns the words before those of bubblewrap for a command that enters the network, the mounts or both. */
  start(wanted: { network: boolean; mounts: boolean }): readonly [program: string, ...args: string[]];
  /** Mounts a layer: `count` folders of `own`. Throws TelosError `config` if that cannot be done. */
  mount(own: string, count: number): Promise<void>;
  /** Returns the port of the network that leads to a socket; undefined without Perl. Throws TelosError `config` if none can. */
  listen(socket: string): Promise<WayIn | undefined>;
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

/** By conversation. */
const spaces = new Map<string, Kept>();

/**
 * Returns the namespaces of a conversation, which last until a minute after its last command, or until some others have had theirs since.
 * Throws TelosError `config` if they cannot be made.
 */
export async function enterSpaces(
  conversation: string,
  bubblewrap: string,
  { nsenter, mount, perl }: { nsenter: string; mount?: string | undefined; perl: string | undefined },
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
      listen: async socket => (perl === undefined ? undefined : opened.listen(socket, nsenter, perl)),
      leave,
    };
  } catch (error) {
    forget();
    throw error;
  }
}

/** Closes the namespaces of a conversation, unless a command is in them. Called when a run ends. */
export const closeIdleSpaces = (conversation: string): void => spaces.get(conversation)?.idle?.close();

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
const script = `: telos: the layers of the sandbox
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
  const opened = new Spaces(new Helper(bubblewrap, words));
  try {
    await opened.open();
    return opened;
  } catch (error) {
    opened.close();
    throw notMade(reasonOf(error));
  }
}

class Spaces {
  readonly #helper: Helper;
  readonly #files: { kind: string; file: number }[] = [];
  #forwarder: KeptForwarder | undefined;

  constructor(helper: Helper) {
    this.#helper = helper;
  }

  /** Waits until they are there, and keeps them. They stay for as long as the files are open. */
  async open(): Promise<void> {
    const pid = Number(await this.#helper.ask(undefined, '\n'));
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
    const said = await this.#helper.ask(`${count} ${own}`, '\n.\n').catch(reasonOf);
    if (said !== 'mounted') throw notMade(said.replace(/^no /, '').split('\n')[0] ?? '');
  }

  /** Throws TelosError `config` if nothing can listen there. */
  async listen(socket: string, nsenter: string, perl: string): Promise<WayIn> {
    const words = this.words({ network: true, mounts: false });
    this.#forwarder ??= new KeptForwarder([nsenter, ...words], perl);
    try {
      return await this.#forwarder.listen(socket);
    } catch (error) {
      this.#forwarder = undefined;
      throw notMade(reasonOf(error));
    }
  }

  close(): void {
    for (const { file } of this.#files.splice(0)) closeSync(file);
    this.#forwarder?.close();
    this.#helper.close();
  }
}

const notMade = (why: string): TelosError =>
  new TelosError('config', [
    sentence('The sandbox could not be set up: {0}', why),
    sentence('Nothing was run.'),
  ]);
