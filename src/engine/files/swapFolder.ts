/**
 * Replaces a folder with another one, and moves the old one aside to keep it. The change is noted first. A process killed at any
 * point leaves the old folder or the new one. `recoverFolders` then completes or reverts the change.
 */

import { randomUUID } from 'node:crypto';
import { existsSync, lstatSync, renameSync } from 'node:fs';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { isLink, refuseLinks, writeOwn, writeWhole } from './atomicWrite.ts';
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
import { temporaryPrefix } from './globPattern.ts';
import { isStillRunning, ownerHere } from './liveProcess.ts';
import { clawhubEntryIn, entryIn, packsIn, withClawhubEntry, withEntry } from './lockText.ts';
import { errorCode, isInside } from './paths.ts';
import { loadText } from './regularFile.ts';
import { lockFile } from './settingsFile.ts';

/** A folder to put in place, or to remove. */
export interface FolderChange extends Pick<FolderRecord, 'kind' | 'agent' | 'target' | 'source'> {
  /**
   * An existing folder that moves to the target. Null for none. Missing for a new one that is created beside the target and
   * filled.
   */
  from?: string | null;
  /** False if the target must be empty. Something that is there by then stays, and `OccupiedError` is thrown. */
  replaces: boolean;
  /** Record that this change undoes. */
  undoes?: string;
  /** Fills the folder, or inspects it a last time. Throws to leave everything unchanged. */
  prepare(folder: string): Promise<{ left: FolderContents | null; along: readonly AlongFile[] }>;
  /** Edits files that depend on the folder. Returns the edits, for undo. */
  after?(): Promise<readonly AlongFile[]>;
}

/** Thrown when something else was put at the target at this very moment. */
export class OccupiedError extends Error {}

export interface SwappedFolder {
  record: FolderRecord;
  /** Files that should have changed with the folder but were edited by something else meanwhile. They stay unchanged. */
  leftAlone: readonly string[];
}

/**
 * Swaps the folder. Throws the errors of `prepare` and of the file system, with everything unchanged. Throws the errors of
 * `after`, with the folder already in place.
 */
export async function swapFolder(dataDir: string, change: FolderChange): Promise<SwappedFolder> {
  const { target, from, undoes } = change;
  const id = randomUUID();
  await mkdir(dirname(target), { recursive: true });
  const staged = from === undefined ? beside(target, `new-${id}`) : from;
  const isOwn = from === undefined;
  const [host, at] = [hostname(), new Date().toISOString()];
  const journal = {
    id,
    pid: process.pid,
    owner: ownerHere(),
    host,
    at,
    target,
    staged,
    isOwn,
    ...(undoes && { undoes }),
  };
  await writeJournal(dataDir, journal);
  try {
    if (isOwn && staged !== null) await mkdir(staged);
    const prepared = await change.prepare(staged ?? target);
    // Afterwards, the folder would be in place already.
    for (const { file } of prepared.along) if (isInside(dataDir, file)) refuseLinks(dirname(file), file);
    const record = await moveNoted(dataDir, change, id, staged, prepared);
    const leftAlone = await putAlong(record.along, dataDir);
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

/** Moves to the first place that the system can move the old folder to. A place beside it always works. */
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
      // If the old folder could not be put back, the record is the way to it.
      if (kept !== null && exists(kept))
        await writeRecord(dataDir, { ...record, left: null, identity: null });
      else await rm(recordFolder(dataDir, id), { recursive: true, force: true });
      const mayGoElsewhere = ['EXDEV', 'EACCES', 'EPERM'].includes(errorCode(error) ?? '');
      if (!mayGoElsewhere || place === places.at(-1)) throw error;
    }
  }
  throw new Error('The folder for old folders is missing.');
}

/**
 * Moves the folders synchronously, so that nothing of this process runs in between. Returns true if something was moved aside.
 */
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

/**
 * Whether a rename failed because the target is a file, a link or a folder with content. Covers the systems that VS Code runs on.
 */
export const isOccupied = (error: unknown): boolean =>
  ['ENOTEMPTY', 'EEXIST', 'ENOTDIR', 'EPERM'].includes(errorCode(error) ?? '');

/**
 * Replaces the files, or entries of lock files, that are as they were. Returns the others. Follows no link below `dataDir`. Throws an
 * Error with a sentence if one is in the way there, and the errors of the file system.
 */
export async function putAlong(files: readonly AlongFile[], dataDir?: string): Promise<string[]> {
  const leftAlone: string[] = [];
  for (const one of files) {
    const { file, before, after, entry } = one;
    const isOwn = dataDir !== undefined && isInside(dataDir, file);
    if (isOwn) refuseLinks(dirname(file), file);
    if (entry !== undefined) {
      if (!(await putEntry({ ...one, entry }))) leftAlone.push(file);
      continue;
    }
    const now = await loadText(file).catch(() => null);
    if (now === after) continue;
    else if (now !== before) leftAlone.push(file);
    else if (after === null) await rm(file, { force: true });
    else await (isOwn ? writeOwn : writeWhole)(file, after);
  }
  return leftAlone;
}

/**
 * Changes one entry of a lock file, with the file to itself: other processes change theirs at the same time. Returns false if something
 * else has changed that entry, or if the file cannot be read.
 */
async function putEntry(change: EntryChange): Promise<boolean> {
  const { file } = change;
  await mkdir(dirname(file), { recursive: true });
  const lock = await lockFile(`${file}.lock`);
  try {
    const text = await loadText(file).catch(() => null);
    const next = changedEntry(text, change);
    if (next === undefined) return false;
    // The last entry takes the file with it, so that undoing the first install leaves nothing.
    if (next === null && text !== null) await rm(file, { force: true });
    else if (next !== null && next !== text) await writeWhole(file, next, lock.isOurs);
    return true;
  } finally {
    await lock.release();
  }
}

type EntryChange = AlongFile & { entry: string };

/** Returns the text of the file with the change; null if nothing is left in it, undefined if the entry is another by now. */
function changedEntry(
  text: string | null,
  { before, after, entry, isClawhub }: EntryChange,
): string | null | undefined {
  try {
    const there = isClawhub ? clawhubEntryIn(text, entry) : entryIn(text, entry);
    if (there === after) return text;
    if (there !== before) return undefined;
    if (isClawhub) return withClawhubEntry(text, entry, after);
    const next = withEntry(text, entry, after);
    return Object.keys(packsIn(next)).length === 0 ? null : next;
  } catch {
    return undefined;
  }
}

async function markUndone(dataDir: string, id: string | undefined): Promise<void> {
  const record = id === undefined ? undefined : readRecord(dataDir, id);
  if (!record) return;
  await writeRecord(dataDir, { ...record, kept: null, undoneAt: new Date().toISOString() });
}

/** The moves take no time, so one that has lasted longer is over. Filling a folder may take minutes. In milliseconds. */
const longestMove = 10_000;
const longestFilling = 60 * 60 * 1000;

/**
 * Completes or reverts changes of killed processes. The old folder is restored unless the new one is in place, and partly filled
 * folders are removed.
 */
export async function recoverFolders(dataDir: string): Promise<void> {
  const folder = journalFolder(dataDir);
  // Nearly always there is none, and each start looks. What lies behind a link is not ours.
  if (!existsSync(folder) || isLink(folder)) return;
  for (const name of await readdir(folder).catch(() => [])) {
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
    await putAlong(record.along, dataDir);
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

/**
 * Whether the process of the journal may still be at it. Only the time is known about another machine that shares the folder. What this
 * process has left after an error is over too in the end.
 */
function mayGoOn({ pid, owner, host, at }: FolderJournal): boolean {
  const runs = isStillRunning({ ...owner, pid });
  if (runs === undefined) return host !== hostname() && !isOlder(at, longestFilling);
  return runs && !(pid === process.pid && isOlder(at, longestFilling));
}

const isOlder = (at: string, milliseconds: number): boolean => !(Date.now() - Date.parse(at) < milliseconds);

/** Removes a folder. It is renamed first, so that others see it whole or not at all. A second try uses the same name. */
async function discard(folder: string, id: string): Promise<void> {
  const gone = beside(folder, `gone-${id}`);
  try {
    renameSync(folder, gone);
  } catch {
    // Already put in place, or renamed before.
  }
  await rm(gone, { recursive: true, force: true, maxRetries: 2 }).catch(() => undefined);
}

/** Returns a path beside `path`. Telos reads nothing with such a name. */
const beside = (path: string, name: string): string => join(dirname(path), `${temporaryPrefix}${name}`);

export const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/**
 * Returns an identity that differs from any other folder ever in that place. Returns undefined if there is none. It is kept when
 * the folder moves.
 */
export function identityOf(path: string): string | undefined {
  const stats = lstatSync(path, { throwIfNoEntry: false, bigint: true });
  return stats && `${stats.ino}:${stats.birthtimeNs}`;
}
