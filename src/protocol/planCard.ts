/** Defines the card of a plan: what it will run and where, for a person who decides whether it may. */
import type { RedFlag } from './agentCard.ts';
import type { PlanLimits } from './plan.ts';
import type { Danger } from './run.ts';

export interface CostEstimate {
  /** In US dollars, as a lucky, an ordinary and an unlucky course would cost. */
  low: number;
  typical: number;
  high: number;
  stories: number;
}

export interface CardCommand {
  command: string;
  /** For a check: its name, and the stories that it decides on. None if it is for all of the plan. */
  name?: string;
  stories?: readonly string[];
  timeoutS?: number;
  /** It may run outside the sandbox. */
  outside?: boolean;
  dangers: readonly Danger[];
  flags: readonly RedFlag[];
}

/** What is so at the moment, and is shown beside what the person accepts. */
export interface CardFacts {
  base: string;
  /** Files of the person's checkout that no commit has. The plan does not see them. */
  dirtyFiles: readonly string[];
  /** Folders besides the project that the planning steps read. */
  context?: readonly string[];
  /** What the stories that are left will cost, where that can be said. */
  estimate?: CostEstimate;
}

export interface PlanCard extends CardFacts {
  plan: string;
  /** Bound to what is accepted: another one needs a new yes. */
  digest: string;
  setup: readonly CardCommand[];
  checks: readonly CardCommand[];
  branch: string;
  slots: number;
  copy: readonly string[];
  link: readonly string[];
  keep: readonly string[];
  protect: readonly string[];
  models: readonly { role: string; model: string }[];
  limits: PlanLimits;
  /** The project's own texts for roles. */
  roles: readonly { file: string; text: string }[];
  /** Skills that work on stories, as `agent/skill`. */
  skills: readonly string[];
  /** Hosts that the commands name. */
  hosts: readonly string[];
  /** What the digest is of, one line each. */
  bound: readonly string[];
  /** What differs from what was accepted before: lines with `+` or `-` first. Empty before the first acceptance. */
  changes: readonly string[];
  isAccepted: boolean;
}
