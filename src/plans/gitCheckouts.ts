/** What is checked out in a repository: files that are not committed, and branches that a work tree holds. */

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
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
