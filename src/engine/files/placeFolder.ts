/** New folders of the user appear as a whole: what is half done has another name, and nobody takes it for a pack. */

import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { stagedPrefix } from './folderNames.ts';

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

/** What renaming a folder onto a file, a link or a folder with something in it fails with, on the systems that VS Code runs on. */
function isOccupied(error: unknown): boolean {
  return ['ENOTEMPTY', 'EEXIST', 'ENOTDIR', 'EPERM'].includes(codeOf(error));
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : '';
