/** Says how much a finding weighs, from the table of rules and from what the line does with what was found. */
import type { Finding, FindingLevel } from '../../protocol/agentCard.ts';
import type { Kind } from './commandLooks.ts';
import table from './rules.json' with { type: 'json' };

export interface Rule {
  level: FindingLevel;
  /** The numbers that others give to it. */
  snyk: readonly string[];
  cisco: readonly string[];
  why: string;
  /** What an honest skill does instead. */
  instead: string;
}

export const rules = table.rules as Readonly<Record<Kind, Rule>>;
/** Grows with each change of the table or of what a rule finds. */
export const rulesVersion = table.version;

const order: readonly FindingLevel[] = ['low', 'medium', 'high'];

/** Returns true if the level is the given one or a higher one. */
export const isAtLeast = (level: FindingLevel, least: FindingLevel): boolean =>
  order.indexOf(level) >= order.indexOf(least);

type Weighed = Pick<Finding, 'level' | 'file' | 'line'>;

/** Sorts what weighs most to the front, then by place. */
export const byWeight = (one: Weighed, other: Weighed): number =>
  order.indexOf(other.level) - order.indexOf(one.level) ||
  (one.file < other.file ? -1 : one.file > other.file ? 1 : one.line - other.line);
