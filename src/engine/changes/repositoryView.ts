/** Looks at where the branch of a repository stands. Never follows a link, and runs nothing. */

import { type Dirent, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isOpenFolder } from '../files/closedFolder.ts';
import { readRegularFile, readText } from '../files/regularFile.ts';
import { maxKeptFile } from './changeFile.ts';
import { childPath } from './folderView.ts';

/** A file that says where a repository stands. */
export interface StateFile {
  mode: number;
  /** Missing for a file that is too large, and for anything else. */
  bytes?: Buffer;
  /** Identity and time of the last change. */
  stamp: string;
}

export interface RepositoryView {
  /** Branches, tags, the index and what else says where a repository stands, by path below the working folder, with `/`. */
  state: ReadonlyMap<string, StateFile>;
  /** What HEAD and its branch name, by the path of the repository. */
  heads: ReadonlyMap<string, string>;
  /** Whether there are too many names to say where all repositories stand. */
  isCut: boolean;
  /** Folders that were not looked at. */
  unseen: ReadonlySet<string>;
}

/** Folders of a repository that say where it stands, and files that do not. */
const stateFolders = new Set(['refs', 'logs', 'rebase-merge', 'rebase-apply', 'sequencer']);
const noState = /^(?:config|config\.worktree|commondir|gitdir|description|.*\.lock|fsmonitor--.*)$/;

/** Maximum number of names that are looked at in all repositories of a folder. */
const mostNames = 5000;
interface Look {
  root: string;
  before: RepositoryView | undefined;
  state: Map<string, StateFile>;
  names: number;
  unseen: Set<string>;
}

/** Looks at the repositories of the working folder `root`, which are given as paths below it. */
export function lookAtRepositories(
  root: string,
  repositories: readonly string[],
  before?: RepositoryView,
): RepositoryView {
  const look: Look = {
    root,
    before,
    state: new Map(),
    names: 0,
    unseen: new Set(),
  };
  const heads = new Map<string, string>();
  for (const path of repositories) {
    if (!lstatSync(join(root, path), { throwIfNoEntry: false })?.isDirectory()) continue;
    if (opened(path, look)) addState(path, look);
    heads.set(path, headOf(join(root, path)));
  }
  const { state, unseen } = look;
  return { state, heads, isCut: look.names > mostNames, unseen };
}

/** Adds what a repository's own folder says of where it stands. Of too many names, some are missing. */
function addState(path: string, look: Look, isTop = true): void {
  for (const entry of entriesIn(join(look.root, path))) {
    if (look.names++ > mostNames) return;
    const inner = childPath(path, entry.name);
    if (entry.isDirectory() && (!isTop || stateFolders.has(entry.name))) opened(inner, look);
    if (entry.isDirectory()) {
      if (!isTop || stateFolders.has(entry.name)) addState(inner, look, false);
    } else if (entry.isFile() && !noState.test(entry.name)) add(inner, look);
  }
}

function entriesIn(path: string): Dirent[] {
  try {
    return readdirSync(path, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** Returns false for a folder that cannot be looked at, and for what is none. */
function opened(path: string, look: Look): boolean {
  const place = join(look.root, path);
  try {
    const stats = lstatSync(place, { throwIfNoEntry: false });
    if (!stats?.isDirectory()) return false;
    if ((stats.mode & 0o555) !== 0o555 && !isOpenFolder(place)) throw new Error('closed');
    return true;
  } catch {
    // It is closed, or what holds it is.
  }
  look.unseen.add(path);
  return false;
}

/** Adds what is at the path, unless it is a folder or nothing. */
function add(path: string, { root, before, state }: Look): void {
  const place = join(root, path);
  try {
    const stats = lstatSync(place, { throwIfNoEntry: false });
    if (!stats || stats.isDirectory()) return;
    const stamp = `${stats.ino} ${stats.ctimeMs} ${stats.size}`;
    const known = before?.state.get(path);
    const mode = stats.mode & 0o7777;
    if (known?.stamp === stamp) state.set(path, known);
    else if (!stats.isFile() || stats.size > maxKeptFile) state.set(path, { mode, stamp });
    else state.set(path, withBytes(place, { mode, stamp }));
  } catch {
    // Nothing is there any more, or what holds it cannot be looked at.
  }
}

/** One that cannot be read can be made readable later. */
function withBytes(place: string, file: StateFile): StateFile {
  try {
    return { ...file, bytes: readRegularFile(place) };
  } catch {
    return file;
  }
}

/** Returns what HEAD says, with the commit of its branch. */
function headOf(gitDir: string): string {
  const head = shortText(join(gitDir, 'HEAD'));
  const branch = /^ref: (refs\/[^\0]+?)\n?$/.exec(head)?.[1];
  if (branch === undefined || branch.split('/').includes('..')) return head;
  const loose = shortText(join(gitDir, branch));
  if (loose !== '') return head + loose;
  const packed = lstatSync(join(gitDir, 'packed-refs'), { throwIfNoEntry: false });
  return `${head} packed ${packed?.mtimeMs ?? ''}`;
}

function shortText(path: string): string {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    return stats?.isFile() && stats.size < 10_000 ? readText(path) : '';
  } catch {
    return '';
  }
}
