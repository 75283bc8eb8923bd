/** Copies a stranger's folder file by file: no links, no repository, no special files, and no more than a pack can hold. */

import { createHash } from 'node:crypto';
import { constants, type Dirent } from 'node:fs';
import { mkdir, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { TelosError } from '../errors.ts';
import { type FolderContents, fileText } from '../files/folderRecord.ts';

/** Upper limits for a pack. */
export const packLimits = { files: 5000, bytes: 100 * 1024 * 1024, depth: 24 } as const;

export interface PackCopy {
  files: number;
  bytes: number;
  /** Links and special files that were not copied, as paths below the source. */
  leftOut: string[];
  /** Contents of the copy. */
  contents: FolderContents;
}

/**
 * Copies into `target`, an empty folder. Without `target` it only reads, and returns what a copy would be. Throws TelosError
 * `pack` at a limit, and the errors of the file system.
 */
export async function copyPack(
  source: string,
  target: string | undefined,
  limits = packLimits,
): Promise<PackCopy> {
  const copy = { files: 0, bytes: 0, leftOut: [] as string[] };
  const contents = new Map<string, string>();
  await copyFolder(source, target, '', 0);
  return { ...copy, contents: Object.fromEntries(contents) };

  async function copyFolder(
    from: string,
    to: string | undefined,
    path: string,
    depth: number,
  ): Promise<void> {
    if (depth > limits.depth) throw tooLarge(source, `folders more than ${limits.depth} deep`);
    for (const entry of await sortedEntries(from)) {
      if (entry.name === '.git') continue;
      const below = path ? `${path}/${entry.name}` : entry.name;
      const [here, there] = [join(from, entry.name), to && join(to, entry.name)];
      if (entry.isDirectory()) {
        if (there) await mkdir(there);
        contents.set(below, 'folder');
        await copyFolder(here, there, below, depth + 1);
      } else if (entry.isFile()) {
        copy.files++;
        if (copy.files > limits.files) throw tooLarge(source, `more than ${limits.files} files`);
        const { size, text } = await copyFile(here, there, limits.bytes - copy.bytes);
        copy.bytes += size;
        if (copy.bytes > limits.bytes) throw tooLarge(source, `more than ${limits.bytes} bytes`);
        contents.set(below, text);
      } else {
        copy.leftOut.push(below);
      }
    }
  }
}

async function sortedEntries(folder: string): Promise<Dirent[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * Copies a file. Returns its size in bytes and its text for `FolderContents`. A file larger than `room` is not copied. Scripts
 * become executable, since archives lose that bit.
 */
async function copyFile(
  from: string,
  to: string | undefined,
  room: number,
): Promise<{ size: number; text: string }> {
  // The file may have become a link or a pipe since the folder was listed. Windows does not know the flags.
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
  const source = await open(from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const stats = await source.stat();
    if (!stats.isFile()) throw new TelosError('pack', `${from} is not a file any more. Nothing was changed.`);
    const { size, mode } = stats;
    if (size > room) return { size, text: '' };
    const bytes = await source.readFile();
    const executable = (mode & 0o111) !== 0 || (bytes[0] === 0x23 && bytes[1] === 0x21);
    const copied = executable ? 0o755 : 0o644;
    if (to !== undefined) await writeCopy(to, bytes, copied);
    return { size: bytes.length, text: fileText(createHash('sha256').update(bytes).digest('hex'), copied) };
  } finally {
    await source.close();
  }
}

async function writeCopy(to: string, bytes: Buffer, mode: number): Promise<void> {
  const copy = await open(to, 'wx');
  try {
    await copy.writeFile(bytes);
    await copy.chmod(mode);
    await copy.sync();
  } finally {
    await copy.close();
  }
}

function tooLarge(source: string, what: string): TelosError {
  return new TelosError(
    'pack',
    `${source} holds ${what}, which is more than a pack may have. Install only the folder with the agent.toml or the skills. Nothing was changed.`,
  );
}
