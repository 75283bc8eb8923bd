/**
 * Tells the repository of a plan from every other one on this machine. Its id lies in the folder that git keeps for itself: it moves with the
 * repository, and no clone, no pull and no shared folder of plans brings it along.
 */

import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, lstatSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { errorCode, readText } from '@telos/engine/files';

const idShape = /^[0-9a-f]{32}$/;
const mostBytes = 4_096;

/** Returns the id of the repository around a folder; `make` gives it one. Where it has none and can have none, it is the folder's real path. */
export function sealPlace(dir: string, make = false): string {
  const git = gitFolder(dir);
  const file = git === undefined ? undefined : join(git, 'telos-plans-id');
  if (file !== undefined && make && idIn(file) === undefined) makeId(file);
  return (file === undefined ? undefined : idIn(file)) ?? realFolder(dir);
}

function idIn(file: string): string | undefined {
  const text = textOf(file);
  return text !== undefined && idShape.test(text) ? text : undefined;
}

/** Writes an id unless another process does at the same time. Nothing may be writable there. */
function makeId(file: string): void {
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    writeFileSync(temporary, randomBytes(16).toString('hex'), { mode: 0o600, flag: 'wx' });
    linkSync(temporary, file);
  } catch (error) {
    if (errorCode(error) !== 'EEXIST' && existsSync(temporary) && !existsSync(file))
      tryRename(temporary, file);
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** Not every disk gives a file a second name. */
function tryRename(temporary: string, file: string): void {
  try {
    renameSync(temporary, file);
  } catch {
    // Then the path of the folder stands for the repository.
  }
}

/** Returns the folder that all work trees of the repository around `dir` share. */
function gitFolder(dir: string): string | undefined {
  for (let folder = resolve(dir); ; folder = dirname(folder)) {
    const git = join(folder, '.git');
    const stats = lstatSync(git, { throwIfNoEntry: false });
    if (stats?.isDirectory()) return git;
    const [, own] = stats?.isFile() ? (/^gitdir: (.+)$/.exec(textOf(git) ?? '') ?? []) : [];
    if (own !== undefined) {
      const admin = resolve(folder, own);
      return resolve(admin, textOf(join(admin, 'commondir')) ?? '.');
    }
    if (stats || dirname(folder) === folder) return undefined;
  }
}

function realFolder(dir: string): string {
  try {
    return realpathSync(dir);
  } catch {
    return resolve(dir);
  }
}

function textOf(file: string): string | undefined {
  try {
    return readText(file, mostBytes).trim();
  } catch {
    return undefined;
  }
}
