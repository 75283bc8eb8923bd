/** Puts a written file in the place of another one, which keeps its owner, its lists of rights, its further attributes and its other names. */
import { execFile } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  fchmodSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  type Stats,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { basename, dirname } from 'node:path';
import { PathProblem } from './paths.ts';

/**
 * By device and inode, when a file of this process that has nothing but its bytes and mode was last changed in any way. Giving it a list
 * of rights or an attribute changes that time.
 */
const plain = new Map<string, bigint>();
const mostPlain = 1000;

/** Returns whether the file has nothing that a new one would not have: this process made it so, and nobody has touched it since. */
function isPlain(place: string): boolean {
  const stats = lstatSync(place, { bigint: true, throwIfNoEntry: false });
  return stats !== undefined && plain.get(`${stats.dev}:${stats.ino}`) === stats.ctimeNs;
}

function notePlain(place: string): void {
  const stats = lstatSync(place, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return;
  plain.set(`${stats.dev}:${stats.ino}`, stats.ctimeNs);
  for (const old of [...plain.keys()].slice(0, -mostPlain)) plain.delete(old);
}

/** Sets what `temporary` would not have of the file at `place` beside it, as far as this process may. Never throws for that. */
export async function takeAttributes(temporary: string, place: string, mode: number): Promise<void> {
  // Copying them starts a program, and most files that are written again and again are of this process.
  if (isPlain(place)) notePlain(temporary);
  else if (process.platform === 'linux') await copied(temporary, place);
  else if (process.platform === 'darwin') copiedWhole(temporary, place);
  if ((lstatSync(temporary).mode & 0o7777) !== mode) chmodSync(temporary, mode);
}

/** Node knows neither lists of rights nor further attributes. The times of the file are left as they are. */
function copied(temporary: string, place: string): Promise<void> {
  // The program has files of its own under /proc/self.
  const cwd = dirname(place).replace(/^\/proc\/self\//, `/proc/${process.pid}/`);
  const names = [basename(place), basename(temporary)].map(name => `./${name}`);
  const args = ['--attributes-only', '--preserve=mode,ownership,xattr', '--no-dereference', '--', ...names];
  return new Promise(done => {
    execFile('/bin/cp', args, { cwd, env: {}, timeout: 10_000 }, () => done());
  });
}

/** On a Mac, a copy has all of it, so the new bytes are written into one. */
function copiedWhole(temporary: string, place: string): void {
  const bytes = readFileSync(temporary);
  try {
    copyFileSync(place, temporary);
  } finally {
    chmodSync(temporary, 0o600);
    const fd = openSync(temporary, constants.O_WRONLY);
    try {
      writeOver(fd, bytes);
    } finally {
      closeSync(fd);
    }
  }
}

/**
 * Puts `temporary` at `place`, in whose folder it is, in one step. A file that has other names, or an owner or a group that a new one
 * could not have, is written over instead: should that fail, it gets its old bytes back. `before` is what is there. Throws PathProblem if
 * that was replaced meanwhile, and the error of the file system.
 */
export function placeOver(temporary: string, place: string, before: Stats | undefined): void {
  if (!before?.isFile() || !wouldLose(temporary, before)) {
    const isNew = before === undefined || isPlain(temporary);
    renameSync(temporary, place);
    // The rename counts as a change of the file.
    if (isNew) notePlain(place);
  } else {
    replaceContent(temporary, place, before);
    unlinkSync(temporary);
  }
}

function replaceContent(temporary: string, place: string, before: Stats): void {
  const fd = openSync(place, constants.O_RDWR | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    const { ino, size, mode } = fstatSync(fd);
    if (ino !== before.ino)
      throw new PathProblem('unusable', `${basename(place)} was replaced meanwhile. Nothing was written.`);
    const old = Buffer.alloc(size);
    for (let read = 0, count = 1; count > 0 && read < size; read += count)
      count = readSync(fd, old, read, size - read, read);
    try {
      writeOver(fd, readFileSync(temporary));
      const wanted = lstatSync(temporary).mode;
      if (wanted !== mode && before.uid === process.getuid?.()) fchmodSync(fd, wanted & 0o7777);
    } catch (error) {
      writeOver(fd, old);
      throw error;
    }
  } finally {
    closeSync(fd);
  }
}

function wouldLose(temporary: string, before: Stats): boolean {
  const { uid, gid } = lstatSync(temporary);
  return before.nlink > 1 || uid !== before.uid || gid !== before.gid;
}

function writeOver(fd: number, bytes: Buffer): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done, bytes.length - done, done);
  ftruncateSync(fd, bytes.length);
  fsyncSync(fd);
}
