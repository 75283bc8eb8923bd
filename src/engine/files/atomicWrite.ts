/** Makes and replaces a file of the user in one step: the old bytes or the new ones, whatever happens on the way. */

import { randomUUID } from 'node:crypto';
import { constants, lstatSync, renameSync, type Stats } from 'node:fs';
import { link, lstat, mkdir, open, opendir, realpath, rm, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { ToolResult } from '../../protocol/run.ts';
import { describeFileError, openFolder, PathProblem } from './paths.ts';

/**
 * Creates the file, for its owner alone, or replaces it and keeps its mode; a link stays a link. `mayPlace` is asked right before the new bytes
 * take their place; after a no the file stays as it is, and false is returned. Throws what the file system says.
 */
export async function writeWhole(
  path: string,
  text: string,
  mayPlace: () => boolean = () => true,
): Promise<boolean> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  // As dotfile managers make them.
  const file = await realpath(path).catch(() => path);
  const before = await stat(file).catch(() => undefined);
  return withTemporary(file, text, before?.mode, async temporary => {
    if (!mayPlace()) return false;
    // At once: between the answer and the place nothing may come.
    renameSync(temporary, file);
    return true;
  });
}

/** Creates the file, for its owner alone. False when there is something by that name, which stays as it is. Throws what the file system says. */
export async function createWhole(path: string, text: string): Promise<boolean> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  // A link is made only where there is nothing, which renaming does not promise.
  return withTemporary(path, text, undefined, temporary =>
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
  mode: number | undefined,
  place: (temporary: string) => Promise<Result>,
): Promise<Result> {
  const prefix = `.${basename(file)}.`;
  const temporary = join(dirname(file), `${prefix}${randomUUID()}.tmp`);
  try {
    const handle = await open(temporary, 'wx', 0o600);
    try {
      await handle.writeFile(text);
      if (mode !== undefined) await handle.chmod(mode & 0o777);
      await handle.sync();
    } finally {
      await handle.close();
    }
    const placed = await place(temporary);
    await removeLeftTemporaries(dirname(file), prefix);
    return placed;
  } finally {
    await rm(temporary, { force: true });
  }
}

/** A write takes seconds, so the writer of what is older is gone, whichever machine it ran on. Milliseconds. */
const leftAfter = 60 * 60 * 1000;
/** A folder is looked into so often by one process. Milliseconds. */
const lookInterval = 60 * 60 * 1000;
/** Names that are looked at in a folder, and folders that are remembered. */
const mostNames = 5000;
const mostFolders = 1000;

const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}';
const lookedAt = new Map<string, number>();

/**
 * Removes those in `folder` that are called by `prefix`, an id and `.tmp`, as this process calls its own. To be called where something is
 * written anyway, with the folder's real path; `anchor` is the way into it where it is open already. Never throws, and follows no link.
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
    // It is only tidying up.
  }
}

async function removeIfLeft(path: string, now: number): Promise<void> {
  const stats = await lstat(path);
  // What has a second name, or a time to come, is none of ours.
  if (stats.isFile() && stats.nlink === 1 && now - stats.mtimeMs > leftAfter) await unlink(path);
}

/** Of the name under which a file is written beside its place. */
export const temporaryPrefix = '.telos-';

/** A file that was written, as a result tells of it. */
interface ReplacedFile extends Pick<ToolResult, 'changedFiles' | 'changedLines'> {
  existed: boolean;
}

/** Replaces or creates the file at the real path in one step; what was there before goes to `changes`. Throws PathProblem. */
export async function replaceFile(path: string, bytes: Buffer, changes?: WriteKeeper): Promise<ReplacedFile> {
  const parent = dirname(path);
  let made: string | undefined;
  try {
    made = await mkdir(parent, { recursive: true, mode: 0o755 });
  } catch (error) {
    throw new PathProblem('unusable', describeFileError(error, parent));
  }
  const { handle, anchor } = await openFolder(parent);
  const place = join(anchor, basename(path));
  const temporary = join(anchor, `${temporaryPrefix}${randomUUID()}.tmp`);
  try {
    const before = lookBefore(place, path);
    const keep = (stats: Stats | undefined) => changes?.keep({ path, place, before: stats, bytes, made });
    const [kept] = await Promise.all([keep(before), writeNewFile(temporary, bytes, before)]);
    const lines = await placeFile({ temporary, place, path }, before, kept, keep);
    await removeLeftTemporaries(parent, temporaryPrefix, anchor);
    return { existed: before !== undefined, changedFiles: [path], ...(lines && { changedLines: lines }) };
  } catch (error) {
    await rm(temporary, { force: true });
    throw error instanceof PathProblem ? error : new PathProblem('unusable', describeFileError(error, path));
  } finally {
    await handle.close();
  }
}

/** So often something else may change the file while its old content is kept. */
const mostLooks = 5;

/** Two runs may write the same file: so what was kept is what is replaced, and nothing comes between that look and the replacing. */
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
  renameSync(temporary, place);
  return kept?.lines;
}

/** Throws PathProblem for what may not be overwritten. */
function lookBefore(place: string, path: string): Stats | undefined {
  const before = lstatSync(place, { throwIfNoEntry: false });
  if (before !== undefined) refuseOverwrite(before, path);
  return before;
}

const isSameFile = (one: Stats | undefined, other: Stats | undefined): boolean =>
  one?.ino === other?.ino && one?.size === other?.size && one?.mtimeMs === other?.mtimeMs;

function refuseOverwrite(before: Stats, path: string): void {
  if (before.isDirectory())
    throw new PathProblem('unusable', `${path} is a folder; it cannot be overwritten.`);
  if (!before.isFile())
    throw new PathProblem('special', `${path} is no regular file; it is not overwritten.`);
  if ((before.mode & 0o222) === 0)
    throw new PathProblem('unusable', `${path} is marked read-only; it is not overwritten.`);
}

async function writeNewFile(path: string, bytes: Buffer, before: Stats | undefined): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0);
  const handle = await open(path, flags, before === undefined ? 0o666 : 0o600);
  try {
    await handle.writeFile(bytes);
    if (before !== undefined) await handle.chmod(before.mode & 0o777);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** A file that is about to be created or replaced. */
export interface PlannedWrite {
  /** Absolute and real. */
  path: string;
  /** How the file is reached through its folder, which is open. */
  place: string;
  /** Undefined where there is no file. */
  before: Stats | undefined;
  /** What it will hold. */
  bytes: Buffer;
  /** The uppermost of the folders that were made for it. */
  made: string | undefined;
}

export interface KeptWrite {
  /** Notes the write; to be called right before it, once. Never throws. */
  record(): void;
  /** How many lines come and go; missing for what is no text, or too long for it. */
  lines?: { added: number; removed: number };
}

/** Keeps what files were before a run writes them. Whatever cannot be kept becomes a problem, never an error. */
export interface WriteKeeper {
  keep(write: PlannedWrite): Promise<KeptWrite>;
  /** Something runs that may change files in ways that nobody sees. */
  noteCommand(): void;
  /** The next thing that a person should know; each is told once. */
  takeProblem(): string | undefined;
}
