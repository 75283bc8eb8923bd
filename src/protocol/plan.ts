/**
 * Defines the data of a plan: its journal's events, its stories, and the commands that steer it.
 * Types and constants only. A plan is a goal that was split into stories; a story passes only by a commit.
 */
import type { RunOutcome, Usage } from './run.ts';

/** State of a plan. All but `done` go on with `run`; `failed` and `stopped` do so after a change or with `retry`. */
export type PlanPhase =
  | 'interviewing'
  | 'planning'
  | 'plan_review'
  | 'splitting'
  | 'stories_review'
  | 'ready'
  | 'running'
  | 'paused'
  | 'waiting'
  | 'needs_you'
  | 'finishing'
  | 'done'
  | 'failed'
  | 'stopped';

export type StoryStatus =
  | 'blocked'
  | 'ready'
  | 'working'
  | 'snapshot'
  | 'checking'
  | 'reviewing'
  | 'committing'
  | 'integrating'
  | 'passed'
  | 'needs_you'
  | 'skipped'
  | 'accepted'
  | 'failed';

/** How an attempt ended. Only `denied`, `no-verdict`, `timeout` and `no-change` count against the limit of attempts. */
export type AttemptStatus =
  | 'approved'
  | 'approved-partial'
  | 'denied'
  | 'no-verdict'
  | 'error'
  | 'timeout'
  | 'no-change'
  | 'conflict'
  | 'cancelled'
  | 'interrupted';

/** The steps that ask a model. */
export type StepName =
  | 'interview'
  | 'plan'
  | 'split'
  | 'orchestrator'
  | 'coder'
  | 'crm'
  | 'marketing'
  | 'image-generator'
  | 'reviewer';

/** A command that must exit with 0 before a story passes. Run by the engine in a slot, word for word. */
export interface PlanCheck {
  name: string;
  command: string;
  /** In seconds; 60 if missing. */
  timeoutS?: number;
  /** It must fail on the parent's tree and pass on the story's. */
  red?: boolean;
  /** Where it fails in the sandbox, it may be tried outside. Accepted with the permissions of the plan. */
  outside?: boolean;
}

/** One numbered box of a story's acceptance criteria. Known by its number. */
export interface StoryItem {
  /** From 1. */
  number: number;
  text: string;
  ticked: boolean;
}

/** A story, as its PRD file has it. */
export interface Story {
  /** `US-003`, or `US-003a` for a part of a story that was split. */
  id: string;
  title: string;
  /** Its purpose, in a paragraph. Missing if its file has none. */
  description?: string;
  /** The file's path in the plan's folder, with `/`. */
  prd: string;
  /** `coder` and the like, or a skill as `agent/skill`. */
  role: string;
  dependsOn: readonly string[];
  /** Globs of the files that it may touch. Empty if unknown: then it runs alone. */
  touches: readonly string[];
  checks: readonly PlanCheck[];
  items: readonly StoryItem[];
}

/** Amounts after which a plan pauses, over all its steps and restarts. */
export interface PlanLimits {
  /** In US dollars. */
  maxCost?: number;
  maxTokens?: number;
  maxMinutes?: number;
}

export interface CheckResult {
  name: string;
  /** Null if it ran out of time or could not be started. */
  exitCode: number | null;
  ms: number;
  /** The end of its output, at most 8 KB. */
  output: string;
  /** It exited with 0, but ran no test or printed nothing where the base printed something. */
  suspicious?: string;
  /** It passed at its second run on the same files. The output of the first, which failed. */
  flaky?: string;
  /** Set for a check that fails in the box for commands and passes outside, before anything was done. It then runs outside. */
  outside?: true;
}

export type TamperKind =
  | 'test-deleted'
  | 'test-skipped'
  | 'fewer-assertions'
  | 'runner-config'
  | 'check-script'
  | 'lower-limit'
  | 'protected';

export interface TamperFinding {
  kind: TamperKind;
  /** Relative to the repository, with `/`. */
  file: string;
  detail: string;
}

/** A question that waits for the person. The plan goes on with what does not depend on it. */
export interface ParkedQuestion {
  id: string;
  story?: string;
  text: string;
  /** Offered answers, if any. */
  choices?: readonly string[];
  /** The tool that a yes allows, if it is about one. */
  tool?: string;
}

/** Who did something: a person through a door, a person who edited a file of the plan, or the engine. */
export type Actor = 'chat' | 'cli' | 'discord' | 'editor' | 'other' | 'file' | 'engine';

/** The planner's answer to a comment on plan.md. */
export interface PlanReply {
  /** Its number in the review, from 1. */
  comment: number;
  text: string;
}

/** One fact of a plan, as its journal has it. */
export type PlanEvent =
  | { type: 'plan_created'; name: string; goal: string }
  | { type: 'interview_round'; questions: string[]; ready: boolean; forced: boolean; runId?: string }
  | {
      type: 'plan_written';
      digest: string;
      runId?: string;
      /** What the planner says to the comments of the review before, by their numbers from 1. */
      replies?: PlanReply[];
    }
  | { type: 'plan_reviewed'; decision: 'approved' | 'changes'; comments: string[]; by: Actor }
  | { type: 'stories_written'; stories: string[]; runId?: string }
  | { type: 'card_accepted'; digest: string; by: Actor }
  | { type: 'runner_started'; base: string; branch: string; slots: number; limits: PlanLimits; pid: number }
  /** No runner worked for this time before the line: the machine slept, or the runner was killed and comes back now. */
  | { type: 'away'; ms: number }
  | { type: 'recovered'; what: string[] }
  | {
      type: 'preflight';
      checks: (CheckResult & { command?: string })[];
      dirtyFiles: string[];
      problems: string[];
      /** A digest of how its work tree was set up. */
      setup?: string;
    }
  | {
      type: 'attempt_started';
      story: string;
      item: number;
      attempt: number;
      slot: number;
      parent: string;
      role: string;
    }
  /** The attempt is worked on elsewhere, by a worker that has the job of this key. */
  | { type: 'job_given'; story: string; attempt: number; job: string; worker: string }
  | { type: 'step_started'; key: string; step: StepName; story?: string; runId: string; model?: string }
  | {
      type: 'step_ended';
      key: string;
      step: StepName;
      story?: string;
      runId: string;
      outcome: RunOutcome;
      usage?: Usage;
    }
  | {
      type: 'snapshot';
      story: string;
      attempt: number;
      commit: string;
      tree: string;
      files: number;
      added: number;
      removed: number;
    }
  | ({
      type: 'check_ended';
      story: string;
      attempt: number;
      tree: string;
      /** Missing in lines that an earlier version wrote. */
      command?: string;
    } & CheckResult)
  | {
      type: 'tamper';
      story: string;
      attempt: number;
      findings: TamperFinding[];
      decision: 'denied' | 'justified' | 'allowed_by_person';
    }
  | {
      type: 'verdict';
      story: string;
      attempt: number;
      tree: string;
      approved: boolean;
      text: string;
      items: number[];
      runId?: string;
    }
  | {
      type: 'story_passed';
      story: string;
      items: number[];
      commit: string;
      attempt?: number;
      recovered?: true;
      /** Some of its boxes are still open. */
      part?: true;
    }
  | { type: 'attempt_ended'; story: string; attempt: number; status: AttemptStatus; details: string }
  | {
      type: 'story_reopened' | 'story_skipped' | 'story_accepted' | 'story_failed';
      story: string;
      why: string;
      by: Actor;
      /** The boxes that it is about. Missing if it is the whole story. */
      items?: number[];
    }
  | { type: 'story_split'; story: string; into: string[]; by: Actor }
  /** Facts about the project for later stories. */
  | { type: 'learned'; story: string; attempt: number; notes: string[] }
  /** How a story that was denied again and again is tried next. */
  | { type: 'advised'; story: string; attempt: number; role: string; instructions: string; afresh?: boolean }
  | { type: 'question_parked'; question: ParkedQuestion }
  | { type: 'question_answered'; id: string; text: string; by: Actor }
  /** `id` is that of the file in the inbox, so that each is carried out once. `ignored` says why it has changed nothing. */
  | { type: 'steered'; command: SteerCommand; by: Actor; id?: string; ignored?: string }
  | { type: 'waiting'; until: string; why: string }
  | { type: 'phase'; phase: PlanPhase; why?: string }
  /** `into` is the branch that it was merged into. */
  | { type: 'finished'; how: FinishKind; commit?: string; into?: string };

/** A line of the journal. `seq` counts from 1; `ts` is ISO 8601. */
export type JournalLine = PlanEvent & { seq: number; ts: string };

export type FinishKind = 'merge' | 'squash' | 'pr' | 'keep' | 'drop';

/** A command of a person or another process to the plan's runner. */
export type SteerCommand =
  | { kind: 'pause' | 'resume' }
  | { kind: 'stop'; when: 'now' | 'after-step' }
  | { kind: 'tell'; story?: string; text: string }
  | { kind: 'answer'; id: string; text: string }
  | { kind: 'skip' | 'redo' | 'reopen' | 'accept' | 'split'; story: string; why?: string }
  | { kind: 'reorder'; story: string; before: string }
  | { kind: 'budget'; add: PlanLimits }
  | { kind: 'model'; model: string; role?: string }
  | { kind: 'parallel'; slots: number };
