/** Tells which changes on the disk can change what there is to run, so that the tree does not follow every saved file. */

import { realpathSync, statSync } from 'node:fs';
import { basename, join, relative, sep } from 'node:path';
import { isSkippedFolder } from '../../engine/files/folderNames.ts';

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

export interface LinkTarget {
  folder: string;
  /** It is a skill's own folder, so that only its files count and not what lies deeper. */
  isSkill: boolean;
}

/** For skills found below the watched folders, all absolute; each target once. Never throws. */
export function linkTargets(watched: readonly string[], skillDirs: readonly string[]): LinkTarget[] {
  const roots = watched.flatMap(root => {
    const real = realPath(root);
    return real === undefined ? [] : [{ root, real }];
  });
  const targets = new Map<string, boolean>();
  for (const dir of skillDirs) {
    const root = roots.find(each => isWithin(each.root, dir));
    if (!root || realPath(dir) === join(root.real, relative(root.root, dir))) continue;
    // The first folder on the way that lies elsewhere is the link.
    let [path, expected] = [root.root, root.real];
    for (const name of relative(root.root, dir).split(sep)) {
      [path, expected] = [join(path, name), join(expected, name)];
      const real = realPath(path);
      if (real === expected) continue;
      if (real !== undefined && !roots.some(each => isWithin(each.real, real)))
        targets.set(real, (targets.get(real) ?? true) && path === dir);
      break;
    }
  }
  return [...targets].map(([folder, isSkill]) => ({ folder, isSkill }));
}

/** Both absolute and as they are written; a folder is within itself. */
export const isWithin = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(folder + sep);

function realPath(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    return undefined;
  }
}
