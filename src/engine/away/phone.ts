/** Asks by a wire to a phone: with buttons that carry signed answers, and without any where the question cannot be shown whole. */
import { setTimeout as delay } from 'node:timers/promises';
import { beginningOf, sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { type AwayAnswer, type AwayQuestion, isYesOrNo, type Messenger, wordsOf } from './messenger.ts';
import { Ticket } from './ticket.ts';

/** What is sent. */
export interface Note {
  id: string;
  title: string;
  text: string;
  isDangerous: boolean;
  /** Empty if it cannot be answered there. */
  buttons: readonly { answer: AwayAnswer; label: string; token: string }[];
  until: Date;
}

/** Says how a question ended, where it stands. Never throws. */
export type CloseNote = (outcome: string) => Promise<void>;

/** One service by which messages go to a phone and answers come back. */
export interface Wire {
  readonly name: string;
  /** Longest text, in bytes. */
  readonly longest: number;
  /**
   * Sends the note, and resolves once the service has accepted it. From before that until the signal aborts, `heard` gets what comes back
   * from those who may answer; it returns what to say to them. Throws TelosError if the note is not accepted.
   */
  open(note: Note, heard: (token: string) => string, signal: AbortSignal): Promise<CloseNote>;
}

/** How long a service may take to accept a note, and to hear how it ended. In milliseconds. */
const acceptTime = 5_000;

const labels: Readonly<Record<'once' | 'no', string>> = { once: 'Once', no: 'No' };
export const overText = 'This question is over. Nothing was decided.';

/** Returns the way to the user over a wire. */
export const phone = (wire: Wire, now: () => number = Date.now): Messenger => ({
  name: wire.name,
  ask: (question, signal, sent) => ask(wire, question, signal, sent, now),
});

async function ask(
  wire: Wire,
  { request, scopes }: AwayQuestion,
  signal: AbortSignal,
  sent: (() => void) | undefined,
  now: () => number,
): Promise<AwayAnswer | undefined> {
  const over = new AbortController();
  const open = AbortSignal.any([signal, over.signal]);
  const ticket = new Ticket(() => JSON.stringify(request), now);
  let settle: (answer: AwayAnswer | undefined) => void = () => undefined;
  const answered = new Promise<AwayAnswer | undefined>(resolve => {
    settle = resolve;
  });
  const heard = (token: string): string => {
    if (open.aborted) return overText;
    const answer = ticket.take(token);
    if (answer === undefined) return overText;
    settle(answer);
    return answer === 'no' ? labels.no : labels.once;
  };
  const onAbort = (): void => settle(undefined);
  signal.addEventListener('abort', onAbort);
  try {
    signal.throwIfAborted();
    const note = noteOf(request, ticket, scopes.includes('once'), wire.longest);
    const close = await accepted(wire, note, heard, open);
    sent?.();
    if (note.buttons.length === 0) return undefined;
    void delay(ticket.until.getTime() - now(), undefined, { signal: open }).then(onAbort, () => undefined);
    const answer = await answered;
    ticket.close();
    const outcome = answer ? `→ ${answer === 'no' ? labels.no : labels.once}` : overText;
    await Promise.race([close(outcome), delay(acceptTime, undefined, { ref: false })]);
    return answer;
  } finally {
    signal.removeEventListener('abort', onAbort);
    ticket.close();
    over.abort();
  }
}

/** A service that is silent counts as down. */
async function accepted(
  wire: Wire,
  note: Note,
  heard: (token: string) => string,
  signal: AbortSignal,
): Promise<CloseNote> {
  const timer = new AbortController();
  const late = delay(acceptTime, undefined, { signal: timer.signal }).then(() => {
    throw new TelosError('provider', [
      sentence('{0} did not answer in {1} seconds.', wire.name, acceptTime / 1000),
    ]);
  });
  late.catch(() => undefined);
  try {
    return await Promise.race([wire.open(note, heard, signal), late]);
  } finally {
    timer.abort();
  }
}

const onMachine = 'Answer it on the machine. Nothing was decided.';
const tooLong = `It is too long to be shown here. ${onMachine}`;
const needsWords = `It needs more than a yes or a no. ${onMachine}`;

/** A yes to something that is not shown whole would be no yes to it. */
function noteOf(request: AwayQuestion['request'], ticket: Ticket, mayAllow: boolean, longest: number): Note {
  const text = wordsOf(request);
  const isWhole = Buffer.byteLength(text) <= longest - needsWords.length;
  const hasButtons = isYesOrNo(request);
  const answers = isWhole && mayAllow && hasButtons ? (['once', 'no'] as const) : [];
  const shown = isWhole ? text : `${beginningOf(text, 300)} …\n\n${tooLong}`;
  return {
    id: ticket.id,
    title: 'Telos asks',
    text: hasButtons || !isWhole ? shown : `${shown}\n\n${needsWords}`,
    isDangerous: (request.danger ?? []).length > 0,
    buttons: answers.map(answer => ({ answer, label: labels[answer], token: ticket.token(answer) })),
    until: ticket.until,
  };
}
