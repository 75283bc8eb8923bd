/** Replaces a file of the user in one step: the old bytes or the new ones, whatever happens on the way. */
import { randomUUID } from 'node:crypto';
import { mkdir, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** Creates the file, for its owner alone, or replaces it and keeps its mode; a link stays a link. Throws what the file system says. */
export async function writeWhole(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  // As dotfile managers make them.
  const file = await realpath(path).catch(() => path);
  const before = await stat(file).catch(() => undefined);
  const temporary = join(dirname(file), `.${basename(file)}.${randomUUID()}.tmp`);
  try {
    const handle = await open(temporary, 'wx', 0o600);
    try {
      await handle.writeFile(text);
      if (before) await handle.chmod(before.mode & 0o777);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } finally {
    await rm(temporary, { force: true });
  }
}
