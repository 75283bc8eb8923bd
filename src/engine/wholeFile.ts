/** Makes and replaces a file of the user in one step: the old bytes or the new ones, whatever happens on the way. */
import { randomUUID } from 'node:crypto';
import { renameSync } from 'node:fs';
import { link, mkdir, open, realpath, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { removeLeftTemporaries } from './leftTemporaries.ts';

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
