/** Digests of single files, each of which is read once as long as it stays as it is. */
import { createHash } from 'node:crypto';
import { lstat, readFile } from 'node:fs/promises';

/** Remembers digests while a file's times, size and inode stay; one per run or window. */
export class FileDigests {
  readonly #known = new Map<string, { stamp: string; sha256: string }>();

  async digestOf(path: string): Promise<{ sha256: string; size: number; mode: number }> {
    const stats = await lstat(path, { bigint: true });
    const size = Number(stats.size);
    const mode = Number(stats.mode);
    const stamp = [stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(' ');
    const known = this.#known.get(path);
    if (known?.stamp === stamp) return { sha256: known.sha256, size, mode };
    const fresh = Date.now() - Number(stats.ctimeMs) < 100;
    const sha256 = createHash('sha256')
      .update(await readFile(path))
      .digest('hex');
    // A second write within one tick of the file system's clock would look like this one.
    if (!fresh) this.#known.set(path, { stamp, sha256 });
    return { sha256, size, mode };
  }
}
