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

/** The one that goes to the branch before another. */
interface Ahead {
  /** Resolves with the commit that it is about to put there, or undefined if it is not known before it is over. */
  commit: Promise<string | undefined>;
  /** Resolves when the branch has its work, or will not get it. */
  over: Promise<void>;
}

export interface LinePlace {
  ahead?: Ahead;
  /** Says what is about to be put on the branch, so that the next one can get ready for it. Only the first call counts. */
  announce(commit: string): void;
}

/** The place of one that is alone. */
export const onlyPlace: LinePlace = { announce: () => undefined };

/** The attempts that go to the plan's branch, one at a time, in the order in which they were approved. */
export class BranchLine {
  #last: Ahead | undefined;

  /** Calls `work`, which puts nothing on the branch before the one ahead is over. */
  pass<Result>(work: (place: LinePlace) => Promise<Result>): Promise<Result> {
    let announce: (commit?: string) => void = () => undefined;
    const commit = new Promise<string | undefined>(done => {
      announce = done;
    });
    const ahead = this.#last;
    const done = work({ announce, ...(ahead && { ahead }) });
    const over = done
      .then(
        () => undefined,
        () => undefined,
      )
      .then(() => announce());
    this.#last = { commit, over };
    return done;
  }
}
