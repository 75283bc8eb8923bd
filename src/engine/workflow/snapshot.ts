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
    const changes = await git.read([
      'diff-tree',
      '-r',
      '--raw',
      '--numstat',
      '-z',
      '--no-renames',
      parent,
      tree,
    ]);
    const { nested, ...size } = readChanges(changes);
    if (size.files === 0) return undefined;
    // A repository within the work tree would become a link to a commit that nobody else has. Its files are taken instead.
    const own = nested.filter(path => lstatSync(join(git.dir, path, '.git'), { throwIfNoEntry: false }));
    if (own.length > 0 && tries < mostTries) {
      await openRepositories(git, own, aside);
      continue;
    }
    const commit = await git.commitTree(tree, [parent], message);
    await git.run(['update-ref', ref, commit]);
    return { commit, tree, ...size };
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

/** Reads raw records, `:modes objects status` and a path, and then lines added, lines removed and a path. */
function readChanges(changes: string): { files: number; added: number; removed: number; nested: string[] } {
  const found = { files: 0, added: 0, removed: 0, nested: [] as string[] };
  const parts = changes.split('\0').filter(Boolean);
  for (let index = 0; index < parts.length; index++) {
    const [part = '', next = ''] = [parts[index], parts[index + 1]];
    if (part.startsWith(':')) {
      found.files++;
      if (part.split(' ')[1] === '160000' && !part.startsWith(':160000')) found.nested.push(next);
      index++;
      continue;
    }
    const [added, removed] = part.split('\t');
    found.added += Number(added) || 0;
    found.removed += Number(removed) || 0;
  }
  return found;
}
