/** The commits that a plan made, as their trailers say. */

import { TelosError } from '@telos/engine/errors';
import type { JournalLine } from '@telos/protocol/plan';
import { sentence } from '@telos/protocol/text';
import type { Git } from './git.ts';
import type { StoryState } from './storyState.ts';

export interface PlanCommit {
  commit: string;
  tree: string;
  story: string;
  /** The boxes that it closed. */
  items: number[];
  /** Boxes of its story were still open. */
  isPart: boolean;
  /** Names of the checks that it passed. */
  checks: string[];
}

/** Returns the commits of the plan between `base` and `branch`, the oldest first. A branch that is missing has none. */
export async function planCommits(
  git: Git,
  base: string,
  branch: string,
  plan: string,
): Promise<PlanCommit[]> {
  const tip = await git.tip(`refs/heads/${branch}`);
  if (tip === undefined) return [];
  const fields = ['Plan', 'Story', 'Part', 'Item'].map(
    name => `%(trailers:key=Telos-${name},valueonly,separator=%x2C)`,
  );
  const passed = '%(trailers:key=Telos-Check,valueonly,separator=%x1d)';
  const format = ['%H', '%T', ...fields, passed].join('%x1f');
  const log = await git.read([
    'log',
    '--reverse',
    `--format=${format}%x1e`,
    '--end-of-options',
    `${base}..${tip}`,
  ]);
  return log.split('\x1e').flatMap(record => {
    const [commit = '', tree = '', of, story = '', part = '', items = '', names = ''] = record
      .trim()
      .split('\x1f');
    if (of !== plan || (story || part) === '') return [];
    const numbers = items
      .split(',')
      .map(Number)
      .filter(number => number > 0);
    const checks = names.split('\x1d').filter(Boolean);
    return [{ commit, tree, story: story || part, items: numbers, isPart: story === '', checks }];
  });
}

/**
 * Returns whether the plan has made the branch and not discarded it: no run begins with one that was there before, and the first commit of
 * the plan makes it. Any other branch that the plan's settings name is someone's own. True for one that is missing, if a run has begun.
 */
export async function hasMade(
  git: Git,
  lines: readonly JournalLine[],
  branch: string,
  plan: string,
): Promise<boolean> {
  const discarded = lines.findLastIndex(line => line.type === 'finished' && line.how === 'drop');
  let [base, isNow]: [base?: string, isNow?: boolean] = [];
  for (const line of lines.slice(discarded + 1)) {
    if (line.type === 'runner_started') isNow = line.branch === branch;
    if (line.type === 'runner_started' && isNow) base = line.base;
    if (line.type === 'story_passed' && isNow) return true;
  }
  if (base === undefined) return false;
  const isThere = (await git.tip(`refs/heads/${branch}`)) !== undefined;
  return !isThere || (await planCommits(git, base, branch, plan)).length > 0;
}

/** So many commits a branch may have gone on while a story was worked on. */
const mostSteps = 20;

/**
 * Returns the commits of the plan behind `parent` up to `tip`, if these are seen to come one after the other; undefined otherwise. Takes
 * no process of git.
 */
export async function commitsSince(
  git: Git,
  parent: string,
  tip: string,
  plan: string,
): Promise<Pick<PlanCommit, 'commit' | 'story' | 'isPart'>[] | undefined> {
  const found: Pick<PlanCommit, 'commit' | 'story' | 'isPart'>[] = [];
  let commit = tip;
  for (let steps = 0; commit !== parent; steps++) {
    const { parents = [], message = '' } = (await git.commit(commit)) ?? {};
    const [next] = parents;
    if (next === undefined || parents.length > 1 || steps === mostSteps) return undefined;
    const trailers = message.trimEnd().split('\n\n').at(-1) ?? '';
    const [, of] = /^Telos-Plan: (.*)$/m.exec(trailers) ?? [];
    const [, kind, story] = /^Telos-(Story|Part): (.*)$/m.exec(trailers) ?? [];
    if (of === plan && story) found.unshift({ commit, story, isPart: kind === 'Part' });
    commit = next;
  }
  return found;
}

/** Why a story has to be done again, and which of its boxes. All of them if `items` is missing. */
export interface MissingStory {
  story: string;
  why: string;
  items?: number[];
}

/**
 * Returns the passed stories, or boxes of them, that `onBranch` does not have: a person may have reset the branch. Commits that were made
 * anew, such as by a rebase, count by their trailers.
 */
export function missingStories(
  stories: readonly StoryState[],
  onBranch: readonly PlanCommit[],
  branch: string,
): MissingStory[] {
  return stories.flatMap(({ story: { id }, commits }) => {
    const present = onBranch.filter(one => one.story === id);
    const gone = commits.filter(one => !present.some(({ commit }) => commit === one.commit));
    const there = new Set(present.flatMap(({ items }) => items));
    const lost = gone.flatMap(({ items }) => items).filter(item => !there.has(item));
    if (gone.length === 0 || (lost.length === 0 && present.length > 0)) return [];
    const why = `its commit ${gone.at(-1)?.commit.slice(0, 10)} is not on ${branch} any more`;
    return [{ story: id, why, ...(present.length > 0 && { items: lost }) }];
  });
}

/** Returns the error for a branch that had stories and is not there any more. `commit` is the last one that it was seen with. */
export const branchGone = (branch: string, commit: string | undefined): TelosError =>
  new TelosError('config', [
    sentence('The branch {0} of the plan is gone: something else deleted or renamed it.', branch),
    ...(commit === undefined
      ? []
      : [
          sentence(
            'Its stories are in {0}. To bring it back: {1}',
            commit.slice(0, 10),
            `git branch ${branch} ${commit}`,
          ),
        ]),
    sentence('Then run the plan again. Nothing was built without them.'),
  ]);
