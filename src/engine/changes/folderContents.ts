/** What a folder holds, path by path, so that two states of it can be told apart; no link is followed and nothing special is opened. */
import { createHash } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { lstat, open, readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * By path below the folder, with `/`: `sha256:<hex>` for a file and `sha256:<hex>+x` for one that can be executed, `folder`, `link:<target>`,
 * `special`, or `unreadable`. What is itself no folder has the empty path.
 */
export type FolderContents = Readonly<Record<string, string>>;

/** Names that are looked at in one folder; nobody reads a list of more. */
const mostNames = 50_000;

type EntryKind = 'file' | 'folder' | 'link' | 'special';

export interface Listing {
  /** In the order of their paths. */
  entries: ReadonlyMap<string, { kind: EntryKind }>;
  /** Folders that cannot be listed. */
  unreadable: readonly string[];
  /** There are more names than were looked at. */
  isCut: boolean;
}

/** Lists what is at `root`, which may be a link or a file, too; nothing there is an empty listing. A repository `.git` is one entry. */
export async function listFolder(root: string): Promise<Listing> {
  const entries = new Map<string, { kind: EntryKind }>();
  const unreadable: string[] = [];
  const top = await lstat(root).catch(() => undefined);
  if (top && !top.isDirectory()) entries.set('', { kind: kindOf(top) });
  const folders = top?.isDirectory() ? [''] : [];
  for (let path = folders.pop(); path !== undefined; path = folders.pop()) {
    const names = await readdir(join(root, path)).catch(() => undefined);
    if (!names) unreadable.push(path);
    for (const name of names ?? []) {
      if (entries.size >= mostNames) return { entries: sorted(entries), unreadable, isCut: true };
      const below = path ? `${path}/${name}` : name;
      // A name that is not UTF-8 cannot be looked up, and is there all the same.
      const stats = await lstat(join(root, below)).catch(() => undefined);
      entries.set(below, { kind: stats ? kindOf(stats) : 'special' });
      if (stats?.isDirectory() && name !== '.git') folders.push(below);
    }
  }
  return { entries: sorted(entries), unreadable, isCut: false };
}

/** All that is at `root`; undefined where that is more than is looked at, or a part of it cannot be listed. */
export async function contentsOf(root: string): Promise<FolderContents | undefined> {
  const { entries, unreadable, isCut } = await listFolder(root);
  if (isCut || unreadable.length > 0) return undefined;
  const contents: [path: string, text: string][] = [];
  for (const path of entries.keys()) contents.push([path, await textOfEntry(root, path)]);
  return Object.fromEntries(contents);
}

/** How the contents say one entry. */
export async function textOfEntry(root: string, path: string): Promise<string> {
  try {
    const place = path ? join(root, path) : root;
    const stats = await lstat(place);
    if (stats.isSymbolicLink()) return `link:${await readlink(place)}`;
    if (!stats.isFile()) return stats.isDirectory() ? 'folder' : 'special';
    return fileText(await hashOfFile(place), stats.mode);
  } catch {
    return 'unreadable';
  }
}

/** Windows keeps no such bit. */
export const fileText = (sha256: string, mode: number): string =>
  `sha256:${sha256}${(mode & 0o111) === 0 || process.platform === 'win32' ? '' : '+x'}`;

export interface FolderDifference {
  /** Below the folder; one that ends with `/` stands for all that is below it. */
  path: string;
  /** From the folder to the contents. */
  change: 'added' | 'changed' | 'removed';
}

/** What is different in `contents` from what is at `root` now, by path. Only files that are in both are read. */
export async function differencesTo(
  contents: FolderContents,
  root: string,
  listing: Listing,
): Promise<FolderDifference[]> {
  const found: FolderDifference[] = [];
  for (const path of listing.entries.keys()) {
    if (!Object.hasOwn(contents, path)) found.push({ path, change: 'removed' });
    else if ((await textOfEntry(root, path)) !== contents[path]) found.push({ path, change: 'changed' });
  }
  for (const path of Object.keys(contents))
    if (!listing.entries.has(path)) found.push({ path, change: 'added' });
  return found.sort((one, other) => (one.path < other.path ? -1 : 1));
}

function kindOf(stats: Stats): EntryKind {
  if (stats.isDirectory()) return 'folder';
  if (stats.isSymbolicLink()) return 'link';
  return stats.isFile() ? 'file' : 'special';
}

const sorted = <Value>(entries: Map<string, Value>): Map<string, Value> =>
  new Map([...entries].sort(([one], [other]) => (one < other ? -1 : 1)));

async function hashOfFile(path: string): Promise<string> {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
  const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const hash = createHash('sha256');
    for await (const piece of handle.createReadStream({ autoClose: false })) hash.update(piece);
    return hash.digest('hex');
  } finally {
    await handle.close();
  }
}
