/** Makes the commit of a story and puts it on the plan's branch: by one step of one ref, or not at all. */

import { TelosError } from '@telos/engine/errors';
import { beginningOf, sentence } from '@telos/protocol/text';
import type { Git } from './git.ts';
import { branchOf } from './gitCheckouts.ts';
import { commitsSince, type PlanCommit, planCommits } from './planCommits.ts';
import { oneLine } from './prdFile.ts';

export interface StoryCommit {
  plan: string;
  story: string;
  title: string;
  attempt: number;
  /** The boxes that it closes. */
  items: readonly number[];
  /** Other boxes of the story are still open. */
  isPart?: boolean;
  /** Names of the checks that the tree passed. */
  checks: readonly string[];
  /** The reviewer's words. */
  review: string;
  /** The tree that the checks and the reviewer saw. */
  tree: string;
  parent: string;
}

/** Longest trailer. In characters. */
const mostText = 300;

/** Returns the commit, which no branch has yet. */
export function commitStory(git: Git, story: StoryCommit): Promise<string> {
  const { plan, story: id, items, isPart, attempt, checks, review } = story;
  const trailers: [string, string][] = [
    ['Plan', plan],
    [isPart ? 'Part' : 'Story', id],
    ['Item', items.join(',')],
    ['Attempt', String(attempt)],
    ...checks.map((name): [string, string] => ['Check', name]),
    ['Review', review],
  ];
  // Each is one line, whatever a model wrote: a second one could name another story.
  const lines = trailers.map(([name, value]) =>
    `Telos-${name}: ${beginningOf(oneLine(value), mostText)}`.trimEnd(),
  );
  const title = `${id}: ${beginningOf(oneLine(story.title), mostText)}`;
  return git.commitTree(story.tree, [story.parent], `${title}\n\n${lines.join('\n')}\n`);
}

export interface Integration {
  plan: string;
  story: string;
  /** The commit that the plan began with. */
  base: string;
  branch: string;
  commit: string;
  /** The tip of the branch that the commit was made for. */
  parent: string;
  /** Commits of the plan that its journal knows. Another one of this story means that it is there already. */
  known: ReadonlySet<string>;
  /** Whether the branch was there in this run, so that it must not be made anew without its stories. */
  mustExist?: boolean;
  /** Returns a commit that goes to the branch together with this one, behind it. */
  followedBy?(commit: string): Promise<string | undefined>;
  /** False once another runner has taken the plan. */
  isOurs?(): boolean;
}

export type Integrated =
  | { kind: 'passed'; commit: string }
  /** The branch has moved. `tree` has both; check it, and integrate `commit` for `parent`. */
  | { kind: 'moved'; tree: string; commit: string; parent: string }
  /** `tree` has both sides, between marks in the files. */
  | { kind: 'conflict'; files: string[]; tree: string; parent: string }
  /** The branch is checked out in a work tree of the person's, whose files would seem edited. */
  | { kind: 'checked-out'; where: string }
  | { kind: 'not-ours' }
  /** The branch was there, and is not any more. */
  | { kind: 'gone' };

/** Moves the branch to the commit if it is where the commit expects it. Never moves it in any other way. */
export async function integrate(git: Git, order: Integration): Promise<Integrated> {
  const { base, branch, commit, parent, followedBy, isOurs = () => true } = order;
  for (;;) {
    const { tip: present, checkedOut } = await branchOf(git, branch);
    if (checkedOut !== undefined) return { kind: 'checked-out', where: checkedOut };
    if (present === undefined && order.mustExist) return { kind: 'gone' };
    const ref = `refs/heads/${branch}`;
    const tip = present ?? base;
    if (tip !== parent) return integrateOnto(git, order, tip);
    const head = (await followedBy?.(commit)) ?? commit;
    if (!isOurs()) return { kind: 'not-ours' };
    if (await git.casRef(ref, head, present)) return { kind: 'passed', commit };
  }
}

/** Returns what has to happen to the commit once the branch is at `tip`. */
export async function integrateOnto(git: Git, order: Integration, tip: string): Promise<Integrated> {
  const there = await alreadyThere(git, order, tip);
  return there ? { kind: 'passed', commit: there.commit } : moveOnto(git, order, tip);
}

async function alreadyThere(
  git: Git,
  { base, branch, plan, story, commit, known, parent }: Integration,
  tip: string,
): Promise<Pick<PlanCommit, 'commit'> | undefined> {
  const commits =
    (await commitsSince(git, parent, tip, plan)) ?? (await planCommits(git, base, branch, plan));
  return commits.find(
    one => one.commit === commit || (one.story === story && !one.isPart && !known.has(one.commit)),
  );
}

/** Returns the same change on the branch's tip, as a commit with the same words. */
async function moveOnto(git: Git, { commit, parent, plan }: Integration, tip: string): Promise<Integrated> {
  const isBehind = (await commitsSince(git, parent, tip, plan)) !== undefined;
  const merged = await (isBehind ? mergeTree(git, tip, commit) : mergeOnto(git, { tip, parent, commit }));
  if ('files' in merged) return { kind: 'conflict', ...merged, parent: tip };
  const words = await git.commit(commit);
  if (!words)
    throw new TelosError('config', [
      sentence('{0} is not a commit that can be read in {1}.', commit, git.dir),
    ]);
  const moved = await git.commitTree(merged.tree, [tip], `${words.message.trimEnd()}\n`);
  return { kind: 'moved', tree: merged.tree, commit: moved, parent: tip };
}

/** Returns the tree with what `commit` changes since `parent` on top of `tip`, and the files in which both change the same. */
export async function mergeOnto(
  git: Git,
  { tip, parent, commit }: { tip: string; parent: string; commit: string },
): Promise<{ tree: string } | { tree: string; files: string[] }> {
  const { ours, theirs } = await sidesOf(git, { tip, parent, commit });
  return mergeTree(git, ours, theirs);
}

async function mergeTree(
  git: Git,
  ours: string,
  theirs: string,
): Promise<{ tree: string } | { tree: string; files: string[] }> {
  const args = ['merge-tree', '--write-tree', '--name-only', '--no-messages', '-z', ours, theirs];
  const { stdout, code } = await git.run(args, { allow: [1] });
  const [tree = '', ...files] = stdout.split('\0').filter(Boolean);
  return code === 0 ? { tree } : { tree, files: [...new Set(files)] };
}

/** Two commits whose common ancestor has the parent's tree. A branch that was reset by a person may lack the parent. */
async function sidesOf(
  git: Git,
  { tip, parent, commit }: { tip: string; parent: string; commit: string },
): Promise<{ ours: string; theirs: string }> {
  const { stdout } = await git.run(['merge-base', tip, commit], { allow: [1] });
  if (stdout.trim() === parent) return { ours: tip, theirs: commit };
  const root = await git.commitTree(await git.treeOf(parent), [], 'parent\n');
  return {
    ours: await git.commitTree(await git.treeOf(tip), [root], 'tip\n'),
    theirs: await git.commitTree(await git.treeOf(commit), [root], 'story\n'),
  };
}
