/** Copies a stranger's folder file by file: no links, no repository, nothing special, and not more than a pack can reasonably hold. */
import { constants, type Dirent } from 'node:fs';
import { mkdir, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { TelosError } from '../errors.ts';

/** What a pack may hold, at most. */
export const packLimits = { files: 5000, bytes: 100 * 1024 * 1024, depth: 24 } as const;

export interface PackCopy {
  files: number;
  bytes: number;
  /** Links and special files that were not copied, as paths below the source. */
  leftOut: string[];
}

/** Copies into `target`, an empty folder. Throws TelosError `pack` at a limit, and what the file system says. */
export async function copyPack(source: string, target: string, limits = packLimits): Promise<PackCopy> {
  const copy: PackCopy = { files: 0, bytes: 0, leftOut: [] };
  await copyFolder(source, target, '', 0);
  return copy;

  async function copyFolder(from: string, to: string, path: string, depth: number): Promise<void> {
    if (depth > limits.depth) throw tooLarge(source, `folders more than ${limits.depth} deep`);
    for (const entry of await sortedEntries(from)) {
      if (entry.name === '.git') continue;
      const below = path ? `${path}/${entry.name}` : entry.name;
      if (entry.isDirectory()) {
        await mkdir(join(to, entry.name));
        await copyFolder(join(from, entry.name), join(to, entry.name), below, depth + 1);
      } else if (entry.isFile()) {
        copy.files++;
        if (copy.files > limits.files) throw tooLarge(source, `more than ${limits.files} files`);
        copy.bytes += await copyFile(join(from, entry.name), join(to, entry.name), limits.bytes - copy.bytes);
        if (copy.bytes > limits.bytes) throw tooLarge(source, `more than ${limits.bytes} bytes`);
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

/** Returns the file's size in bytes; a file larger than `room` is not copied. Scripts become executable, since archives lose that bit. */
async function copyFile(from: string, to: string, room: number): Promise<number> {
  // The file may have become a link since the folder was listed; Windows does not know the flag.
  const source = await open(from, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    const { size, mode } = await source.stat();
    if (size > room) return size;
    const bytes = await source.readFile();
    const executable = (mode & 0o111) !== 0 || (bytes[0] === 0x23 && bytes[1] === 0x21);
    const copy = await open(to, 'wx');
    try {
      await copy.writeFile(bytes);
      await copy.chmod(executable ? 0o755 : 0o644);
      await copy.sync();
    } finally {
      await copy.close();
    }
    return bytes.length;
  } finally {
    await source.close();
  }
}

function tooLarge(source: string, what: string): TelosError {
  return new TelosError(
    'pack',
    `${source} holds ${what}, which is more than a pack may have. Install only the folder with the agent.toml or the skills. Nothing was changed.`,
  );
}
