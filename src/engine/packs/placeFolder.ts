/** Folders of the user appear, change and go as a whole: what is half done has another name, and nobody takes it for a pack. */
import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { stagedPrefix } from '../agents/skippedFolders.ts';

type Fill = (folder: string) => Promise<void>;

/**
 * Fills a folder beside `target` and moves it there. False when `target` holds something already; then it stays as it was. Throws what
 * `fill` and the file system throw.
 */
export async function placeFolder(target: string, fill: Fill): Promise<boolean> {
  return withStaged(target, fill, async staged => {
    try {
      await rename(staged, target);
      return true;
    } catch (error) {
      if (isOccupied(error)) return false;
      throw error;
    }
  });
}

/**
 * Like `placeFolder`, in the place of what is there. That is moved aside first, comes back if the new folder cannot be moved in, and
 * is deleted only once the new one stands. True when there was something.
 */
export async function replaceFolder(target: string, fill: Fill): Promise<boolean> {
  return withStaged(target, fill, async staged => {
    const aside: string[] = [];
    for (let attempt = 1; ; attempt++) {
      const previous = besides(target);
      if (await moveAside(target, previous)) aside.push(previous);
      try {
        await rename(staged, target);
        break;
      } catch (error) {
        // Another window has put its own there at this very moment.
        if (isOccupied(error) && attempt < mostAttempts) continue;
        const last = aside.at(-1);
        if (last !== undefined) await rename(last, target);
        throw error;
      }
    }
    for (const previous of aside) await deleteAside(previous);
    return aside.length > 0;
  });
}

/** Of several that replace one folder at once, each is in the others' way for a moment. */
const mostAttempts = 20;

/** Deletes a folder, or a link without what it leads to. False when there is none. */
export async function removeFolder(target: string): Promise<boolean> {
  const previous = besides(target);
  const existed = await moveAside(target, previous);
  if (existed) await deleteAside(previous);
  return existed;
}

async function withStaged(
  target: string,
  fill: Fill,
  finish: (staged: string) => Promise<boolean>,
): Promise<boolean> {
  await mkdir(dirname(target), { recursive: true });
  const staged = besides(target);
  await mkdir(staged);
  try {
    await fill(staged);
    return await finish(staged);
  } finally {
    await rm(staged, { recursive: true, force: true });
  }
}

const besides = (target: string): string => join(dirname(target), `${stagedPrefix}${randomUUID()}`);

async function moveAside(target: string, previous: string): Promise<boolean> {
  try {
    await rename(target, previous);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

/** What is left over has a name that Telos never reads, so a file that is held open somewhere is no reason to fail. */
async function deleteAside(previous: string): Promise<void> {
  await rm(previous, { recursive: true, force: true, maxRetries: 2 }).catch(() => {});
}

/** What renaming a folder onto a file, a link or a folder with something in it fails with, on the systems that VS Code runs on. */
function isOccupied(error: unknown): boolean {
  return ['ENOTEMPTY', 'EEXIST', 'ENOTDIR', 'EPERM'].includes(codeOf(error));
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : '';
