/**
 * Looks at what a repository has besides its history: the settings and hooks that make Git start programs or lead it elsewhere, and
 * where its branch stands. Never follows a link, and runs nothing.
 */

import { type Dirent, lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { isOpenFolder } from '../files/closedFolder.ts';
import { readRegularFile, readText } from '../files/regularFile.ts';
import { maxKeptFile } from './changeFile.ts';
import { childPath } from './folderView.ts';

/** A file or link that Git obeys. */
export interface GitSetting {
  mode: number;
  /** Missing for a link, for a file that is too large, and for anything else. */
  bytes?: Buffer;
  link?: string;
  /** Identity and time of the last change. */
  stamp: string;
}

export interface RepositoryView {
  /** By path below the working folder, with `/`. */
  settings: ReadonlyMap<string, GitSetting>;
  /** Branches, tags, the index and what else says where a repository stands; not its objects. */
  state: ReadonlyMap<string, GitSetting>;
  /** What HEAD and its branch name, by the path of the repository. */
  heads: ReadonlyMap<string, string>;
  /** Whether there are too many names to say where all repositories stand. */
  isCut: boolean;
  /** Folders that were not looked at. */
  unseen: ReadonlySet<string>;
}

/** Maximum size of a setting or hook that is kept. In bytes. */
const maxSetting = 1024 * 1024;
/** Folders of a repository that say where it stands, and files that do not. */
const stateFolders = new Set(['refs', 'logs', 'rebase-merge', 'rebase-apply', 'sequencer']);
const noState = /^(?:config|config\.worktree|commondir|gitdir|description|.*\.lock|fsmonitor--.*)$/;

/** Maximum number of names that are looked at in all repositories of a folder. */
const mostNames = 5000;
/** The same for hooks: Git runs each that has the right name. */
const mostHooks = 200_000;
/** Maximum size of all settings and hooks that are kept. In bytes. */
const maxSettings = 64 * 1024 * 1024;

const ownSettings = [
  ...['config', 'config.worktree', 'commondir', 'info/attributes', 'objects/info/alternates'],
  // Its lines can start programs.
  'rebase-merge/git-rebase-todo',
];

interface Look {
  root: string;
  before: RepositoryView | undefined;
  settings: Map<string, GitSetting>;
  state: Map<string, GitSetting>;
  names: number;
  hooks: number;
  bytes: number;
  stateNames: number;
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
    settings: new Map(),
    names: 0,
    hooks: 0,
    bytes: 0,
    state: new Map(),
    stateNames: 0,
    unseen: new Set(),
  };
  const heads = new Map<string, string>();
  for (const path of repositories) {
    if (add(path, look) !== 'folder') continue;
    lookInto(path, look);
    heads.set(path, headOf(join(root, path)));
  }
  const { settings, state, unseen } = look;
  return { settings, state, heads, isCut: look.stateNames > mostNames, unseen };
}

function lookInto(path: string, look: Look): void {
  if (!opened(path, look)) return;
  for (const name of ['info', 'objects', 'objects/info', 'rebase-merge']) opened(childPath(path, name), look);
  for (const name of ownSettings) add(childPath(path, name), look);
  addAllIn(childPath(path, 'hooks'), look);
  const trees = childPath(path, 'worktrees');
  for (const name of namesIn(trees, look))
    if (opened(`${trees}/${name}`, look))
      for (const file of ['config.worktree', 'commondir', 'gitdir']) add(`${trees}/${name}/${file}`, look);
  modulesIn(childPath(path, 'modules'), look);
  addState(path, look);
}

/** Adds what a repository's own folder says of where it stands. Of too many names, some are missing. */
function addState(path: string, look: Look, isTop = true): void {
  for (const entry of entriesIn(join(look.root, path))) {
    if (look.stateNames++ > mostNames) return;
    const inner = childPath(path, entry.name);
    if (entry.isDirectory() && (!isTop || stateFolders.has(entry.name))) opened(inner, look);
    if (entry.isDirectory()) {
      if (!isTop || stateFolders.has(entry.name)) addState(inner, look, false);
    } else if (entry.isFile() && !noState.test(entry.name)) add(inner, look, 'state');
  }
}

function entriesIn(path: string): Dirent[] {
  try {
    return readdirSync(path, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** The repositories of submodules. Their names can have parts. */
function modulesIn(path: string, look: Look): void {
  for (const name of namesIn(path, look)) {
    const module = `${path}/${name}`;
    if (add(module, look) !== 'folder' || !opened(module, look)) continue;
    if (lstatSync(join(look.root, module, 'HEAD'), { throwIfNoEntry: false })) lookInto(module, look);
    else modulesIn(module, look);
  }
}

function addAllIn(path: string, look: Look): void {
  for (const name of namesIn(path, look, 'hooks', mostHooks))
    if (add(`${path}/${name}`, look) === 'folder') addAllIn(`${path}/${name}`, look);
}

/** Returns the names in a folder; none for anything else, and for too many. A link is a setting itself. */
function namesIn(path: string, look: Look, count: 'names' | 'hooks' = 'names', most = mostNames): string[] {
  if (add(path, look) !== 'folder' || !opened(path, look)) return [];
  try {
    const names = readdirSync(join(look.root, path));
    look[count] += names.length;
    if (look[count] <= most) return names;
  } catch {
    // It cannot be looked at.
  }
  look.unseen.add(path);
  return [];
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
function add(path: string, look: Look, kind: 'settings' | 'state' = 'settings'): 'folder' | undefined {
  const { root, before, [kind]: settings } = look;
  const most = kind === 'settings' ? maxSetting : maxKeptFile;
  const place = join(root, path);
  try {
    const stats = lstatSync(place, { throwIfNoEntry: false });
    if (!stats) return undefined;
    if (stats.isDirectory()) return 'folder';
    const stamp = `${stats.ino} ${stats.ctimeMs} ${stats.size}`;
    const known = before?.[kind].get(path);
    const mode = stats.mode & 0o7777;
    if (known?.stamp === stamp) settings.set(path, known);
    else if (stats.isSymbolicLink()) settings.set(path, { mode, stamp, link: readlinkSync(place) });
    else if (!stats.isFile() || stats.size > most || isTooMuch(stats.size, look, kind))
      settings.set(path, { mode, stamp });
    else settings.set(path, withBytes(place, { mode, stamp }));
  } catch {
    // Nothing is there any more, or what holds it cannot be looked at.
  }
  return undefined;
}

function isTooMuch(size: number, look: Look, kind: 'settings' | 'state'): boolean {
  if (kind === 'settings') look.bytes += size;
  return look.bytes > maxSettings && kind === 'settings';
}

/** One that cannot be read can be made readable later. */
function withBytes(place: string, setting: GitSetting): GitSetting {
  try {
    return { ...setting, bytes: readRegularFile(place) };
  } catch {
    return setting;
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
