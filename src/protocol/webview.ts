/** Every message between the extension host and the chat view, so that both ends are checked against one list. */
import type { AttachedName } from './attachment.ts';
import type { ApprovalDecision, RunEvent, SkillRef } from './run.ts';
import type { DaySpending } from './usage.ts';

/** What the view shows around the conversation. */
export interface ChatInfo {
  /** Name and model that the next run will use, for example `anthropic` and `claude-haiku-4-5`. */
  provider: string;
  model: string;
  /** True when a recorded run answers because no model is set up. */
  recording: boolean;
  skills: readonly (SkillRef & { description: string })[];
  /** The workspace is trusted; without trust nothing runs. */
  trusted: boolean;
}

/** A request that waits for the end of the run that goes on. */
export interface QueuedRequest {
  id: string;
  text: string;
}

/** Something that goes along with the next request. */
export interface AttachmentChip extends AttachedName {
  id: string;
  /** How much it is, for example `12 lines`. */
  detail: string;
  /** The word of the request behind `@` that stands for it. */
  mention?: string;
  /** A small picture of an image, as a `data:` address. */
  thumbnail?: string;
}

/**
 * Host to view. Events are numbered from 0 in one conversation; `from` is the number of the first one in `events`.
 * A view that sees a gap asks again with `ready`.
 */
export type ToWebview =
  | {
      type: 'conversation';
      id: string;
      info: ChatInfo;
      draft: string;
      from: number;
      events: readonly RunEvent[];
      /** False when no run is going on: a last run without `run_end` among the events was interrupted. */
      running?: boolean;
      /** Where the last run goes on, in words, when it is not this chat's and cannot be stopped or answered from here. */
      elsewhere?: string;
      queued?: readonly QueuedRequest[];
    }
  | { type: 'events'; id: string; from: number; events: readonly RunEvent[] }
  | { type: 'info'; info: ChatInfo }
  /** What all runs of the day have used; comes when a run has ended. */
  | { type: 'today'; today: DaySpending }
  /** The files of these runs are as they were before them. */
  | { type: 'undone'; runIds: readonly string[] }
  /** All that wait now, in the order in which they will be run. */
  | { type: 'queued'; queued: readonly QueuedRequest[] }
  /** The person has chosen the skill of the next request; null is the choice by its words. */
  | { type: 'next_skill'; skill: SkillRef | null }
  /** Words for the textbox; those that are only `suggested` do not take the place of what was typed. */
  | { type: 'draft'; text: string; suggested?: true }
  /** All that goes along with the next request; `problem` says why something does not. */
  | { type: 'attached'; attachments: readonly AttachmentChip[]; problem?: string }
  /** Paths below the workspace that fit what was typed behind `@`. */
  | { type: 'files_found'; query: string; files: readonly string[] };

/** Commands that a button in the view may ask for; anything else is refused by the host. */
export const viewCommands = [
  'telos.setApiKey',
  'telos.chooseModel',
  'telos.openLog',
  'telos.addSamplePack',
  'telos.newSkill',
  'telos.showSkillsFolder',
  'workbench.trust.manage',
] as const;
export type ViewCommand = (typeof viewCommands)[number];

/** View to host. `ready` asks for everything from event number `have` on of conversation `id`. */
export type ToHost =
  | { type: 'ready'; id: string | null; have: number }
  /**
   * While a run goes on, the request waits for its end; `instead` stops that run and runs this one. `withoutSkill` has Telos look for a skill
   * itself; `anew` chooses one by the words, although the conversation has a skill.
   */
  | {
      type: 'submit';
      text: string;
      skill?: SkillRef;
      withoutSkill?: boolean;
      anew?: boolean;
      instead?: boolean;
    }
  /** Runs a request of the conversation again, in other words or the same; what came behind it is dropped. A run that goes on is stopped. */
  | { type: 'resend'; runId: string; text: string }
  /** Goes on with the latest run, which was interrupted. */
  | { type: 'resume'; runId: string }
  /** Takes a waiting request away, or runs it now that nothing goes on. */
  | { type: 'unqueue'; id: string }
  | { type: 'run_queued'; id: string }
  /** The person wants to choose the skill of the next request. */
  | { type: 'choose_skill' }
  /** The person wants to see which skills fit a request, and to pick one that runs it instead. */
  | { type: 'pick_skill'; text: string }
  | { type: 'stop' }
  /** The person wants to choose what goes along. */
  | { type: 'attach' }
  /** Pasted or dropped: base64, of an image whole, of anything else the beginning of `size` bytes. */
  | { type: 'attach_bytes'; name: string; data: string; size: number; thumbnail?: string }
  /** Files that were dropped out of the editor. */
  | { type: 'attach_uris'; uris: readonly string[] }
  /** `selection`, `problems` or the path of a file below the workspace. */
  | { type: 'attach_mention'; mention: string }
  | { type: 'detach'; id: string }
  | { type: 'find_files'; query: string }
  | { type: 'new_conversation' }
  | { type: 'approve'; token: string; decision: ApprovalDecision }
  | { type: 'open_link'; url: string }
  | { type: 'open_file'; path: string }
  /** The difference that a run has made to its files, or to one of them. */
  | { type: 'show_changes'; runId: string; path?: string }
  /** The person wants the files of a run as they were before it; the host asks once more. */
  | { type: 'undo_run'; runId: string }
  | { type: 'copy'; text: string }
  /** A code block goes to the cursor, or into a new document; `language` is what stood at its fence. */
  | { type: 'insert_code'; text: string }
  | { type: 'new_file'; text: string; language: string }
  | { type: 'command'; command: ViewCommand };
