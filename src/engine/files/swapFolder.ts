/**
 * Puts a folder in the place of another, which is moved aside and kept. What is about to be done is noted first: a process that is killed at any
 * point leaves the old folder or the new one, and `recoverFolders` ends what it has begun.
 */

import { randomUUID } from 'node:crypto';
import { lstatSync, renameSync } from 'node:fs';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { temporaryPrefix, writeWhole } from './atomicWrite.ts';
import {
  type AlongFile,
  type FolderContents,
  type FolderJournal,
  type FolderRecord,
  journalFolder,
  journalPath,
  readJournal,
  readRecord,
  recordFolder,
  writeJournal,
  writeRecord,
} from './folderRecord.ts';
import { errorCode } from './paths.ts';

/** What is put in its place, or taken away. */
export interface FolderChange extends Pick<FolderRecord, 'kind' | 'agent' | 'target' | 'source'> {
  /** A folder that is there already and moves to the target; null for none, missing for one that is made beside the target and filled. */
  from?: string | null;
  /** False where nothing may be at the target; something that is there by then stays, and `OccupiedError` is thrown. */
  replaces: boolean;
  /** The record that is undone by this. */
  undoes?: string;
  /** Fills the folder, or looks at it a last time; throws to leave all as it was. */
  prepare(folder: string): Promise<{ left: FolderContents | null; along: readonly AlongFile[] }>;
  /** Edits what depends on the folder; returns what that was, for undo. */
  after?(): Promise<readonly AlongFile[]>;
}

/** Somebody else has put something there at this very moment. */
export class OccupiedError extends Error {}

export interface SwappedFolder {
  record: FolderRecord;
  /** Files that would have changed along with the folder, and were edited by somebody else meanwhile; they stay. */
  leftAlone: readonly string[];
}

/** Throws what `prepare` and the file system throw, with everything as it was, and what `after` throws, with the folder in its place. */
export async function swapFolder(dataDir: string, change: FolderChange): Promise<SwappedFolder> {
  const { target, from, undoes } = change;
  const id = randomUUID();
  await mkdir(dirname(target), { recursive: true });
  const staged = from === undefined ? beside(target, `new-${id}`) : from;
  const isOwn = from === undefined;
  const [host, at] = [hostname(), new Date().toISOString()];
  const journal = { id, pid: process.pid, host, at, target, staged, isOwn, ...(undoes && { undoes }) };
  await writeJournal(dataDir, journal);
  try {
    if (isOwn && staged !== null) await mkdir(staged);
    const prepared = await change.prepare(staged ?? target);
    const record = await moveNoted(dataDir, change, id, staged, prepared);
    const leftAlone = await putAlong(record.along);
    await markUndone(dataDir, undoes);
    const along = await change.after?.();
    if (!along?.length) return { record, leftAlone };
    const whole = { ...record, along: [...record.along, ...along] };
    await writeRecord(dataDir, whole);
    return { record: whole, leftAlone };
  } finally {
    if (isOwn && staged !== null) await discard(staged, id);
    await rm(journalPath(dataDir, id), { force: true });
  }
}

/** The first place that the system can move the old folder to; beside it is one that it always can. */
async function moveNoted(
  dataDir: string,
  { kind, agent, target, source, replaces }: FolderChange,
  id: string,
  staged: string | null,
  { left, along }: Awaited<ReturnType<FolderChange['prepare']>>,
): Promise<FolderRecord> {
  const places = replaces
    ? [join(recordFolder(dataDir, id), 'folder'), beside(target, `kept-${id}`)]
    : [undefined];
  const identity = staged === null ? null : (identityOf(staged) ?? null);
  const facts = { kind, agent, target, ...(source !== undefined && { source }), left, identity, along };
  for (const place of places) {
    const at = new Date().toISOString();
    const kept = place ?? null;
    const record: FolderRecord = { format: 'telos-replaced-folder', version: 1, id, at, ...facts, kept };
    await writeRecord(dataDir, record);
    try {
      if (move(target, kept, staged)) return record;
      await writeRecord(dataDir, { ...record, kept: null });
      return { ...record, kept: null };
    } catch (error) {
      // Where the old folder could not be put back, the record is the way to it.
      if (kept !== null && exists(kept))
        await writeRecord(dataDir, { ...record, left: null, identity: null });
      else await rm(recordFolder(dataDir, id), { recursive: true, force: true });
      const mayGoElsewhere = ['EXDEV', 'EACCES', 'EPERM'].includes(errorCode(error) ?? '');
      if (!mayGoElsewhere || place === places.at(-1)) throw error;
    }
  }
  throw new Error('There is no place to keep a folder in.');
}

/** At once, so that nothing of this process comes in between. True when something was moved aside. */
function move(target: string, kept: string | null, staged: string | null): boolean {
  const isKept = kept !== null && renameIfThere(target, kept);
  if (staged === null) return isKept;
  try {
    renameSync(staged, target);
  } catch (error) {
    if (isKept && !exists(target)) renameSync(kept, target);
    throw isOccupied(error) && exists(target) ? new OccupiedError(String(error)) : error;
  }
  return isKept;
}

function renameIfThere(from: string, to: string): boolean {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if (errorCode(error) === 'ENOENT' && !exists(from)) return false;
    throw error;
  }
}

/** What renaming a folder onto a file, a link or a folder with something in it fails with, on the systems that VS Code runs on. */
const isOccupied = (error: unknown): boolean =>
  ['ENOTEMPTY', 'EEXIST', 'ENOTDIR', 'EPERM'].includes(errorCode(error) ?? '');

/** Replaces those that are still as they were; returns the others. */
async function putAlong(files: readonly AlongFile[]): Promise<string[]> {
  const leftAlone: string[] = [];
  for (const { file, before, after } of files) {
    const now = await readFile(file, 'utf8').catch(() => null);
    if (now === after) continue;
    if (now !== before) leftAlone.push(file);
    else if (after === null) await rm(file, { force: true });
    else await writeWhole(file, after);
  }
  return leftAlone;
}

async function markUndone(dataDir: string, id: string | undefined): Promise<void> {
  const record = id === undefined ? undefined : readRecord(dataDir, id);
  if (!record) return;
  await writeRecord(dataDir, { ...record, kept: null, undoneAt: new Date().toISOString() });
}

/** The moves take no time, so one that has lasted longer is over; filling a folder may take minutes. Milliseconds. */
const longestMove = 10_000;
const longestFilling = 60 * 60 * 1000;

/** Ends what killed processes have begun: the old folder comes back unless the new one is in its place, and what is half filled goes. */
export async function recoverFolders(dataDir: string): Promise<void> {
  for (const name of await readdir(journalFolder(dataDir)).catch(() => [])) {
    const journal = readJournal(dataDir, name.replace(/\.json$/, ''));
    if (journal) await recover(dataDir, journal).catch(() => undefined);
  }
}

async function recover(dataDir: string, journal: FolderJournal): Promise<void> {
  const { id, target, staged, isOwn } = journal;
  const record = readRecord(dataDir, id);
  const isMissing = staged !== null && !!record?.kept && exists(record.kept) && !exists(target);
  const isStuck = isMissing && isOlder(record.at, longestMove);
  if (!isStuck && mayGoOn(journal)) return;
  const isDone =
    staged === null
      ? !!record?.kept && exists(record.kept)
      : !!record?.identity && identityOf(target) === record.identity;
  if (record && isDone) {
    await putAlong(record.along);
    if (record.kept && !exists(record.kept)) await writeRecord(dataDir, { ...record, kept: null });
    await markUndone(dataDir, journal.undoes);
  } else if (record) {
    if (record.kept && exists(record.kept) && !exists(target)) renameSync(record.kept, target);
    if (!record.kept || !exists(record.kept))
      await rm(recordFolder(dataDir, id), { recursive: true, force: true });
  }
  if (isOwn && staged !== null) await discard(staged, id);
  await rm(journalPath(dataDir, id), { force: true });
}

/** Of another machine that shares the folder nothing is known but the time. */
function mayGoOn({ pid, host, at }: FolderJournal): boolean {
  if (isOlder(at, longestFilling)) return false;
  if (host !== hostname()) return true;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}

const isOlder = (at: string, milliseconds: number): boolean => !(Date.now() - Date.parse(at) < milliseconds);

/** Moved first, so that it is whole or gone for everybody else; the name is the same at a second try. */
async function discard(folder: string, id: string): Promise<void> {
  const gone = beside(folder, `gone-${id}`);
  try {
    renameSync(folder, gone);
  } catch {
    // It has been placed, or moved before.
  }
  await rm(gone, { recursive: true, force: true, maxRetries: 2 }).catch(() => undefined);
}

/** Telos reads nothing that is called so. */
const beside = (path: string, name: string): string => join(dirname(path), `${temporaryPrefix}${name}`);

export const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** Tells a folder from any other that was ever in its place; undefined where there is none. It stays when the folder moves. */
export function identityOf(path: string): string | undefined {
  const stats = lstatSync(path, { throwIfNoEntry: false, bigint: true });
  return stats && `${stats.ino}:${stats.birthtimeNs}`;
}
