/** What a call could reach by what it says: data that those who read calls hand to those who hold them against prohibitions. */
import type { FoldedPath } from './pathPatterns.ts';

/** What follows where a path touches a place that is forbidden: the call is refused, or asked about, or nothing. */
export type Consequence = 'forbidden' | 'unclear' | 'nothing';

/** A path that a call names. */
export interface NamedPath {
  /** All that it could mean. */
  meanings: readonly FoldedPath[];
  ifBelow: Consequence;
  ifAbove: Consequence;
  /** Behind `>`: nothing is read of it. */
  isWritten?: boolean;
  /** It stands in the middle of a text, which may only speak of it. */
  isProse?: boolean;
}

export interface Reach {
  paths: readonly NamedPath[];
  /** What cannot be read in the call, for a sentence; empty where all can. */
  unread: readonly string[];
  /** Texts in which the pieces of a path can stand beside each other. */
  code: readonly string[];
  /** Patterns take hidden names as well. */
  dots?: boolean;
}
