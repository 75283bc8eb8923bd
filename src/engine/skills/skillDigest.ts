/** Digests a skill's folder, so that a recording knows whether it was made with this very skill. */

import { createHash } from 'node:crypto';
import { readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { loadRegularFile } from '../files/regularFile.ts';

/** Folders at the top that are no part of the skill: its evals, and what Git keeps. */
const besides = ['evals', '.git'];

/**
 * Returns the SHA-256 of all files of a skill with their names, hexadecimal, without its evals and its recorded run. Line ends of text count as one, since Git
 * may change them. A link counts as where it leads. Throws errors of the file system.
 */
export async function skillDigest(skillDir: string): Promise<string> {
  const lines = await linesOf(skillDir, '');
  return createHash('sha256').update(lines.sort().join('\n')).digest('hex');
}

async function linesOf(folder: string, below: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const found = await Promise.all(
    entries.map(async (entry): Promise<string[]> => {
      const isTop = below === '';
      if (isTop && (besides.includes(entry.name) || entry.name === 'recording.jsonl')) return [];
      const path = join(folder, entry.name);
      const name = JSON.stringify(`${below}${entry.name}`);
      if (entry.isDirectory()) return linesOf(path, `${below}${entry.name}/`);
      if (entry.isSymbolicLink())
        return [`${name}:link:${(await readlink(path)).replace(/[\\\n]/g, escapedSign)}`];
      return entry.isFile() ? [`${name}:${contentDigest(await loadRegularFile(path))}`] : [];
    }),
  );
  return found.flat();
}

/** A line break in where a link leads would end its line, and a forged one could follow. */
const escapedSign = (sign: string): string => (sign === '\n' ? '\\n' : '\\\\');

/** Returns the SHA-256 of a file's content, hexadecimal. Line ends of text count as one. */
export function contentDigest(content: Buffer): string {
  const isText = !content.includes(0);
  const plain = isText ? Buffer.from(content.toString('latin1').replaceAll('\r\n', '\n'), 'latin1') : content;
  return createHash('sha256').update(plain).digest('hex');
}
