/** One attempt at a story: built in a slot, kept, checked, guarded, reviewed, committed, and put on the plan's branch. */
import { type Conflict, putOnBranch } from './attemptBranch.ts';
import { endAttempt, failed } from './attemptEnd.ts';
import { type AttemptCall, type AttemptEnd, type AttemptParts, AttemptScene } from './attemptScene.ts';
import { buildStoryOn, checkAndReview, goOnWith, joinSides, keep, noteStart } from './attemptWork.ts';
import { NoRoom } from './slots.ts';
import { BranchLine, type StorySlots } from './storySlots.ts';
import { isWorkDone } from './storyState.ts';

/** Runs attempts on this machine. One at a time puts its work on the branch. */
export class LocalSlots implements StorySlots {
  readonly canHold = true;
  readonly #parts: AttemptParts;
  readonly #line = new BranchLine();

  constructor(parts: AttemptParts) {
    this.#parts = parts;
  }

  room(chosen: number): number {
    return chosen;
  }

  async run(call: AttemptCall, signal: AbortSignal): Promise<void> {
    const scene = new AttemptScene(this.#parts, call, signal);
    await endAttempt(scene, await this.#through(scene).catch(error => failed(scene, error)));
  }

  async #through(scene: AttemptScene): Promise<AttemptEnd> {
    const ended = await begin(scene);
    if (ended) return ended;
    for (let conflicts = 1; ; conflicts++) {
      const denied = scene.approval ? undefined : await checkAndReview(scene);
      if (denied) return denied;
      const end = await this.#line.pass(place => putOnBranch(scene, place));
      if ('status' in end) return end;
      const stuck = await bringTogether(scene, end, conflicts);
      if (stuck) return stuck;
    }
  }

  async close(): Promise<void> {}
}

/** Comes to kept work: by the one who builds, or from what a runner before had come to. Returns how the attempt ends, if it does. */
async function begin(scene: AttemptScene): Promise<AttemptEnd | undefined> {
  const { slots } = scene.parts;
  const { open } = scene.call.story;
  const number = scene.call.slot + 1;
  if (open?.snapshot) return goOnWith(scene, open, open.snapshot);
  if (open) {
    scene.slot = await slots.find(open.slot);
    if (isWorkDone(open.worked) && scene.slot) return keep(scene);
    return { status: 'interrupted', details: 'It was interrupted before its work was saved.' };
  }
  scene.parent = await scene.branchTip();
  // First the slot: after a crash in between, the files of the story before would be taken for those of this one.
  try {
    scene.slot = await slots.openSlot(number, scene.parent);
  } catch (error) {
    // Nothing has begun, so nothing ends.
    if (error instanceof NoRoom) return { status: 'interrupted', details: error.message, fatal: error };
    throw error;
  }
  await noteStart(scene, number);
  return buildStoryOn(scene);
}

/** Has both sides of a conflict brought together, as a part of the same attempt. From then on the story runs alone. */
async function bringTogether(
  scene: AttemptScene,
  conflict: Conflict,
  count: number,
): Promise<AttemptEnd | undefined> {
  await noteConflict(scene, conflict, scene.place.number);
  const sides = await scene.parts.git.commitTree(conflict.tree, [conflict.parent], 'both sides\n');
  return joinSides(scene, { files: conflict.files, sides, count });
}

/** Notes that the attempt met a conflict, and begins it for what the branch has now. */
export async function noteConflict(
  scene: AttemptScene,
  { files, parent }: Conflict,
  slot: number,
): Promise<void> {
  const details = `It changes the same as what has passed meanwhile: ${files.join(', ')}`;
  await scene.note({ type: 'attempt_ended', ...scene.named, status: 'conflict', details });
  scene.parent = parent;
  await noteStart(scene, slot);
}
