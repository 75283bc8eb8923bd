/** Finds what is known of each working folder. It stays in memory, and on disk for the next process. */
import { createHash } from 'node:crypto';
import { mkdirSync, realpathSync } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isLink, makeOwnFolders } from '../files/atomicWrite.ts';
import { describeFileError, isInside, realPlace } from '../files/paths.ts';
import { findGit } from '../tools/programPath.ts';
import type { CommandPlace } from './commandWatch.ts';
import { FolderShadow } from './folderShadow.ts';
import { UnseenFolder } from './folderView.ts';
import { noShadow } from './shadowGit.ts';
import { type FolderWatch, WatchedFolder } from './watchedFolder.ts';

/** Time after which what is known of a folder is removed, if no command has run there. In milliseconds. */
const maxAge = 30 * 24 * 60 * 60 * 1000;

export class WatchedFolders {
  readonly #dataDir: string;
  readonly #protectedDirs: readonly string[];
  readonly #folders = new Map<string, Promise<WatchedFolder>>();
  #isSwept = false;

  /** Creates it without reading anything. */
  constructor(dataDir: string, protectedDirs: readonly string[]) {
    this.#dataDir = dataDir;
    this.#protectedDirs = protectedDirs;
  }

  /** Looks at the working folder before a command starts. Throws UnseenFolder if it cannot be looked at, and the abort reason. */
  async begin(place: CommandPlace): Promise<FolderWatch> {
    const root = this.#rootOf(place.workingDir);
    const known = this.#folders.get(root) ?? this.#open(root, place);
    this.#folders.set(root, known);
    try {
      const watch = await (await known).begin(place.signal, place.onProgress);
      // Git may be installed by the next time.
      if (!watch.seesContent) this.#folders.delete(root);
      return watch;
    } catch (error) {
      await known.catch(() => this.#folders.delete(root));
      throw error;
    }
  }

  /** Resolves when what commands that have ended left is taken in. */
  async settled(): Promise<void> {
    const known = await Promise.allSettled(this.#folders.values());
    await Promise.all(known.map(each => (each.status === 'fulfilled' ? each.value.settled() : undefined)));
  }

  #rootOf(workingDir: string): string {
    try {
      // As the first write and the first command do.
      mkdirSync(workingDir, { recursive: true });
      // As for each path: a call to another thread takes longer.
      const root = realpathSync.native(workingDir);
      const dirs = this.#protectedDirs.map(dir => realPlace(dir) ?? dir);
      if (dirs.some(dir => isInside(root, dir) || isInside(dir, root)))
        throw new UnseenFolder(`${root} contains the folders of Telos itself`);
      return root;
    } catch (error) {
      if (error instanceof UnseenFolder) throw error;
      throw new UnseenFolder(describeFileError(error, workingDir).replace(/\.$/, ''));
    }
  }

  async #open(root: string, place: CommandPlace): Promise<WatchedFolder> {
    const program = findGit(place);
    if (program === undefined) return new WatchedFolder(root, noShadow);
    const folders = join(this.#dataDir, 'folders');
    if (isLink(folders)) throw new UnseenFolder(`${folders} is a link`);
    // Makes the data folder as well, which itself may be a link.
    makeOwnFolders(folders);
    void this.#sweep(folders);
    const store = join(folders, createHash('sha256').update(root).digest('hex').slice(0, 32));
    return new WatchedFolder(root, await FolderShadow.open(program, root, store));
  }

  async #sweep(folders: string): Promise<void> {
    if (this.#isSwept) return;
    this.#isSwept = true;
    for (const name of await readdir(folders).catch(() => [])) {
      const store = join(folders, name);
      const usedAt = await Promise.all(['.', 'HEAD', 'index'].map(each => changedAt(join(store, each))));
      if (Date.now() - Math.max(...usedAt) > maxAge)
        await rm(store, { recursive: true, force: true }).catch(() => undefined);
    }
  }
}

/** Returns the time of the last change. Returns 0 if there is no such file. */
const changedAt = (path: string): Promise<number> =>
  stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );
