/** Finds the folders outside the watched ones to which links lead: the editor watches folders, and follows no link in them. */
import { realpathSync } from 'node:fs';
import { join, relative, sep } from 'node:path';

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
