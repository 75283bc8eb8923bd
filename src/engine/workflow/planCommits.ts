/** The commits that a plan made, as their trailers say. */
import type { Git } from './git.ts';

export interface PlanCommit {
  commit: string;
  tree: string;
  story: string;
  /** The boxes that it closed. */
  items: number[];
  /** Boxes of its story were still open. */
  isPart: boolean;
}

/** Returns the commits of the plan between `base` and `branch`, the oldest first. A branch that is missing has none. */
export async function planCommits(
  git: Git,
  base: string,
  branch: string,
  plan: string,
): Promise<PlanCommit[]> {
  const tip = await git.tip(branch);
  if (tip === undefined) return [];
  const fields = ['Plan', 'Story', 'Part', 'Item'].map(
    name => `%(trailers:key=Telos-${name},valueonly,separator=%x2C)`,
  );
  const format = ['%H', '%T', ...fields].join('%x1f');
  const log = await git.read([
    'log',
    '--reverse',
    `--format=${format}%x1e`,
    '--end-of-options',
    `${base}..${tip}`,
  ]);
  return log.split('\x1e').flatMap(record => {
    const [commit = '', tree = '', of, story = '', part = '', items = ''] = record.trim().split('\x1f');
    if (of !== plan || (story || part) === '') return [];
    const numbers = items
      .split(',')
      .map(Number)
      .filter(number => number > 0);
    return [{ commit, tree, story: story || part, items: numbers, isPart: story === '' }];
  });
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
