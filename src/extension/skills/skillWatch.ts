/**
 * Watches every folder that skills come from, as soon as the folders are known. Watches for missing folders until they
 * exist.
 */

import { existsSync, type FSWatcher, lstatSync, watch } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, dirname, join, relative, sep } from 'node:path';
import * as vscode from 'vscode';
import { isSkippedFolder } from '../../engine/files/placeFolder.ts';
import type { Telos } from '../../engine/telos.ts';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { changesSkills, isWithin, linkTargets, type PathChange } from './skillFiles.ts';

/** A checkout or an unpacked archive changes many files at once. In milliseconds. */
const settleTime = 100;

interface Root {
  folder: string;
  /** Glob of the files that matter. */
  pattern: string;
}

export function registerSkillWatch(current: CurrentTelos, log: vscode.LogOutputChannel): vscode.Disposable {
  return new SkillWatch(current, log);
}

class SkillWatch implements vscode.Disposable {
  readonly #current: CurrentTelos;
  readonly #log: vscode.LogOutputChannel;
  readonly #watchers = new Map<string, vscode.Disposable>();
  readonly #newFolders: NewFolders;
  readonly #following: vscode.Disposable;
  #timer: NodeJS.Timeout | undefined;
  // One after the other: two at once would each watch the same new folder.
  #last = Promise.resolve();

  constructor(current: CurrentTelos, log: vscode.LogOutputChannel) {
    this.#current = current;
    this.#log = log;
    this.#newFolders = new NewFolders(
      (path, change) => this.#heard(dirname(path), path, change),
      message => log.warn(message),
    );
    const follow = (): void => {
      this.#last = this.#last.then(() => this.#follow());
    };
    this.#following = vscode.Disposable.from(current.onDidOpen(follow), current.onDidRefresh(follow));
  }

  dispose(): void {
    clearTimeout(this.#timer);
    this.#following.dispose();
    this.#newFolders.dispose();
    for (const watcher of this.#watchers.values()) watcher.dispose();
    this.#watchers.clear();
  }

  /** Updates the watchers. Roots change when agents.toml links folders or folders are created. */
  async #follow(): Promise<void> {
    try {
      const roots = await rootsOf(await this.#current.openTelos());
      const wanted = new Map(roots.map(root => [`${root.folder}\n${root.pattern}`, root]));
      for (const [key, watcher] of this.#watchers) {
        if (wanted.has(key)) continue;
        watcher.dispose();
        this.#watchers.delete(key);
      }
      this.#newFolders.retain(path => roots.some(({ folder }) => isWithin(folder, path)));
      const added = [...wanted].filter(([key]) => !this.#watchers.has(key));
      const isFirst = this.#watchers.size === 0;
      for (const [key, root] of added) this.#watchers.set(key, this.#watch(root));
      // The editor's watchers start with a delay.
      for (const [, { folder, pattern }] of added)
        if (pattern === '**') await this.#newFolders.add(folder, !isFirst);
      // Another look finds files that were written into a new folder before it was watched.
      if (added.length > 0 && !isFirst) this.#refreshSoon();
    } catch (error) {
      this.#log.error('The folders of skills cannot be watched.', error);
    }
  }

  #watch({ folder, pattern }: Root): vscode.Disposable {
    const root = vscode.Uri.file(folder);
    const watcher = vscode.workspace.createFileSystemWatcher(new vscode.RelativePattern(root, pattern));
    const hear =
      (change: PathChange) =>
      async ({ fsPath }: vscode.Uri): Promise<void> => {
        if (basename(fsPath) === '.env') return this.#current.reopen();
        if (!pattern.startsWith('*')) return this.#refreshSoon();
        await this.#heard(root.fsPath, fsPath, change);
      };
    return vscode.Disposable.from(
      watcher,
      watcher.onDidCreate(hear('created')),
      watcher.onDidChange(hear('changed')),
      watcher.onDidDelete(hear('deleted')),
    );
  }

  async #heard(root: string, path: string, change: PathChange): Promise<void> {
    try {
      if (!(await changesSkills(root, path, change, folder => this.#heldSkills(folder)))) return;
      if (change !== 'deleted') await this.#newFolders.add(path);
      this.#refreshSoon();
    } catch (error) {
      this.#log.error(`What the change of ${path} means for the skills is not known.`, error);
    }
  }

  async #heldSkills(folder: string): Promise<boolean> {
    const agents = await (await this.#current.openTelos()).agents();
    return agents.some(({ skills }) => skills.some(({ dir }) => isWithin(folder, dir)));
  }

  #refreshSoon(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#current.refresh(), settleTime);
  }
}

async function rootsOf(telos: Telos): Promise<Root[]> {
  const { config } = telos;
  const homes = [config.home, ...config.workspaceFolders.map(({ path }) => path)];
  const agents = await telos.agents();
  const folders = [
    config.skillsDir,
    join(config.dataDir, 'agents'),
    ...homes.flatMap(home => ['.claude', '.agents'].map(name => join(home, name, 'skills'))),
    ...config.workspaceFolders.map(({ path }) => join(path, '.github', 'skills')),
    ...agents
      .filter(({ source }) => source === 'linked' || source === 'project')
      .map(({ skillsDir }) => skillsDir),
  ];
  const dirs = agents.flatMap(({ skills }) => skills.map(({ dir }) => dir));
  return [
    ...[...new Set(folders)].map(folder => watchable(folder, '**')),
    ...linkTargets(folders, dirs).map(({ folder, isSkill }) => ({ folder, pattern: isSkill ? '*' : '**' })),
    watchable(config.configDir, '{agents.toml,.env}'),
    watchable(join(config.cwd, 'config'), 'agents.toml'),
  ];
}

/**
 * Returns the folder, or its nearest existing parent if it is missing. The editor checks a missing folder only every
 * few seconds, but its parent reports the change at once.
 */
function watchable(folder: string, pattern: string): Root {
  let above = folder;
  while (!existsSync(above) && dirname(above) !== above) above = dirname(above);
  if (above === folder) return { folder, pattern };
  return { folder: above, pattern: relative(above, folder).split(sep)[0] ?? '*' };
}

/** Levels for a pack in its folder, for `skills` in the pack, and for the search below that. */
const maxDepth = 6;
/** Twice the folders of the largest collections. All programs share the system's own limit. */
const maxFolders = 2_000;

/** Called with an absolute path and the kind of its change. */
type Heard = (path: string, change: PathChange) => void;

export class NewFolders {
  readonly #heard: Heard;
  readonly #warn: (message: string) => void;
  readonly #watchers = new Map<string, FSWatcher>();
  #hasWarned = false;
  #isDisposed = false;

  /**
   * `heard` is called for every path that changes directly in a watched folder. A new folder in it is watched only if
   * it is added too.
   */
  constructor(heard: Heard, warn: (message: string) => void) {
    this.#heard = heard;
    this.#warn = warn;
  }

  /**
   * Resolves when the folder is watched, with those below it if `isDeep`. Later writes are then reported, and earlier
   * ones can be read. Does nothing for a link or anything else that is not a folder. Never rejects.
   */
  async add(folder: string, isDeep = true): Promise<void> {
    if (process.platform === 'linux' && isFolder(folder)) await this.#add(folder, isDeep ? 0 : maxDepth);
  }

  /** Stops watching the folders for which `isWanted` returns false. */
  retain(isWanted: (folder: string) => boolean): void {
    for (const folder of this.#watchers.keys()) if (!isWanted(folder)) this.#forget(folder);
  }

  dispose(): void {
    this.#isDisposed = true;
    this.retain(() => false);
  }

  async #add(folder: string, depth: number): Promise<void> {
    // Watched first and read afterwards, so that no new entry is missed in between.
    if (!this.#watch(folder) || depth >= maxDepth) return;
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    for (const entry of entries)
      if (entry.isDirectory() && !isSkippedFolder(entry.name))
        await this.#add(join(folder, entry.name), depth + 1);
  }

  #watch(folder: string): boolean {
    // The name may now belong to another folder than the watched one.
    this.#forget(folder);
    if (this.#isDisposed) return false;
    if (this.#watchers.size >= maxFolders) {
      this.#warnOnce(
        `More than ${maxFolders} new folders: changes below ${folder} and others show after a refresh.`,
      );
      return false;
    }
    try {
      const watcher = watch(folder, { persistent: false }, (kind, name) => this.#hear(folder, kind, name));
      watcher.on('error', () => this.#forget(folder));
      this.#watchers.set(folder, watcher);
      return true;
    } catch (error) {
      // The folder is already removed, or the system cannot watch any more folders.
      if (existsSync(folder)) this.#warnOnce(`${folder} cannot be watched: ${String(error)}`);
      return false;
    }
  }

  /** Warns once, because the cause is the same for the many folders that follow. */
  #warnOnce(message: string): void {
    if (!this.#hasWarned) this.#warn(message);
    this.#hasWarned = true;
  }

  #hear(folder: string, kind: 'rename' | 'change', name: string | null): void {
    if (!existsSync(folder)) this.#forget(folder);
    else if (name !== null && !isSkippedFolder(name)) {
      const path = join(folder, name);
      this.#heard(path, kind === 'change' ? 'changed' : existsSync(path) ? 'created' : 'deleted');
    }
  }

  #forget(folder: string): void {
    this.#watchers.get(folder)?.close();
    this.#watchers.delete(folder);
  }
}

function isFolder(path: string): boolean {
  try {
    return lstatSync(path).isDirectory();
  } catch {
    return false;
  }
}
