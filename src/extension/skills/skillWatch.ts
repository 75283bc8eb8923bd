/**
 * Follows the folders that skills come from with the editor's watcher. The editor does not report everything in a new folder, so
 * the folders are looked at again when a person is about to see or to use their skills.
 */

import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import type { Agent } from '@telos/engine/skills';
import type { Telos } from '@telos/engine/telos';
import * as vscode from 'vscode';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { changesSkills, inSlices, isWithin, linkTargets, type PathChange } from './skillFiles.ts';

/** A checkout or an unpacked archive changes many files at once. In milliseconds. */
const settleTime = 100;
/** By then the editor watches a new folder. What was written into it before is not reported. In milliseconds. */
const secondLook = 1_000;

type Config = Telos['config'];

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
  readonly #timers = new Map<number, NodeJS.Timeout>();
  readonly #subscriptions: vscode.Disposable;
  /** The files that the skills were read from, and when they had last changed. Undefined until they have been read. */
  #seen: { paths: readonly string[]; times: string } | undefined;
  #last = Promise.resolve();

  constructor(current: CurrentTelos, log: vscode.LogOutputChannel) {
    this.#current = current;
    this.#log = log;
    const follow = (): Promise<void> => this.#inTurn(() => this.#follow());
    this.#subscriptions = vscode.Disposable.from(
      current.onDidOpen(follow),
      current.onDidRefresh(follow),
      current.lookWith(() => this.#inTurn(() => this.#look())),
      vscode.window.onDidChangeWindowState(({ focused }) => focused && void current.look()),
    );
  }

  dispose(): void {
    this.#subscriptions.dispose();
    for (const timer of this.#timers.values()) clearTimeout(timer);
    for (const watcher of this.#watchers.values()) watcher.dispose();
    this.#watchers.clear();
  }

  /** Acts one after the other: two at once would each watch the same new folder. */
  #inTurn(act: () => Promise<void>): Promise<void> {
    this.#last = this.#last
      .then(act)
      .catch(error => this.#log.error('The folders of skills cannot be followed.', error));
    return this.#last;
  }

  /** Reads the skills again if anything that they were read from has changed. */
  async #look(): Promise<void> {
    const seen = this.#seen;
    if (seen === undefined || (await timesOf(seen.paths)) === seen.times) return;
    this.#seen = undefined;
    await this.#current.refresh();
  }

  /** Updates the watchers. Roots change when agents.toml links folders or folders are created. */
  async #follow(): Promise<void> {
    const telos = await this.#current.openTelos();
    const agents = await telos.agents();
    const folders = foldersOf(telos.config, agents);
    const paths = pathsOf(telos.config, agents, folders);
    this.#seen = { paths, times: await timesOf(paths) };
    const roots = rootsOf(telos.config, agents, folders);
    const wanted = new Map(roots.map(root => [`${root.folder}\n${root.pattern}`, root]));
    for (const [key, watcher] of this.#watchers) {
      if (wanted.has(key)) continue;
      watcher.dispose();
      this.#watchers.delete(key);
    }
    const isFirst = this.#watchers.size === 0;
    for (const [key, root] of wanted) {
      if (this.#watchers.has(key)) continue;
      this.#watchers.set(key, this.#watch(root));
      if (!isFirst) this.#lookSoon();
    }
  }

  #watch({ folder, pattern }: Root): vscode.Disposable {
    const root = vscode.Uri.file(folder);
    const watcher = vscode.workspace.createFileSystemWatcher(new vscode.RelativePattern(root, pattern));
    const hear =
      (change: PathChange) =>
      async ({ fsPath }: vscode.Uri): Promise<void> => {
        if (basename(fsPath) === '.env') return this.#current.reopen();
        if (pattern.startsWith('*') && !(await this.#matters(root.fsPath, fsPath, change))) return;
        this.#soon(settleTime, () => this.#current.refresh());
        if (change !== 'deleted') this.#lookSoon();
      };
    return vscode.Disposable.from(
      watcher,
      watcher.onDidCreate(hear('created')),
      watcher.onDidChange(hear('changed')),
      watcher.onDidDelete(hear('deleted')),
    );
  }

  async #matters(root: string, path: string, change: PathChange): Promise<boolean> {
    const heldSkills = async (folder: string): Promise<boolean> => {
      const agents = await (await this.#current.openTelos()).agents();
      return agents.some(({ skills }) => skills.some(({ dir }) => isWithin(folder, dir)));
    };
    try {
      return await changesSkills(root, path, change, heldSkills);
    } catch (error) {
      this.#log.error(`What the change of ${path} means for the skills is not known.`, error);
      return false;
    }
  }

  #lookSoon(): void {
    this.#soon(secondLook, () => this.#current.look());
  }

  #soon(delay: number, act: () => Promise<void>): void {
    clearTimeout(this.#timers.get(delay));
    const timer = setTimeout(() => void act(), delay);
    this.#timers.set(delay, timer);
  }
}

/** Returns the folders that are searched for skills, whether they exist or not. */
function foldersOf(config: Config, agents: readonly Agent[]): string[] {
  const homes = [config.home, ...config.workspaceFolders.map(({ path }) => path)];
  const folders = [
    config.skillsDir,
    join(config.dataDir, 'agents'),
    ...homes.flatMap(home =>
      ['.claude', '.agents', '.copilot', '.codex'].map(name => join(home, name, 'skills')),
    ),
    ...config.workspaceFolders.flatMap(({ path }) =>
      ['.github', '.opencode'].map(name => join(path, name, 'skills')),
    ),
    ...agents
      .filter(({ source }) => source === 'linked' || source === 'project')
      .map(({ skillsDir }) => skillsDir),
  ];
  return [...new Set(folders)];
}

function rootsOf(config: Config, agents: readonly Agent[], folders: readonly string[]): Root[] {
  const dirs = agents.flatMap(({ skills }) => skills.map(({ dir }) => dir));
  return [
    ...folders.map(folder => watchable(folder, '**')),
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

/** Returns the folders and files that change with the skills. Other programs write beside a folder of skills, so that does not count. */
function pathsOf(config: Config, agents: readonly Agent[], folders: readonly string[]): string[] {
  const settings = [config.configDir, join(config.cwd, 'config')].map(folder => join(folder, 'agents.toml'));
  const ofPacks = agents
    .flatMap(({ packDir, skillsDir }) => [
      packDir,
      join(packDir, 'agent.toml'),
      join(packDir, 'mcp.json'),
      skillsDir,
    ])
    .filter(path => folders.some(folder => isWithin(folder, path)));
  const ofSkills = agents.flatMap(({ skills }) => skills.flatMap(({ dir, file }) => [dirname(dir), file]));
  return [...new Set([...folders, ...settings, ...ofPacks, ...ofSkills])];
}

/** Returns when the paths had last changed, as one text to compare. */
async function timesOf(paths: readonly string[]): Promise<string> {
  const times: number[] = [];
  for await (const path of inSlices(paths)) times.push(timeOf(path));
  return times.join();
}

function timeOf(path: string): number {
  try {
    return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  } catch {
    return 0;
  }
}
