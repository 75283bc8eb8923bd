/** Defines a frontend's request: the words, their attachments, and the conversation so far. */
import { randomUUID } from 'node:crypto';
import type { Attachment, Selection } from '../../protocol/attachment.ts';
import type { Message, SkillRef } from '../../protocol/run.ts';
import type { RunOrigin } from '../records/runFile.ts';
import { selectionText } from './prompt.ts';

/** The conversation before a request. */
export interface EarlierConversation {
  /** The messages of the last `run_end`. */
  messages: readonly Message[];
  /**
   * The skill of the last `routed` event; an empty name means that it ran without a skill.
   * If missing, the request is routed like a first one.
   */
  skill?: SkillRef;
  /**
   * The messages lack the skill's own text, so that it is sent again.
   * True for messages that were rebuilt from the events of a run.
   */
  skillIsUnread?: boolean;
}

export interface RunRequest {
  /** The person's words. May be empty if `skill` is set. */
  text: string;
  /** If set, only this agent's skills are considered. */
  agent?: string;
  /** If set, this skill runs without routing. */
  skill?: SkillRef;
  /** No skill is chosen: the run looks for one itself and only reads. `agent` and `skill` are then ignored. */
  withoutSkill?: boolean;
  selection?: Selection;
  /** Attachments of the request. The model reads them as material, after the words. */
  attachments?: readonly Attachment[];
  /** The conversation that the run continues, with its skill unless the request names another one. */
  conversation?: EarlierConversation;
  /** The conversation under which the run is stored, and its run that this one follows. If missing, a conversation of its own. */
  conversationId?: string;
  parentRunId?: string;
  /** The door through which the request came. Defaults to `other`. */
  origin?: RunOrigin;
  /** File to which the run's model turns are written, for the provider `replay`. Absolute path. */
  recordTo?: string;
}

/** Returns the words together with the selection. */
export function wordsOf({ text, selection }: RunRequest): string {
  if (!selection) return text;
  const { file, line, language } = selection;
  return [text, selectionText(file, line, language, selection.text)].filter(Boolean).join('\n\n');
}

/** Filled during a run, so that its end can be reported however it ends. */
export interface RunState {
  runId: string;
  messages: Message[];
  /** Number of messages that precede this run. */
  earlier?: number;
  counts: { rounds: number; toolCalls: number };
}

export const newRunState = (): RunState => ({
  runId: randomUUID(),
  messages: [],
  counts: { rounds: 0, toolCalls: 0 },
});
