/** Edits a file of the user that other windows and command lines edit at the same time. No change is lost. */

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { link, mkdir, open, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { TelosError } from '../errors.ts';
import { writeWhole } from './atomicWrite.ts';

/**
 * Replaces the file's text with the result of `change`. A missing file has an empty text, and an unchanged text is not written.
 * Only one writer works at a time. If something saves meanwhile without the lock, `change` is called again with the new text.
 * Throws the errors of `change` and of the file system. Throws TelosError `config` if the file stays locked or keeps changing.
 */
export async function editShared(file: string, change: (text: string) => string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  for (let attempt = 0; attempt < 10; attempt++) {
    const lock = await acquire(`${file}.lock`);
    try {
      const text = await textOf(file);
      const changed = change(text);
      if (changed === text) return;
      if ((await textOf(file)) === text && (await writeWhole(file, changed, lock.isOurs))) return;
    } finally {
      await lock.release();
    }
  }
  throw new TelosError('config', `${file} is constantly changed by another program. Try again.`);
}

async function textOf(file: string): Promise<string> {
  return readFile(file, 'utf8').catch(error => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
}

/**
 * In milliseconds. The holder of a lock renews it every `beatInterval`. A lock that was not renewed for `lockAge` was left behind
 * by a process that died.
 */
const beatInterval = 2_000;
const lockAge = 10_000;
const lockPatience = 15_000;

interface Lock {
  /** False once another process has taken the lock for an abandoned one, for example after a sleep of the machine. */
  isOurs: () => boolean;
  release(): Promise<void>;
}

async function acquire(path: string): Promise<Lock> {
  for (const deadline = Date.now() + lockPatience; Date.now() < deadline; ) {
    const made = await make(path);
    if (made) return made;
    await removeStale(path);
    await delay(5 + Math.random() * 20);
  }
  throw new TelosError('config', `${path} is an old lock. If Telos is not running, delete it.`);
}

/** Returns undefined if a lock exists. A lock contains its own text, by which its maker recognizes it. */
async function make(path: string): Promise<Lock | undefined> {
  const token = randomUUID();
  try {
    const handle = await open(path, 'wx', 0o600);
    try {
      await handle.writeFile(token);
    } finally {
      await handle.close();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return undefined;
    await rm(path, { force: true });
    throw error;
  }
  const isOurs = (): boolean => {
    try {
      return readFileSync(path, 'utf8') === token;
    } catch {
      return false;
    }
  };
  const beat = setInterval(() => {
    const now = new Date();
    if (isOurs()) void utimes(path, now, now).catch(() => undefined);
  }, beatInterval).unref();
  const release = async (): Promise<void> => {
    clearInterval(beat);
    if (isOurs()) await rm(path, { force: true });
  };
  return { isOurs, release };
}

async function removeStale(path: string): Promise<void> {
  const seen = await stat(path).catch(() => undefined);
  if (!seen || Date.now() - seen.mtimeMs < lockAge) return;
  // Moved aside first: if two processes find it stale, only one gets it. A lock that is no longer the stale one is put back.
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
  } catch {
    return;
  }
  const got = await stat(aside).catch(() => undefined);
  if (got && got.ino !== seen.ino) await link(aside, path).catch(() => undefined);
  await rm(aside, { force: true });
}
