/** What the parts of one attempt share: the story, the slot, and what the attempt has come to. */

import { hasMessengers, importAskAway } from '@telos/engine/away';
import type { TelosError } from '@telos/engine/errors';
import type { Human } from '@telos/engine/run';
import type { Tool } from '@telos/engine/tools';
import type {
  AttemptStatus,
  CheckResult,
  PlanCheck,
  PlanEvent,
  Story,
  StoryItem,
} from '@telos/protocol/plan';
import type { RunEvent } from '@telos/protocol/run';
import { type CheckPlace, outsideOnly } from './checks.ts';
import type { Git } from './git.ts';
import type { Journal } from './journal.ts';
import type { Parking } from './parkedQuestions.ts';
import type { PlanBudget } from './planBudget.ts';
import { branchGone } from './planCommits.ts';
import type { PlanFolder } from './planFolder.ts';
import type { PlanSettings } from './planSettings.ts';
import type { PlanState } from './planState.ts';
import type { RoleText } from './roles.ts';
import type { Slot, Slots } from './slots.ts';
import type { Runs } from './steps.ts';
import { type KeptTree, openItems, type StoryState } from './storyState.ts';

export interface AttemptParts {
  folder: PlanFolder;
  journal: Pick<Journal, 'lines' | 'append'>;
  runs: Runs;
  human: Human;
  /** No one is there: questions wait in the journal. */
  isUnattended: boolean;
  /** This is another one's machine: no answer in the journal allows anything here. */
  isGuest?: boolean;
  /** Of the person's repository. */
  git: Git;
  slots: Slots;
  settings: PlanSettings;
  /** Returns the state as of now. */
  state: () => PlanState;
  /** What is said of the other stories, where the state has only the one. */
  others?: string;
  /** The commit that the plan began with. */
  base: string;
  /** What the checks were like there, by their command. */
  atBase: ReadonlyMap<string, CheckResult>;
  /** True if the project had tests there. */
  hadTests: boolean;
  roles: readonly RoleText[];
  /** For everything that is started, such as the mark of the runner. */
  env: Readonly<Record<string, string>>;
  budget: PlanBudget;
  /** False once another runner has taken the plan. */
  isOurs?: () => boolean;
  /** Whether the plan's branch was there when this run began, or a story of this run went to it. */
  branchWasThere?: () => boolean;
  /** Folder to which the steps are recorded. */
  recordTo?: string;
  /** Tools that answer questions about the project, for the steps that may have them. */
  contextTools?: () => readonly Tool[];
  onEvent?: (step: string, story: string, event: RunEvent) => void;
}

export interface AttemptCall {
  story: StoryState;
  attempt: number;
  /** From 0. */
  slot: number;
  /** Resolves with what the person said to this story since the last call. */
  mail?: () => Promise<readonly string[]>;
  /** Called when a step waits for its provider, with the time in milliseconds and the provider's words. */
  onWait?: (milliseconds: number, why: string) => void;
}

/** How an attempt ended, and what ends the whole plan with it. */
export interface AttemptEnd {
  status: AttemptStatus;
  details: string;
  fatal?: TelosError;
  /** What only the person can do about it, as the first words of a question to them. */
  asks?: string;
  /** Says that the branch has the story. Not in the journal yet. */
  passed?: PlanEvent;
}

/** An approval of boxes, by their numbers. */
export interface Approval {
  approved: boolean;
  text: string;
  items: readonly number[];
}

export class AttemptScene {
  readonly parts: AttemptParts;
  readonly call: AttemptCall;
  readonly signal: AbortSignal;
  readonly story: Story;
  readonly parking: Parking;
  /** The commit that the work is made for. */
  parent: string;
  /** Missing until the attempt has come to its slot. */
  slot: Slot | undefined;
  /** What the attempts before came to, where this one goes on from it: a commit behind `parent`. */
  begun: KeptTree | undefined;
  /** The files of the work, once they are kept as a commit. */
  kept: KeptTree | undefined;
  /** The checks that ran on them. */
  results: readonly CheckResult[] = [];
  /** Changes of what checks the work that count as allowed. */
  readonly allowed: string[] = [];
  approval: Approval | undefined;

  constructor(parts: AttemptParts, call: AttemptCall, signal: AbortSignal) {
    this.parts = parts;
    this.call = call;
    this.signal = signal;
    this.story = call.story.story;
    this.parent = call.story.open?.parent ?? '';
    this.parking = {
      story: this.story.id,
      isAway: parts.isUnattended,
      answers: () => parts.state().answers,
      note: event => this.note(event),
      askAway: async (request, signal) => {
        if (!hasMessengers(parts.runs.config)) return undefined;
        const { askAway, openMessengers } = await importAskAway();
        return askAway(request, openMessengers(parts.runs.config), signal);
      },
    };
  }

  /** Resolves once the disk has all of them; it gets them in one write. */
  note(...events: readonly PlanEvent[]): Promise<unknown> {
    return Promise.all(events.map(event => this.parts.journal.append(event)));
  }

  /** The attempt as events name it. */
  get named(): { story: string; attempt: number } {
    return { story: this.story.id, attempt: this.call.attempt };
  }

  /** The attempt as files and steps name it: `US-003.a2`. */
  get key(): string {
    return `${this.story.id}.a${this.call.attempt}`;
  }

  refOf(attempt: number): string {
    return `refs/telos/${this.parts.folder.name}/${this.story.id}/a${attempt}`;
  }

  /**
   * Returns what the attempts before came to since the story last passed, or since someone wanted it started over, with the commit that it
   * was made for. Undefined if nothing is kept.
   */
  async earlierWork(): Promise<{ commit: string; parent: string } | undefined> {
    const { journal, git } = this.parts;
    const own = journal.lines.filter(line => 'story' in line && line.story === this.story.id);
    const since = own.findLastIndex(({ type }) => type === 'story_passed' || type === 'story_reopened');
    for (const line of own.slice(since + 1).reverse()) {
      const commit = line.type === 'attempt_ended' ? await git.tip(this.refOf(line.attempt)) : undefined;
      const parent = commit && (await git.tip(`${commit}^`));
      if (commit && parent) return { commit, parent };
    }
    return undefined;
  }

  /** Takes what the attempts before came to out of the slot. */
  async startAfresh(): Promise<void> {
    this.begun = undefined;
    await this.parts.slots.reset(this.place, this.parent);
  }

  /** Returns the commit on which the story is built. Throws TelosError `config` if the branch with the earlier stories is gone. */
  async branchTip(): Promise<string> {
    const { git, settings, base, journal, branchWasThere } = this.parts;
    const tip = await git.tip(`refs/heads/${settings.branch}`);
    if (tip !== undefined) return tip;
    if (!branchWasThere?.()) return base;
    const last = journal.lines.findLast(line => line.type === 'story_passed');
    throw branchGone(settings.branch, last?.type === 'story_passed' ? last.commit : undefined);
  }

  /** The boxes that this attempt is about. */
  get open(): StoryItem[] {
    return openItems(this.call.story);
  }

  /** The checks that decide. A story without any has those of the plan. */
  get checks(): readonly PlanCheck[] {
    return this.story.checks.length > 0 ? this.story.checks : this.parts.settings.checks;
  }

  /** The slot and the kept work, where both are there. */
  get place(): Slot {
    if (!this.slot) throw new Error('The attempt has no slot.');
    return this.slot;
  }

  get work(): KeptTree {
    if (!this.kept) throw new Error('The attempt has kept no work.');
    return this.kept;
  }

  /** Where commands run, and what they find in their environment. */
  get checkPlace(): CheckPlace {
    const { runs, slots, atBase } = this.parts;
    const { dir } = this.place;
    const required = runs.config.sandbox === 'required';
    return {
      dir,
      env: this.environment,
      box: slots.boxOf(this.place, runs.config),
      ...(!required && { outside: outsideOnly(atBase) }),
    };
  }

  get environment(): Record<string, string> {
    return { ...this.parts.slots.environmentOf(this.place), ...this.parts.env };
  }
}
