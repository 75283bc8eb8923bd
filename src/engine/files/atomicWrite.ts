/**
 * Creates and replaces files in one step: a file always has either the old bytes or the new ones. Files and folders of Telos's own
 * are opened without following a link.
 */

import { randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  fchmodSync,
  fsync,
  lstatSync,
  mkdirSync,
  openSync,
  type Stats,
  writeFile,
  writeFileSync,
} from 'node:fs';
import { link, lstat, mkdir, opendir, realpath, rm, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { ToolResult } from '@telos/protocol/run';
import { temporaryPrefix } from './globPattern.ts';
import { openFolder, smallFile } from './openFile.ts';
import { describeFileError, PathProblem } from './paths.ts';
import { placeOver, takeAttributes } from './placeFile.ts';

/**
 * Creates the file, readable by its owner alone, or replaces it and keeps its mode. A link stays a link. Calls `mayPlace` right
 * before the new bytes are put in place. If it returns false, the file stays unchanged and the result is false. With `synced` false
 * a power cut may take the new bytes. Throws the error of the file system.
 */
export async function writeWhole(
  path: string,
  text: string,
  mayPlace: () => boolean = () => true,
  synced = true,
): Promise<boolean> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  // Follows links, which dotfile managers create.
  const file = await realpath(path).catch(() => path);
  return replaceWhole(file, text, mayPlace, synced);
}

/**
 * Creates or replaces a file in a folder of Telos's own as `writeWhole` does, but follows no link. Makes the folder if it is missing.
 * Throws the errors of `makeOwnFolders`, and an Error with a sentence if the file is a link.
 */
export async function writeOwn(
  path: string,
  text: string,
  mayPlace: () => boolean = () => true,
  synced = true,
): Promise<boolean> {
  makeOwnFolders(dirname(path));
  refuseLinks(path);
  return replaceWhole(path, text, mayPlace, synced);
}

/** Puts a new file in the place of `file`, which keeps its mode. A link there is replaced, not followed. */
async function replaceWhole(
  file: string,
  text: string,
  mayPlace: () => boolean,
  synced: boolean,
): Promise<boolean> {
  const before = await lstat(file).catch(() => undefined);
  const how = { synced, ...(before?.isFile() && { mode: before.mode & 0o777 }) };
  return withTemporary(file, text, how, async temporary => {
    if (before?.isFile() && synced) await takeAttributes(temporary, file, before.mode & 0o777);
    if (!mayPlace()) return false;
    // Synchronous: nothing may happen between the answer and the rename.
    placeOver(temporary, file, before);
    return true;
  });
}

/**
 * Creates the file, readable by its owner alone. Returns false if something with that name exists, which stays unchanged. Throws
 * the error of the file system.
 */
export async function createWhole(path: string, text: string): Promise<boolean> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  // A link is created only if nothing is there. A rename does not guarantee that.
  return withTemporary(path, text, {}, temporary =>
    link(temporary, path).then(
      () => true,
      error => {
        if (error.code === 'EEXIST') return false;
        throw error;
      },
    ),
  );
}

async function withTemporary<Result>(
  file: string,
  text: string,
  how: { mode?: number; synced?: boolean },
  place: (temporary: string) => Promise<Result>,
): Promise<Result> {
  const prefix = `.${basename(file)}.`;
  const temporary = join(dirname(file), `${prefix}${randomUUID()}.tmp`);
  try {
    await writeNew(temporary, text, how);
    const placed = await place(temporary);
    await removeLeftTemporaries(dirname(file), prefix);
    return placed;
  } finally {
    await rm(temporary, { force: true });
  }
}

const synchronized = promisify(fsync);
const written = promisify(writeFile);

/**
 * Writes a file that does not exist yet, and returns once the disk has it, unless `synced` is false. Only its owner can read it,
 * unless `mode` says otherwise, or `createdMode`, which the umask still narrows. Follows no link. Throws the error of the file system.
 */
export async function writeNew(
  path: string,
  bytes: Buffer | string,
  {
    mode,
    createdMode = 0o600,
    synced = true,
  }: { mode?: number; createdMode?: number; synced?: boolean } = {},
): Promise<void> {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW = 0 } = constants;
  const flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  const fd = openSync(path, flags, createdMode);
  try {
    if (bytes.length <= smallFile) writeFileSync(fd, bytes);
    else await written(fd, bytes);
    if (mode !== undefined) fchmodSync(fd, mode);
    if (synced) await synchronized(fd);
  } finally {
    closeSync(fd);
  }
}

/** Age after which a temporary file is abandoned. A write takes seconds, whichever machine it ran on. In milliseconds. */
const leftAfter = 60 * 60 * 1000;
/** Minimum time between two looks into the same folder by one process. In milliseconds. */
const lookInterval = 60 * 60 * 1000;
/** Maximum number of names read in a folder, and of folders remembered. */
const mostNames = 5000;
const mostFolders = 1000;

const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}';
const lookedAt = new Map<string, number>();

/**
 * Removes abandoned temporary files in `folder`. Their names are `prefix`, an id and `.tmp`, like those of this process. Call it
 * when something is written anyway, with the real path of the folder. `anchor` is the way into a folder that is already open.
 * Never throws, and follows no link.
 */
export async function removeLeftTemporaries(folder: string, prefix: string, anchor = folder): Promise<void> {
  const key = join(folder, prefix);
  const now = Date.now();
  if (now - (lookedAt.get(key) ?? Number.NEGATIVE_INFINITY) < lookInterval) return;
  if (lookedAt.size >= mostFolders) lookedAt.clear();
  lookedAt.set(key, now);
  const isOurs = new RegExp(`^${uuid}\\.tmp$`);
  try {
    let names = 0;
    for await (const entry of await opendir(anchor)) {
      if (++names > mostNames) return;
      if (!entry.isFile() || !entry.name.startsWith(prefix)) continue;
      if (isOurs.test(entry.name.slice(prefix.length))) await removeIfLeft(join(anchor, entry.name), now);
    }
  } catch {
    // This is only cleanup.
  }
}

async function removeIfLeft(path: string, now: number): Promise<void> {
  const stats = await lstat(path);
  // A file with a second name or a time in the future is not ours.
  if (stats.isFile() && stats.nlink === 1 && now - stats.mtimeMs > leftAfter) await unlink(path);
}

/** A written file, as reported in a tool result. */
interface ReplacedFile extends Pick<ToolResult, 'changedFiles' | 'changedLines'> {
  existed: boolean;
}

/** Replaces or creates the file at the real path in one step. Passes the previous content to `changes`. Throws PathProblem. */
export async function replaceFile(path: string, bytes: Buffer, changes?: WriteKeeper): Promise<ReplacedFile> {
  const parent = dirname(path);
  let made: string | undefined;
  try {
    made = mkdirSync(parent, { recursive: true, mode: 0o755 });
  } catch (error) {
    throw new PathProblem('unusable', describeFileError(error, parent));
  }
  const { anchor, close } = openFolder(parent);
  const place = join(anchor, basename(path));
  const temporary = join(anchor, `${temporaryPrefix}${randomUUID()}.tmp`);
  try {
    const before = lookBefore(place, path);
    const keep = (stats: Stats | undefined) => changes?.keep({ path, place, before: stats, bytes, made });
    const write = async (): Promise<void> => {
      await writeNew(temporary, bytes, newMode(before));
      if (before) await takeAttributes(temporary, place, before.mode & 0o777);
    };
    const [kept] = await Promise.all([keep(before), write()]);
    const lines = await placeFile({ temporary, place, path }, before, kept, keep);
    await removeLeftTemporaries(parent, temporaryPrefix, anchor);
    return { existed: before !== undefined, changedFiles: [path], ...(lines && { changedLines: lines }) };
  } catch (error) {
    await rm(temporary, { force: true });
    throw error instanceof PathProblem ? error : new PathProblem('unusable', describeFileError(error, path));
  } finally {
    close();
  }
}

/** Maximum number of attempts while something else keeps changing the file. */
const mostLooks = 5;

/**
 * Puts the file in place. Two runs may write the same file, so the content that was kept must be the content that is replaced.
 * Nothing may happen between the last look and the rename.
 */
async function placeFile(
  { temporary, place, path }: { temporary: string; place: string; path: string },
  before: Stats | undefined,
  first: KeptWrite | undefined,
  keep: (stats: Stats | undefined) => Promise<KeptWrite> | undefined,
): Promise<KeptWrite['lines']> {
  let [seen, kept] = [before, first];
  for (let looks = 1; kept && looks < mostLooks; looks++) {
    const now = lookBefore(place, path);
    if (isSameFile(seen, now)) break;
    seen = now;
    kept = await keep(now);
  }
  kept?.record();
  placeOver(temporary, place, lookBefore(place, path));
  return kept?.lines;
}

/** Throws PathProblem if the file may not be overwritten. */
function lookBefore(place: string, path: string): Stats | undefined {
  const before = lstatSync(place, { throwIfNoEntry: false });
  if (before !== undefined) refuseOverwrite(before, path);
  return before;
}

const isSameFile = (one: Stats | undefined, other: Stats | undefined): boolean =>
  one?.ino === other?.ino && one?.size === other?.size && one?.mtimeMs === other?.mtimeMs;

function refuseOverwrite(before: Stats, path: string): void {
  if (before.isDirectory())
    throw new PathProblem('unusable', `${path} is a folder and cannot be overwritten.`);
  if (!before.isFile())
    throw new PathProblem('special', `${path} is not a regular file and was not overwritten.`);
  if ((before.mode & 0o222) === 0)
    throw new PathProblem('unusable', `${path} is read-only and was not overwritten.`);
}

/** A file that is replaced keeps its mode. A new one gets what the umask leaves. */
const newMode = (before: Stats | undefined): { mode?: number; createdMode?: number } =>
  before === undefined ? { createdMode: 0o666 } : { mode: before.mode & 0o777 };

/** A file that is about to be created or replaced. */
export interface PlannedWrite {
  /** Absolute and real path. */
  path: string;
  /** Path of the file through its folder, which is open. */
  place: string;
  /** Undefined if the file does not exist. */
  before: Stats | undefined;
  /** New content. */
  bytes: Buffer;
  /** The topmost of the folders that were created for it. */
  made: string | undefined;
}

export interface KeptWrite {
  /** Records the write. Call it once, right before the write. Never throws. */
  record(): void;
  /** Number of added and removed lines. Missing for content that is not text or is too long. */
  lines?: { added: number; removed: number };
}

/** Keeps the content of files before a run writes them. Content that cannot be kept becomes a problem, never an error. */
export interface WriteKeeper {
  keep(write: PlannedWrite): Promise<KeptWrite>;
  /** Notes that something runs that may change files unseen. */
  noteCommand(): void;
  /** Returns the next problem that the person should know. Each is returned once. */
  takeProblem(): string | undefined;
}

/** Whether `path` is a link. The data folder itself may be one. */
export function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

/** Throws an Error with a sentence if one of the paths is a link. Nothing need be there. */
export function refuseLinks(...paths: readonly string[]): void {
  for (const path of paths) if (isLink(path)) throw linked(path);
}

/**
 * Creates the folders for the user alone, the outermost first. Throws the error of the file system, or an Error with a sentence
 * if one is a link.
 */
export function makeOwnFolders(...folders: readonly string[]): void {
  for (const folder of folders) {
    const there = lstatSync(folder, { throwIfNoEntry: false });
    if (there?.isSymbolicLink()) throw linked(folder);
    if (!there?.isDirectory()) mkdirSync(folder, { recursive: true, mode: 0o700 });
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

const linked = (path: string): Error =>
  new Error(`${path} is a link, and Telos follows no links in its data folder; delete the link`);
