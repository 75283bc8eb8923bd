/**
 * The namespaces that the commands of a conversation share. In one network, a server that one command has started is reached by those that
 * run meanwhile. In one namespace of mounts lie the layers, each mounted before its command starts. A program holds both open and mounts, so
 * no other conversation has a way to them, and they end with this process. Only another program can lead bubblewrap into them. It
 * enters before the box is made, so that a command has its own processes, mounts, IPC and user namespace as before, is refused `setns`, and
 * inherits no file. The way to granted hosts is not shared: a command's proxy asks for a password that only its own programs have.
 */
import { closeSync, openSync, readlinkSync } from 'node:fs';
import { sentence } from '@telos/protocol/text';
import { reasonOf, TelosError } from '../core/errors.ts';
import type { FileMarks } from '../tools/tool.ts';
import { Helper } from './helper.ts';
import { KeptForwarder, type WayIn } from './keptForwarder.ts';
import { kernelScript, marksOf } from './kernelCalls.ts';
import { type RootBase, rootOptions } from './rootBase.ts';

/** What leads a program into namespaces: Perl, and their files. */
export interface Entry {
  perl: string;
  spaces: readonly string[];
}

/** Namespaces in which commands can be started. */
export interface KeptSpaces {
  /** Returns what leads a command into the network, the mounts or both. */
  entry(wanted: { network: boolean; mounts: boolean }): Entry;
  /** Mounts a layer: `count` folders of `own`. Throws TelosError `config` if that cannot be done. */
  mount(own: string, count: number): Promise<void>;
  /** Takes a layer away. Never throws: it ends with the namespaces. */
  unmount(own: string, count: number): Promise<void>;
  /** Whether others are in the very same namespaces. */
  isSame(others: KeptSpaces): boolean;
  holder: object;
  /** See `marksOf`. */
  marks(paths: readonly string[], ofLayer?: number): Promise<FileMarks[]>;
  /** What of a command's view lies ready in them. */
  base: RootBase | undefined;
  /** Returns the port of the network that leads to a socket. Throws TelosError `config` if none can. */
  listen(socket: string): Promise<WayIn>;
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

/** What makes the namespaces, and what lies ready in them. */
export interface Programs {
  bubblewrap: string;
  perl: string;
  base?: RootBase;
}

/**
 * Returns the namespaces of a conversation, which last until a minute after its last command, or until some others have had theirs since.
 * Throws TelosError `config` if they cannot be made.
 */
export async function enterSpaces(conversation: string, programs: Programs): Promise<KeptSpaces> {
  const kept = spaces.get(conversation) ?? { opened: openSpaces(programs), commands: 0 };
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
      base: opened.base,
      entry: wanted => ({ perl: programs.perl, spaces: opened.files(wanted) }),
      marks: (paths, ofLayer) => opened.marks(paths, ofLayer),
      unmount: (own, count) => opened.unmount(own, count),
      holder: opened,
      isSame: ({ holder }) => holder === opened,
      // The next command gets other ones if the program was ended.
      async mount(own, count) {
        await opened.mount(own, count).catch(error => {
          forget();
          throw error;
        });
      },
      listen: socket => opened.listen(socket, programs.perl),
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
  programs: Programs,
  use: (spaces: Pick<Spaces, 'files' | 'mount' | 'unmount' | 'marks'>) => Promise<boolean>,
): Promise<boolean> {
  try {
    const opened = await openSpaces(programs);
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
 * Makes the namespaces and the program in them. The user namespace is there since only its owner may enter the others; that of each command
 * lies in it. Only its root can mount. Bubblewrap also opens the network's loopback, and may make namespaces where no other program may.
 */
async function openSpaces({ bubblewrap, perl, base }: Programs): Promise<Spaces> {
  const owned = ['--unshare-user', '--uid', '0', '--gid', '0', '--cap-add', 'ALL', '--unshare-net'];
  const shown = base ? rootOptions(base) : [];
  const words = [...owned, '--dev-bind', '/', '/', ...shown, '--', perl, '-e', kernelScript];
  const opened = new Spaces(new Helper(bubblewrap, words), base);
  try {
    await opened.open();
    return opened;
  } catch (error) {
    opened.close();
    throw notMade(reasonOf(error));
  }
}

class Spaces {
  readonly base: RootBase | undefined;
  readonly #helper: Helper;
  readonly #files: { kind: string; file: number }[] = [];
  #forwarder: KeptForwarder | undefined;

  constructor(helper: Helper, base: RootBase | undefined) {
    this.#helper = helper;
    this.base = base;
  }

  /** Waits until they are there, and keeps them. They stay for as long as the files are open. */
  async open(): Promise<void> {
    const pid = Number(await this.#helper.ask([], '\n'));
    for (const kind of ['user', 'net', 'mnt']) {
      const file = openSync(`/proc/${pid}/ns/${kind}`, 'r');
      this.#files.push({ kind, file });
      if (readlinkSync(`/proc/self/fd/${file}`) === readlinkSync(`/proc/self/ns/${kind}`))
        throw new Error(`the ${kind} namespace is that of this machine`);
    }
  }

  /** Returns the files of those that are entered. Named, not handed down: a command would inherit them. */
  files({ network, mounts }: { network: boolean; mounts: boolean }): string[] {
    const wanted = this.#files.filter(({ kind }) =>
      kind === 'net' ? network : kind === 'mnt' ? mounts : true,
    );
    return wanted.map(({ file }) => `/proc/${process.pid}/fd/${file}`);
  }

  async mount(own: string, count: number): Promise<void> {
    const said = await this.#helper.ask([`mount ${count} ${own}\n`], '\n.\n').catch(reasonOf);
    if (said !== 'mounted') throw notMade(said.replace(/^no /, '').split('\n')[0] ?? '');
  }

  async unmount(own: string, count: number): Promise<void> {
    await this.#helper.ask([`unmount ${count} ${own}\n`], '.\n').catch(() => undefined);
  }

  marks(paths: readonly string[], ofLayer?: number): Promise<FileMarks[]> {
    return marksOf(this.#helper, paths, ofLayer);
  }

  /** Throws TelosError `config` if nothing can listen there. */
  async listen(socket: string, perl: string): Promise<WayIn> {
    this.#forwarder ??= new KeptForwarder(perl, this.files({ network: true, mounts: false }));
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
