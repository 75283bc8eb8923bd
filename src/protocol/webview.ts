/** Every message between the extension host and the chat view, so that both ends are checked against one list. */
import type { ApprovalDecision, RunEvent, SkillRef } from './run.ts';

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
    }
  | { type: 'events'; id: string; from: number; events: readonly RunEvent[] }
  | { type: 'info'; info: ChatInfo }
  | { type: 'draft'; text: string };

/** Commands that a button in the view may ask for; anything else is refused by the host. */
export const viewCommands = [
  'telos.setApiKey',
  'telos.chooseModel',
  'telos.openLog',
  'telos.newSkill',
  'telos.showSkillsFolder',
  'workbench.trust.manage',
] as const;
export type ViewCommand = (typeof viewCommands)[number];

/** View to host. `ready` asks for everything from event number `have` on of conversation `id`. */
export type ToHost =
  | { type: 'ready'; id: string | null; have: number }
  /** `instead` stops the run that is going on, if any, and runs this one; `withoutSkill` has Telos look for a skill itself. */
  | { type: 'submit'; text: string; skill?: SkillRef; withoutSkill?: boolean; instead?: boolean }
  /** The person wants to see which skills fit a request, and to pick one that runs it instead. */
  | { type: 'pick_skill'; text: string }
  | { type: 'stop' }
  | { type: 'new_conversation' }
  | { type: 'approve'; callId: string; decision: ApprovalDecision }
  | { type: 'open_link'; url: string }
  | { type: 'open_file'; path: string }
  | { type: 'copy'; text: string }
  | { type: 'command'; command: ViewCommand };
