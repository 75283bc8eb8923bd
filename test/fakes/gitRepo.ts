/** Makes a real git repository for one test, with a home of its own, so that no setting of this machine counts. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { copyRepo } from './repoCopy.ts';
import { type TempFolder, tempFolder } from './tempFolder.ts';

export interface GitRepo {
  /** The work tree. */
  path: string;
  /** Writes files below the work tree. */
  add: TempFolder['add'];
  /** Runs git in the work tree as a person would, and returns what it printed without the last newline. */
  git(...args: readonly string[]): string;
  /** Commits all files and returns the commit. */
  commit(message: string, files?: Readonly<Record<string, string>>): string;
  env: Record<string, string>;
  folder: TempFolder;
  remove(): void;
}

export function gitRepo(files: Readonly<Record<string, string>> = { 'README.md': '# Bakery\n' }): GitRepo {
  const folder = tempFolder();
  const path = join(folder.path, 'bakery');
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder.path,
    XDG_CACHE_HOME: join(folder.path, 'cache'),
    GIT_CONFIG_NOSYSTEM: '1',
  };
  const git: GitRepo['git'] = (...args) =>
    execFileSync('git', args, {
      cwd: path,
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }).replace(/\n$/, '');
  const add: GitRepo['add'] = more =>
    folder.add(Object.fromEntries(Object.entries(more).map(([name, text]) => [`bakery/${name}`, text])));
  const commit: GitRepo['commit'] = (message, more = {}) => {
    add(more);
    git('add', '-A');
    git('commit', '-q', '--allow-empty', '-m', message);
    return git('rev-parse', 'HEAD');
  };
  copyRepo(path, files, { name: 'Ada', email: 'ada@example.com' });
  return { path, add, git, commit, env, folder, remove: folder.remove };
}
