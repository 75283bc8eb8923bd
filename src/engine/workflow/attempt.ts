/** One attempt at a story: built in a slot, kept, checked, guarded, reviewed, committed, and put on the plan's branch. */
import { TelosError } from '../errors.ts';
import { checkTree, checkWork, setUp } from './attemptChecks.ts';
import { type AttemptCall, type AttemptEnd, type AttemptParts, AttemptScene } from './attemptScene.ts';
import { build, buildStory, review } from './attemptSteps.ts';
import { conflictWords } from './attemptWords.ts';
import { commitStory, type Integrated, integrate } from './integrate.ts';
import { learnedOf, learningsCommit } from './learnings.ts';
import { isWorkDone, noChange } from './storyState.ts';

/** The same reason as often as this, and only the person knows how to go on. */
const mostRepeats = 3;

type Conflict = Extract<Integrated, { kind: 'conflict' }>;

/** Runs attempts. One at a time puts its work on the branch. */
export class Attempts {
  readonly #parts: AttemptParts;
  #integrating: Promise<unknown> = Promise.resolve();

  constructor(parts: AttemptParts) {
    this.#parts = parts;
  }

  /**
   * Runs an attempt to its end, or goes on with one that was cut off. What happens is in the journal. Throws TelosError for what
   * ends or delays the whole plan, when the journal has the attempt's end.
   */
  async run(call: AttemptCall, signal: AbortSignal): Promise<void> {
    const scene = new AttemptScene(this.#parts, call, signal);
    const end = await this.#through(scene).catch(error => failed(scene, error));
    const { status, details, fatal } = end;
    const isDone = ['approved', 'approved-partial', 'no-change'].includes(status);
    if (!isDone) await keepPatch(scene);
    // What is kept as a commit is checked and reviewed the next time; nobody builds it, or pays for it, once more.
    const goesOn = status === 'interrupted' && hasKeptWork(scene);
    if (!goesOn) await scene.note({ type: 'attempt_ended', ...scene.named, status, details });
    if (status === 'denied') await askIfStuck(scene, details);
    if (fatal) throw fatal;
  }

  async #through(scene: AttemptScene): Promise<AttemptEnd> {
    const ended = await begin(scene);
    if (ended) return ended;
    for (let conflicts = 1; ; conflicts++) {
      const denied = scene.approval ? undefined : ((await checkWork(scene)) ?? (await review(scene)));
      if (denied) return denied;
      const end = await this.#inTurn(() => putOnBranch(scene));
      if ('status' in end) return end;
      const stuck = await bringTogether(scene, end, conflicts);
      if (stuck) return stuck;
    }
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#integrating.then(work, work);
    this.#integrating = turn.catch(() => undefined);
    return turn;
  }
}

/** Whether the journal names a commit of the work that this attempt came to last. */
function hasKeptWork({ parts, named }: AttemptScene): boolean {
  const last = parts.journal.lines.findLast(
    line =>
      (line.type === 'attempt_started' || line.type === 'snapshot') &&
      line.story === named.story &&
      line.attempt === named.attempt,
  );
  return last?.type === 'snapshot';
}

/** Comes to kept work: by the one who builds, or from what a runner before had come to. Returns how the attempt ends, if it does. */
async function begin(scene: AttemptScene): Promise<AttemptEnd | undefined> {
  const { slots, git, settings, base } = scene.parts;
  const { open } = scene.call.story;
  const number = scene.call.slot + 1;
  if (open?.snapshot) {
    const { commit, tree } = open.snapshot;
    scene.kept = open.snapshot;
    scene.slot = await slots.openSlot(number, commit);
    if (!open.verdict) return undefined;
    if (!open.verdict.approved) return { status: 'denied', details: open.verdict.text };
    scene.approval = open.verdict;
    scene.results = open.checks.filter(check => check.tree === tree);
    return undefined;
  }
  if (open) {
    scene.slot = await slots.find(open.slot);
    if (isWorkDone(open.worked) && scene.slot) return keep(scene);
    return { status: 'interrupted', details: 'It was cut off before its work was kept.' };
  }
  scene.parent = (await git.tip(`refs/heads/${settings.branch}`)) ?? base;
  // First the slot: after a crash in between, the files of the story before would be taken for those of this one.
  scene.slot = await slots.openSlot(number, scene.parent);
  await noteStart(scene, number);
  return (await setUp(scene)) ?? (await buildStory(scene)) ?? (await keep(scene));
}

function noteStart(scene: AttemptScene, slot: number): Promise<unknown> {
  const { parent, open, story } = scene;
  const item = open[0]?.number ?? 0;
  return scene.note({ type: 'attempt_started', ...scene.named, item, slot, parent, role: story.role });
}

/** Keeps the files of the slot as a commit, and notes it. */
async function keep(scene: AttemptScene): Promise<AttemptEnd | undefined> {
  const { parts, parent, call, story } = scene;
  const message = `${story.id}: attempt ${call.attempt}`;
  const kept = await parts.slots.snapshot(scene.place, { ref: scene.refOf(call.attempt), parent, message });
  if (!kept) return noChange;
  scene.kept = kept;
  scene.approval = undefined;
  await scene.note({ type: 'snapshot', ...scene.named, ...kept });
  return undefined;
}

/** Puts the work on the branch. If that has moved, the checks run on what comes out of both. */
async function putOnBranch(scene: AttemptScene): Promise<AttemptEnd | Conflict> {
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
        const part = isPart ? { part: true as const } : {};
        await scene.note({
          ...{ type: 'story_passed', ...scene.named, items: [...items], commit: done.commit },
          ...part,
        });
        return { status: isPart ? 'approved-partial' : 'approved', details: text };
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

/** Has both sides of a conflict brought together, as a part of the same attempt. From then on the story runs alone. */
async function bringTogether(
  scene: AttemptScene,
  { files, tree, parent }: Conflict,
  count: number,
): Promise<AttemptEnd | undefined> {
  const { parts, place, checks, call } = scene;
  const { git, slots } = parts;
  const details = `It changes the same as what has passed meanwhile: ${files.join(', ')}`;
  await scene.note({ type: 'attempt_ended', ...scene.named, status: 'conflict', details });
  scene.parent = parent;
  await noteStart(scene, place.number);
  await slots.reset(place, await git.commitTree(tree, [parent], 'both sides\n'));
  const key = `${scene.key}.conflict${count === 1 ? '' : count}`;
  const words = conflictWords(call.story, files, checks);
  const ended = (await build(scene, { key, name: 'coder', words })) ?? (await keep(scene));
  if (ended) return ended;
  const marks = ['grep', '-l', '-z', '-E', '^(<<<<<<<|>>>>>>>) ', scene.work.commit, '--', ...files];
  const { stdout, code } = await git.run(marks, { allow: [1] });
  if (code !== 0) return undefined;
  const left = stdout
    .split('\0')
    .filter(Boolean)
    .map(name => name.slice(name.indexOf(':') + 1));
  return { status: 'denied', details: `Marks of the conflict are still in ${left.join(', ')}.` };
}

/** Keeps what was done as a patch, whatever becomes of it. */
async function keepPatch(scene: AttemptScene): Promise<void> {
  const { parts, slot, parent, call, story } = scene;
  if (!slot || !parent) return;
  try {
    const message = `${story.id}: attempt ${call.attempt}, not finished`;
    scene.kept ??= await parts.slots.snapshot(slot, { ref: scene.refOf(call.attempt), parent, message });
    if (scene.kept) await parts.slots.savePatch(scene.key, parent, scene.kept.commit);
  } catch (error) {
    // The slot still has it, and what is there is kept before another attempt begins in it.
    if (!(error instanceof TelosError)) throw error;
  }
}

function failed({ signal }: AttemptScene, error: unknown): AttemptEnd {
  if (signal.aborted) return { status: 'interrupted', details: 'It was stopped.' };
  const message = error instanceof Error ? error.message : String(error);
  const fatal = error instanceof TelosError ? error : new TelosError('internal', message, { cause: error });
  return { status: 'error', details: message, fatal };
}

/** The same reason again and again does not go away by itself. */
async function askIfStuck(scene: AttemptScene, details: string): Promise<void> {
  const { id } = scene.story;
  const reasons = scene.parts.journal.lines.flatMap(line =>
    line.type === 'attempt_ended' && line.story === id && line.status === 'denied' ? [line.details] : [],
  );
  const last = reasons.slice(-mostRepeats).map(reason => reason.replace(/[\d\s.]+/g, ' '));
  if (last.length < mostRepeats || new Set(last).size > 1) return;
  const text = `${id} was denied ${mostRepeats} times for the same reason. What should be done differently? Answer, or have it split into smaller stories with: telos plan split --story ${id}\nThe reason: ${details.slice(0, 600)}`;
  await scene.note({ type: 'question_parked', question: { id: `${scene.key}-stuck`, story: id, text } });
}
