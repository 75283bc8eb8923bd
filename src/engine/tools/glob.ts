/** Defines the tool that finds files by their names, and walks folders for it. */

import { opendir, readdir } from 'node:fs/promises';
import { basename, join, relative, resolve, sep } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { grouped } from '@telos/protocol/text';
import { globMatcher, longestGlob } from '../files/globPattern.ts';
import { type OpenFolder, openFolder } from '../files/openFile.ts';
import { isSpecialPlace } from '../files/paths.ts';
import { escapeInvisible } from '../files/plainText.ts';
import { isInsideFolded, isSensitive } from '../files/sensitiveNames.ts';
import {
  orProblem,
  readableFolders,
  shownPath,
  type Tool,
  type ToolContext,
  targetOf,
  textProperty,
} from './tool.ts';

/** Names of one call. */
const maxFiles = 1000;
/** How long further matches are still counted, in milliseconds. */
export const countTime = 1_000;

export const globTool: Tool = {
  definition: {
    name: 'glob',
    description:
      'Finds files by a pattern of their path, such as src/**/*.{ts,tsx}. Returns paths, sorted, at most 1,000; skips .git and node_modules.',
    inputSchema: {
      type: 'object',
      properties: {
        pattern: textProperty(),
        path: textProperty('The folder; the working folder if left out.'),
      },
      required: ['pattern'],
    },
  },
  access: 'read',
  longest: { pattern: longestGlob },
  execute: (input, context) =>
    orProblem(context, async () => {
      const root = await targetOf(input['path'] ?? '.', context, readableFolders(context));
      const pattern = String(input['pattern']);
      const matches = globMatcher(pattern);
      const state: WalkState = { isCut: false };
      const prefix = await prefixOf(root, context);
      const found: string[] = [];
      let count = 0;
      let countUntil = Number.POSITIVE_INFINITY;
      for await (const { name } of walkFiles(root, context, state)) {
        if (!matches(name)) continue;
        count++;
        if (found.length < maxFiles) found.push(escapeInvisible(prefix + name));
        if (count === maxFiles) countUntil = performance.now() + countTime;
        if (count > maxFiles && performance.now() > countUntil) {
          state.isCut = true;
          break;
        }
      }
      if (found.length === 0)
        return {
          content: `No file matches ${pattern}${state.isCut ? ' among the files that were searched' : ''}.`,
          isError: false,
        };
      const notes: string[] = [];
      if (state.isCut)
        notes.push(`[Cut: there may be more than these ${grouped(found.length)}. Search a smaller folder.]`);
      else if (count > found.length)
        notes.push(
          `[Cut: these are ${grouped(found.length)} of ${grouped(count)} files. Search a smaller folder.]`,
        );
      return { content: [...found.sort(), ...notes].join('\n'), isError: false };
    }),
};

/** Returns the prefix for a name below `root`, so that read_file accepts the whole as a path. */
export async function prefixOf(root: string, context: Parameters<typeof shownPath>[1]): Promise<string> {
  const shown = await shownPath(root, context);
  return shown === '' ? '' : `${shown.replaceAll('\\', '/').replace(/\/$/, '')}/`;
}

/** Never searched: they contain thousands of files that are not the person's own. */
const skippedFolders = new Set(['.git', 'node_modules']);
/** Names that one walk examines, and how long it may take in milliseconds. */
const maxNames = 100_000;
const maxTime = 10_000;
/** How long found files are processed before other work gets its turn, in milliseconds. */
const turnTime = 50;

export interface FoundFile {
  /** Absolute and real. */
  path: string;
  /** Path below the root, with `/`. */
  name: string;
}

export interface WalkState {
  /** True if the walk ended before it had seen everything. */
  isCut: boolean;
}

/**
 * Yields the regular files below the real folder `root`, sorted within each folder, files before folders. Throws the abort
 * reason on abort.
 */
export async function* walkFiles(
  root: string,
  context: ToolContext,
  state: WalkState,
): AsyncGenerator<FoundFile> {
  const deadline = performance.now() + maxTime;
  const folders = [root];
  let seen = 0;
  let turnEnd = performance.now() + turnTime;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const inside: string[] = [];
    const files: string[] = [];
    for (const entry of await entriesOf(folder)) {
      context.signal.throwIfAborted();
      if (++seen > maxNames || performance.now() > deadline) {
        state.isCut = true;
        return;
      }
      const path = join(folder, entry.name);
      if (entry.isFile()) files.push(path);
      else if (entry.isDirectory() && !skippedFolders.has(entry.name) && !isOffLimits(path, context))
        inside.push(path);
    }
    for (const path of files) {
      if (performance.now() > turnEnd) {
        await nextTurn();
        context.signal.throwIfAborted();
        if (performance.now() > deadline) {
          state.isCut = true;
          return;
        }
        turnEnd = performance.now() + turnTime;
      }
      yield { path, name: relative(root, path).split(sep).join('/') };
    }
    for (const path of inside.reverse()) folders.push(path);
  }
}

/**
 * Returns true for paths that no call reads, whatever the person approves. These are Telos's own files, and files that are
 * not stored on disk.
 */
export function isOffLimits(path: string, { protectedDirs = [] }: ToolContext): boolean {
  return isSpecialPlace(path) || protectedDirs.some(folder => isInsideFolded(folder, path));
}

/** Returns what is in the real folder itself: a command that still runs may put a link in its place at any time. */
async function entriesOf(folder: string) {
  let opened: OpenFolder | undefined;
  try {
    opened = openFolder(folder);
    const entries = [];
    for await (const entry of await opendir(opened.anchor)) {
      entries.push(entry);
      if (entries.length > maxNames) break;
    }
    return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    // A folder that cannot be read counts as empty.
    return [];
  } finally {
    opened?.close();
  }
}

/** More different names than this do not fit on a command line. */
const mostNames = 2000;

/** Names of files, and of folders with everything in them. */
export interface SecretsBelow {
  files: readonly string[];
  folders: readonly string[];
}

/**
 * Collects the sensitive names below real folders like `grep -r`, without following links. Returns undefined if `isOver`
 * reports that it took too long, or if there are too many.
 */
export async function walkForSecrets(
  roots: readonly string[],
  isOver: () => boolean,
): Promise<SecretsBelow | undefined> {
  const files = new Set<string>();
  const folders = new Set<string>();
  const open = [...roots];
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      const path = join(folder, entry.name);
      if (!isSensitive(path)) {
        if (entry.isDirectory()) open.push(path);
      } else if (entry.isDirectory()) folders.add(entry.name);
      else files.add(entry.name);
    }
    if (isOver() || files.size + folders.size > mostNames) return undefined;
  }
  return { files: [...files], folders: [...folders] };
}

/**
 * Collects the sensitive names among the files that a search would read, as ripgrep lists them from `cwd`. Returns
 * undefined if there are too many.
 */
export function secretsAmong(listed: readonly string[], cwd: string): SecretsBelow | undefined {
  const secret = listed.filter(path => isSensitive(resolve(cwd, path)));
  const files = [...new Set(secret.map(path => basename(path)))];
  return files.length > mostNames ? undefined : { files, folders: [] };
}

export const flagsForGrep = ({ files, folders }: SecretsBelow): string[] => [
  ...folders.map(name => `--exclude-dir=${literal(name)}`),
  ...files.map(name => `--exclude=${literal(name)}`),
];

export const flagsForRipgrep = ({ files }: SecretsBelow): string[] =>
  files.map(name => `--iglob=!${literal(name)}`);

/** Returns a pattern for the name. Special characters, and spaces that would be cut at its end, become "any character". */
const literal = (name: string): string => name.replace(/[*?[\]{}\\ ]/g, '?');
