/** What work that a chat shows like a run, although no skill runs, can do there. */
import type { ApprovalDecision, ApprovalRequest } from '@telos/protocol/run';

export interface ChatStage {
  /** Aborts when the person stops the work. */
  signal: AbortSignal;
  /** Shows what is done next. */
  say(step: string): void;
  /** Shows a card or a form, and returns the person's answer: a denial once the work was stopped. */
  ask(request: ApprovalRequest): Promise<ApprovalDecision>;
}

/** Returns what the chat says at the end. Rejects if the work fails or was stopped. */
export type ChatWork = (stage: ChatStage) => Promise<string>;

/** Brings a chat to the front and shows the work in it. `text` is what the person has asked for. */
export type WorkInChat = (text: string, work: ChatWork) => Promise<void>;
