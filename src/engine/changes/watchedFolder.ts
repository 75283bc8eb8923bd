/**
 * Knows what a working folder holds, and tells what has changed in it while a command ran. Several commands can run at once; what
 * changes meanwhile counts for each of them.
 */
import { unlinkSync } from 'node:fs';
import { join, relative } from 'node:path';
import { grouped } from '@telos/protocol/text';
import { abortWithAll, untilAborted } from '../cancellation.ts';
import { repositoryAbove } from '../files/paths.ts';
import { maxKeptFile } from './changeFile.ts';
import {
  type CommandChange,
  type CommandChanges,
  differentNames,
  foldersChanged,
  isSame,
  modeIn,
  movedAmong,
  type OldEntry,
  oldEntry,
  stateChanges,
} from './folderChanges.ts';
import {
  childPath,
  type Entry,
  entryAt,
  entryIn,
  type FolderView,
  isGitName,
  lookAt,
  UnseenFolder,
  wasAbsent,
} from './folderView.ts';
import { lookAtRepositories, type RepositoryView } from './repositoryView.ts';
import { type Differing, noShadow, type Shadow } from './shadowGit.ts';

export interface FolderWatch {
  /** The working folder. Absolute and real path. */
  root: string;
  /** False where there is no git. Then only names are seen. */
  seesContent: boolean;
  /** Returns what has changed since the watch began, which ends it. Throws UnseenFolder if that is unknown. */
  end(): Promise<CommandChanges>;
  /** Calls `use` with the old bytes of each of the blobs; with undefined for one that is missing. */
  contents: Shadow['contents'];
}

interface Waiting {
  moved: Set<string>;
  files: Map<string, OldEntry | null>;
  folders: Map<string, number | null>;
  /** What was not kept, as it was then. */
  leftOut: Map<string, Entry>;
  /** Folders that were not looked at, as they were then. */
  unkept: Map<string, Entry>;
  repositories: RepositoryView;
  /** Each `.git` that was there. */
  gits: ReadonlySet<string>;
  problem?: unknown;
}

/** What is to be taken in: files and links that are new or different, and those that are gone. */
interface News {
  present: readonly string[];
  gone: readonly string[];
}

interface Taken {
  news: News;
  /** Files whose content could change again without a change that git sees, with the time of their last change. */
  fresh: Map<string, number>;
}

interface Seen extends Taken {
  /** When the look began. */
  at: number;
  view: FolderView;
  repositories: RepositoryView;
}

/** One look at the folder, which begins after all that share it have asked for it. */
interface SharedLook {
  /** One for each command. */
  signals: (AbortSignal | undefined)[];
  listeners: ((message: string) => void)[];
  seen: Promise<Seen>;
  /** The same, once it is taken in. */
  taken: Promise<Seen>;
}

/** Minimum time between two writes of what the next process can go on from. In milliseconds. */
const publishInterval = 60_000;
/** In milliseconds. Git compares whole seconds, and a program can set all times but one. */
const freshFor = 3000;

export class WatchedFolder {
  readonly #root: string;
  readonly #git: Shadow;
  readonly #waiting = new Set<Waiting>();
  /** The look that has not begun. */
  #next: SharedLook | undefined;
  /** Resolves when what the last look has found is taken in. */
  #taking: Promise<void> = Promise.resolve();
  #publishedAt = 0;
  #seen: Seen | undefined;
  /** Set if the folder cannot be looked at. To find that out again would take as long. */
  #refusal: UnseenFolder | undefined;

  /** `root` is a real path. */
  constructor(root: string, git: Shadow) {
    this.#root = root;
    this.#git = git;
  }

  /**
   * Looks at the folder before a command starts. The first look takes in all files; `onProgress` then gets sentences. Throws
   * UnseenFolder if the folder cannot be looked at, and the abort reason.
   */
  async begin(signal?: AbortSignal, onProgress?: (message: string) => void): Promise<FolderWatch> {
    const { view, repositories } = await untilAborted(this.#nextLook(signal, onProgress).taken, signal);
    const [leftOut, unkept] = [new Map<string, Entry>(), new Map<string, Entry>()];
    for (const path of view.leftOut.keys()) {
      const entry = entryAt(join(this.#root, path));
      if (entry) (entry.kind === 'folder' ? unkept : leftOut).set(path, entry);
    }
    const waiting: Waiting = {
      moved: new Set(),
      files: new Map(),
      folders: new Map(),
      leftOut,
      unkept,
      repositories,
      gits: new Set(view.repositories),
    };
    this.#waiting.add(waiting);
    return {
      root: this.#root,
      seesContent: this.#git !== noShadow,
      end: () => this.#end(waiting),
      contents: (blobs, use) => this.#git.contents(blobs, use),
    };
  }

  /** Resolves when what the last look has found is taken in. */
  settled(): Promise<void> {
    return this.#taking;
  }

  async #end(waiting: Waiting): Promise<CommandChanges> {
    let seen: Seen;
    try {
      // The old bytes are kept already, so no one has to wait for the new ones.
      seen = await this.#nextLook().seen;
      if (waiting.problem !== undefined) throw waiting.problem;
    } finally {
      this.#waiting.delete(waiting);
    }
    const { view, repositories } = seen;
    for (const [path, was] of waiting.leftOut) {
      const now = entryAt(join(this.#root, path));
      if (now?.ino !== was.ino || now.changedAt !== was.changedAt)
        waiting.files.set(path, { kind: 'file', mode: was.mode, size: was.size });
    }
    const at = (path: string): string => join(this.#root, path);
    const files: CommandChange[] = [];
    for (const [path, before] of waiting.files) {
      const found = entryAt(at(path)) ?? null;
      const isMoved = before === null && waiting.moved.has(path);
      if (!isSame(at(path), before, found))
        files.push({ path: at(path), before, after: found, ...(isMoved && { isMoved }) });
    }
    const folders = new Map<string, { before: number | null; after: number | null }>();
    for (const [path, before] of waiting.folders) {
      const after = modeIn(view, path);
      if (after !== before) folders.set(at(path), { before, after });
    }
    const heads = [...waiting.repositories.heads];
    return {
      files: files.sort((one, other) => (one.path < other.path ? -1 : 1)),
      folders,
      state: stateChanges(this.#root, waiting.repositories, repositories),
      vanished: [...waiting.leftOut, ...waiting.unkept].flatMap(([path, was]) =>
        entryAt(at(path))?.ino === was.ino ? [] : [at(path)],
      ),
      movedHead: heads.some(([path, head]) => repositories.heads.get(path) !== head),
      madeRepositories: view.repositories.filter(path => !waiting.gits.has(path)).map(at),
      leftOut: new Map([...view.leftOut].map(([path, why]) => [at(path), why])),
    };
  }

  /** Looks at the folder, takes in what is new, and tells all that wait. After a failure, all begins again. */
  async #look(signal?: AbortSignal, onProgress?: (message: string) => void): Promise<Seen> {
    if (this.#refusal) throw this.#refusal;
    const before = this.#seen;
    this.#seen = undefined;
    const began = Date.now();
    try {
      const { view, found } = await this.#lookTwice(before?.view, signal);
      // A part of a repository can change where all of it stands.
      const above = repositoryAbove(this.#root);
      const gits = [
        ...view.repositories,
        ...(above === undefined ? [] : [relative(this.#root, join(above, '.git'))]),
      ];
      const repositories = lookAtRepositories(this.#root, gits, before?.repositories);
      const taken = before
        ? await this.#compare(before, view, found)
        : await this.#takeAll(view, found, signal, onProgress);
      this.#seen = { at: began, view, repositories, ...taken };
      return this.#seen;
    } catch (error) {
      if (before && signal?.aborted) {
        // Nothing was taken in yet.
        this.#seen = before;
        throw error;
      }
      if (error instanceof UnseenFolder && error.isLasting) this.#refusal = error;
      throw this.#failed(signal?.aborted ? error : asUnseen(error));
    }
  }

  /** Looks at the names and, at the same time, has git look at the files. */
  async #lookTwice(
    before: FolderView | undefined,
    signal?: AbortSignal,
  ): Promise<{ view: FolderView; found: readonly Differing[] }> {
    const stop = new AbortController();
    const differing = this.#git.differing(stop.signal);
    differing.catch(() => undefined);
    try {
      // Without git, a change inside a file shows only in its own facts.
      const known = this.#git === noShadow ? undefined : before;
      const view = await lookAt(this.#root, { before: known, signal });
      if (!this.#refusePipes(view, before)) return { view, found: await differing };
      stop.abort();
      return { view, found: await this.#git.differing() };
    } finally {
      stop.abort();
    }
  }

  /** Tells all that wait. Returns the problem. */
  #failed(problem: unknown): unknown {
    this.#seen = undefined;
    for (const waiting of this.#waiting) waiting.problem ??= problem;
    return problem;
  }

  async #take({ present, gone }: News): Promise<void> {
    if (present.length + gone.length === 0) return;
    try {
      await this.#git.take(present, gone);
    } catch (error) {
      throw this.#failed(asUnseen(error));
    }
    if (performance.now() - this.#publishedAt < publishInterval) return;
    this.#publishedAt = performance.now();
    await this.#git.publish();
  }

  async #takeAll(
    view: FolderView,
    found: readonly Differing[],
    signal?: AbortSignal,
    onProgress?: (message: string) => void,
  ): Promise<Taken> {
    const paths: string[] = [];
    for (const [folder, { entries }] of view.folders)
      for (const [name, entry] of entries)
        if (isKept(childPath(folder, name), entry, view)) paths.push(childPath(folder, name));
    const gone = found.filter(({ path, isGone }) => isGone || !isKeptIn(view, path)).map(({ path }) => path);
    const began = performance.now();
    const say = (done: number): void => {
      if (performance.now() - began > 1000)
        onProgress?.(
          `keeping the files as they are, so that commands can be undone: ${grouped(done)} of ${grouped(paths.length)}`,
        );
    };
    await this.#git.take(paths, gone, { ...(signal && { signal }), onProgress: say });
    await this.#git.publish();
    this.#publishedAt = performance.now();
    return { fresh: freshAmong(paths, view), news: { present: [], gone: [] } };
  }

  /** Tells all that wait what has changed since the last look. */
  async #compare(before: Seen, view: FolderView, found: readonly Differing[]): Promise<Taken> {
    const old = new Map<string, OldEntry | null>();
    const blobs = new Map(found.map(({ path, blob }) => [path, blob]));
    const touched = new Set(found.map(({ path }) => path));
    for (const [path, changedAt] of before.fresh)
      if (!blobs.has(path) && entryAt(join(this.#root, path))?.changedAt !== changedAt) touched.add(path);
    for (const path of differentNames(before.view, view)) touched.add(path);
    const unknown = [...touched].filter(path => !blobs.has(path) && isKeptIn(before.view, path));
    for (const [path, blob] of await this.#git.blobsOf(unknown)) blobs.set(path, blob);
    for (const path of touched) {
      const was = entryIn(before.view, path);
      // An earlier process may have taken in what is left out by now.
      if (was || entryIn(view, path))
        old.set(path, oldEntry(before.view, path, isKeptIn(before.view, path) ? blobs.get(path) : undefined));
      const now = entryAt(join(this.#root, path));
      if (now?.kind === 'file' && now.size > maxKeptFile) view.leftOut.set(path, 'too large');
      const names = view.folders.get(parentOf(path))?.entries;
      if (now && names?.has(nameIn(path))) names.set(nameIn(path), now);
    }
    const present = [...touched].filter(path => isKeptIn(view, path));
    // What cannot be seen now is not gone.
    const isGone = (path: string): boolean => entryIn(view, path) !== undefined || wasAbsent(view, path);
    const gone = [...touched].filter(path => !isKeptIn(view, path) && blobs.has(path) && isGone(path));
    this.#tell(old, foldersChanged(before.view, view));
    const moved = movedAmong(this.#root, before, old);
    for (const waiting of this.#waiting) for (const path of moved) waiting.moved.add(path);
    const still = [...before.fresh.keys()].filter(path => !touched.has(path) && isKeptIn(view, path));
    return { fresh: freshAmong([...present, ...still], view), news: { present, gone } };
  }

  /** What was there when the first of the changes was seen is what a command found. */
  #tell(files: ReadonlyMap<string, OldEntry | null>, folders: ReadonlyMap<string, number | null>): void {
    for (const waiting of this.#waiting) {
      for (const [path, was] of files) if (!waiting.files.has(path)) waiting.files.set(path, was);
      for (const [path, was] of folders) if (!waiting.folders.has(path)) waiting.folders.set(path, was);
    }
  }

  /**
   * Git would wait forever for a pipe in place of its attributes. One that a command has made is removed. Returns whether there was
   * one.
   */
  #refusePipes(view: FolderView, before: FolderView | undefined): boolean {
    let isFound = false;
    for (const [folder, { entries }] of view.folders) {
      if (entries.get('.gitattributes')?.kind !== 'special') continue;
      const path = childPath(folder, '.gitattributes');
      if (!before || entryIn(before, path)?.kind === 'special')
        throw new UnseenFolder(`${path} is not a file`);
      unlinkSync(join(this.#root, path));
      entries.delete('.gitattributes');
      isFound = true;
    }
    return isFound;
  }

  /** Returns the look that begins when the last one is taken in. Commands that begin or end until then share it. */
  #nextLook(signal?: AbortSignal, onProgress?: (message: string) => void): SharedLook {
    this.#next ??= this.#sharedLook();
    this.#next.signals.push(signal);
    if (onProgress) this.#next.listeners.push(onProgress);
    return this.#next;
  }

  #sharedLook(): SharedLook {
    const signals: SharedLook['signals'] = [];
    const listeners: SharedLook['listeners'] = [];
    const say = (message: string): void => {
      for (const listener of listeners) listener(message);
    };
    const seen = this.#taking.then(async () => {
      this.#next = undefined;
      const over = new AbortController();
      return this.#look(abortWithAll(signals, over.signal), say).finally(() => over.abort());
    });
    const taken = seen.then(async found => {
      await this.#take(found.news);
      return found;
    });
    this.#taking = taken.then(
      () => undefined,
      () => undefined,
    );
    return { signals, listeners, seen, taken };
  }
}

const parentOf = (path: string): string => path.slice(0, Math.max(path.lastIndexOf('/'), 0));
const nameIn = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

/** Whether the bytes of what is at the path are kept. */
const isKept = (path: string, { kind }: Entry, view: FolderView): boolean =>
  (kind === 'file' || kind === 'link') && !view.leftOut.has(path) && !isGitName(nameIn(path));

function isKeptIn(view: FolderView, path: string): boolean {
  const entry = entryIn(view, path);
  return entry !== undefined && isKept(path, entry, view);
}

/** Returns the files that were changed so recently that git could miss the next change. */
function freshAmong(paths: readonly string[], view: FolderView): Map<string, number> {
  const since = Date.now() - freshFor;
  const found = new Map<string, number>();
  for (const path of paths) {
    const entry = entryIn(view, path);
    if (entry && entry.changedAt > since) found.set(path, entry.changedAt);
  }
  return found;
}

const asUnseen = (error: unknown): UnseenFolder =>
  error instanceof UnseenFolder
    ? error
    : new UnseenFolder(error instanceof Error ? error.message : String(error));
