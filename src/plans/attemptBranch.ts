/** Puts the kept and approved work of an attempt on the plan's branch. */

import { TelosError } from '@telos/engine/errors';
import type { PlanEvent } from '@telos/protocol/plan';
import { sentence } from '@telos/protocol/text';
import { checkTree } from './attemptChecks.ts';
import type { AttemptEnd, AttemptScene } from './attemptScene.ts';
import { commitStory, type Integrated, type Integration, integrate, integrateOnto } from './integrate.ts';
import { learnedOf, learningsCommit } from './learnings.ts';
import { branchGone } from './planCommits.ts';
import { type LinePlace, onlyPlace } from './storySlots.ts';

export type Conflict = Extract<Integrated, { kind: 'conflict' }>;

/**
 * Puts the work on the branch. If that has moved, or is about to move by the one ahead, the checks run on what comes out of both.
 */
export async function putOnBranch(
  scene: AttemptScene,
  place: LinePlace = onlyPlace,
): Promise<AttemptEnd | Conflict> {
  const { parts, story, call, open, results } = scene;
  const notes = learnedOf(parts.journal.lines, story.id);
  const { folder, git, settings, base, isOurs } = parts;
  const { text = '', items = [] } = scene.approval ?? {};
  const isPart = open.some(({ number }) => !items.includes(number));
  const whose = { plan: folder.name, story: story.id };
  const { parent } = scene;
  const commit = await commitStory(git, {
    ...whose,
    title: story.title,
    attempt: call.attempt,
    items,
    isPart,
    review: text,
    parent,
    checks: results.map(({ name }) => name),
    tree: scene.work.tree,
  });
  const heads = new Map<string, Promise<string | undefined>>();
  const followedBy = (one: string): Promise<string | undefined> => {
    const head = heads.get(one) ?? learningsCommit(git, one, { ...whose, notes });
    heads.set(one, head);
    return head;
  };
  let order: Integration = {
    ...whose,
    base,
    branch: settings.branch,
    commit,
    parent,
    known: knownCommits(scene),
    followedBy,
    ...(isOurs && { isOurs }),
    mustExist: parts.branchWasThere?.() ?? false,
  };
  const check = async ({ tree, commit: merged }: Moved): Promise<AttemptEnd | undefined> => {
    place.announce((await followedBy(merged)) ?? merged);
    await parts.slots.reset(scene.place, merged);
    return checkTree(scene, tree, ' together with what has passed meanwhile');
  };
  const ready = await getReady(scene, order, place, check);
  if (ready?.denied) return ready.denied;
  order = { ...order, ...ready?.moved };
  for (;;) {
    scene.signal.throwIfAborted();
    const done = await integrate(git, order);
    switch (done.kind) {
      case 'conflict':
        return done;
      case 'passed': {
        const passed: PlanEvent = {
          type: 'story_passed',
          ...scene.named,
          items: [...items],
          commit: done.commit,
          ...(isPart && { part: true }),
        };
        return { status: isPart ? 'approved-partial' : 'approved', details: text, passed };
      }
      case 'checked-out': {
        const fatal = new TelosError('config', [
          sentence(
            "The plan's branch {0} is checked out in {1}, so nothing can be put on it.",
            ...[settings.branch, done.where],
          ),
          sentence('Switch to another branch there.'),
        ]);
        return { status: 'interrupted', details: fatal.message, fatal };
      }
      case 'gone': {
        const fatal = branchGone(settings.branch, [...order.known].at(-1));
        return { status: 'interrupted', details: fatal.message, fatal };
      }
      case 'not-ours':
        return { status: 'interrupted', details: 'Another runner has taken the plan.' };
      case 'moved': {
        const denied = await check(done);
        if (denied) return denied;
        order = { ...order, commit: done.commit, parent: done.parent };
      }
    }
  }
}

type Moved = Extract<Integrated, { kind: 'moved' }>;

/**
 * Waits for the one ahead, and meanwhile checks what comes out of both. Returns undefined if the branch then is not where that one was
 * about to put it.
 */
async function getReady(
  { parts: { git } }: AttemptScene,
  order: Integration,
  { ahead }: LinePlace,
  check: (moved: Moved) => Promise<AttemptEnd | undefined>,
): Promise<{ moved: Pick<Moved, 'commit' | 'parent'>; denied: AttemptEnd | undefined } | undefined> {
  const tip = await ahead?.commit;
  if (ahead === undefined || tip === undefined) return undefined;
  const moved = await integrateOnto(git, order, tip);
  const denied = moved.kind === 'moved' ? await check(moved) : undefined;
  await ahead.over;
  if (moved.kind !== 'moved' || (await git.tip(`refs/heads/${order.branch}`)) !== tip) return undefined;
  return { moved: { commit: moved.commit, parent: moved.parent }, denied };
}

function knownCommits({ parts }: AttemptScene): Set<string> {
  return new Set(parts.journal.lines.flatMap(line => (line.type === 'story_passed' ? [line.commit] : [])));
}
