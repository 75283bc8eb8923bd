/** Defines a request, the parts of the engine that perform it, and the state of its run. */
import { randomUUID } from 'node:crypto';
import type { Attachment, Selection } from '../../protocol/attachment.ts';
import type { Message, SkillRef } from '../../protocol/run.ts';
import type { ChangeStore } from '../changes/changeStore.ts';
import type { Config } from '../config.ts';
import type { SignInPort } from '../mcp/signIn.ts';
import type { Models } from '../providers/create.ts';
import type { RunOrigin } from '../records/runFile.ts';
import type { Redactor } from '../redact.ts';
import type { RouteRequest, Router } from '../routing/route.ts';
import type { Catalog } from '../skills/catalog.ts';
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
  /** The latest run with the skill failed or was refused. The next request is routed like a first one, and goes on with it only if no other skill is likely. */
  skillFailed?: boolean;
  /**
   * The messages lack the skill's own text, so that it is sent again.
   * True for messages that were rebuilt from the events of a run.
   */
  skillIsUnread?: boolean;
}

export interface RunRequest extends RouteRequest {
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

/** The parts of an open Telos that its runs share. */
export interface Engine {
  readonly config: Config;
  readonly catalog: Catalog;
  readonly models: Models;
  readonly router: Router;
  readonly changes: ChangeStore;
  /** See `FrontendParts`. */
  readonly ripgrep?: string | undefined;
  readonly signIn?: SignInPort | undefined;
}

/** Filled during a run, so that its end can be reported however it ends. */
export interface RunState {
  runId: string;
  messages: Message[];
  /** Number of messages that precede this run. */
  earlier?: number;
  counts: { rounds: number; toolCalls: number };
  /** Knows the secrets that the run has come across. */
  redact: Redactor;
}

export const newRunState = (redact: Redactor): RunState => ({
  runId: randomUUID(),
  messages: [],
  counts: { rounds: 0, toolCalls: 0 },
  redact,
});
