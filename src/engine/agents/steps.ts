/** Long synchronous work as a generator that pauses between its steps: done in one go, or in slices that let others have a turn. */
import { setImmediate } from 'node:timers/promises';

/** Each `yield` is a place at which others may have a turn. */
export type Steps<Result> = Generator<void, Result, void>;

/** The work between two turns of the event loop, in milliseconds: the extension host must answer in between. */
const sliceMs = 10;

export function atOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

export async function inSlices<Result>(steps: Steps<Result>): Promise<Result> {
  let sliceEnd = performance.now() + sliceMs;
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (performance.now() < sliceEnd) continue;
    await setImmediate();
    sliceEnd = performance.now() + sliceMs;
  }
}
