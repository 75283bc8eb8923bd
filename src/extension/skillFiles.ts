/** Tells which changes on the disk can change what there is to run, so that the tree does not follow every saved file. */
import { statSync } from 'node:fs';
import { basename, relative } from 'node:path';

const watchedNames = new Set(['skill.md', 'skills.md', 'agent.toml', 'agents.toml', 'mcp.json']);

/**
 * True for the files that Telos reads, and for a folder that comes or goes as a whole, which the editor reports as one change of a name
 * that tells no more; one that went and came again at once, it reports as changed. `root` is the watched folder; both paths are absolute.
 */
export function changesSkills(
  root: string,
  path: string,
  change: 'created' | 'changed' | 'deleted',
): boolean {
  const folders = relative(root, path).split(/[\\/]/);
  if (folders.includes('node_modules') || folders.includes('.git')) return false;
  const name = basename(path);
  if (watchedNames.has(name.toLowerCase())) return true;
  return !name.includes('.') && (change !== 'changed' || isFolder(path));
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
