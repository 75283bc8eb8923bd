/** Comes from a slot with the right files to kept work that is checked and reviewed: on the plan's machine, and on a worker. */
import { checkWork, setUp } from './attemptChecks.ts';
import type { AttemptEnd, AttemptScene } from './attemptScene.ts';
import { build, buildStory, review } from './attemptSteps.ts';
import { conflictWords } from './attemptWords.ts';
import { mergeOnto } from './integrate.ts';
import { type KeptTree, noChange, type OpenAttempt } from './storyState.ts';

export function noteStart(scene: AttemptScene, slot: number): Promise<unknown> {
  const { parent, open, story } = scene;
  const item = open[0]?.number ?? 0;
  return scene.note({ type: 'attempt_started', ...scene.named, item, slot, parent, role: story.role });
}

/**
 * Has the story built in its slot, from what the attempts before came to, and keeps what comes of it. Returns how the attempt ends, if it
 * does.
 */
export async function buildStoryOn(scene: AttemptScene): Promise<AttemptEnd | undefined> {
  await takeUpEarlier(scene);
  let unready = await setUp(scene);
  if (unready && scene.begun) {
    // The work itself may be what cannot be set up.
    await scene.startAfresh();
    unready = await setUp(scene);
  }
  return unready ?? (await buildStory(scene)) ?? (await keep(scene));
}

/** Gives the slot what the attempts before came to, on top of what the branch has now. Not if both have changed the same. */
async function takeUpEarlier(scene: AttemptScene): Promise<void> {
  const { parts, parent, place, story } = scene;
  const { git, slots } = parts;
  const earlier = await scene.earlierWork();
  if (!earlier) return;
  let { commit } = earlier;
  if (earlier.parent !== parent) {
    const merged = await mergeOnto(git, { ...earlier, tip: parent });
    if ('files' in merged) return;
    commit = await git.commitTree(merged.tree, [parent], `${story.id}: earlier attempts\n`);
  }
  const tree = await git.treeOf(commit);
  if (tree === (await git.treeOf(parent))) return;
  await slots.reset(place, commit);
  scene.begun = { commit, tree };
}

/** Opens the slot of an attempt with work that was kept before. Returns how the attempt ends, if it does. */
export async function goOnWith(
  scene: AttemptScene,
  open: OpenAttempt,
  snapshot: KeptTree,
): Promise<AttemptEnd | undefined> {
  scene.kept = snapshot;
  scene.slot = await scene.parts.slots.openSlot(scene.call.slot + 1, snapshot.commit);
  return takeVerdict(scene, open, snapshot);
}

/** Takes what is known of kept work. Returns how the attempt ends, if it does. */
export function takeVerdict(
  scene: AttemptScene,
  { verdict, checks }: OpenAttempt,
  { tree }: KeptTree,
): AttemptEnd | undefined {
  if (!verdict) return undefined;
  if (!verdict.approved) return { status: 'denied', details: verdict.text };
  scene.approval = verdict;
  scene.results = checks.filter(check => check.tree === tree);
  return undefined;
}

/** Returns how the attempt ends unless its kept work passes its checks and is approved. */
export const checkAndReview = async (scene: AttemptScene): Promise<AttemptEnd | undefined> =>
  (await checkWork(scene)) ?? (await review(scene));

/** Keeps the files of the slot as a commit, and notes it. */
export async function keep(scene: AttemptScene): Promise<AttemptEnd | undefined> {
  const { parts, parent, call, story } = scene;
  const message = `${story.id}: attempt ${call.attempt}`;
  const kept = await parts.slots.snapshot(scene.place, { ref: scene.refOf(call.attempt), parent, message });
  if (!kept) return noChange;
  if (scene.begun?.tree === kept.tree && isDenied(scene, kept.tree)) return noChange;
  scene.kept = kept;
  scene.approval = undefined;
  await scene.note({ type: 'snapshot', ...scene.named, ...kept });
  return undefined;
}

/** Whether the reviewer has denied these very files. */
const isDenied = ({ parts, story }: AttemptScene, tree: string): boolean =>
  parts.journal.lines.some(
    line => line.type === 'verdict' && line.story === story.id && line.tree === tree && !line.approved,
  );

/** The files of a conflict. `sides` is a commit with both sides of each between marks. */
export interface Sides {
  files: readonly string[];
  sides: string;
  /** Of the conflicts of this attempt, from 1. */
  count: number;
}

/** Has both sides of a conflict brought together in the slot, and keeps what comes of it. Returns how the attempt ends, if it does. */
export async function joinSides(
  scene: AttemptScene,
  { files, sides, count }: Sides,
): Promise<AttemptEnd | undefined> {
  const { parts, place, checks, call } = scene;
  await parts.slots.reset(place, sides);
  const key = `${scene.key}.conflict${count === 1 ? '' : count}`;
  const words = conflictWords(call.story, files, checks);
  const ended = (await build(scene, { key, name: 'coder', words })) ?? (await keep(scene));
  if (ended) return ended;
  const marks = ['grep', '-l', '-z', '-E', '^(<<<<<<<|>>>>>>>) ', scene.work.commit, '--', ...files];
  const { stdout, code } = await parts.git.run(marks, { allow: [1] });
  if (code !== 0) return undefined;
  const left = stdout
    .split('\0')
    .filter(Boolean)
    .map(name => name.slice(name.indexOf(':') + 1));
  return { status: 'denied', details: `Marks of the conflict are still in ${left.join(', ')}.` };
}
