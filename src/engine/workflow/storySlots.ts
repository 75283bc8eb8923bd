/** The places in which stories are worked on. All that a plan knows of them. */
import type { AttemptCall } from './attemptScene.ts';

export interface StorySlots {
  /** Whether a paused plan holds an attempt between two rounds of its model. Otherwise it is ended, and begun again later. */
  readonly canHold: boolean;
  /** Returns how many stories may be worked on at once now, if a person has chosen so many. At least 1. */
  room(chosen: number): number;
  /**
   * Runs an attempt to its end, or goes on with one that was cut off. What happens is in the journal. Throws TelosError for what
   * ends or delays the whole plan, when the journal has the attempt's end.
   */
  run(call: AttemptCall, signal: AbortSignal): Promise<void>;
  /** Call it when the plan rests. */
  close(): Promise<void>;
}

/** Returns a function that calls what it is given one after the other. */
export function oneAtATime(): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve();
  return work => {
    const turn = last.then(work, work);
    last = turn.catch(() => undefined);
    return turn;
  };
}
