/** Tells which changes on the disk can change what there is to run, so that the tree does not follow every saved file. */
import { statSync } from 'node:fs';
import { basename, relative } from 'node:path';
import { isSkippedFolder } from '../engine/agents/skippedFolders.ts';

export type PathChange = 'created' | 'changed' | 'deleted';

const watchedNames = new Set(['skill.md', 'skills.md', 'agent.toml', 'agents.toml', 'mcp.json']);

/**
 * True for the files that Telos reads, and for a folder that comes or goes as a whole, which the editor reports as one change of a name
 * that tells no more; one that went and came again at once, it reports as changed. `root` is the watched folder; both paths are absolute.
 * What has gone counts if it has held a skill, which `heldSkills` says.
 */
export async function changesSkills(
  root: string,
  path: string,
  change: PathChange,
  heldSkills: (folder: string) => Promise<boolean>,
): Promise<boolean> {
  if (relative(root, path).split(/[\\/]/).some(isSkippedFolder)) return false;
  if (watchedNames.has(basename(path).toLowerCase())) return true;
  return change === 'deleted' ? heldSkills(path) : isFolder(path);
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
