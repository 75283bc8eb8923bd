/** Opens folders again that a command has closed to the person, and removes what it left, whatever the modes. Follows no link. */
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmdirSync,
  unlinkSync,
} from 'node:fs';

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

/**
 * Gives a folder of this user its `earlier` mode, or the rights of its owner where that is unknown or would not open it. Returns
 * whether the folder is open then.
 */
export function reopen(path: string, earlier?: number): boolean {
  try {
    if (process.platform === 'linux') reopenAtPlace(path, earlier);
    else {
      const { mode, uid } = lstatSync(path);
      if (isOwn(uid) && lstatSync(path).isDirectory()) chmodSync(path, openMode(mode, earlier));
    }
  } catch {
    // It is judged by what it is now.
  }
  return isOpenFolder(path);
}

function reopenAtPlace(path: string, earlier: number | undefined): void {
  const fd = openSync(path, asPlace);
  try {
    const { mode, uid } = fstatSync(fd);
    const place = `/proc/self/fd/${fd}`;
    if (isOwn(uid) && readlinkSync(place) === path) chmodSync(place, openMode(mode, earlier));
  } finally {
    closeSync(fd);
  }
}

const isOwn = (uid: number): boolean => uid === (process.getuid?.() ?? uid);

const openMode = (mode: number, earlier: number | undefined): number =>
  earlier !== undefined && (earlier & 0o500) === 0o500 ? earlier & 0o7777 : (mode & 0o7777) | 0o700;

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
    chmodSync(`/proc/self/fd/${fd}`, 0o700);
  } finally {
    closeSync(fd);
  }
}
