/** What a frontend asks for: the words, what goes along with them, and what was said before. */
import { randomUUID } from 'node:crypto';
import type { Attachment, Selection } from '../../protocol/attachment.ts';
import type { Message, SkillRef } from '../../protocol/run.ts';
import type { RunDoor } from '../records/runFile.ts';
import { selectionText } from './prompt.ts';

/** What has been said before a request. */
export interface EarlierConversation {
  /** As the last `run_end` had them. */
  messages: readonly Message[];
  /** As its `routed` event named it, so an empty name means that it ran without a skill. Missing: the request is routed like a first one. */
  skill?: SkillRef;
  /** The messages lack the skill's own text, so that it is said again; true for those that were told from the events of a run. */
  skillIsUnread?: boolean;
}

export interface RunRequest {
  /** What the person said; may be empty when `skill` is set. */
  text: string;
  /** Only this agent's skills are considered. */
  agent?: string;
  /** This skill runs, without routing. */
  skill?: SkillRef;
  /** No skill is chosen: the run looks for one itself and only reads. `agent` and `skill` do not count then. */
  withoutSkill?: boolean;
  selection?: Selection;
  /** What the person hands over; the model reads it as material, behind the words. */
  attachments?: readonly Attachment[];
  /** The run goes on from here: with its skill, unless the request names another one. */
  conversation?: EarlierConversation;
  /** Under which conversation the run is kept, and behind which of its runs. Missing: one of its own. */
  conversationId?: string;
  after?: string;
  /** Who asks. Missing: `other`. */
  door?: RunDoor;
  /** The run's model turns are written to this file, for the provider `replay`. Absolute path. */
  recordTo?: string;
}

/** The words with what was selected. */
export function wordsOf({ text, selection }: RunRequest): string {
  if (!selection) return text;
  const { file, line, language } = selection;
  return [text, selectionText(file, line, language, selection.text)].filter(Boolean).join('\n\n');
}

/** What a run fills as it goes on, so that its end can be told however it ends. */
export interface RunState {
  runId: string;
  messages: Message[];
  /** So many of the messages were said before this run. */
  earlier?: number;
  counts: { rounds: number; toolCalls: number };
}

export const newRunState = (): RunState => ({
  runId: randomUUID(),
  messages: [],
  counts: { rounds: 0, toolCalls: 0 },
});
