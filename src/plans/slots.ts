/**
 * The work trees in which stories are worked on. They lie in the cache folder and are used again and again. The person's own work
 * tree is never one of them. Each call to git names the folder below `.git`: a `.git` file in a work tree can be rewritten by
 * whatever runs there.
 */

import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs';
import { mkdir, rename, rm, rmdir, stat, symlink, unlink } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import {
  isInside,
  isLink,
  lockFile,
  makeOwnFolders,
  readRegularFile,
  readText,
  writeWhole,
} from '@telos/engine/files';
import { sentence } from '@telos/protocol/text';
import { type BoxConfig, CheckBox } from './checks.ts';
import type { Git } from './git.ts';
import type { PlanFolder } from './planFolder.ts';
import type { PlanSettings } from './planSettings.ts';
import { type Snapshot, takeSnapshot } from './snapshot.ts';

export interface Slot {
  /** From 1. */
  number: number;
  dir: string;
  /** Its folder below `.git/worktrees`. */
  admin: string;
  git: Git;
}

type Environment = Readonly<Record<string, string | undefined>>;

export class Slots {
  /** Folder of all work trees of the plan. */
  readonly root: string;
  readonly #folder: PlanFolder;
  readonly #git: Git;
  readonly #settings: PlanSettings;
  readonly #commonDir: string;
  readonly #boxes = new Map<string, CheckBox>();
  /** By work tree and its folder below `.git`. Each keeps a shell for its next call. */
  readonly #gits = new Map<string, Git>();
  /** What the index of a work tree has, by its folder below `.git`, and how that index was left. */
  readonly #indexes = new Map<string, { tree: string; state: string }>();

  private constructor(folder: PlanFolder, git: Git, settings: PlanSettings, commonDir: string, root: string) {
    this.#folder = folder;
    this.#git = git;
    this.#settings = settings;
    this.#commonDir = commonDir;
    this.root = root;
  }

  /** Throws TelosError `config` if the repository or the cache folder cannot be used. */
  static async open(folder: PlanFolder, git: Git, settings: PlanSettings, env: Environment): Promise<Slots> {
    const commonDir = await git.commonDir();
    const hash = createHash('sha256').update(commonDir).digest('hex').slice(0, 8);
    const repo = basename(commonDir) === '.git' ? basename(dirname(commonDir)) : basename(commonDir);
    const cache = env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache');
    const worktrees = join(cache, 'telos', 'worktrees');
    const root = join(worktrees, `${repo}-${hash}`, folder.name);
    mkdirSync(cache, { recursive: true });
    makeOwnFolders(join(cache, 'telos'), worktrees, dirname(root), root);
    return new Slots(folder, git, settings, commonDir, realpathSync(root));
  }

  /** The name of the plan. */
  get plan(): string {
    return this.#folder.name;
  }

  /**
   * Returns the work tree of that number with the files of the commit, made if it is missing. Throws NoRoom if the disk has none for one more
   * than there are; then nothing of it is left.
   */
  async openSlot(number: number, tip: string): Promise<Slot> {
    const known = await this.find(number);
    const isNew = known === undefined && !existsSync(join(this.root, `slot-${number}`));
    try {
      const slot = known ?? (await this.#make(number, tip));
      if (isNew) {
        // Nothing in it is worth keeping, and another one in its place would fail in the same way.
        await this.#clean(slot, tip);
        await this.#furnish(slot.dir);
      } else await this.reset(slot, tip);
      return slot;
    } catch (error) {
      if (!isNew || number === 1 || !isFullDisk(error)) throw error;
      await this.#discard(join(this.root, `slot-${number}`));
      throw new NoRoom(number, error);
    }
  }

  /** Deletes a work tree that was only begun. */
  async #discard(dir: string): Promise<void> {
    if (isLink(dir) || !isInside(this.root, dir)) return;
    await this.#alone(async () => {
      const admin = this.#adminOf(dir);
      await rm(dir, { recursive: true, force: true });
      if (admin !== undefined) await rm(admin, { recursive: true, force: true });
    });
  }

  /** Returns the numbers of the work trees that there are. */
  numbers(): number[] {
    const numbers = readdirSync(this.root).flatMap(name => /^slot-(\d{1,4})$/.exec(name)?.[1] ?? []);
    return numbers.map(Number).sort((one, other) => one - other);
  }

  /** Returns the work tree of that number as it is, or undefined if it was not made or cannot be used. */
  async find(number: number): Promise<Slot | undefined> {
    const dir = join(this.root, `slot-${number}`);
    const admin = this.#adminOf(dir);
    if (admin === undefined || !isFolder(dir)) return undefined;
    const isWhole = ['HEAD', 'commondir', 'gitdir'].every(name => existsSync(join(admin, name)));
    return isWhole ? this.#slot(number, dir, admin) : undefined;
  }

  #slot(number: number, dir: string, admin: string): Slot {
    const place = { gitDir: admin, workTree: dir, index: join(admin, 'telos-index') };
    const key = JSON.stringify(place);
    const git = this.#gits.get(key) ?? this.#git.at(place);
    this.#gits.set(key, git);
    return { number, dir, admin, git };
  }

  /** Whatever writes below `.git/worktrees` does so alone: git itself deletes what another call has half made. */
  async #alone<Result>(work: () => Promise<Result>): Promise<Result> {
    const lock = await lockFile(join(this.#commonDir, 'telos-worktrees.lock'));
    try {
      return await work();
    } finally {
      await lock.release();
    }
  }

  async #make(number: number, tip: string): Promise<Slot> {
    const dir = join(this.root, `slot-${number}`);
    return this.#alone(async () => {
      // What is there belongs to no work tree that git knows. No one can say what it is worth, so it is kept.
      if (lstatSync(dir, { throwIfNoEntry: false })) await rename(dir, this.#aside(basename(dir)));
      // Twice: the first is for an entry whose folder is gone, the second for one that was being made when a crash came.
      await this.#git.run(['worktree', 'add', '--no-checkout', '--detach', '--force', '--force', dir, tip]);
      const admin = this.#adminOf(dir);
      if (admin === undefined)
        throw new TelosError('config', [sentence('git made no entry for the worktree {0}.', dir)]);
      return this.#slot(number, dir, admin);
    });
  }

  #aside(name: string): string {
    return join(
      this.root,
      `kept-${name}-${Date.now().toString(36)}${Math.random().toString(36).slice(2, 6)}`,
    );
  }

  /** Returns the folder below `.git/worktrees` that git has for a work tree. */
  #adminOf(dir: string): string | undefined {
    const entries = join(this.#commonDir, 'worktrees');
    if (!isFolder(entries)) return undefined;
    const name = readdirSync(entries).find(
      entry => textOf(join(entries, entry, 'gitdir')) === join(dir, '.git'),
    );
    return name === undefined ? undefined : join(entries, name);
  }

  /**
   * Gives the work tree exactly the files of a commit, with those that each slot gets beside. Whatever else is there is deleted, so
   * keep it first. A work tree that cannot be cleaned is put aside whole and made again. Returns false if it had them already, and
   * nothing beside.
   */
  async reset(slot: Slot, tip: string): Promise<boolean> {
    let isChanged = true;
    try {
      isChanged = await this.#clean(slot, tip);
    } catch (error) {
      // Another one beside it would need as much again.
      if (!(error instanceof TelosError) || isFullDisk(error)) throw error;
      await rename(slot.dir, this.#aside(basename(slot.dir)));
      const { admin, git } = await this.#make(slot.number, tip);
      Object.assign(slot, { admin, git });
      await this.#clean(slot, tip);
    }
    return (await this.#furnish(slot.dir)) || isChanged;
  }

  /** Returns false if there was nothing to do. */
  async #clean(slot: Slot, tip: string): Promise<boolean> {
    const pointer = `gitdir: ${slot.admin}\n`;
    if (isLink(join(slot.dir, '.git')) || textOf(join(slot.dir, '.git')) !== pointer.trim()) {
      await rename(join(slot.dir, '.git'), this.#aside('git')).catch(() => undefined);
      await writeWhole(join(slot.dir, '.git'), pointer);
    }
    const found = await this.#makeFresh(slot, tip);
    if (found === undefined) {
      // Moves no branch, even if a command has pointed HEAD to one.
      await slot.git.run(['checkout', '--detach', '--force', '--quiet', tip]);
      await this.#deleteOthers(slot);
      this.#noteIndex(slot, await slot.git.treeOf(tip));
    }
    // Commands that run there look through an index of their own, and what they note in it counts for nothing: git never writes into an
    // index, but puts another in its place. It is put there whole: a person's git gc reads it at any moment.
    const [own, copy, shown] = [
      indexOf(slot),
      join(slot.admin, 'telos-index-copy'),
      join(slot.admin, 'index'),
    ];
    if (statSync(shown, { throwIfNoEntry: false })?.ino === statSync(own).ino) return found !== 'same';
    rmSync(copy, { force: true });
    try {
      linkSync(own, copy);
    } catch {
      // Not every disk gives a file a second name.
      copyFileSync(own, copy);
    }
    await rename(copy, shown);
    // The second name has changed the file's own times.
    const known = this.#indexes.get(slot.admin);
    if (known) this.#noteIndex(slot, known.tree);
    return true;
  }

  /**
   * Has the work tree stand at the commit without a checkout if it has its files already. Returns `same` if there was nothing else,
   * `cleaned` if there was, and undefined if its files are others.
   */
  async #makeFresh(slot: Slot, tip: string): Promise<'same' | 'cleaned' | undefined> {
    const known = this.#indexes.get(slot.admin);
    this.#indexes.delete(slot.admin);
    if (!known || known.state !== stateOf(indexOf(slot)) || known.tree !== (await slot.git.treeOf(tip)))
      return undefined;
    const { isEdited, hasOthers } = await this.#differing(slot);
    if (isEdited) return undefined;
    if (hasOthers) await this.#deleteOthers(slot);
    if (textOf(join(slot.admin, 'HEAD')) !== tip) await slot.git.setHead(tip);
    this.#indexes.set(slot.admin, known);
    return hasOthers ? 'cleaned' : 'same';
  }

  #noteIndex(slot: Slot, tree: string): void {
    this.#indexes.set(slot.admin, { tree, state: stateOf(indexOf(slot)) });
  }

  /** Looks whether files are not as the index has them, and whether there is anything that it does not have. */
  async #differing({ git }: Slot): Promise<{ isEdited: boolean; hasOthers: boolean }> {
    const { keep, link, copy } = this.#settings.slot;
    const kept = new Set([...keep, ...link, ...copy]);
    const listed = await git.read(['ls-files', '-t', '-z', '--modified', '--others', '--directory']);
    const entries = listed.split('\0').filter(Boolean);
    const others = entries.filter(entry => entry.startsWith('? '));
    return {
      isEdited: others.length < entries.length,
      hasOthers: others.some(entry => !kept.has(entry.slice(2).replace(/\/$/, ''))),
    };
  }

  /** Deletes what is in no index, ignored files and empty folders included. */
  async #deleteOthers({ git }: Slot): Promise<void> {
    const { keep, link, copy } = this.#settings.slot;
    const kept = [...keep, ...link, ...copy].flatMap(path => ['-e', excludePattern(path)]);
    await git.run(['clean', '-ffdxq', ...kept]);
  }

  /**
   * Copies and links what each work tree gets from the person's. A way that leads out of the work tree is not followed. Returns false if
   * all of it was there.
   */
  async #furnish(dir: string): Promise<boolean> {
    const { copy, link } = this.#settings.slot;
    let isChanged = false;
    for (const path of [...copy, ...link]) {
      const [from, to] = [join(this.#folder.repo, path), join(dir, path)];
      if (!existsSync(from)) continue;
      await mkdir(dirname(to), { recursive: true });
      if (!isInside(dir, realpathSync(dirname(to)))) continue;
      if (copy.includes(path)) {
        if (isLink(from) || isLink(to) || !(await stat(from)).isFile() || isSameFile(from, to)) continue;
        copyFileSync(from, to);
      } else if (lstatSync(to, { throwIfNoEntry: false })) continue;
      else await symlink(from, to, 'junction');
      isChanged = true;
    }
    return isChanged;
  }

  /** Returns the box of a slot's checks. They see what the slot has of the person's work tree. */
  boxOf({ dir }: Slot, config: BoxConfig): CheckBox {
    const { copy: copied, link: linked } = this.#settings.slot;
    const box = this.#boxes.get(dir) ?? new CheckBox(config, dir, { copied, linked });
    this.#boxes.set(dir, box);
    return box;
  }

  /** Returns what a slot's commands find in their environment. */
  environmentOf({ number }: Slot): Record<string, string> {
    const block = Number.parseInt(createHash('sha256').update(this.root).digest('hex').slice(0, 6), 16) % 200;
    const port = 20_000 + block * 100 + (number - 1) * this.#settings.slot.ports;
    return { TELOS_SLOT: String(number), TELOS_PORT_BASE: String(port) };
  }

  /** Whether the setup commands have to run there: they never did, they or a lock file changed, or what they made is gone. */
  async needsSetup(slot: Slot): Promise<boolean> {
    if (this.#settings.setup.length === 0) return false;
    const [digest, ...made] = textOf(setupStamp(slot))?.split('\n') ?? [];
    if (digest !== (await this.#setupDigest(slot))) return true;
    return made.some(path => !existsSync(join(slot.dir, path)));
  }

  /** Notes that the setup ran, and which of the kept paths are there since. */
  async noteSetup(slot: Slot): Promise<void> {
    const made = this.#settings.slot.keep.filter(path => existsSync(join(slot.dir, path)));
    await writeWhole(setupStamp(slot), `${[await this.#setupDigest(slot), ...made].join('\n')}\n`);
  }

  async #setupDigest({ git }: Slot): Promise<string> {
    const files = (await git.read(['ls-files', '-s', '-z'])).split('\0');
    const locks = files.filter(
      entry => isSubmodule(entry) || lockNames.has(basename(entry.slice(entry.indexOf('\t') + 1))),
    );
    return createHash('sha256')
      .update(JSON.stringify([this.#settings.setup, locks]))
      .digest('hex');
  }

  /**
   * Keeps the files of a work tree as a commit behind `ref`, which gives nothing away to a branch. Returns undefined if they are
   * those of `parent`.
   */
  async snapshot(
    slot: Slot,
    { ref, parent, message }: { ref: string; parent: string; message: string },
  ): Promise<Snapshot | undefined> {
    const { keep, link, copy } = this.#settings.slot;
    this.#indexes.delete(slot.admin);
    const kept = await takeSnapshot(slot.git, {
      ref,
      parent,
      message,
      without: [...link, ...copy],
      kept: keep,
      aside: () => this.#aside('nested'),
    });
    if (kept) this.#noteIndex(slot, kept.tree);
    return kept;
  }

  /** Writes what `commit` changes since `parent` to `attempts/NAME.patch`. Returns its path in the plan's folder. */
  async savePatch(name: string, parent: string, commit: string): Promise<string> {
    await mkdir(this.#folder.own('attempts'), { recursive: true });
    let path = `attempts/${name}.patch`;
    for (let count = 2; existsSync(this.#folder.path(path)); count++)
      path = `attempts/${name}-${count}.patch`;
    const temporary = this.#folder.own('attempts', `.${basename(path)}.tmp`);
    const shape = [
      '--binary',
      '--full-index',
      '--no-ext-diff',
      '--no-textconv',
      '--no-color',
      '--no-renames',
    ];
    await this.#git.run(['diff', ...shape, `--output=${temporary}`, '--end-of-options', parent, commit]);
    await rename(temporary, this.#folder.path(path));
    return path;
  }

  /**
   * Removes the work trees whose files are kept by a commit, and git's entries for them. Returns those that stay, and why. Nothing is
   * forced: git itself refuses a work tree with something that is not committed.
   */
  async removeSlots(): Promise<{ removed: string[]; kept: { dir: string; why: string }[] }> {
    const [removed, kept]: [string[], { dir: string; why: string }[]] = [[], []];
    for (const name of readdirSync(this.root).sort()) {
      const dir = join(this.root, name);
      const [, number] = /^slot-(\d+)$/.exec(name) ?? [];
      const slot = number === undefined ? undefined : await this.find(Number(number));
      const why = slot ? await this.#remove(slot) : 'git does not know it as a worktree';
      if (why === undefined) removed.push(dir);
      else kept.push({ dir, why });
    }
    for (const folder of [this.root, dirname(this.root)]) await rmdir(folder).catch(() => undefined);
    return { removed, kept };
  }

  /** Returns why it stays, or undefined if it is gone. */
  async #remove(slot: Slot): Promise<string | undefined> {
    if (realpathSync(slot.dir) !== slot.dir || !isInside(this.root, slot.dir)) return 'it is elsewhere now';
    const head = await slot.git.tip('HEAD');
    if (head === undefined) return 'its commit cannot be read';
    const left = await this.keepUnknown(slot);
    if (left !== undefined) return `its files are in no commit of the plan; they are kept as ${left} too`;
    const isOnBranch = (await this.#git.read(['for-each-ref', '--count=1', '--contains', head])) !== '';
    if (!isOnBranch && !(await this.#isOfPlan(head))) return `its commit ${head} is on no branch`;
    await this.reset(slot, head);
    for (const path of [...this.#settings.slot.link, ...this.#settings.slot.copy])
      await unlink(join(slot.dir, path)).catch(() => undefined);
    await slot.git.run(['clean', '-ffdxq']);
    // Git removes no work tree of a repository with submodules otherwise. All of its files are in a commit.
    const force = (await slot.git.read(['ls-files', '-s', '-z'])).split('\0').some(isSubmodule)
      ? ['--force']
      : [];
    return this.#alone(async () => {
      const args = ['worktree', 'remove', ...force, slot.dir];
      const { code, stderr } = await this.#git.run(args, { allow: [1, 128] });
      return code === 0 ? undefined : (stderr.trim().split('\n').at(-1) ?? 'git did not remove it');
    });
  }

  /** Whether the plan made the commit: for a story that went to the branch in another one, or for an attempt. */
  async #isOfPlan(commit: string): Promise<boolean> {
    const { message = '' } = (await this.#git.commit(commit)) ?? {};
    return (
      message.includes(`\nTelos-Plan: ${this.#folder.name}\n`) ||
      /^\S+: (?:attempt \d+|earlier attempts)|^both sides$/m.test(message)
    );
  }

  /** Deletes the refs that keep the attempts of the plan. What is in its branch stays. */
  async forgetAttempts(): Promise<void> {
    const refs = `refs/telos/${this.#folder.name}/`;
    const input = await this.#git.read(['for-each-ref', '--format=delete %(refname)', '--', refs]);
    if (input !== '') await this.#git.run(['update-ref', '--stdin'], { input: `${input}\n` });
  }

  /** Keeps the files of a work tree if no commit of the plan has them. Returns the ref that does now, or undefined. */
  async keepUnknown(slot: Slot): Promise<string | undefined> {
    const head = await slot.git.tip('HEAD');
    if (head === undefined) return undefined;
    const known = await this.#keptTrees();
    const ref = `refs/telos/${this.#folder.name}/left/slot-${slot.number}-${Date.now().toString(36)}`;
    const left = await this.snapshot(slot, { ref, parent: head, message: 'Left in a worktree' });
    if (left && !known.has(left.tree)) return ref;
    if (left) await this.#git.run(['update-ref', '-d', ref, left.commit]);
    return undefined;
  }

  /** Removes git's own lock files of the plan's work trees, refs and branch, which only a killed git leaves. */
  async removeGitLocks(): Promise<string[]> {
    const removed: string[] = [];
    const refs = join(this.#commonDir, 'refs');
    const admins = this.numbers().flatMap(number => this.#adminOf(join(this.root, `slot-${number}`)) ?? []);
    const folders = [
      ...admins,
      ...admins.map(admin => join(admin, 'logs')),
      ...foldersBelow(join(refs, 'telos', this.#folder.name)),
    ];
    const found = folders.flatMap(folder =>
      namesIn(folder)
        .filter(name => name.endsWith('.lock'))
        .map(name => join(folder, name)),
    );
    for (const path of [...found, join(refs, 'heads', `${this.#settings.branch}.lock`)]) {
      if (
        await unlink(path).then(
          () => true,
          () => false,
        )
      )
        removed.push(path);
    }
    return removed;
  }

  /** Returns the trees of everything that the plan's refs and its branch keep. */
  async #keptTrees(): Promise<Set<string>> {
    const refs = [`refs/telos/${this.#folder.name}/`, `refs/heads/${this.#settings.branch}`];
    const trees = await this.#git.read(['for-each-ref', '--format=%(tree)', '--', ...refs]);
    return new Set(trees.split('\n'));
  }
}

/** The disk has no room for one more work tree. Stories go on in those that there are. */
export class NoRoom extends TelosError {
  /** How many there are. */
  readonly room: number;

  constructor(number: number, cause: unknown) {
    super('config', [sentence('The disk has no room for one more worktree.')], { cause });
    this.room = number - 1;
  }
}

const isFullDisk = (error: unknown): boolean =>
  error instanceof Error &&
  /No space left on device|disk is full|ENOSPC|unable to write file/.test(error.message);

const indexOf = ({ admin }: Slot): string => join(admin, 'telos-index');

/** Returns what differs once a file was written, whatever times it was given then. */
function stateOf(path: string): string {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return [stats?.ino, stats?.size, stats?.mtimeNs, stats?.ctimeNs].join();
}

/** Whether an entry of an index is that of a submodule. */
const isSubmodule = (entry: string): boolean => entry.startsWith('160000 ');

const setupStamp = ({ admin }: Slot): string => join(admin, 'telos-setup');

/** Files that say which packages a project has. */
const lockNames = new Set([
  ...[
    'package-lock.json',
    'npm-shrinkwrap.json',
    'yarn.lock',
    'pnpm-lock.yaml',
    'bun.lock',
    'bun.lockb',
    'deno.lock',
  ],
  ...[
    'Cargo.lock',
    'poetry.lock',
    'uv.lock',
    'Pipfile.lock',
    'requirements.txt',
    'Gemfile.lock',
    'go.sum',
    'composer.lock',
  ],
]);

/** A name without a folder is kept wherever it is, as ignored names are. */
function excludePattern(path: string): string {
  const escaped = path.replace(/[*?[\]\\!#]/g, '\\$&');
  return path.includes('/') ? `/${escaped}` : escaped;
}

function namesIn(folder: string): string[] {
  return isFolder(folder) ? readdirSync(folder) : [];
}

const foldersBelow = (folder: string): string[] => [
  folder,
  ...namesIn(folder)
    .map(name => join(folder, name))
    .filter(isFolder)
    .flatMap(foldersBelow),
];

/** Whether both have the same bytes and mode. */
function isSameFile(one: string, other: string): boolean {
  const [first, second] = [statSync(one), lstatSync(other, { throwIfNoEntry: false })];
  return (
    second?.isFile() === true &&
    first.size === second.size &&
    first.mode === second.mode &&
    readRegularFile(one).equals(readRegularFile(other))
  );
}

const isFolder = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

function textOf(path: string): string | undefined {
  try {
    return readText(path).trim();
  } catch {
    return undefined;
  }
}
