/** Creates folders of the user as a whole. An incomplete one has another name, so that it is not taken for a pack. */

import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Prefix of folders that are being filled or removed beside the packs, so that they are not taken for packs. */
export const stagedPrefix = '.telos-';

const skipped = new Set(['.git', 'node_modules']);

export const isSkippedFolder = (name: string): boolean => skipped.has(name) || name.startsWith(stagedPrefix);

type Fill = (folder: string) => Promise<void>;

/**
 * Fills a folder beside `target` and moves it there. Returns false if `target` already contains something, which stays unchanged.
 * Throws the errors of `fill` and of the file system.
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

/**
 * Whether a rename failed because the target is a file, a link or a folder with content. Covers the systems that VS Code runs on.
 */
function isOccupied(error: unknown): boolean {
  return ['ENOTEMPTY', 'EEXIST', 'ENOTDIR', 'EPERM'].includes(codeOf(error));
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : '';
