/** Opens folders and files below the data folder. Only Telos writes there, so a link among them may lead to a foreign place. */
import { appendFileSync, closeSync, constants, lstatSync, mkdirSync, openSync } from 'node:fs';

/** Whether `path` is a link. The data folder itself may be one. */
export function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

/**
 * Creates the folders for the user alone, the outermost first. Throws the error of the file system, or an Error with a sentence
 * if one is a link.
 */
export function makeOwnFolders(...folders: readonly string[]): void {
  for (const folder of folders) {
    if (isLink(folder)) throw linked(folder);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }
}

/** Opens a file of the user alone. Throws the error of the file system, or an Error with a sentence if it is a link. */
export function openOwn(path: string, flags: number): number {
  try {
    return openSync(path, flags | (constants.O_NOFOLLOW ?? 0), 0o600);
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ELOOP' ? linked(path) : error;
  }
}

/** Appends to a file. `create` is `O_CREAT` if the file may be new. Throws the errors of `openOwn` and of the file system. */
export function appendToOwn(path: string, text: string, create = 0): void {
  const handle = openOwn(path, constants.O_WRONLY | constants.O_APPEND | create);
  try {
    appendFileSync(handle, text);
  } finally {
    closeSync(handle);
  }
}

const linked = (path: string): Error =>
  new Error(`${path} is a link, and Telos follows no links in its data folder; delete the link`);
