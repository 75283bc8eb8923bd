/** Opens folders that a command has closed, closes them again, and removes what it left, whatever the modes. Follows no link. */
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  rmdirSync,
  unlinkSync,
} from 'node:fs';
import { openFolder } from './openFile.ts';
import { describeFileError, statsAt } from './paths.ts';

/** Opens nothing, needs no right to what is there, and fails at a link. */
const asPlace = 0o10000000 | (constants.O_NOFOLLOW ?? 0) | (constants.O_DIRECTORY ?? 0);

/** Returns true if this process can list the folder and enter it; with `writes`, change what is in it too. */
export function isOpenFolder(path: string, writes = false): boolean {
  try {
    accessSync(path, constants.R_OK | constants.X_OK | (writes ? constants.W_OK : 0));
    return true;
  } catch {
    return false;
  }
}

/** Gives the owner of a folder the rights of one. Returns whether it is open then. */
export function reopen(path: string): boolean {
  try {
    giveOwner(Buffer.from(path));
  } catch {
    // It is judged by what it is now.
  }
  return isOpenFolder(path);
}

/** Removes what is at the path, with all that is in it. Throws the error of the file system. */
export function removeAll(path: string): void {
  removeAt(Buffer.from(path));
}

/** Names need not be UTF-8. */
function removeAt(path: Buffer): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory()) {
    if ((stats.mode & 0o700) !== 0o700) giveOwner(path);
    for (const name of readdirSync(path, { encoding: 'buffer' }))
      removeAt(Buffer.concat([path, Buffer.from('/'), name]));
    rmdirSync(path);
  } else if (stats) unlinkSync(path);
}

function giveOwner(path: Buffer): void {
  if (process.platform !== 'linux') {
    chmodSync(path, 0o700);
    return;
  }
  const fd = openSync(path, asPlace);
  try {
    chmodSync(`/proc/self/fd/${fd}`, (fstatSync(fd).mode & 0o7777) | 0o700);
  } finally {
    closeSync(fd);
  }
}

/** The modes that folders have when all is in its place. Until then, their owner may write in them. */
export class FolderModes {
  readonly #wanted = new Map<string, number>();

  /** Opens a folder in which something lands. It is closed again at the end. */
  open(path: string): void {
    if (isOpenFolder(path, true)) return;
    const mode = statsAt(path)?.mode;
    if (mode !== undefined && reopen(path) && !this.#wanted.has(path)) this.#wanted.set(path, mode & 0o7777);
  }

  /** Gives a folder the mode at the end. */
  give(path: string, mode: number): void {
    this.open(path);
    this.#wanted.set(path, mode);
  }

  /** Gives all folders their modes, the deepest first, and forgets them. Returns a sentence about each that keeps another one. */
  close(): string[] {
    const deepestFirst = [...this.#wanted].sort(([one], [other]) => other.length - one.length);
    this.#wanted.clear();
    return deepestFirst.flatMap(([path, mode]) => {
      try {
        if (!statsAt(path)?.isDirectory()) return [];
        const { fd, close } = openFolder(path);
        try {
          fchmodSync(fd, mode);
        } finally {
          close();
        }
        return [];
      } catch (error) {
        return [describeFileError(error, path)];
      }
    });
  }
}
