/** Defines what a page about a plan shows, and the messages between it and the extension host. */
import type {
  AttemptStatus,
  CheckResult,
  FinishKind,
  ParkedQuestion,
  PlanPhase,
  StepName,
  StoryItem,
  StoryStatus,
  TamperFinding,
} from './plan.ts';
import type { PlanCard } from './planCard.ts';

/** In US dollars. Missing if nothing was asked of a model. */
type Cost = number | 'unknown';

/** A check as it ran last in an attempt, with its command as the story has it now. */
export interface CheckReport extends CheckResult {
  command?: string;
}

/** One try at a story, from its first step to its commit or its end. */
export interface AttemptReport {
  attempt: number;
  /** Missing while it goes on. */
  status?: AttemptStatus;
  /** Why it ended so. */
  details?: string;
  /** Who worked on it, where that was a worker. The last of them. */
  worker?: string;
  change?: { files: number; added: number; removed: number };
  checks: readonly CheckReport[];
  /** Changes of what checks the work. */
  tamper?: { findings: readonly TamperFinding[]; isDenied: boolean };
  verdict?: { approved: boolean; text: string };
  cost?: Cost;
  /** The steps that asked a model, with the run of each. */
  steps: readonly { step: StepName; runId: string }[];
}

export interface StoryReport {
  id: string;
  title: string;
  status: StoryStatus;
  items: readonly (Pick<StoryItem, 'number' | 'text'> & { closed?: 'passed' | 'accepted' })[];
  /** On the plan's branch, the latest last. */
  commits: readonly string[];
  attempts: readonly AttemptReport[];
  cost?: Cost;
  why?: string;
}

/** What a plan has come to, story by story. */
export interface PlanReport {
  goal: string;
  phase: PlanPhase;
  why?: string;
  base?: string;
  branch?: string;
  workedMs: number;
  cost?: Cost;
  stories: readonly StoryReport[];
  finished?: { how: FinishKind; commit?: string };
}

/** What a page about a plan shows. */
export interface PlanPage {
  name: string;
  report: PlanReport;
  /** The id of the story that the page is about. Missing for a page about the whole plan. */
  story?: string;
  /** States in the reader's language, of the plan and of each story by its id. */
  words: { plan: string; stories: Readonly<Record<string, string>> };
  /** Set for the page that asks whether the plan may run. */
  card?: PlanCard;
  isLive: boolean;
  /** How the plan can be ended now. */
  finish: readonly FinishKind[];
  /** The branch that is checked out. */
  into?: string;
  /** What the page's story, or the plan, waits for the person to answer. */
  questions: readonly ParkedQuestion[];
  /** Why something that the person has just asked for was not done. */
  problem?: string;
}

/** What a page is about. Kept with it, so that a window that is opened again shows it again. */
export interface PlanPagePlace {
  /** The plan's folder. */
  dir: string;
  story?: string;
  isCard?: true;
}

export type ToPlanPage = { type: 'page'; page: PlanPage };

/** What the buttons of a page ask for. The host refuses anything else. */
export const planPageVerbs = [
  'merge',
  'squash',
  'pr',
  'keep',
  'drop',
  'run',
  'pause',
  'budget',
  'changes',
  'open',
  'story',
  'tell',
  'skip',
  'redo',
  'accept',
  'split',
] as const;
export type PlanPageVerb = (typeof planPageVerbs)[number];

export type FromPlanPage =
  | { type: 'ready' }
  | { type: 'act'; verb: PlanPageVerb; story?: string }
  /** The person wants to answer a question. */
  | { type: 'answer'; id: string }
  /** The person accepts the card with this digest. */
  | { type: 'accept_card'; digest: string }
  /** The person wants to see the run of a step. */
  | { type: 'show_run'; runId: string };
