/** Keeps the files of a work tree as a commit that no branch has. */
import { lstatSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Git } from './git.ts';
import type { KeptTree } from './storyState.ts';

export interface Snapshot extends KeptTree {
  files: number;
  added: number;
  removed: number;
}

interface SnapshotOrder {
  ref: string;
  parent: string;
  message: string;
  /** Paths that every slot has beside its files. */
  without: readonly string[];
  /** Returns a place for the `.git` of a repository that was made within the work tree. */
  aside(): string;
}

/** Plans are the engine's alone. */
const plans = '.telos';

/** Returns undefined if the files are those of the parent. */
export async function takeSnapshot(git: Git, order: SnapshotOrder): Promise<Snapshot | undefined> {
  const { ref, parent, message, aside } = order;
  for (let tries = 0; ; tries++) {
    await addAll(git, order);
    const tree = await git.read(['write-tree']);
    const { files, added, removed } = await git.difference(parent, tree);
    if (files.length === 0) return undefined;
    // A repository within the work tree would become a link to a commit that no one else has. Its files are taken instead.
    const nested = files.filter(({ isRepository }) => isRepository).map(({ path }) => path);
    const own = nested.filter(path => lstatSync(join(git.dir, path, '.git'), { throwIfNoEntry: false }));
    if (own.length > 0 && tries < mostTries) {
      await openRepositories(git, own, aside);
      continue;
    }
    const commit = await git.commitTree(tree, [parent], message);
    await git.setRef(ref, commit);
    return { commit, tree, files: files.length, added, removed };
  }
}

/** How deep repositories may lie within each other. */
const mostTries = 5;

async function addAll(git: Git, { without, aside }: SnapshotOrder): Promise<void> {
  const exclude = [plans, ...without].map(path => `:(top,exclude,literal)${path}`);
  const args = ['add', '--all', '--', ':/', ...exclude];
  for (let tries = 0; tries < mostTries; tries++) {
    const { code } = await git.run(args, { allow: [1, 128] });
    if (code === 0) return;
    const nested = await unborn(git);
    if (nested.length === 0) break;
    await openRepositories(git, nested, aside);
  }
  await git.run(args);
}

/** Puts the history of repositories aside, so that their files are files like any other. */
async function openRepositories(git: Git, paths: readonly string[], aside: () => string): Promise<void> {
  for (const path of paths) {
    await rename(join(git.dir, path, '.git'), aside()).catch(() => undefined);
    await git.run(['rm', '-rfq', '--cached', '--ignore-unmatch', '--', `:(top,literal)${path}`]);
  }
}

/** Returns the repositories without a commit, which git cannot add at all. */
async function unborn(git: Git): Promise<string[]> {
  const others = await git.read(['ls-files', '-z', '--others', '--exclude-standard', '--full-name']);
  return others
    .split('\0')
    .filter(path => path.endsWith('/'))
    .map(path => path.slice(0, -1));
}
