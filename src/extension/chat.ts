/** The chat without its window: takes a request, runs it, and posts what happens in numbered batches. */
import { randomUUID } from 'node:crypto';
import { Interruption } from '../engine/errors.ts';
import { paced } from '../engine/history/replay.ts';
import type { KeptAlong } from '../engine/history/wentAlong.ts';
import type { EarlierConversation, RunRequest } from '../engine/runRequest.ts';
import type { Telos } from '../engine/telos.ts';
import type { Attachment } from '../protocol/attachment.ts';
import type { ApprovalDecision, ApprovalRequest, ErrorCode, RunEvent } from '../protocol/run.ts';
import type { ChatInfo, QueuedRequest, ToWebview } from '../protocol/webview.ts';
import { ChatFeed } from './chatFeed.ts';
import { type ChatRequest, Conversation, type KeptRun, type RunElsewhere } from './conversation.ts';
import { PendingApprovals } from './pendingApprovals.ts';
import { t } from './words.ts';

/** What the chat needs of the editor around it. */
export interface ChatPorts {
  /** Sends to the view, if there is one; never waits for it. */
  post(message: ToWebview): void;
  openTelos(): Promise<Pick<Telos, 'run'>>;
  /** What went along with a request of an earlier window. */
  readAlong(kept: NonNullable<ChatRequest['keptWith']>): Promise<KeptAlong>;
  /** Never throws. */
  readInfo(): Promise<ChatInfo>;
  isTrusted(): boolean;
  /** A run has started or ended, a question was put or answered, or another conversation is shown. */
  changed(): void;
  /** A question waits; the chat may be out of sight. */
  approvalAsked(request: ApprovalRequest): void;
}

/** What a run that goes on is told. */
const resumingWords = 'Go on where you were interrupted.';

const untrustedMessage = (): string =>
  t(
    'This workspace is in Restricted Mode, so nothing runs here. Trust it with "Workspaces: Manage Workspace Trust", then send again.',
  );

interface ActiveRun {
  /** Its own; one that is only played again; or one of another place, which is watched. */
  kind: 'own' | 'replay' | 'elsewhere';
  controller: AbortController;
  done: Promise<void>;
}

export class Chat {
  readonly #ports: ChatPorts;
  readonly #approvals: PendingApprovals;
  readonly #feed: ChatFeed;
  #conversation = new Conversation();
  /** The run of the shown conversation. */
  #active: ActiveRun | undefined;
  /** Every run that has not ended, those of conversations left behind too. */
  readonly #runs = new Set<ActiveRun>();
  /** Requests that wait for the end of the active run. */
  #queue: { id: string; request: ChatRequest }[] = [];
  /** The person has been given a draft in this conversation; a second one could overwrite their own words. */
  #drafted = false;

  constructor(ports: ChatPorts) {
    this.#ports = ports;
    this.#feed = new ChatFeed(message => ports.post(message));
    this.#approvals = new PendingApprovals(
      request => ports.approvalAsked(request),
      () => ports.changed(),
    );
  }

  /** A run of the shown conversation goes on. */
  get isRunning(): boolean {
    return this.#active !== undefined;
  }

  /** The same, and it is this chat's own. */
  get isWorking(): boolean {
    return this.#active?.kind === 'own';
  }

  /** The same, and it can be stopped from here. */
  get canStop(): boolean {
    return this.#active !== undefined && this.#active.kind !== 'elsewhere';
  }

  /** How many questions wait for the person's answer. */
  get waiting(): number {
    return this.#approvals.count;
  }

  /** What the runs of the shown conversation are kept under. */
  get keptId(): string {
    return this.#conversation.keptId;
  }

  /** The runs of the shown conversation, in their order. */
  get runIds(): readonly string[] {
    return this.#conversation.runIds;
  }

  /** What the shown conversation is called; empty before its first request. */
  get title(): string {
    return this.#conversation.title;
  }

  /** The folder in which the shown conversation's latest skill worked. */
  get workingDir(): string | undefined {
    return this.#conversation.workingDir;
  }

  /** Starts a run. While one goes on, the request waits for its end. */
  submit(request: ChatRequest): void {
    if (request.text.trim() === '' && !request.skill) return;
    if (!this.#active) {
      this.#start(this.#conversation.completed(request), this.#conversation.earlier);
      return;
    }
    this.#queue.push({ id: randomUUID(), request });
    this.#postQueue();
  }

  /** Takes a waiting request away. */
  unqueue(id: string): void {
    this.#queue = this.#queue.filter(waiting => waiting.id !== id);
    this.#postQueue();
  }

  /** Runs a waiting request before the others, as soon as nothing goes on. */
  runQueued(id: string): void {
    const waiting = this.#queue.find(one => one.id === id);
    if (!waiting || this.#active) return;
    this.unqueue(id);
    this.submit(waiting.request);
  }

  #start(request: ChatRequest, earlier: EarlierConversation): void {
    const conversation = this.#conversation;
    conversation.begin(request);
    const { keptId: conversationId, latestKept: after } = conversation;
    const place = { door: 'chat' as const, conversationId, ...(after !== undefined && { after }) };
    const whole = { ...goingOn(request, earlier), ...place };
    this.#activate(signal => this.#follow(conversation, whole, request.keptWith, signal), 'own');
  }

  #activate(work: (signal: AbortSignal) => Promise<void>, kind: ActiveRun['kind']): void {
    const controller = new AbortController();
    const run: ActiveRun = { kind, controller, done: Promise.resolve() };
    this.#active = run;
    this.#runs.add(run);
    this.#ports.changed();
    run.done = work(controller.signal).finally(() => {
      this.#feed.now();
      this.#runs.delete(run);
      if (this.#active !== run) return;
      this.#active = undefined;
      this.#ports.changed();
      // Who stops a run wants to look first; what waits then waits for them.
      const [next] = this.#queue;
      if (next && !controller.signal.aborted) this.runQueued(next.id);
    });
  }

  /** Stops the run that is going on, waits for its end, and runs this one; of the run that it takes the place of, the model hears nothing. */
  async submitInstead(request: ChatRequest): Promise<void> {
    // What cannot be stopped from here is waited for.
    if (this.#active?.kind === 'elsewhere') return this.submit(request);
    this.stop();
    await this.#active?.done;
    if (this.#active) this.submit(request);
    else this.#start(this.#conversation.completed(request), this.#conversation.earlierInstead(request.text));
  }

  /** Goes on with the latest run where that was interrupted. */
  resume(runId: string): void {
    if (!this.#active && this.#conversation.isInterrupted(runId)) this.submit({ text: resumingWords });
  }

  /** Shows a kept conversation in place of this one; not while a run of its own goes on. One that goes on elsewhere is watched to its end. */
  async open(conversation: Conversation): Promise<void> {
    this.#watchNoMore();
    if (this.#active) return;
    this.#replace(conversation);
    const { elsewhere } = conversation;
    if (elsewhere) this.#activate(signal => this.#watch(conversation, elsewhere, signal), 'elsewhere');
    if (this.#feed.isFollowed) await this.show(null, 0);
  }

  /** Hands the shown conversation to another chat and shows an empty one; undefined while a run goes on. */
  async give(): Promise<Conversation | undefined> {
    this.#watchNoMore();
    if (this.#active) return undefined;
    const given = this.#conversation;
    await this.startOver();
    return given;
  }

  /**
   * Plays kept runs into an empty conversation; nothing runs. Stopping it shows the rest at once. A request behind them begins a conversation
   * of its own, which goes on from there.
   */
  async replay(runs: readonly KeptRun[]): Promise<void> {
    this.#watchNoMore();
    if (this.#active) return;
    const conversation = new Conversation();
    this.#replace(conversation);
    if (this.#feed.isFollowed) await this.show(null, 0);
    this.#activate(async signal => {
      for (const run of runs) {
        const before = conversation.earlier.messages;
        conversation.beginReplay(run.request);
        this.#ports.changed();
        for await (const event of paced(run.events, signal)) {
          this.#append(conversation, event);
          if (event.type === 'run_start') this.#append(conversation, replayLabel(event.startedAt));
        }
        conversation.tellAgain(run, before);
      }
    }, 'replay');
  }

  #replace(conversation: Conversation): void {
    this.#conversation = conversation;
    this.#queue = [];
    this.#drafted = false;
    this.#ports.changed();
  }

  /** What a request of this conversation said; empty for a run that is not of it. */
  wordsOf(runId: string): string {
    return this.#conversation.before(runId)?.request.text ?? '';
  }

  /** Runs a request of this conversation again with `text` for its words, and `more` with it; the conversation goes on from what was before it. */
  async resend(runId: string, text: string, more: readonly Attachment[] = []): Promise<void> {
    if (text.trim() === '' && !this.#conversation.before(runId)?.request.skill) return;
    this.#watchNoMore();
    this.stop();
    await this.#active?.done;
    const found = this.#conversation.before(runId);
    if (!found || this.#active) return;
    this.#conversation = found.conversation;
    const attachments = [...(found.request.attachments ?? []), ...more];
    const handed = attachments.length > 0 ? { attachments } : {};
    this.#start({ ...found.request, text, ...handed }, found.conversation.earlier);
    if (this.#feed.isFollowed) await this.show(null, 0);
  }

  /** Aborts the shown run; it reports its own end. One that goes on elsewhere cannot be stopped from here. */
  stop(): void {
    if (this.canStop) this.#active?.controller.abort();
  }

  /** Nobody looks at this chat any more: what is but watched, a replay or a run elsewhere, is over for it. */
  close(): void {
    if (!this.isWorking) this.#active?.controller.abort();
  }

  #watchNoMore(): void {
    if (this.#active?.kind !== 'elsewhere') return;
    this.#active.controller.abort();
    this.#active = undefined;
  }

  async #watch(conversation: Conversation, elsewhere: RunElsewhere, signal: AbortSignal): Promise<void> {
    const isWatched = (): boolean => this.#feed.isFollowed;
    try {
      for await (const event of elsewhere.follow(conversation.saidBefore, isWatched, signal))
        this.#append(conversation, event);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const message = t('What this run does cannot be followed any more: {0}', why);
      this.#append(conversation, { type: 'notice', level: 'warning', message });
    }
  }

  answer(token: string, decision: ApprovalDecision): boolean {
    return this.#approvals.answer(token, decision);
  }

  /** Leaves the conversation behind, ending its run, and shows an empty one. */
  async startOver(): Promise<void> {
    this.#active?.controller.abort();
    this.#active = undefined;
    this.#replace(new Conversation());
    if (this.#feed.isFollowed) await this.show(null, 0);
  }

  /** A view asks for what it does not have: `have` events of conversation `id`. */
  async show(id: string | null, have: number): Promise<void> {
    this.#feed.leave();
    const info = await this.#ports.readInfo();
    const conversation = this.#conversation;
    const batch = conversation.since(id === conversation.id ? have : 0);
    const draft = conversation.isEmpty ? firstDraft(info) : '';
    this.#drafted ||= draft !== '';
    this.#feed.follow(conversation);
    const queued = this.#queued();
    const waiting = queued.length > 0 ? { queued } : {};
    const running = this.isRunning;
    const elsewhere = this.#active?.kind === 'elsewhere' ? conversation.elsewhere?.where : undefined;
    this.#ports.post({
      type: 'conversation',
      id: conversation.id,
      info,
      draft,
      running,
      ...(elsewhere !== undefined && { elsewhere }),
      ...batch,
      ...waiting,
    });
  }

  /** The view is gone; events are kept until one asks for them. */
  hide(): void {
    this.#feed.leave();
  }

  /** Provider, skills or trust may have changed; with the sample just added, its request is drafted. */
  async updateInfo(): Promise<void> {
    if (!this.#feed.isFollowed) return;
    const info = await this.#ports.readInfo();
    this.#feed.say({ type: 'info', info });
    const text = firstDraft(info);
    if (text === '' || this.#drafted || !this.#conversation.isEmpty) return;
    this.#drafted = true;
    this.#feed.say({ type: 'draft', text, suggested: true });
  }

  /** Ends every run and waits until each has said so. */
  async end(): Promise<void> {
    for (const run of this.#runs) run.controller.abort(new Interruption());
    await Promise.all([...this.#runs].map(run => run.done));
    this.#feed.dispose();
  }

  async #follow(
    conversation: Conversation,
    request: RunRequest,
    keptWith: ChatRequest['keptWith'],
    signal: AbortSignal,
  ): Promise<void> {
    const startedAt = Date.now();
    let started = false;
    try {
      if (!this.#ports.isTrusted()) {
        this.#refuse(conversation, request, 'config', untrustedMessage(), 0);
        return;
      }
      const telos = await this.#ports.openTelos();
      const kept = keptWith && (await this.#ports.readAlong(keptWith));
      for await (const event of telos.run(
        kept ? withAlong(request, kept) : request,
        this.#approvals,
        signal,
      )) {
        started = true;
        if (event.type === 'run_start') conversation.noteKept(event.runId);
        this.#append(conversation, event);
        if (event.type !== 'run_start' || !kept) continue;
        for (const notice of noticesOf(kept)) this.#append(conversation, notice);
      }
    } catch (error) {
      // A run never throws; what lands here is Telos itself failing to open, or a defect.
      const message = error instanceof Error ? error.message : String(error);
      const durationMs = Date.now() - startedAt;
      if (started) this.#append(conversation, failedEnd('internal', message, durationMs));
      else this.#refuse(conversation, request, 'internal', message, durationMs);
    }
  }

  /** A request that never reached the engine is still a run with a start and an end, so that the view shows it like any other. */
  #refuse(
    conversation: Conversation,
    request: RunRequest,
    code: ErrorCode,
    message: string,
    durationMs: number,
  ): void {
    const startedAt = new Date().toISOString();
    this.#append(conversation, { type: 'run_start', runId: randomUUID(), text: request.text, startedAt });
    this.#append(conversation, failedEnd(code, message, durationMs));
  }

  #queued(): QueuedRequest[] {
    return this.#queue.map(({ id, request: { text, skill } }) => ({
      id,
      text: text || t('Run {0}', skill?.skill ?? ''),
    }));
  }

  #postQueue(): void {
    this.#feed.say({ type: 'queued', queued: this.#queued() });
  }

  #append(conversation: Conversation, event: RunEvent): void {
    conversation.append(event);
    this.#feed.soon(conversation);
  }
}

/** The request as the engine takes it. */
function goingOn({ goesOn, keptWith: _, ...request }: ChatRequest, earlier: EarlierConversation): RunRequest {
  const { messages, skill, skillIsUnread } = earlier;
  if (goesOn === 'from_start' || messages.length === 0) return request;
  const stays = goesOn !== 'anew' && skill;
  const unread = stays && skillIsUnread && { skillIsUnread };
  return { ...request, conversation: { messages, ...(stays && { skill }), ...unread } };
}

/** With nothing but a recording to answer, the first press of Send plays the sample that it belongs to. */
export function firstDraft(info: ChatInfo): string {
  return info.recording && info.skills.some(({ skill }) => skill === 'kickoff') ? 'run daily kickoff' : '';
}

/** With what went along the first time, before what the person has added since. */
function withAlong(request: RunRequest, { attachments, selection }: KeptAlong): RunRequest {
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

function replayLabel(startedAt: string): RunEvent {
  const time = new Date(startedAt);
  const when = Number.isNaN(time.getTime()) ? '' : time.toLocaleString();
  const message = t(
    'This is a replay of a run ({0}): nothing runs. A request that you send here begins a conversation of its own, which goes on from what is shown; the replayed one stays as it is.',
    when,
  );
  return { type: 'notice', level: 'info', message };
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
