/** Puts the host's numbered batches in order: what came twice is dropped, and a gap is noticed. Pure. */
import type { RunEvent } from '../src/protocol/run.ts';

export interface Inbox {
  readonly id: string | null;
  /** How many events of the conversation have been applied. */
  readonly have: number;
}

/** The numbered part of a `conversation` or `events` message. */
export interface Batch {
  readonly id: string;
  readonly from: number;
  readonly events: readonly RunEvent[];
}

export interface Receipt {
  readonly inbox: Inbox;
  /** The events that are new, in order. */
  readonly events: readonly RunEvent[];
  /** Another conversation, or the same one from its start: forget what was drawn. */
  readonly reset: boolean;
  /** Something is missing in between: ask the host for everything from `inbox.have` on. */
  readonly gap: boolean;
}

/** Takes a `conversation` message, which may begin another conversation or continue the present one. */
export function receiveConversation(inbox: Inbox, batch: Batch): Receipt {
  if (batch.id === inbox.id && batch.from > 0) return receiveEvents(inbox, batch);
  if (batch.from > 0) return { inbox: { id: batch.id, have: 0 }, events: [], reset: true, gap: true };
  return {
    inbox: { id: batch.id, have: batch.events.length },
    events: batch.events,
    reset: true,
    gap: false,
  };
}

/** Takes an `events` message; events of a conversation that is not shown are ignored. */
export function receiveEvents(inbox: Inbox, batch: Batch): Receipt {
  const nothing = { inbox, events: [], reset: false, gap: false };
  if (batch.id !== inbox.id) return nothing;
  if (batch.from > inbox.have) return { ...nothing, gap: true };
  const events = batch.events.slice(inbox.have - batch.from);
  if (events.length === 0) return nothing;
  return { inbox: { id: inbox.id, have: inbox.have + events.length }, events, reset: false, gap: false };
}
