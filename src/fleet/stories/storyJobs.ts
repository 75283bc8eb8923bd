/** What a plan needs of a database with workers: that an order gets to one of them, and that its facts come back. */
import type { AttemptStatus } from '@telos/protocol/plan';
import type { RunError } from '@telos/protocol/run';
import type { StoryOrder } from './storyOrder.ts';

/** A job that a worker has, or had. */
export interface GivenJob {
  key: string;
  worker: string;
}

export interface JobTalk {
  /** Called before the worker gets the job. It gets it once this has resolved. */
  given(job: GivenJob): Promise<void>;
  /** Called with the facts as they come, those that are known already left out. */
  facts(facts: readonly unknown[]): Promise<void>;
}

/** What became of a job. */
export type JobEnd =
  /** What the worker says at the end. */
  | { kind: 'ended'; worker: string; end: unknown }
  /** No worker that is there takes it. */
  | { kind: 'refused'; why: string }
  /** The worker is gone or has handed it back. */
  | { kind: 'left'; worker: string; why: string };

export interface StoryJobs {
  /** How many jobs the workers that are there take at once. */
  room(): number;
  /** Returns what an answer to the order of that name must bring. It goes to workers over the git remote alone, never over the database. */
  proof(name: string): string;
  /** Gives a job to a worker with room, and resolves when it has ended. Cancels it on abort, and throws the abort reason. */
  give(name: string, order: Omit<StoryOrder, 'replyTo'>, talk: JobTalk, signal: AbortSignal): Promise<JobEnd>;
  /** Goes on with a job that was given before, of which so many facts are known. As `give`. */
  find(job: GivenJob, known: number, talk: JobTalk, signal: AbortSignal): Promise<JobEnd>;
  close(): Promise<void>;
}

/** What a worker says at the end of a job. Without a status, the work is approved and may go to the branch. */
export interface WorkEnd {
  status?: AttemptStatus;
  details: string;
  /** What ends or delays the whole plan. */
  fatal?: Pick<RunError, 'code' | 'message' | 'remedy' | 'retryAfterMs'>;
  /** A commit with what was done, where that was not kept as work. */
  left?: string;
}
