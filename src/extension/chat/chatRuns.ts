/** Runs the requests of a chat, one after the other, and holds the approvals that wait for an answer. */

import { randomUUID } from 'node:crypto';
import { Interruption } from '@telos/engine/errors';
import type { StoredAttachments } from '@telos/engine/records';
import type { EarlierConversation, Human, RunRequest } from '@telos/engine/run';
import type { Telos } from '@telos/engine/telos';
import { answers } from '@telos/protocol/form';
import type { ApprovalDecision, ApprovalRequest, ErrorCode, RunEvent, RunOutcome } from '@telos/protocol/run';
import type { ChatWork } from '../base/chatWork.ts';
import { describeError, t } from '../base/labels.ts';
import type { ChatRequest } from './conversation.ts';

/** The parts of the editor that a request needs. */
export interface RequestPorts {
  openTelos(): Promise<Pick<Telos, 'run'>>;
  /** Reads the attachments of a request from an earlier window. */
  readAttachments(kept: NonNullable<ChatRequest['keptWith']>): Promise<StoredAttachments>;
  isTrusted(): boolean;
}

/** A request, what was said before it, and where its run is stored. */
interface RequestInChat {
  request: ChatRequest;
  earlier: EarlierConversation;
  place: Pick<RunRequest, 'origin' | 'conversationId' | 'parentRunId'>;
}

/** Receives one event. `isStored` is true for events of the engine, whose run has a file. */
export type ShowEvent = (event: RunEvent, isStored: boolean) => void;

const untrustedMessage = (): string =>
  t(
    'This workspace is in Restricted Mode, so nothing runs here. Trust it with "Workspaces: Manage Workspace Trust", then send again.',
  );

/** Runs the request to its end. Never throws. */
export async function requestRun(
  { request: { keptWith, ...request }, earlier, place }: RequestInChat,
  ports: RequestPorts,
  human: Human,
  show: ShowEvent,
  signal: AbortSignal,
): Promise<void> {
  const startedAt = performance.now();
  let started = false;
  const showOwn = (events: readonly RunEvent[]): void => {
    for (const event of events) show(event, false);
  };
  try {
    if (!ports.isTrusted()) return showOwn(refused(request, 'config', untrustedMessage(), 0));
    const telos = await ports.openTelos();
    const stored = keptWith && (await ports.readAttachments(keptWith));
    const whole = { ...goingOn(stored ? withStored(request, stored) : request, earlier), ...place };
    for await (const event of telos.run(whole, human, signal)) {
      started = true;
      show(event, true);
      if (event.type === 'run_start' && stored) showOwn(noticesOf(stored));
    }
  } catch (error) {
    // A run never throws. An error here means that Telos failed to open, or a defect.
    const message = describeError(error);
    const durationMs = Math.round(performance.now() - startedAt);
    if (started) showOwn([failedEnd('internal', message, durationMs)]);
    else showOwn(refused(request, 'internal', message, durationMs));
  }
}

/** Shows work that is no run of a skill like one: its steps, its questions and what it says at its end. Never throws. */
export async function showWork(
  { text, work }: { text: string; work: ChatWork },
  ports: Pick<RequestPorts, 'isTrusted'>,
  human: Human,
  show: (event: RunEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  const started = performance.now();
  const end = (outcome: RunOutcome): RunEvent => ({
    type: 'run_end',
    outcome,
    rounds: 0,
    toolCalls: 0,
    messages: [],
    durationMs: Math.round(performance.now() - started),
  });
  if (!ports.isTrusted()) {
    for (const event of refused({ text }, 'config', untrustedMessage(), 0)) show(event);
    return;
  }
  show({ type: 'run_start', runId: randomUUID(), text, startedAt: new Date(started).toISOString() });
  try {
    const said = await work({
      signal,
      say: detail => show({ type: 'step', skill: '', detail }),
      ask: async request => {
        show({ type: 'approval_request', request });
        const decision = await human.approve(request, signal);
        show({ type: 'approval_response', callId: request.callId, decision });
        return decision;
      },
    });
    show({ type: 'text', text: said });
    show(end('completed'));
  } catch (error) {
    if (signal.aborted || error instanceof Interruption) show(end('cancelled'));
    else show(failedEnd('internal', describeError(error), Math.round(performance.now() - started)));
  }
}

/** Returns the start and end of a request that never reached the engine. The view then shows it like any other run. */
function refused(
  { text }: ChatRequest,
  code: ErrorCode,
  message: string,
  durationMs: number,
): readonly RunEvent[] {
  const start = {
    type: 'run_start',
    runId: randomUUID(),
    text,
    startedAt: new Date().toISOString(),
  } as const;
  return [start, failedEnd(code, message, durationMs)];
}

/** Converts the request to the engine's form. */
function goingOn({ continuation, ...request }: ChatRequest, earlier: EarlierConversation): RunRequest {
  const { messages, skill, skillIsUnread, skillFailed } = earlier;
  if (continuation === 'from_start' || messages.length === 0) return request;
  const stays = continuation !== 'anew' && skill;
  const unread = stays && skillIsUnread && { skillIsUnread };
  const failed = stays && skillFailed && { skillFailed };
  return { ...request, conversation: { messages, ...(stays && { skill }), ...unread, ...failed } };
}

/** Adds what was attached the first time, before the attachments that the person has added since. */
function withStored(request: ChatRequest, { attachments, selection }: StoredAttachments): ChatRequest {
  const all = [...attachments, ...(request.attachments ?? [])];
  return {
    ...request,
    ...(all.length > 0 && { attachments: all }),
    ...(selection && !request.selection && { selection }),
  };
}

function noticesOf({ missing, hidden }: StoredAttachments): RunEvent[] {
  const notice = (message: string): RunEvent => ({ type: 'notice', level: 'warning', message });
  const names = missing.map(({ name }) => name).join(', ');
  const gone = t(
    'The attachments of this request are no longer stored and were not sent: {0}. Attach them again if they are needed.',
    names,
  );
  const covered = t(
    'The attachments of this request contained secrets, which are hidden in the stored copies that were sent now: {0}. Attach them again if the secrets are needed.',
    hidden.join(', '),
  );
  return [...(names ? [notice(gone)] : []), ...(hidden.length > 0 ? [notice(covered)] : [])];
}

function failedEnd(code: ErrorCode, message: string, durationMs: number): RunEvent {
  return {
    type: 'run_end',
    outcome: 'failed',
    rounds: 0,
    toolCalls: 0,
    durationMs,
    messages: [],
    error: { code, message },
  };
}

/** The chat's own run, a replay, or a run elsewhere that is only watched. */
export type RunKind = 'own' | 'replay' | 'elsewhere';

interface ActiveRun {
  kind: RunKind;
  controller: AbortController;
  done: Promise<void>;
}

export class ChatRuns {
  readonly #changed: () => void;
  readonly #all = new Set<ActiveRun>();
  #shown: ActiveRun | undefined;

  /** `changed` is called when the shown run has started or ended. */
  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** The kind of the shown run. Undefined while none is active. */
  get kind(): RunKind | undefined {
    return this.#shown?.kind;
  }

  /** Settles when the shown run ends. */
  get done(): Promise<void> {
    return this.#shown?.done ?? Promise.resolve();
  }

  /**
   * Starts a run and shows it. `flush` is called at its end. `next` is called after that if the run is still shown,
   * with true if it was stopped. `work` must never throw.
   */
  start(
    kind: RunKind,
    work: (signal: AbortSignal) => Promise<void>,
    { flush, next }: { flush(): void; next(isStopped: boolean): void },
  ): void {
    const controller = new AbortController();
    const run: ActiveRun = { kind, controller, done: Promise.resolve() };
    this.#shown = run;
    this.#all.add(run);
    this.#changed();
    run.done = work(controller.signal).finally(() => {
      flush();
      this.#all.delete(run);
      if (this.#shown !== run) return;
      this.#shown = undefined;
      this.#changed();
      next(controller.signal.aborted);
    });
  }

  /** Aborts the shown run, which reports its own end. */
  abort(): void {
    this.#shown?.controller.abort();
  }

  /** Aborts the shown run and no longer shows it. */
  leave(): void {
    this.abort();
    this.#shown = undefined;
  }

  /** Ends every run and waits until each has reported its end. */
  async end(): Promise<void> {
    for (const run of this.#all) run.controller.abort(new Interruption());
    await Promise.all([...this.#all].map(run => run.done));
  }
}

interface Card {
  request: ApprovalRequest;
  settle(decision: ApprovalDecision): void;
}

export class PendingApprovals implements Human {
  /** The waiting cards, by the token of the question. */
  readonly #cards = new Map<string, Card>();
  readonly #onAsked: (request: ApprovalRequest) => void;

  readonly #onChanged: () => void;

  /**
   * `onAsked` is called for each new question, before its event reaches the view. `onChanged` is called whenever the
   * number of waiting questions changes.
   */
  constructor(onAsked: (request: ApprovalRequest) => void, onChanged: () => void = () => {}) {
    this.#onAsked = onAsked;
    this.#onChanged = onChanged;
  }

  /** The number of cards that wait for an answer. */
  get count(): number {
    return this.#cards.size;
  }

  approve(request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalDecision> {
    if (signal.aborted) return Promise.resolve(stopped);
    // A question that is asked again is a new one. The older one is denied.
    this.#cards.get(request.token)?.settle({ allow: false, reason: 'A later call took its place.' });
    return new Promise(resolve => {
      const onAbort = (): void => card.settle(stopped);
      const card: Card = {
        request,
        settle: decision => {
          signal.removeEventListener('abort', onAbort);
          this.#cards.delete(request.token);
          resolve(decision);
          this.#onChanged();
        },
      };
      signal.addEventListener('abort', onAbort);
      this.#cards.set(request.token, card);
      this.#onAsked(request);
      this.#onChanged();
    });
  }

  /** Settles a card. Returns false and does nothing if no such card waits or it did not offer this scope. */
  answer(token: string, decision: ApprovalDecision): boolean {
    const card = this.#cards.get(token);
    if (!card) return false;
    const { scopes, isEditable, choices, form } = card.request;
    if (decision.allow && !scopes.includes(decision.scope)) return false;
    if (decision.allow && decision.command !== undefined && !isEditable) return false;
    if (decision.allow && decision.answer !== undefined && !choices) return false;
    const content = decision.allow ? decision.content : undefined;
    if (decision.allow && (form ? !content || !answers(form, content) : content)) return false;
    card.settle(decision);
    return true;
  }

  /** Leaves the questions unanswered, because the chat view has no form for them yet. */
  async ask(questions: readonly string[]): Promise<readonly string[]> {
    return questions.map(() => '');
  }
}

const stopped: ApprovalDecision = { allow: false, reason: 'The run was stopped before an answer came.' };
