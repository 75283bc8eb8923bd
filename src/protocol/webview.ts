/** Defines every message between the extension host and the chat view, so that both sides are checked against one list. */
import type { AttachedName } from './attachment.ts';
import type { ApprovalDecision, RunEvent, RunMode, RunningCommand, SkillRef } from './run.ts';
import type { DaySpending } from './usage.ts';

/** Information that the view shows around the conversation. */
export interface ChatInfo {
  /** Name and model that the next run will use, for example `anthropic` and `claude-haiku-4-5`. */
  provider: string;
  model: string;
  /** True if a recorded run answers. */
  recording: boolean;
  /** True if no model is set up, so only skills that bring a recording can run. */
  isUnset?: boolean;
  /** The likeliest first. `note` says in a few words why one may fail: `needs jq`. */
  skills: readonly (SkillRef & { description: string; note?: string })[];
  /** True if the workspace is trusted. Nothing runs without trust. */
  trusted: boolean;
}

/** A request that waits for the current run to end. */
export interface QueuedRequest {
  id: string;
  text: string;
}

/** A prompt or a resource of an MCP server, as `server:name`. */
export interface OfferedWord {
  word: string;
  description: string;
}

/** An attachment of the next request, as the view shows it. */
export interface AttachmentChip extends AttachedName {
  id: string;
  /** Size of the attachment, for example `12 lines`. */
  detail: string;
  /** The word after `@` in the request that refers to it. */
  mention?: string;
  /** A small picture of an image, as a `data:` address. */
  thumbnail?: string;
}

/**
 * Messages from host to view. Events are numbered from 0 in one conversation; `from` is the number of the first one in `events`.
 * A view that sees a gap sends `ready` again.
 */
export type ToWebview =
  | {
      type: 'conversation';
      id: string;
      info: ChatInfo;
      draft: string;
      from: number;
      events: readonly RunEvent[];
      /** False if no run is in progress. A last run without `run_end` among the events was then interrupted. */
      running?: boolean;
      /** Where the last run continues, in words. Set if it is not this chat's and cannot be stopped or answered from here. */
      elsewhere?: string;
      /** Id of the restore that the person can undo: the conversation was taken back to here. */
      restored?: string;
      /** The mode of the next run. Defaults to `default`. */
      mode?: RunMode;
      /** Set if the next runs read no files such as AGENTS.md as context. */
      withoutContextFiles?: boolean;
      queued?: readonly QueuedRequest[];
    }
  | { type: 'events'; id: string; from: number; events: readonly RunEvent[] }
  | { type: 'info'; info: ChatInfo }
  /** The person has chosen what the next runs of the conversation may do. */
  | { type: 'mode'; mode: RunMode }
  | { type: 'surroundings'; surroundings: Surroundings }
  /** The models that are ready, by provider. */
  | { type: 'models'; models: readonly OfferedModel[] }
  /** Whether the next runs of the conversation read files such as AGENTS.md as context. */
  | { type: 'context_files'; on: boolean }
  /** Usage of all runs of the day. Sent when a run has ended. */
  | { type: 'today'; today: DaySpending }
  /** Sentences that offer to teach the skills, with the price, below a request that found none. Null takes the offer back. */
  | { type: 'teaching_offer'; text: string | null }
  /** The name of a skill that could be written of what the user does often, below the latest answer. Null takes the offer back. */
  | { type: 'habit_offer'; name: string | null }
  /** Why something that the person has just asked for in the view was not done. */
  | { type: 'problem'; text: string }
  /** The files of these runs have been restored to their state before the runs. */
  | { type: 'undone'; runIds: readonly string[] }
  /** All commands that run in the background of the conversation. */
  | { type: 'commands'; commands: readonly RunningCommand[] }
  /** All waiting requests, in the order in which they will run. */
  | { type: 'queued'; queued: readonly QueuedRequest[] }
  /** The person has chosen the skill of the next request. Null means that its words choose the skill. */
  | { type: 'next_skill'; skill: SkillRef | null }
  /** Words for the textbox. Words that are only `suggested` do not replace typed text. */
  | { type: 'draft'; text: string; suggested?: true }
  /** All attachments of the next request. `problem` says why something was not attached. */
  | { type: 'attached'; attachments: readonly AttachmentChip[]; problem?: string }
  /** Paths below the workspace that match the text typed after `@`. */
  | { type: 'files_found'; query: string; files: readonly string[] }
  /** Prompts and resources of MCP servers, by the words with which a request names them. */
  | { type: 'offers'; prompts: readonly OfferedWord[]; resources: readonly OfferedWord[] }
  /** A word to write at the cursor. */
  | { type: 'insert'; text: string }
  /** Which of the paths that an answer names are files that may be opened. */
  | { type: 'files_looked_up'; asked: readonly string[]; found: readonly string[] }
  /** A local image of an answer as a `data:` address, or why it is not shown. Neither if there is no such file. */
  | { type: 'image'; path: string; data?: string; problem?: string };

/** What the dial says of the next runs. */
export interface Surroundings {
  /** Name of the workspace's folder. Empty without one. */
  workspace: string;
  /** Why commands run in no sandbox here. */
  noSandbox?: string;
}

export interface OfferedModel {
  provider: string;
  model: string;
  label: string;
  detail: string;
}

/** Commands that a button in the view may request. The host refuses any other command. */
export const viewCommands = [
  'telos.setApiKey',
  'telos.chooseModel',
  'telos.openLog',
  'telos.trySample',
  'telos.installSkills',
  'telos.newSkill',
  'telos.showDayChanges',
  'workbench.trust.manage',
] as const;
export type ViewCommand = (typeof viewCommands)[number];

/** Messages from view to host. `ready` requests all events of conversation `id` from event number `have` on. */
export type ToHost =
  | { type: 'ready'; id: string | null; have: number }
  /**
   * While a run is in progress, the request waits for its end; `instead` stops that run and runs this request.
   * `withoutSkill` makes Telos look for a skill itself.
   * `anew` chooses a skill by the words, although the conversation has one.
   */
  | {
      type: 'submit';
      text: string;
      skill?: SkillRef;
      withoutSkill?: boolean;
      anew?: boolean;
      instead?: boolean;
    }
  /**
   * Runs a request of the conversation again, in the same or other words. Everything after it is dropped. A run in progress is
   * stopped.
   */
  | { type: 'resend'; runId: string; text: string }
  /** Continues the latest run, which was interrupted. */
  | { type: 'resume'; runId: string }
  /** Begins a plan for a goal, which may be empty: then it is asked for. */
  | { type: 'plan'; goal: string }
  /** Summarizes the conversation to save room; `focus` is what the summary dwells on. Or undoes the latest time. */
  | { type: 'compact'; focus: string }
  | { type: 'undo_compaction' }
  /** Whether the next runs of the conversation read files such as AGENTS.md as context. */
  | { type: 'context_files'; on: boolean }
  /** Removes a waiting request, or runs it now that no run is in progress. */
  | { type: 'unqueue'; id: string }
  | { type: 'run_queued'; id: string }
  /** The person wants to choose the skill of the next request. */
  | { type: 'choose_skill' }
  /** What the next runs of the conversation may do. */
  | { type: 'set_mode'; mode: RunMode }
  /** Requests `surroundings`. */
  | { type: 'look_around' }
  /** Requests `models`. */
  | { type: 'find_models' }
  /** The model of the next runs. */
  | { type: 'use_model'; provider: string; model: string }
  /** The person wants to choose where the agent writes its files. */
  | { type: 'choose_folder'; agent: string }
  /** A server of the agent did not start: the person wants to read why, or no longer wants it. */
  | { type: 'dead_server'; act: 'log' | 'off'; agent: string; server: string }
  /** The person wants to see which skills fit a request, and to pick one that runs it instead. */
  | { type: 'pick_skill'; text: string }
  /** The user's answer to a `habit_offer`. */
  | { type: 'habit'; answer: 'write' | 'never' }
  /** The person's answer to a `teaching_offer`. */
  | { type: 'teach'; answer: 'write' | 'never' }
  | { type: 'stop' }
  /** Ends a background command of the conversation. */
  | { type: 'stop_command'; id: string }
  /** Sends the running command of a call to the background. */
  | { type: 'to_background'; callId: string }
  /** The person wants to choose attachments. */
  | { type: 'attach' }
  /** Pasted or dropped content as base64: a whole image, or the beginning of anything else. `size` is the whole size in bytes. */
  | { type: 'attach_bytes'; name: string; data: string; size: number; thumbnail?: string }
  /** Files that were dropped from the editor. */
  | { type: 'attach_uris'; uris: readonly string[] }
  /** `selection`, `problems` or the path of a file below the workspace. */
  | { type: 'attach_mention'; mention: string }
  | { type: 'detach'; id: string }
  | { type: 'find_files'; query: string }
  | { type: 'find_offers' }
  | { type: 'new_conversation' }
  | { type: 'approve'; token: string; decision: ApprovalDecision }
  | { type: 'open_link'; url: string }
  /** Lines count from 1. */
  | { type: 'open_file'; path: string; line?: number; endLine?: number }
  /** Paths that an answer names, at most 50. */
  | { type: 'look_up_files'; paths: readonly string[] }
  | { type: 'read_image'; path: string }
  /** Shows the changes that a run has made to its files, or to one of them. */
  | { type: 'show_changes'; runId: string; path?: string }
  /** The person wants to restore the files of a run to their state before it. The host asks for confirmation. */
  | { type: 'undo_run'; runId: string }
  /** The same of several runs, the latest first. */
  | { type: 'undo_runs'; runIds: readonly string[] }
  /** The person wants to improve the skill of a run, whose result or choice was wrong. */
  | { type: 'improve_skill'; runId: string }
  /** The person wants the files and the conversation as they were before a run. The host asks for confirmation. */
  | { type: 'restore'; runId: string }
  /** The person wants a new conversation that goes on from before a run. */
  | { type: 'branch'; runId: string }
  | { type: 'copy'; text: string }
  /** Inserts a code block at the cursor, or opens it in a new document. `language` is the text after its fence. */
  | { type: 'insert_code'; text: string }
  | { type: 'new_file'; text: string; language: string }
  | { type: 'command'; command: ViewCommand };
