/** Folders and files below the data folder: Telos alone puts something there, so a link among them is somebody's way to another place. */
import { appendFileSync, closeSync, constants, lstatSync, mkdirSync, openSync } from 'node:fs';

/** Says whether a link lies there. The data folder itself may be one. */
export function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

/** Makes the folders, for the user alone, the outermost first. Throws what the file system says, and Error with a sentence for a link. */
export function makeOwnFolders(...folders: readonly string[]): void {
  for (const folder of folders) {
    if (isLink(folder)) throw linked(folder);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }
}

/** Opens a file of the user alone. Throws what the file system says, and Error with a sentence for a link. */
export function openOwn(path: string, flags: number): number {
  try {
    return openSync(path, flags | (constants.O_NOFOLLOW ?? 0), 0o600);
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ELOOP' ? linked(path) : error;
  }
}

/** Adds to a file's end. `create` is `O_CREAT` where it may be new. Throws what `openOwn` throws, and what the file system says. */
export function appendToOwn(path: string, text: string, create = 0): void {
  const handle = openOwn(path, constants.O_WRONLY | constants.O_APPEND | create);
  try {
    appendFileSync(handle, text);
  } finally {
    closeSync(handle);
  }
}

const linked = (path: string): Error =>
  new Error(`${path} is a link, and Telos follows none in its data folder; delete the link`);
