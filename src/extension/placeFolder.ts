/** New folders of the user appear whole or not at all, and never in place of one that is there. */
import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/**
 * Fills a folder beside `target` and moves it there. False when `target` holds something already; then it stays as it was. Throws what
 * `fill` and the file system throw.
 */
export async function placeFolder(target: string, fill: (folder: string) => Promise<void>): Promise<boolean> {
  const parent = dirname(target);
  await mkdir(parent, { recursive: true });
  const staged = join(parent, `.telos-${randomUUID()}`);
  await mkdir(staged);
  try {
    await fill(staged);
    await rename(staged, target);
    return true;
  } catch (error) {
    await rm(staged, { recursive: true, force: true });
    if (isOccupied(error)) return false;
    throw error;
  }
}

/** What renaming a folder onto a file, a link or a folder with something in it fails with, on the systems that VS Code runs on. */
function isOccupied(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ENOTEMPTY' || code === 'EEXIST' || code === 'ENOTDIR' || code === 'EPERM';
}
