/** Says that a path is not there and which names are near it, so that nobody is asked about a mistyped one. */
import { readdirSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import type { ToolCall } from '@telos/protocol/run';
import { expandPath } from '../config.ts';
import { escapeInvisible } from '../files/plainText.ts';
import { isSensitive } from '../files/sensitiveNames.ts';
import { isThere } from '../tools/tool.ts';
import type { PolicyContext } from './decision.ts';
import { acceptedFolders, unacceptedFolders } from './fileDefaults.ts';

/** Tools that only find what is there. */
const finders = new Set(['read_file', 'list_directory', 'search_files', 'glob', 'edit_file']);
/** Names that are looked at, and folders that are gone down, to find near ones. */
const mostNames = 2000;
const deepest = 4;
const mostShown = 3;

/**
 * Returns what the model reads in place of a question about a path that is not there. Undefined if anything is there: at the path, where its links
 * lead (`subject`), or at the same path from the folders of the skill or its pack, which may be meant.
 */
export async function missingPath(
  { name, input }: ToolCall,
  subject: string,
  context: PolicyContext,
): Promise<string | undefined> {
  const { path: given } = input;
  if (!finders.has(name) || typeof given !== 'string') return undefined;
  const { home, workingDir, skillDir, packDir } = context;
  const places = [workingDir, skillDir, packDir].map(folder => expandPath(given, home, folder));
  if ([...places, subject].some(isThere)) return undefined;
  const near = nearNames(basename(given), acceptedFolders(context, await unacceptedFolders(context)));
  const hint = near.length > 0 ? ` The nearest names are ${near.map(escapeInvisible).join(', ')}.` : '';
  return `${escapeInvisible(given)} was not found: there is no ${escapeInvisible(subject)}.${hint}`;
}

/** Returns files and folders of the run whose name is the same, the same with another ending, or begins alike; the best first. */
function nearNames(name: string, folders: readonly string[]): readonly string[] {
  const wanted = name.toLowerCase();
  const stem = wanted.slice(0, wanted.length - extname(wanted).length);
  const found: { path: string; distance: number }[] = [];
  let left = mostNames;
  const visit = (folder: string, depth: number): void => {
    for (const entry of entriesOf(folder)) {
      if (left-- <= 0) return;
      const path = join(folder, entry.name);
      const other = entry.name.toLowerCase();
      const otherStem = other.slice(0, other.length - extname(other).length);
      const distance = other === wanted ? 0 : otherStem === stem ? 1 : beginsAlike(otherStem, stem) ? 2 : 3;
      if (distance < 3 && !isSensitive(path)) found.push({ path, distance });
      if (entry.isDirectory() && depth < deepest && !/^(?:\.git|node_modules)$/.test(entry.name))
        visit(path, depth + 1);
    }
  };
  for (const folder of new Set(folders)) visit(folder, 1);
  const best = found.sort((a, b) => a.distance - b.distance).map(({ path }) => path);
  return [...new Set(best)].slice(0, mostShown);
}

/** "guide" and "guides", not "a" and "all". */
const beginsAlike = (one: string, other: string): boolean =>
  Math.min(one.length, other.length) >= 3 && (one.startsWith(other) || other.startsWith(one));

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}
