/**
 * Keeps what a working folder holds. A small folder is read in this process, since starting git takes longer than that. Git takes over
 * when the folder is no longer small.
 */
import { readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { takingTurns } from '../cancellation.ts';
import { readRegularFile } from '../files/openFile.ts';
import { maxKeptFile } from './changeFile.ts';
import { type Entry, entryAt } from './folderView.ts';
import { type Differing, type Shadow, ShadowGit } from './shadowGit.ts';

interface Kept {
  entry: Entry;
  blob: string;
  /** Whether a change right after the file was read could have the same time. */
  isFresh: boolean;
}

/** Maximum number and size of the files of a small folder. To look at more takes longer than to start git. Size in bytes. */
const mostFiles = 1000;
const mostBytes = 16 * 1024 ** 2;
/** In milliseconds: for times of whole seconds, or of two, and for finer ones. */
const [coarselyFresh, finelyFresh] = [2500, 100];

export class FolderShadow implements Shadow {
  readonly #root: string;
  readonly #git: ShadowGit;
  /** By path. Undefined once git has taken over. */
  #kept: Map<string, Kept> | undefined;
  #bytes = 0;

  private constructor(root: string, git: ShadowGit) {
    this.#root = root;
    this.#git = git;
    // An earlier process has left what git knows of a folder that was not small.
    this.#kept = git.isEmpty ? new Map() : undefined;
  }

  /** Makes or opens the store, with what an earlier process knew. Throws the error of the file system. */
  static async open(program: string, root: string, store: string): Promise<FolderShadow> {
    return new FolderShadow(root, await ShadowGit.open(program, root, store));
  }

  /** See `ShadowGit.differing`. */
  async differing(stop?: AbortSignal): Promise<Differing[]> {
    if (!this.#kept) return this.#git.differing(stop);
    const found: Differing[] = [];
    const turn = takingTurns(stop);
    for (const [path, { entry, blob, isFresh }] of this.#kept) {
      await turn();
      const now = entryAt(join(this.#root, path));
      const isGone = now?.kind !== 'file' && now?.kind !== 'link';
      if (isGone || isFresh || !isSame(entry, now)) found.push({ path, blob, isGone });
    }
    return found;
  }

  /** See `ShadowGit.blobsOf`. */
  async blobsOf(paths: readonly string[]): Promise<Map<string, string>> {
    if (!this.#kept) return this.#git.blobsOf(paths);
    const found = new Map<string, string>();
    for (const path of paths) {
      const kept = this.#kept.get(path);
      if (kept) found.set(path, kept.blob);
    }
    return found;
  }

  /** See `ShadowGit.take`. */
  async take(
    present: readonly string[],
    gone: readonly string[],
    how: { signal?: AbortSignal; onProgress?: (done: number) => void } = {},
  ): Promise<void> {
    const turn = takingTurns(how.signal);
    for (const path of gone) this.#forget(path);
    for (const path of this.#kept ? present : []) {
      await turn();
      if (!this.#read(path)) break;
    }
    if (this.#kept && this.#kept.size <= mostFiles && this.#bytes <= mostBytes) return;
    if (this.#kept) await this.#handOver();
    await this.#git.take(present, gone, how);
  }

  /** See `ShadowGit.contents`. */
  contents: Shadow['contents'] = (blobs, use) => this.#git.contents(blobs, use);

  /** Leaves what is known for the next process. A small folder is read again by then. */
  async publish(): Promise<void> {
    if (!this.#kept) await this.#git.publish();
  }

  #forget(path: string): void {
    const kept = this.#kept?.get(path);
    if (!kept) return;
    this.#bytes -= kept.entry.size;
    this.#kept?.delete(path);
  }

  /** Takes in a file or link, or forgets one that is gone. Returns false if the folder is no longer small. */
  #read(path: string): boolean {
    const place = join(this.#root, path);
    const readAt = Date.now();
    const entry = entryAt(place);
    const size = this.#bytes - (this.#kept?.get(path)?.entry.size ?? 0) + (entry?.size ?? 0);
    const isOther = entry?.kind !== 'file' && entry?.kind !== 'link';
    if (!isOther && size > mostBytes) {
      this.#bytes = size;
      return false;
    }
    this.#forget(path);
    if (isOther) return true;
    const bytes = bytesAt(place, entry);
    if (!bytes) return true;
    const blob = this.#git.keep(bytes);
    this.#kept?.set(path, { entry, blob, isFresh: isFreshAt(readAt, entry) });
    this.#bytes = size;
    return (this.#kept?.size ?? 0) <= mostFiles;
  }

  async #handOver(): Promise<void> {
    const kept = this.#kept ?? new Map<string, Kept>();
    this.#kept = undefined;
    await this.#git.adopt(
      [...kept].map(([path, { entry, blob }]) => ({ path, blob, isLink: entry.kind === 'link' })),
    );
  }
}

/** Returns undefined if another program has moved or changed it meanwhile. Throws the error of the file system. */
function bytesAt(place: string, entry: Entry): Buffer | undefined {
  try {
    if (entry.kind === 'link') return readlinkSync(place, { encoding: 'buffer' });
    return readRegularFile(place, maxKeptFile).bytes;
  } catch (error) {
    const now = entryAt(place);
    if (now && isSame(entry, now)) throw error;
    return undefined;
  }
}

const isFreshAt = (readAt: number, { changedAt }: Entry): boolean =>
  changedAt > readAt - (changedAt % 1000 === 0 ? coarselyFresh : finelyFresh);

const isSame = (one: Entry, other: Entry): boolean =>
  one.kind === other.kind &&
  one.mode === other.mode &&
  one.size === other.size &&
  one.ino === other.ino &&
  one.changedAt === other.changedAt;
