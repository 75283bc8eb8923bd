/** One request of a chat as a run: what went along before goes along again, the engine runs it, and where that was never reached there is an end all the same. */

import { randomUUID } from 'node:crypto';
import { Interruption } from '../../engine/errors.ts';
import type { Human } from '../../engine/human.ts';
import type { KeptAlong } from '../../engine/records/runAttachments.ts';
import type { EarlierConversation, RunRequest } from '../../engine/run/request.ts';
import type { Telos } from '../../engine/telos.ts';
import type { ErrorCode, RunEvent } from '../../protocol/run.ts';
import { t } from '../base/labels.ts';
import type { ChatRequest } from './conversation.ts';

/** What a request needs of the editor around it. */
export interface RequestPorts {
  openTelos(): Promise<Pick<Telos, 'run'>>;
  /** What went along with a request of an earlier window. */
  readAlong(kept: NonNullable<ChatRequest['keptWith']>): Promise<KeptAlong>;
  isTrusted(): boolean;
}

/** `isKept` is true for what the engine says: then the run has a file. */
export interface RequestEvent {
  event: RunEvent;
  isKept: boolean;
}

const untrustedMessage = (): string =>
  t(
    'This workspace is in Restricted Mode, so nothing runs here. Trust it with "Workspaces: Manage Workspace Trust", then send again.',
  );

/** `place` is where the run is kept. What is returned runs it, and never throws. */
export function requestRun(
  { keptWith, ...request }: ChatRequest,
  earlier: EarlierConversation,
  place: Pick<RunRequest, 'door' | 'conversationId' | 'after'>,
  ports: RequestPorts,
  human: Human,
): (signal: AbortSignal) => AsyncGenerator<RequestEvent, void> {
  return async function* (signal) {
    const startedAt = Date.now();
    let started = false;
    try {
      if (!ports.isTrusted()) {
        yield* refused(request, 'config', untrustedMessage(), 0);
        return;
      }
      const telos = await ports.openTelos();
      const kept = keptWith && (await ports.readAlong(keptWith));
      const whole = { ...goingOn(kept ? withAlong(request, kept) : request, earlier), ...place };
      for await (const event of telos.run(whole, human, signal)) {
        started = true;
        yield { event, isKept: true };
        if (event.type === 'run_start' && kept) yield* noticesOf(kept).map(own);
      }
    } catch (error) {
      // A run never throws; what lands here is Telos itself failing to open, or a defect.
      const message = error instanceof Error ? error.message : String(error);
      const durationMs = Date.now() - startedAt;
      if (started) yield own(failedEnd('internal', message, durationMs));
      else yield* refused(request, 'internal', message, durationMs);
    }
  };
}

/** A request that never reached the engine is still a run with a start and an end, so that the view shows it like any other. */
function refused(
  { text }: ChatRequest,
  code: ErrorCode,
  message: string,
  durationMs: number,
): readonly RequestEvent[] {
  const start = {
    type: 'run_start',
    runId: randomUUID(),
    text,
    startedAt: new Date().toISOString(),
  } as const;
  return [own(start), own(failedEnd(code, message, durationMs))];
}

const own = (event: RunEvent): RequestEvent => ({ event, isKept: false });

/** The request as the engine takes it. */
function goingOn({ goesOn, ...request }: ChatRequest, earlier: EarlierConversation): RunRequest {
  const { messages, skill, skillIsUnread } = earlier;
  if (goesOn === 'from_start' || messages.length === 0) return request;
  const stays = goesOn !== 'anew' && skill;
  const unread = stays && skillIsUnread && { skillIsUnread };
  return { ...request, conversation: { messages, ...(stays && { skill }), ...unread } };
}

/** With what went along the first time, before what the person has added since. */
function withAlong(request: ChatRequest, { attachments, selection }: KeptAlong): ChatRequest {
  const all = [...attachments, ...(request.attachments ?? [])];
  return {
    ...request,
    ...(all.length > 0 && { attachments: all }),
    ...(selection && !request.selection && { selection }),
  };
}

function noticesOf({ missing, hidden }: KeptAlong): RunEvent[] {
  const notice = (message: string): RunEvent => ({ type: 'notice', level: 'warning', message });
  const names = missing.map(({ name }) => name).join(', ');
  const gone = t(
    'What went along with this request the first time is not kept, and did not go along now: {0}. Attach it again where it is needed.',
    names,
  );
  const covered = t(
    'What went along with this request the first time held secrets, which are hidden in what is kept and went along: {0}. Attach it again where they are needed.',
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

/** The chat's own; one that is only played again; or one of another place, which is watched. */
export type RunKind = 'own' | 'replay' | 'elsewhere';

interface ActiveRun {
  kind: RunKind;
  controller: AbortController;
  done: Promise<void>;
}

export class ActiveRuns {
  readonly #changed: () => void;
  readonly #all = new Set<ActiveRun>();
  #shown: ActiveRun | undefined;

  /** `changed` is told when the shown run has started or ended. */
  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** What kind of run is shown; undefined while none goes on. */
  get kind(): RunKind | undefined {
    return this.#shown?.kind;
  }

  /** Settles with the end of the shown run. */
  get done(): Promise<void> {
    return this.#shown?.done ?? Promise.resolve();
  }

  /**
   * Starts a run, which is the shown one from now on. `flush` is called at its end, `next` behind that where it is still shown, with whether it
   * was stopped. `work` never throws.
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

  /** Aborts the shown run; it reports its own end. */
  abort(): void {
    this.#shown?.controller.abort();
  }

  /** The same, and it is no longer shown. */
  leave(): void {
    this.abort();
    this.#shown = undefined;
  }

  /** Ends every run and waits until each has said so. */
  async end(): Promise<void> {
    for (const run of this.#all) run.controller.abort(new Interruption());
    await Promise.all([...this.#all].map(run => run.done));
  }
}
