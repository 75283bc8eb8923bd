/** Writes a file of the user in one step: what stood there is kept for undo, and what is no ordinary file is left alone. */
import { randomUUID } from 'node:crypto';
import { constants, lstatSync, renameSync, type Stats } from 'node:fs';
import { mkdir, open, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { ToolResult } from '../../protocol/run.ts';
import { removeLeftTemporaries } from '../leftTemporaries.ts';
import { describeFileError, openFolder, PathProblem } from './paths.ts';
import type { KeptWrite, WriteKeeper } from './tool.ts';

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
