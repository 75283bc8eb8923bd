/** Makes and replaces a file of the user in one step: the old bytes or the new ones, whatever happens on the way. */
import { randomUUID } from 'node:crypto';
import { link, mkdir, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { removeLeftTemporaries } from './leftTemporaries.ts';

/** Creates the file, for its owner alone, or replaces it and keeps its mode; a link stays a link. Throws what the file system says. */
export async function writeWhole(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  // As dotfile managers make them.
  const file = await realpath(path).catch(() => path);
  const before = await stat(file).catch(() => undefined);
  await withTemporary(file, text, before?.mode, temporary => rename(temporary, file));
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
