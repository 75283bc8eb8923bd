/**
 * Watches folders that appear below the watched ones. On Linux the editor's own watcher learns of a new folder first and begins with it then:
 * what lies in it by that time stays unwatched, with all below it, as after a clone, an unpacked archive or a move.
 */
import { existsSync, type FSWatcher, lstatSync, watch } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isSkippedFolder } from '../engine/agents/skippedFolders.ts';
import type { PathChange } from './skillFiles.ts';

/** A pack in its folder, `skills` in the pack, and the depth to which skills are looked for below that. */
const maxDepth = 6;
/** As many again as the largest collections have; the system's own limit is shared with all other programs. */
const maxFolders = 2_000;

/** What has happened to an absolute path. */
type Heard = (path: string, change: PathChange) => void;

export class NewFolders {
  readonly #heard: Heard;
  readonly #warn: (message: string) => void;
  readonly #watchers = new Map<string, FSWatcher>();
  #hasWarned = false;
  #isDisposed = false;

  /** `heard` is told of every path that changes directly in a watched folder; a new folder in it is watched when it is added too. */
  constructor(heard: Heard, warn: (message: string) => void) {
    this.#heard = heard;
    this.#warn = warn;
  }

  /**
   * Resolves when the folder, with those below it where `isDeep`, is watched: what is written from then on is heard of, what was before can
   * be read. Does nothing for what is no folder, or a link. Never rejects.
   */
  async add(folder: string, isDeep = true): Promise<void> {
    if (process.platform === 'linux' && isFolder(folder)) await this.#add(folder, isDeep ? 0 : maxDepth);
  }

  /** Watches no longer what `isWanted` does not want. */
  retain(isWanted: (folder: string) => boolean): void {
    for (const folder of this.#watchers.keys()) if (!isWanted(folder)) this.#forget(folder);
  }

  dispose(): void {
    this.#isDisposed = true;
    this.retain(() => false);
  }

  async #add(folder: string, depth: number): Promise<void> {
    // First watched, then read: nothing is made in between.
    if (!this.#watch(folder) || depth >= maxDepth) return;
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    for (const entry of entries)
      if (entry.isDirectory() && !isSkippedFolder(entry.name))
        await this.#add(join(folder, entry.name), depth + 1);
  }

  #watch(folder: string): boolean {
    // Under its name there may be another folder now than the one that is watched.
    this.#forget(folder);
    if (this.#isDisposed) return false;
    if (this.#watchers.size >= maxFolders) {
      this.#warnOnce(
        `More than ${maxFolders} new folders: changes below ${folder} and others show after a refresh.`,
      );
      return false;
    }
    try {
      const watcher = watch(folder, { persistent: false }, (kind, name) => this.#hear(folder, kind, name));
      watcher.on('error', () => this.#forget(folder));
      this.#watchers.set(folder, watcher);
      return true;
    } catch (error) {
      // It is gone already, or the system watches no more folders for anybody.
      if (existsSync(folder)) this.#warnOnce(`${folder} cannot be watched: ${String(error)}`);
      return false;
    }
  }

  /** What holds for one folder holds for the many that come after it. */
  #warnOnce(message: string): void {
    if (!this.#hasWarned) this.#warn(message);
    this.#hasWarned = true;
  }

  #hear(folder: string, kind: 'rename' | 'change', name: string | null): void {
    if (!existsSync(folder)) this.#forget(folder);
    else if (name !== null && !isSkippedFolder(name)) {
      const path = join(folder, name);
      this.#heard(path, kind === 'change' ? 'changed' : existsSync(path) ? 'created' : 'deleted');
    }
  }

  #forget(folder: string): void {
    this.#watchers.get(folder)?.close();
    this.#watchers.delete(folder);
  }
}

function isFolder(path: string): boolean {
  try {
    return lstatSync(path).isDirectory();
  } catch {
    return false;
  }
}
