/** Ends a plan: brings what passed into the person's branch, or leaves or drops it. The one place that touches the person's checkout. */
import type { FinishKind } from '../../protocol/plan.ts';
import { TelosError } from '../errors.ts';
import type { Git } from './git.ts';
import { mergeOnto } from './integrate.ts';
import type { Slots } from './slots.ts';

export interface Finish {
  git: Git;
  slots: Slots;
  plan: string;
  base: string;
  branch: string;
  goal: string;
}

/** What was done, and what of the work trees stays. */
export interface Finished {
  commit?: string;
  /** The branch that it was merged into. */
  into?: string;
  kept: readonly { dir: string; why: string }[];
}

const mostNamed = 10;

/** Throws TelosError `config` if the checkout is not clean, no branch is checked out, or the two cannot be merged without a conflict. */
export async function finishPlan(how: FinishKind, parts: Finish): Promise<Finished> {
  const { git, slots, branch } = parts;
  const tip = await git.tip(`refs/heads/${branch}`);
  if (how === 'merge' || how === 'squash') {
    if (tip === undefined)
      throw new TelosError(
        'config',
        `The plan's branch ${branch} has no commits yet, so there is nothing to merge.`,
      );
    const done = await merge(how, tip, parts);
    return { ...done, kept: (await slots.removeSlots()).kept };
  }
  if (how === 'drop' && tip !== undefined) await git.run(['update-ref', '-d', `refs/heads/${branch}`, tip]);
  const { kept } = await slots.removeSlots();
  return { ...(tip !== undefined && how === 'keep' && { commit: tip }), kept };
}

async function merge(
  how: 'merge' | 'squash',
  tip: string,
  { git, branch, plan, goal, base }: Finish,
): Promise<{ commit: string; into: string }> {
  const dirty = await git.dirtyFiles();
  if (dirty.length > 0) throw notClean(dirty);
  const into = (await git.run(['symbolic-ref', '--quiet', '--short', 'HEAD'], { allow: [1] })).stdout.trim();
  if (into === '')
    throw new TelosError(
      'config',
      `No branch is checked out, so there is none to merge into. Check one out, or keep ${branch}.`,
    );
  const head = (await git.tip('HEAD')) ?? base;
  const { stdout } = await git.run(['merge-base', head, tip], { allow: [1] });
  const parent = stdout.trim() || base;
  const merged = await mergeOnto(git, { tip: head, parent, commit: tip });
  if ('files' in merged)
    throw new TelosError(
      'config',
      `${into} and ${branch} both changed ${merged.files.slice(0, mostNamed).join(', ')}. Nothing was changed. Merge by hand with: git merge ${branch}`,
    );
  if (how === 'squash') {
    const commit = await git.commitTree(merged.tree, [head], `${goal}\n\nTelos-Plan: ${plan}\n`);
    await git.run(['merge', '--ff-only', '--quiet', '--end-of-options', commit]);
    return { commit, into };
  }
  const isAhead = parent === head;
  const commit = isAhead
    ? tip
    : await git.commitTree(merged.tree, [head, tip], `Merge plan ${plan}\n\n${goal}\n`);
  await git.run(['merge', '--ff-only', '--quiet', '--end-of-options', commit]);
  return { commit, into };
}

function notClean(files: readonly string[]): TelosError {
  const shown = files.slice(0, mostNamed).join(', ');
  const more = files.length > mostNamed ? ` and ${files.length - mostNamed} more` : '';
  return new TelosError(
    'config',
    `These files are not committed: ${shown}${more}. Commit them or put them aside first. Nothing was changed.`,
  );
}
