/** Watches every folder that skills come from, once it is known which they are; those that are not there yet, until they are. */
import { existsSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import * as vscode from 'vscode';
import type { Telos } from '../engine/telos.ts';
import type { CurrentTelos } from './currentTelos.ts';
import { linkTargets } from './linkTargets.ts';
import { changesSkills } from './skillFiles.ts';

/** A checkout or an unpacked archive changes many files at once; in milliseconds. */
const settleTime = 100;

interface Root {
  folder: string;
  /** What of it counts, as a glob. */
  pattern: string;
}

export function registerSkillWatch(current: CurrentTelos, log: vscode.LogOutputChannel): vscode.Disposable {
  const watchers = new Map<string, vscode.Disposable>();
  let timer: NodeJS.Timeout | undefined;
  const onRelevantChange = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => void current.refresh(), settleTime);
  };
  /** Roots come and go: agents.toml links folders, folders are made. */
  const followNow = async (): Promise<void> => {
    try {
      const wanted = new Map(
        (await rootsOf(await current.openTelos())).map(root => [`${root.folder}\n${root.pattern}`, root]),
      );
      for (const [key, watcher] of watchers) {
        if (wanted.has(key)) continue;
        watcher.dispose();
        watchers.delete(key);
      }
      const added = [...wanted].filter(([key]) => !watchers.has(key));
      const isFirst = watchers.size === 0;
      for (const [key, root] of added) watchers.set(key, watch(root, current, onRelevantChange));
      // What was written into a new folder before it was watched is seen by looking once more.
      if (added.length > 0 && !isFirst) onRelevantChange();
    } catch (error) {
      log.error('The folders of skills cannot be watched.', error);
    }
  };
  // One after the other: two at once would each watch the same new folder.
  let last = Promise.resolve();
  const follow = (): void => {
    last = last.then(followNow);
  };
  const following = vscode.Disposable.from(current.onDidOpen(follow), current.onDidRefresh(follow));
  return new vscode.Disposable(() => {
    clearTimeout(timer);
    following.dispose();
    for (const watcher of watchers.values()) watcher.dispose();
    watchers.clear();
  });
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

function watch(
  { folder, pattern }: Root,
  current: CurrentTelos,
  onRelevantChange: () => void,
): vscode.Disposable {
  const root = vscode.Uri.file(folder);
  const watcher = vscode.workspace.createFileSystemWatcher(new vscode.RelativePattern(root, pattern));
  const hear = (change: 'created' | 'changed' | 'deleted') => (uri: vscode.Uri) => {
    if (basename(uri.fsPath) === '.env') current.reopen();
    else if (!pattern.startsWith('*') || changesSkills(root.fsPath, uri.fsPath, change)) onRelevantChange();
  };
  return vscode.Disposable.from(
    watcher,
    watcher.onDidCreate(hear('created')),
    watcher.onDidChange(hear('changed')),
    watcher.onDidDelete(hear('deleted')),
  );
}
