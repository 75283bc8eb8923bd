/** All that can be seen of a folder, as one text: names, kinds, modes, times, what links say, and every byte. */
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

export function treeOf(path: string): string {
  const stats = lstatSync(path, { throwIfNoEntry: false, bigint: true });
  if (!stats) return 'nothing';
  const facts = `${stats.mode.toString(8)} ${stats.mtimeNs}`;
  if (stats.isSymbolicLink()) return `${facts} -> ${readlinkSync(path)}`;
  if (stats.isFile()) return `${facts} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`;
  if (!stats.isDirectory()) return `${facts} special`;
  const lines = readdirSync(path)
    .sort()
    .flatMap(name => [`${name}: ${treeOf(join(path, name)).replaceAll('\n', '\n  ')}`]);
  return [facts, ...lines].join('\n');
}
