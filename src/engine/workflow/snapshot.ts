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
  const { ref, parent, message } = order;
  const tree = await treeOfFiles(git, order);
  if (tree === (await git.treeOf(parent))) return undefined;
  const size = sizeOf(await git.read(['diff-tree', '-r', '--numstat', '-z', '--no-renames', parent, tree]));
  const commit = await git.commitTree(tree, [parent], message);
  await git.run(['update-ref', ref, commit]);
  return { commit, tree, ...size };
}

async function treeOfFiles(git: Git, { without, aside }: SnapshotOrder): Promise<string> {
  const exclude = [plans, ...without].map(path => `:(top,exclude,literal)${path}`);
  const add = () => git.run(['add', '--all', '--', ':/', ...exclude], { allow: [1, 128] });
  // A repository within the work tree would become a link to a commit that nobody else has. Its files are taken instead.
  for (let answer = await add(), tries = 0; ; tries++, answer = await add()) {
    const nested = answer.code === 0 ? await newRepositories(git) : await unborn(git);
    if (nested.length === 0 && answer.code !== 0) await git.run(['add', '--all', '--', ':/', ...exclude]);
    if (nested.length === 0 || tries === 5) return git.read(['write-tree']);
    for (const path of nested) {
      await rename(join(git.dir, path, '.git'), aside()).catch(() => undefined);
      await git.run(['rm', '-rfq', '--cached', '--ignore-unmatch', '--', `:(top,literal)${path}`]);
    }
  }
}

/** Returns the repositories that the index has got since HEAD. */
async function newRepositories(git: Git): Promise<string[]> {
  const staged = await git.read(['ls-files', '-s', '-z']);
  const links = staged.split('\0').filter(entry => entry.startsWith('160000 '));
  const paths = links.map(entry => entry.slice(entry.indexOf('\t') + 1));
  return paths.filter(path => lstatSync(join(git.dir, path, '.git'), { throwIfNoEntry: false }));
}

/** Returns the repositories without a commit, which git cannot add at all. */
async function unborn(git: Git): Promise<string[]> {
  const others = await git.read(['ls-files', '-z', '--others', '--exclude-standard', '--full-name']);
  return others
    .split('\0')
    .filter(path => path.endsWith('/'))
    .map(path => path.slice(0, -1));
}

function sizeOf(numstat: string): { files: number; added: number; removed: number } {
  const rows = numstat
    .split('\0')
    .filter(Boolean)
    .map(row => row.split('\t'));
  const sum = (column: number): number => rows.reduce((total, row) => total + (Number(row[column]) || 0), 0);
  return { files: rows.length, added: sum(0), removed: sum(1) };
}
