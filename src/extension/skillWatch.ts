/** Watches every folder that skills come from, once it is known which they are; those that are not there yet, until they are. */
import { existsSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import * as vscode from 'vscode';
import type { Telos } from '../engine/telos.ts';
import type { CurrentTelos } from './currentTelos.ts';
import { isWithin, linkTargets } from './linkTargets.ts';
import { NewFolders } from './newFolders.ts';
import { changesSkills, type PathChange } from './skillFiles.ts';

/** A checkout or an unpacked archive changes many files at once; in milliseconds. */
const settleTime = 100;

interface Root {
  folder: string;
  /** What of it counts, as a glob. */
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

  /** Roots come and go: agents.toml links folders, folders are made. */
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
      // The editor begins in its own time.
      for (const [, { folder, pattern }] of added)
        if (pattern === '**') await this.#newFolders.add(folder, !isFirst);
      // What was written into a new folder before it was watched is seen by looking once more.
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

/** The editor looks for a folder that is not there every few seconds only; the folder above it tells at once. */
function watchable(folder: string, pattern: string): Root {
  let above = folder;
  while (!existsSync(above) && dirname(above) !== above) above = dirname(above);
  if (above === folder) return { folder, pattern };
  return { folder: above, pattern: relative(above, folder).split(sep)[0] ?? '*' };
}
