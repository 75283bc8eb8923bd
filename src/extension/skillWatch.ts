/** Watches the folders that skills come from, once it is known which they are. */
import { join } from 'node:path';
import * as vscode from 'vscode';
import type { Config } from '../engine/config.ts';
import type { CurrentTelos } from './currentTelos.ts';
import { changesSkills } from './skillFiles.ts';

/** A checkout or an unpacked archive changes many files at once; in milliseconds. */
const settleTime = 200;

export function registerSkillWatch(current: CurrentTelos): vscode.Disposable {
  let watchers: vscode.Disposable[] = [];
  let timer: NodeJS.Timeout | undefined;
  const stopWatching = (): void => {
    for (const watcher of watchers) watcher.dispose();
    watchers = [];
  };
  const onRelevantChange = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => void current.refresh(), settleTime);
  };
  const opened = current.onDidOpen(config => {
    stopWatching();
    watchers = watchedRoots(config).map(root => watch(root.folder, root.pattern, onRelevantChange));
  });
  return new vscode.Disposable(() => {
    clearTimeout(timer);
    stopWatching();
    opened.dispose();
  });
}

function watchedRoots(config: Config): { folder: string; pattern: string }[] {
  return [
    { folder: config.skillsDir, pattern: '**' },
    { folder: config.configDir, pattern: 'agents.toml' },
    ...config.workspaceFolders.map(({ path }) => ({
      folder: join(path, '.claude', 'skills'),
      pattern: '**',
    })),
  ];
}

function watch(folder: string, pattern: string, onRelevantChange: () => void): vscode.Disposable {
  const root = vscode.Uri.file(folder);
  const watcher = vscode.workspace.createFileSystemWatcher(new vscode.RelativePattern(root, pattern));
  const hear = (change: 'created' | 'changed' | 'deleted') => (uri: vscode.Uri) => {
    if (changesSkills(root.fsPath, uri.fsPath, change)) onRelevantChange();
  };
  return vscode.Disposable.from(
    watcher,
    watcher.onDidCreate(hear('created')),
    watcher.onDidChange(hear('changed')),
    watcher.onDidDelete(hear('deleted')),
  );
}
