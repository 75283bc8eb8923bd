/** What is checked out in a repository: files that are not committed, and branches that a work tree holds. */

import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readText } from '@telos/engine/files';
import type { Git } from './git.ts';

/**
 * Returns the files of this work tree that are not as the last commit has them, those included that git does not know. Without those
 * of plans, which change as a plan goes on and are in no story.
 */
export async function dirtyFiles(git: Git): Promise<string[]> {
  const status = await git.read(['status', '--porcelain', '-z', '--no-renames']);
  const paths = status.split('\0').map(entry => entry.slice(3));
  return paths.filter(path => path !== '' && !path.startsWith('.telos/'));
}

/** Returns a setting as the person has it: Telos sets some otherwise for each call. Undefined if it is not set. */
async function ownSetting(git: Git, name: string, type: 'bool' | 'path'): Promise<string | undefined> {
  const args = ['config', '--show-scope', `--type=${type}`, '--get-all', name];
  const { stdout } = await git.run(args, { allow: [1, 128] });
  const own = stdout.split('\n').filter(line => line !== '' && !line.startsWith('command\t'));
  return own.at(-1)?.split('\t')[1];
}

/** Whether the person's git signs commits. */
export const signsCommits = async (git: Git): Promise<boolean> =>
  (await ownSetting(git, 'commit.gpgSign', 'bool')) === 'true';

/** Hooks that a commit or a merge by hand would run. */
const commitHooks = ['pre-commit', 'prepare-commit-msg', 'commit-msg', 'pre-merge-commit'];

/** Returns the names of the person's hooks that commits of a plan do not run. */
export async function hooksOf(git: Git): Promise<string[]> {
  const path = await ownSetting(git, 'core.hooksPath', 'path');
  const folder = path === undefined ? join(await git.commonDir(), 'hooks') : resolve(git.dir, path);
  return commitHooks.filter(name => {
    const stats = statSync(join(folder, name), { throwIfNoEntry: false });
    return stats?.isFile() === true && (process.platform === 'win32' || (stats.mode & 0o111) !== 0);
  });
}

/** In bytes. A pointer is shorter than this. */
const longestPointer = 1024;
const mostPointers = 1000;

/** Returns the files of this work tree that Git LFS keeps and whose objects are not here: pointers stand in their place. */
export async function lfsPointers(git: Git): Promise<string[]> {
  const listed = await git.run(['ls-files', '-z', '--', ':(top,attr:filter=lfs)'], { allow: [128] });
  const paths = listed.stdout.split('\0').filter(Boolean).slice(0, mostPointers);
  return paths.filter(path => {
    const file = join(git.dir, path);
    const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    return (
      size > 0 &&
      size <= longestPointer &&
      readText(file).startsWith('version https://git-lfs.github.com/spec/')
    );
  });
}

/**
 * Returns the commit of a branch and the work tree in which it is checked out, as far as there are such. Moving a branch that is
 * checked out would make that tree look edited.
 */
export async function branchOf(git: Git, name: string): Promise<{ tip?: string; checkedOut?: string }> {
  if (!(await mayBeCheckedOut(git, name))) {
    const tip = await git.tip(`refs/heads/${name}`);
    if (tip !== undefined) return { tip };
  }
  const format = '--format=%(objectname) %(worktreepath)';
  const line = await git.read(['for-each-ref', format, '--', `refs/heads/${name}`]);
  const [, tip, checkedOut] = /^(\S+) (.*)$/.exec(line) ?? [];
  return { ...(tip && { tip }), ...(checkedOut && { checkedOut }) };
}

/** Returns false if every HEAD of the repository is a file that names something else. */
async function mayBeCheckedOut(git: Git, branch: string): Promise<boolean> {
  const common = await git.commonDir();
  const entries = join(common, 'worktrees');
  const names = existsSync(entries) ? readdirSync(entries) : [];
  return [common, ...names.map(name => join(entries, name))].some(folder => {
    const head = headIn(folder);
    return head === undefined || head === `ref: refs/heads/${branch}` || head.endsWith('/.invalid');
  });
}

/** Returns undefined if there is none that can be read, as while a work tree is being made. */
function headIn(folder: string): string | undefined {
  try {
    return readText(join(folder, 'HEAD')).trim();
  } catch {
    return undefined;
  }
}
