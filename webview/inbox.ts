/** Puts the host's numbered batches in order, drops duplicates and detects gaps. Pure. */
import type { RunEvent } from '../src/protocol/run.ts';

export interface Inbox {
  readonly id: string | null;
  /** Number of the conversation's events that have been applied. */
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
  /** The new events, in order. */
  readonly events: readonly RunEvent[];
  /** True for another conversation, or the same one from its start: the view discards what was drawn. */
  readonly reset: boolean;
  /** True if events are missing: the view asks the host for all from `inbox.have` on. */
  readonly gap: boolean;
}

/** Takes a `conversation` message, which begins another conversation or continues the present one. */
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

/** Takes an `events` message. Ignores events of a conversation that is not shown. */
export function receiveEvents(inbox: Inbox, batch: Batch): Receipt {
  const nothing = { inbox, events: [], reset: false, gap: false };
  if (batch.id !== inbox.id) return nothing;
  if (batch.from > inbox.have) return { ...nothing, gap: true };
  const events = batch.events.slice(inbox.have - batch.from);
  if (events.length === 0) return nothing;
  return { inbox: { id: inbox.id, have: inbox.have + events.length }, events, reset: false, gap: false };
}
