/** Puts a real repository with one commit in a test's folder. Git makes each kind once in a process; the others are copies of its files. */
import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { tempFolder } from './tempFolder.ts';

export interface Person {
  name: string;
  email: string;
}

/** By what they hold: folder of the repository. */
const made = new Map<string, string>();

/**
 * Makes `path`, with the files in the first commit of `main`. The repository's own settings name the person; without one git knows no name.
 * Returns the commit.
 */
export function copyRepo(path: string, files: Readonly<Record<string, string>>, person?: Person): string {
  const key = JSON.stringify([files, person]);
  const from = made.get(key) ?? makeRepo(files, person);
  made.set(key, from);
  cpSync(from, path, { recursive: true });
  return readFileSync(join(path, '.git/refs/heads/main'), 'utf8').trim();
}

function makeRepo(files: Readonly<Record<string, string>>, person: Person | undefined): string {
  const folder = tempFolder();
  process.once('exit', folder.remove);
  const path = join(folder.path, 'repo');
  const { name, email } = person ?? { name: 'Ada', email: 'ada@example.com' };
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder.path, GIT_CONFIG_NOSYSTEM: '1' };
  const git = (...args: readonly string[]): void => {
    execFileSync('git', ['-C', path, '-c', `user.name=${name}`, '-c', `user.email=${email}`, ...args], { env });
  };
  folder.add(Object.fromEntries(Object.entries(files).map(([file, text]) => [join('repo', file), text])));
  git('init', '--quiet', '--initial-branch=main');
  if (person) for (const [field, value] of Object.entries(person)) git('config', `user.${field}`, value);
  git('add', '--all');
  git('-c', 'maintenance.auto=false', 'commit', '--quiet', '--allow-empty', '--message', 'Begin');
  return path;
}

/** Returns the texts of all files below a folder, by their paths in it. */
export const textsIn = (folder: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(folder, { withFileTypes: true, recursive: true })
      .filter(entry => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name))
      .map(file => [relative(folder, file), readFileSync(file, 'utf8')]),
  );
