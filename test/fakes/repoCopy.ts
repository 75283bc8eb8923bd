/** Puts a real repository with one commit in a test's folder. Git makes each kind once in a process; the others are copies of its files. */
import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type TempFolder, tempFolder } from './tempFolder.ts';

export interface Person {
  name: string;
  email: string;
}

/** Folders of what was made, by what it holds. */
const made = new Map<string, string>();
let all: TempFolder | undefined;

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
  const { path: home, add } = kept();
  const own = String(made.size);
  const { name, email } = person ?? { name: 'Ada', email: 'ada@example.com' };
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, GIT_CONFIG_NOSYSTEM: '1' };
  const cwd = join(home, own);
  const git = (...args: readonly string[]): void => {
    execFileSync('git', ['-c', `user.name=${name}`, '-c', `user.email=${email}`, ...args], { cwd, env });
  };
  add(Object.fromEntries(Object.entries(files).map(([file, text]) => [join(own, file), text])));
  git('init', '--quiet', '--initial-branch=main');
  if (person) for (const [field, value] of Object.entries(person)) git('config', `user.${field}`, value);
  git('add', '--all');
  git('-c', 'maintenance.auto=false', 'commit', '--quiet', '--message', 'Begin');
  return cwd;
}

/** The folder of all of them, gone when the process ends. */
function kept(): TempFolder {
  if (all) return all;
  all = tempFolder();
  process.once('exit', all.remove);
  return all;
}

/** Returns the texts of all files below a folder, by their paths in it. */
export const textsIn = (folder: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(folder, { withFileTypes: true, recursive: true })
      .filter(entry => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name))
      .map(file => [relative(folder, file), readFileSync(file, 'utf8')]),
  );
