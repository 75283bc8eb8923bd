/**
 * Finds what a command did to the list of a repository's further work trees where a tree lies outside of all that lands. The command cannot
 * see such a tree or make one, so its repository would list one that is not there, or forget one that is.
 */
import { basename, dirname, resolve } from 'node:path';
import { isInside, statsAt } from '../files/paths.ts';
import { readText } from '../files/regularFile.ts';
import type { CommandLayer } from '../tools/tool.ts';
import type { LayerChanges, LayerFile } from './layerRead.ts';

export interface TreesElsewhere {
  /** The changes without those of such lists. */
  found: LayerChanges;
  /** Trees that the command made where nothing lands, and trees that it took for removed. Absolute. */
  made: string[];
  kept: string[];
}

/** Takes the lists of trees elsewhere out of the changes. Reads one small file for each tree that is new or gone. */
export function withoutTreesElsewhere(found: LayerChanges, roots: CommandLayer['roots']): TreesElsewhere {
  const [made, kept, lists] = [[] as string[], [] as string[], [] as string[]];
  for (const file of found.files) {
    const tree = treeOf(file);
    if (tree === undefined || roots.some(({ path }) => isInside(path, tree))) continue;
    const isThere = statsAt(tree) !== undefined;
    if (isThere === (file.after !== undefined)) continue;
    (isThere ? kept : made).push(dirname(tree));
    lists.push(dirname(file.path));
  }
  if (lists.length === 0) return { found, made, kept };
  const isOfOne = ({ path }: { path: string }): boolean => lists.some(list => isInside(list, path));
  const others = {
    files: found.files.filter(each => !isOfOne(each)),
    folders: found.folders.filter(each => !isOfOne(each)),
  };
  return { found: { ...found, ...others }, made, kept };
}

/** Returns where the `.git` of a tree is, by the file that names it in the list; undefined for any other file, and for one that stays. */
function treeOf({ path, before, after }: LayerFile): string | undefined {
  if (basename(path) !== 'gitdir' || basename(dirname(dirname(path))) !== 'worktrees') return undefined;
  const at = before === undefined ? after?.at : after === undefined ? path : undefined;
  try {
    const text = at === undefined ? '' : readText(at, 10_000).trim();
    return basename(text) === '.git' ? resolve(dirname(path), text) : undefined;
  } catch {
    return undefined;
  }
}
