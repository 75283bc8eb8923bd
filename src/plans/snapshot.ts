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
  /** Names that stay in a slot. What git has of them is the project's. */
  kept?: readonly string[];
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

async function addAll(git: Git, { without, kept = [], aside }: SnapshotOrder): Promise<void> {
  let excluded = [plans, ...without];
  const outside = await untracked(git, kept);
  const add = (allow: number[]) => {
    const exclude = [...excluded.map(path => `:(top,exclude,literal)${path}`), ...outside.flatMap(anywhere)];
    return git.run(['add', '--all', '--', ':/', ...exclude], { allow });
  };
  for (let tries = 0; tries < mostTries; tries++) {
    const { code } = await add([1, 128]);
    if (code === 0) return;
    const named = await notIgnored(git, excluded);
    const nested = await unborn(git);
    if (named.length === excluded.length && nested.length === 0) break;
    excluded = named;
    await openRepositories(git, nested, aside);
  }
  await add([]);
}

/** A name without a folder stays wherever it is. */
const anywhere = (path: string): string[] => {
  const glob = `${path.includes('/') ? '' : '**/'}${path.replace(/[*?[\]\\]/g, '\\$&')}`;
  return [`:(top,exclude,glob)${glob}`, `:(top,exclude,glob)${glob}/**`];
};

/** Returns the paths that git neither ignores nor has. */
async function untracked(git: Git, paths: readonly string[]): Promise<string[]> {
  if (paths.length === 0) return [];
  const left = await notIgnored(git, paths);
  const known = await Promise.all(
    left.map(path => git.read(['ls-files', '-z', '--', `:(top,literal)${path}`])),
  );
  return left.filter((_, at) => known[at] === '');
}

/** Returns the paths that git does not ignore by itself: it refuses to add anything where an ignored one is named, also as an exclusion. */
async function notIgnored(git: Git, paths: readonly string[]): Promise<string[]> {
  const input = paths.map(path => `${path}\0`).join('');
  const { stdout } = await git.run(['check-ignore', '-z', '--stdin'], { allow: [1], input });
  const ignored = new Set(stdout.split('\0'));
  return paths.filter(path => !ignored.has(path));
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
