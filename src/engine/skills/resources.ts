/** Lists the files beside a SKILL.md, so that the model knows what its text may name. */

import { readdirSync, statSync } from 'node:fs';
import { join, relative, sep } from 'node:path';

export interface SkillResource {
  /** Path below the skill's folder, with `/`. */
  path: string;
  bytes: number;
}

export interface SkillResources {
  /** Sorted, files in the folder itself first. At most the requested number. */
  files: readonly SkillResource[];
  /** True if there are more than these. */
  isCut: boolean;
}

/** Number of names that are examined, and depth of folders. A skill may be at the top of something large. */
const maxNames = 2000;
const maxDepth = 5;

/**
 * Returns the files beside a skill file. Hidden files, the skill file, its recorded run and fetched packages are left out. Never
 * throws.
 */
export function resourcesOf(skillDir: string, limit: number): SkillResources {
  const files: SkillResource[] = [];
  const folders = [{ path: skillDir, depth: 0 }];
  let seen = 0;
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    for (const entry of entriesIn(folder.path)) {
      if (++seen > maxNames) return { files, isCut: true };
      const path = join(folder.path, entry.name);
      if (entry.isDirectory()) {
        if (folder.depth < maxDepth) folders.push({ path, depth: folder.depth + 1 });
        continue;
      }
      // The target of a link may be anywhere, and does not belong to the skill.
      if (!entry.isFile()) continue;
      if (files.length === limit) return { files, isCut: true };
      files.push({ path: relative(skillDir, path).split(sep).join('/'), bytes: sizeOf(path) });
    }
  }
  return { files, isCut: false };
}

const isLeftOut = (name: string): boolean =>
  /^(?:skills?\.md|recording\.jsonl|node_modules|__pycache__|\..*)$/i.test(name);

function entriesIn(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter(entry => !isLeftOut(entry.name))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return [];
  }
}

function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch {
    return 0;
  }
}
