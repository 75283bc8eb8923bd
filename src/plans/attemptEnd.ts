/** Ends an attempt: keeps what it was about, notes how it ended, and asks the person where only they know how to go on. */

import { TelosError } from '@telos/engine/errors';
import type { PlanEvent } from '@telos/protocol/plan';
import { beginningOf } from '@telos/protocol/text';
import type { AttemptEnd, AttemptScene } from './attemptScene.ts';

/** The same reason as often as this, and only the person knows how to go on. */
const mostRepeats = 3;

/** Notes the end of an attempt. Throws TelosError for what ends or delays the whole plan, when the journal has the attempt's end. */
export async function endAttempt(scene: AttemptScene, end: AttemptEnd): Promise<void> {
  const { status, fatal, passed, details } = end;
  const isDone = ['approved', 'approved-partial', 'no-change'].includes(status);
  if (!isDone) await keepPatch(scene);
  // What is kept as a commit is checked and reviewed the next time, and is not built or paid for again.
  const goesOn = status === 'interrupted' && hasKeptWork(scene);
  const ended: PlanEvent = { type: 'attempt_ended', ...scene.named, status, details };
  if (!goesOn) await scene.note(...(passed ? [passed] : []), ended);
  if (status === 'denied') await askIfStuck(scene, end);
  if (fatal) throw fatal;
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

/** Keeps what was done as a patch, whatever becomes of it. */
async function keepPatch(scene: AttemptScene): Promise<void> {
  const { parts, slot, parent, call, story } = scene;
  if (!parent) return;
  try {
    const message = `${story.id}: attempt ${call.attempt}, not finished`;
    const ref = scene.refOf(call.attempt);
    if (slot) scene.kept ??= await parts.slots.snapshot(slot, { ref, parent, message });
    if (scene.kept) await parts.slots.savePatch(scene.key, parent, scene.kept.commit);
  } catch (error) {
    // The slot still has it, and what is there is kept before another attempt begins in it.
    if (!(error instanceof TelosError)) throw error;
  }
}

/** Returns how an attempt ends with an error. */
export function failed({ signal }: AttemptScene, error: unknown): AttemptEnd {
  if (signal.aborted) return { status: 'interrupted', details: 'It was stopped.' };
  const message = error instanceof Error ? error.message : String(error);
  const fatal = error instanceof TelosError ? error : new TelosError('internal', message, { cause: error });
  return { status: 'error', details: message, fatal };
}

/** What only the person can mend is asked at once; the same reason again and again does not go away by itself either. */
async function askIfStuck(scene: AttemptScene, { details, asks }: AttemptEnd): Promise<void> {
  const { id } = scene.story;
  const reasons = scene.parts.journal.lines.flatMap(line =>
    line.type === 'attempt_ended' && line.story === id && line.status === 'denied' ? [line.details] : [],
  );
  const last = reasons.slice(-mostRepeats).map(reason => reason.replace(/[\d\s.]+/g, ' '));
  if (!asks && (last.length < mostRepeats || new Set(last).size > 1)) return;
  const what =
    asks ??
    `${id} was denied ${mostRepeats} times for the same reason. Say what to change, or split the story.`;
  const text = `${what}\nThe reason: ${beginningOf(details, 600)}`;
  await scene.note({ type: 'question_parked', question: { id: `${scene.key}-stuck`, story: id, text } });
}
