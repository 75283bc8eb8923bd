/** Goes through the files below a folder, in order, without following links and without ever looking into what is nobody's business. */
import { opendir } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { isSpecialPlace } from './paths.ts';
import { isInsideFolded } from './secretNames.ts';
import type { ToolContext } from './tool.ts';

/** Never looked into: they hold other people's files in thousands. */
const skippedFolders = new Set(['.git', 'node_modules']);
/** Names that are looked at in one walk, and how long it may take in milliseconds. */
const maxNames = 100_000;
const maxTime = 10_000;
/** So long may be done with what was found before anything else gets its turn, in milliseconds. */
const turnTime = 50;

export interface FoundFile {
  /** Absolute and real. */
  path: string;
  /** Below the root, with `/`. */
  name: string;
}

export interface WalkState {
  /** Set when the walk ended before it had seen everything. */
  isCut: boolean;
}

/** The regular files below the real folder `root`, sorted within each folder, files before folders. Throws the abort reason on abort. */
export async function* walkFiles(
  root: string,
  context: ToolContext,
  state: WalkState,
): AsyncGenerator<FoundFile> {
  const deadline = Date.now() + maxTime;
  const folders = [root];
  let seen = 0;
  let turnEnd = Date.now() + turnTime;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const inside: string[] = [];
    const files: string[] = [];
    for (const entry of await entriesOf(folder)) {
      context.signal.throwIfAborted();
      if (++seen > maxNames || Date.now() > deadline) {
        state.isCut = true;
        return;
      }
      const path = join(folder, entry.name);
      if (entry.isFile()) files.push(path);
      else if (entry.isDirectory() && !skippedFolders.has(entry.name) && !isOffLimits(path, context))
        inside.push(path);
    }
    for (const path of files) {
      if (Date.now() > turnEnd) {
        await nextTurn();
        context.signal.throwIfAborted();
        if (Date.now() > deadline) {
          state.isCut = true;
          return;
        }
        turnEnd = Date.now() + turnTime;
      }
      yield { path, name: relative(root, path).split(sep).join('/') };
    }
    for (const path of inside.reverse()) folders.push(path);
  }
}

/** What no call reads whatever anybody answers: Telos's own files, and what is no stored file. */
export function isOffLimits(path: string, { protectedDirs = [] }: ToolContext): boolean {
  return isSpecialPlace(path) || protectedDirs.some(folder => isInsideFolded(folder, path));
}

async function entriesOf(folder: string) {
  try {
    const entries = [];
    for await (const entry of await opendir(folder)) {
      entries.push(entry);
      if (entries.length > maxNames) break;
    }
    return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    // A folder that may not be read is one without files.
    return [];
  }
}
