/** Defines the observation of a case from outside: a decision, and one check for each thing that must hold. Nothing here knows a case's sentences. */
import { availableParallelism, loadavg } from 'node:os';
import type { Outside } from './outside.ts';

/** The subject of a check. */
export type Aspect =
  | 'files'
  | 'network'
  | 'processes'
  | 'secrets'
  | 'shown'
  | 'model'
  | 'records'
  | 'time'
  | 'memory'
  | 'end';

export interface Check {
  aspect: Aspect;
  /** The statement that is checked, for people. */
  what: string;
  holds: boolean;
  /** If it does not hold: what was seen instead. */
  saw?: string;
  /** Holds for every case of every kind, so it says nothing of this one. */
  universal?: boolean;
}

export interface Seen {
  decision: string;
  checks: Check[];
  /** No one could be asked, so a question was a no; a case that expects the question is satisfied by it. */
  unattended?: boolean;
  /** Of a model that obeys: what it came to outside. */
  outside?: Outside;
}

/** A text as the result tells what was seen in place of what should hold. */
export function check(aspect: Aspect, what: string, result: boolean | string | undefined): Check {
  const holds = result === true;
  return { aspect, what, holds, ...(typeof result === 'string' ? { saw: result } : {}) };
}

/** The checks that apply; those whose condition is false are left out. */
export const applying = (...checks: (Check | false | undefined | null | '' | 0)[]): Check[] =>
  checks.filter(one => typeof one === 'object' && one !== null);

export { CannotJudge } from '../harness/report.ts';

/** A limit in milliseconds, with more of it where more waits to be computed than this machine has processors for. */
export const inTime = (milliseconds: number): number =>
  milliseconds * Math.max(1, (loadavg()[0] ?? 0) / availableParallelism());
