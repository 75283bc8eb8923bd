/** Edits a file of the user that other windows and command lines edit at the same moment, so that nobody's change is lost. */
import { randomUUID } from 'node:crypto';
import { link, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { TelosError } from './errors.ts';
import { writeWhole } from './wholeFile.ts';

/**
 * Replaces the file's text by what `change` makes of it; a file that is not there has none, and an unchanged text is not written. One writer at
 * a time; what somebody saves meanwhile without asking for the lock is seen, and `change` called again with that. Throws what `change` and the
 * file system throw, and TelosError `config` when the file is held up.
 */
export async function editShared(file: string, change: (text: string) => string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const release = await lock(`${file}.lock`);
  try {
    for (let attempt = 0; attempt < 10; attempt++) {
      const text = await textOf(file);
      const changed = change(text);
      if (changed === text) return;
      if ((await textOf(file)) !== text) continue;
      return await writeWhole(file, changed);
    }
    throw new TelosError('config', `${file} is being changed all the time by something else. Try again.`);
  } finally {
    await release();
  }
}

async function textOf(file: string): Promise<string> {
  return readFile(file, 'utf8').catch(error => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
}

/** In milliseconds. A holder works for some milliseconds, so what is older was left behind by a process that died. */
const lockAge = 10_000;
const lockPatience = 15_000;

async function lock(path: string): Promise<() => Promise<void>> {
  for (const deadline = Date.now() + lockPatience; Date.now() < deadline; ) {
    try {
      await (await open(path, 'wx', 0o600)).close();
      return () => rm(path, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    await removeStale(path);
    await delay(5 + Math.random() * 20);
  }
  throw new TelosError('config', `${path} has been there for a while. If no Telos is running, delete it.`);
}

async function removeStale(path: string): Promise<void> {
  const seen = await stat(path).catch(() => undefined);
  if (!seen || Date.now() - seen.mtimeMs < lockAge) return;
  // Moved aside first: of two that find it stale only one gets it, and what was no longer the stale one comes back.
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
