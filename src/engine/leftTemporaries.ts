/** Takes away temporary files that a process left behind when it was killed in the middle of a write; nobody else's, and none in use. */
import { lstat, opendir, unlink } from 'node:fs/promises';
import { join } from 'node:path';

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
