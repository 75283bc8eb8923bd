/** Tells which changes on the disk can change what there is to run, so that the tree does not follow every saved file. */
import { basename, relative } from 'node:path';

const watchedNames = new Set(['skill.md', 'skills.md', 'agent.toml', 'agents.toml', 'mcp.json']);

/**
 * True for the files that Telos reads, and for a folder that comes or goes as a whole, which the editor reports as one change of a name
 * that tells no more. `root` is the watched folder; both paths are absolute.
 */
export function changesSkills(
  root: string,
  path: string,
  change: 'created' | 'changed' | 'deleted',
): boolean {
  const folders = relative(root, path).split(/[\\/]/);
  if (folders.includes('node_modules') || folders.includes('.git')) return false;
  const name = basename(path);
  return watchedNames.has(name.toLowerCase()) || (change !== 'changed' && !name.includes('.'));
}
