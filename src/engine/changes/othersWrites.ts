/** Finds what others wrote while a command worked in the folder itself: other runs of Telos, and the editor. It is not the command's. */
import { readdirSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { hashOf, indexPath, type LeftFile, readIndex, runChangesFolder } from './changeFile.ts';

/** What others left at each path since then, as `leftKey` says it. */
export type OthersWrites = ReadonlyMap<string, ReadonlySet<string>>;

/** Returns what tells whether two writes left the same. */
export const leftKey = (left: LeftFile | null): string =>
  left === null ? 'nothing' : (left.sha256 ?? left.link ?? 'unknown');

/** What the editor has saved, the oldest first. */
const saved: { path: string; at: number; left: string }[] = [];
const mostSaved = 1000;

/** Notes that the editor has saved a file, by its real path. Its bytes are what the command is told apart by. */
export function noteSaved(path: string, bytes: Uint8Array): void {
  saved.push({ path, at: Date.now(), left: hashOf(Buffer.from(bytes)) });
  if (saved.length > mostSaved) saved.shift();
}

/**
 * Returns what the other runs whose changes lie beside `folder`, and the editor, have written since then. `since` is in milliseconds. What
 * cannot be read counts as not written.
 */
export function othersWrites(folder: string, since: number): OthersWrites {
  const found = new Map<string, Set<string>>();
  const add = (path: string, left: string): void => {
    const all = found.get(path) ?? new Set();
    found.set(path, all.add(left));
  };
  for (const { path, at, left } of saved) if (at >= since) add(path, left);
  for (const other of otherRuns(folder)) {
    try {
      if (statSync(indexPath(other)).mtimeMs < since) continue;
      for (const line of readIndex(other))
        if (line.type === 'write' && Date.parse(line.at) >= since) add(line.path, leftKey(line.after));
    } catch {
      // It has written nothing yet, or is being removed.
    }
  }
  return found;
}

function otherRuns(folder: string): string[] {
  try {
    const names = readdirSync(dirname(folder)).filter(name => name !== basename(folder));
    const dataDir = dirname(dirname(folder));
    return names.flatMap(name => runChangesFolder(dataDir, name) ?? []);
  } catch {
    return [];
  }
}
