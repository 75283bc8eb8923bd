/** Puts the kept and approved work of an attempt on the plan's branch. */
import type { PlanEvent } from '../../protocol/plan.ts';
import { TelosError } from '../errors.ts';
import { checkTree } from './attemptChecks.ts';
import type { AttemptEnd, AttemptScene } from './attemptScene.ts';
import { commitStory, type Integrated, integrate } from './integrate.ts';
import { learnedOf, learningsCommit } from './learnings.ts';

export type Conflict = Extract<Integrated, { kind: 'conflict' }>;

/** Puts the work on the branch. If that has moved, the checks run on what comes out of both. */
export async function putOnBranch(scene: AttemptScene): Promise<AttemptEnd | Conflict> {
  const { parts, story, call, open, results } = scene;
  const notes = learnedOf(parts.journal.lines, story.id);
  const { folder, git, settings, base, slots, isOurs } = parts;
  const { text = '', items = [] } = scene.approval ?? {};
  const isPart = open.some(({ number }) => !items.includes(number));
  const whose = { plan: folder.name, story: story.id };
  let { parent } = scene;
  let commit = await commitStory(git, {
    ...{ ...whose, title: story.title, attempt: call.attempt, items, isPart, review: text, parent },
    ...{ checks: results.map(({ name }) => name), tree: scene.work.tree },
  });
  for (;;) {
    scene.signal.throwIfAborted();
    const done = await integrate(git, {
      ...{ ...whose, base, branch: settings.branch, commit, parent, known: knownCommits(scene) },
      followedBy: one => learningsCommit(git, one, { ...whose, notes }),
      ...(isOurs && { isOurs }),
    });
    switch (done.kind) {
      case 'conflict':
        return done;
      case 'passed': {
        const passed: PlanEvent = {
          ...{ type: 'story_passed', ...scene.named, items: [...items], commit: done.commit },
          ...(isPart && { part: true }),
        };
        return { status: isPart ? 'approved-partial' : 'approved', details: text, passed };
      }
      case 'checked-out': {
        const details = `The plan's branch ${settings.branch} is checked out in ${done.where}, so nothing can be put on it. Switch to another branch there.`;
        return { status: 'interrupted', details, fatal: new TelosError('config', details) };
      }
      case 'not-ours':
        return { status: 'interrupted', details: 'Another runner has taken the plan.' };
      case 'moved': {
        ({ commit, parent } = done);
        await slots.reset(scene.place, commit);
        const denied = await checkTree(scene, done.tree, ' together with what has passed meanwhile');
        if (denied) return denied;
      }
    }
  }
}

function knownCommits({ parts }: AttemptScene): Set<string> {
  return new Set(parts.journal.lines.flatMap(line => (line.type === 'story_passed' ? [line.commit] : [])));
}
