/** Runs the requests of a chat without its window, and posts the events in numbered batches. */

import { randomUUID } from 'node:crypto';
import { paced } from '@telos/engine/records';
import type { EarlierConversation } from '@telos/engine/run';
import type { Attachment } from '@telos/protocol/attachment';
import type {
  ApprovalDecision,
  ApprovalRequest,
  RunEvent,
  RunMode,
  RunOutcome,
  SkillRef,
} from '@telos/protocol/run';
import type { ChatInfo, QueuedRequest, ToWebview } from '@telos/protocol/webview';
import type { ChatWork } from '../base/chatWork.ts';
import { describeError, describeTime, t } from '../base/labels.ts';
import {
  ChatRuns,
  PendingApprovals,
  type RequestPorts,
  type RunKind,
  requestRun,
  type ShowEvent,
  showWork,
} from './chatRuns.ts';
import {
  ChatFeed,
  type ChatRequest,
  Conversation,
  type RemoteRun,
  type RestoredRun,
} from './conversation.ts';

/** The parts of the editor that the chat needs. */
export interface ChatPorts extends RequestPorts {
  /** Sends to the view, if there is one. Never waits for it. */
  post(message: ToWebview): void;
  /** Never throws. */
  readInfo(): Promise<ChatInfo>;
  /** Called when a run starts or ends, a question is asked or answered, or another conversation is shown. */
  changed(): void;
  /** Called when a conversation is left for another one. */
  ended(conversationId: string): void;
  /** Called when a question waits. The chat may be out of sight. */
  approvalAsked(request: ApprovalRequest): void;
  /** Called when a run has chosen its skill. */
  skillRuns(ref: SkillRef): void;
  /** Called when a request is answered without a skill although it may have meant one. */
  skillMissed(): void;
  /**
   * Called when a run has ended by itself and no request waits behind it. The chat may be out of sight. `runId` is that of the latest
   * stored run.
   */
  runEnded(outcome: RunOutcome, runId: string | undefined): void;
}

/** The request that resumes a run. */
const resumingWords = 'Go on where you were interrupted.';

export class Chat {
  readonly #ports: ChatPorts;
  readonly #approvals: PendingApprovals;
  readonly #feed: ChatFeed;
  #conversation = new Conversation();
  readonly #runs: ChatRuns;
  /** Requests that wait for the end of the active run. */
  #queue: { id: string; request: ChatRequest }[] = [];
  /** True once a draft was shown in this conversation. A second one could overwrite the person's own words. */
  #drafted = false;
  /** The latest restore, until the next request, and the conversation before it. */
  #restored: { id: string; before: Conversation } | undefined;

  constructor(ports: ChatPorts) {
    this.#ports = ports;
    this.#feed = new ChatFeed(message => ports.post(message));
    this.#runs = new ChatRuns(() => ports.changed());
    this.#approvals = new PendingApprovals(
      request => ports.approvalAsked(request),
      () => ports.changed(),
    );
  }

  /** True while a run of the shown conversation is active. */
  get isRunning(): boolean {
    return this.#runs.kind !== undefined;
  }

  /** True while the active run is this chat's own. */
  get isWorking(): boolean {
    return this.#runs.kind === 'own';
  }

  /** True while the active run can be stopped from here. */
  get canStop(): boolean {
    return this.isRunning && this.#runs.kind !== 'elsewhere';
  }

  /** The number of questions that wait for the person's answer. */
  get waiting(): number {
    return this.#approvals.count;
  }

  /** The id under which the runs of the shown conversation are stored. */
  get conversationId(): string {
    return this.#conversation.conversationId;
  }

  /** The ids of the shown conversation's runs, in their order. */
  get runIds(): readonly string[] {
    return this.#conversation.runIds;
  }

  /** The title of the shown conversation. Empty before its first request. */
  get title(): string {
    return this.#conversation.title;
  }

  /** Mode of the next runs of the shown conversation. */
  get mode(): RunMode {
    return this.#conversation.mode;
  }

  /** Sets what runs may do from the next one on, in the shown conversation alone. */
  setMode(mode: RunMode): void {
    this.#conversation.mode = mode;
    this.#feed.say({ type: 'mode', mode });
  }

  /** Sets whether the next runs of the shown conversation read files such as AGENTS.md. */
  setContextFiles(on: boolean): void {
    this.#conversation.withoutContextFiles = !on;
    this.#feed.say({ type: 'context_files', on });
  }

  /** The folder in which the shown conversation's latest skill worked. */
  get workingDir(): string | undefined {
    return this.#conversation.workingDir;
  }

  /** Starts a run. If one is active, the request waits for its end. */
  submit(request: ChatRequest): void {
    if (request.text.trim() === '' && !request.skill) return;
    if (!this.isRunning) {
      this.#start(this.#conversation.completed(request), this.#conversation.earlier);
      return;
    }
    this.#queue.push({ id: randomUUID(), request });
    this.#postQueue();
  }

  /** Removes a waiting request. */
  unqueue(id: string): void {
    this.#queue = this.#queue.filter(waiting => waiting.id !== id);
    this.#postQueue();
  }

  /** Runs a waiting request before the others. Does nothing while a run is active. */
  runQueued(id: string): void {
    const waiting = this.#queue.find(one => one.id === id);
    if (!waiting || this.isRunning) return;
    this.unqueue(id);
    this.submit(waiting.request);
  }

  #start(asked: ChatRequest, earlier: EarlierConversation): void {
    const conversation = this.#conversation;
    this.#restored = undefined;
    const { mode, withoutContextFiles } = conversation;
    const request = {
      ...asked,
      answersAnyway: true,
      ...(mode !== 'default' && { mode }),
      withoutContextFiles,
    };
    conversation.begin(request);
    const { conversationId, latestRunId: parentRunId } = conversation;
    const place = {
      origin: 'chat' as const,
      conversationId,
      ...(parentRunId !== undefined && { parentRunId }),
    };
    const show: ShowEvent = (event, isStored) => {
      if (event.type === 'run_start' && isStored) conversation.noteStored(event.runId);
      if (event.type === 'routed' && event.skill !== '')
        this.#ports.skillRuns({ agent: event.agent, skill: event.skill });
      if (event.type === 'routed' && event.reason.likely) this.#ports.skillMissed();
      this.#append(conversation, event);
    };
    const one = { request, earlier, place };
    this.#activate('own', signal => requestRun(one, this.#ports, this.#approvals, show, signal));
  }

  /** Shows work that is no run of a skill like one. Returns false and does nothing while a run is active. */
  work(text: string, work: ChatWork): boolean {
    if (this.isRunning) return false;
    const conversation = this.#conversation;
    conversation.begin({ text, isWork: true });
    this.#activate('own', signal =>
      showWork(
        { text, work },
        this.#ports,
        this.#approvals,
        event => this.#append(conversation, event),
        signal,
      ),
    );
    return true;
  }

  #activate(kind: RunKind, work: (signal: AbortSignal) => Promise<void>): void {
    this.#runs.start(kind, work, {
      flush: () => this.#feed.now(),
      next: isStopped => {
        // A person who stops a run wants to look first. Waiting requests then keep waiting.
        if (isStopped) return;
        const [next] = this.#queue;
        if (next) return this.runQueued(next.id);
        const { latestOutcome, latestRunId } = this.#conversation;
        if (kind === 'own' && latestOutcome) this.#ports.runEnded(latestOutcome, latestRunId);
      },
    });
  }

  /**
   * Stops the active run, waits for its end, and runs this request. The model is not shown the run that it replaces.
   */
  async submitInstead(request: ChatRequest): Promise<void> {
    // A run that cannot be stopped from here has to end first.
    if (this.#runs.kind === 'elsewhere') return this.submit(request);
    this.stop();
    await this.#runs.done;
    if (this.isRunning) this.submit(request);
    else this.#start(this.#conversation.completed(request), this.#conversation.earlierForRetry(request.text));
  }

  /** Continues the latest run if it was interrupted. */
  resume(runId: string): void {
    // A list may have seen the run's end before this chat did.
    if (this.#runs.kind === 'elsewhere') void this.#runs.done.then(() => this.resume(runId));
    if (this.isRunning || !this.#conversation.isInterrupted(runId)) return;
    const goesOn = this.#conversation.latestOutcome === 'round_limit';
    this.submit({ text: resumingWords, ...(goesOn && { goesOn }) });
  }

  /**
   * Shows a stored conversation in place of this one, unless a run of its own is active. A run that is active elsewhere
   * is watched to its end.
   */
  async open(conversation: Conversation): Promise<void> {
    this.#watchNoMore();
    if (this.isRunning) return;
    const { conversationId } = this.#conversation;
    this.#replace(conversation);
    if (conversationId !== conversation.conversationId) this.#ports.ended(conversationId);
    const { elsewhere } = conversation;
    if (elsewhere) this.#activate('elsewhere', signal => this.#watch(conversation, elsewhere, signal));
    if (this.#feed.isFollowed) await this.show(null, 0);
  }

  /** Hands the shown conversation to another chat and shows an empty one. Returns undefined while a run is active. */
  async give(): Promise<Conversation | undefined> {
    if (this.isRunning) return undefined;
    const given = this.#conversation;
    await this.#leave();
    return given;
  }

  /**
   * Plays stored runs into an empty conversation; nothing runs. Stopping shows the rest at once. A request after them
   * starts a new conversation that continues from there. `title` is the title of the played conversation.
   */
  async replay(runs: readonly RestoredRun[], title?: string): Promise<void> {
    this.#watchNoMore();
    if (this.isRunning) return;
    const conversation = new Conversation();
    this.#replace(conversation);
    if (this.#feed.isFollowed) await this.show(null, 0);
    this.#activate('replay', async signal => {
      for (const [index, run] of runs.entries()) {
        const before = conversation.earlier.messages;
        conversation.beginReplay(run.request, title);
        this.#ports.changed();
        for await (const event of paced(run.events, signal)) {
          this.#append(conversation, event);
          if (index === 0 && event.type === 'run_start')
            this.#append(conversation, replayLabel(event.startedAt));
        }
        conversation.restoreTranscript(run, before);
      }
    });
  }

  #replace(conversation: Conversation): void {
    this.#conversation = conversation;
    this.#queue = [];
    this.#drafted = false;
    this.#restored = undefined;
    this.#ports.changed();
  }

  /** Whether this was work of Telos's own, and no run of a skill. */
  isWork(runId: string): boolean {
    return this.#conversation.before(runId)?.request.isWork === true;
  }

  /** Returns the runs that going back to before a run takes back, and when they began. Empty if the run cannot be taken back here. */
  restorable(runId: string): { runIds: readonly string[]; since: string } {
    const conversation = this.#conversation;
    return {
      runIds: this.isRunning ? [] : conversation.runIdsFrom(runId),
      since: conversation.startOf(runId),
    };
  }

  /** Shows the conversation as it was before a run, with the words of its request to be changed. `id` is that of the restore. */
  async goBackTo(runId: string, id: string): Promise<void> {
    const before = this.#conversation;
    const found = before.before(runId);
    if (!found || this.isRunning) return;
    this.#replace(found.conversation);
    this.#restored = { id, before };
    if (this.#feed.isFollowed) await this.show(null, 0);
    this.#feed.say({ type: 'draft', text: found.request.text, suggested: true });
  }

  /** Shows the conversation as it was before a restore that was undone, unless it has gone on since. */
  async takeUpAgain(id: string): Promise<void> {
    if (this.#restored?.id !== id || this.isRunning) return;
    this.#replace(this.#restored.before);
    if (this.#feed.isFollowed) await this.show(null, 0);
  }

  /** Shows a conversation of its own that begins before a run, with the words of its request to be changed. */
  async branchAt(runId: string): Promise<void> {
    const found = this.isRunning ? undefined : this.#conversation.branchAt(runId);
    if (!found) return;
    await this.open(found.conversation);
    this.#feed.say({ type: 'draft', text: found.request.text, suggested: true });
  }

  /** Returns the text of a request of this conversation. Empty if the run is not part of it. */
  wordsOf(runId: string): string {
    return this.#conversation.before(runId)?.request.text ?? '';
  }

  /**
   * Runs a request of this conversation again with `text` as its words and `more` as further attachments. The
   * conversation continues from what came before that request.
   */
  async resend(runId: string, text: string, more: readonly Attachment[] = []): Promise<void> {
    if (text.trim() === '' && !this.#conversation.before(runId)?.request.skill) return;
    this.#watchNoMore();
    this.stop();
    await this.#runs.done;
    const found = this.#conversation.before(runId);
    if (!found || this.isRunning) return;
    this.#conversation = found.conversation;
    const attachments = [...(found.request.attachments ?? []), ...more];
    const handed = attachments.length > 0 ? { attachments } : {};
    // Other words are not the ones for which the person chose the skill.
    const { change, ...request } = found.request;
    const again = change && text === request.text ? { change } : {};
    this.#start({ ...request, ...again, isChoice: false, text, ...handed }, found.conversation.earlier);
    if (this.#feed.isFollowed) await this.show(null, 0);
  }

  /** Aborts the shown run, which reports its own end. A run that is active elsewhere cannot be stopped from here. */
  stop(): void {
    if (this.canStop) this.#runs.abort();
  }

  /** Called when the chat is no longer shown. Ends whatever was only watched: a replay or a run elsewhere. */
  close(): void {
    if (!this.isWorking) this.#runs.abort();
  }

  #watchNoMore(): void {
    if (this.#runs.kind === 'elsewhere') this.#runs.leave();
  }

  async #watch(conversation: Conversation, elsewhere: RemoteRun, signal: AbortSignal): Promise<void> {
    const isWatched = (): boolean => this.#feed.isFollowed;
    try {
      for await (const event of elsewhere.follow(conversation.saidBefore, isWatched, signal))
        this.#append(conversation, event);
    } catch (error) {
      const why = describeError(error);
      const message = t('This run can no longer be followed: {0}', why);
      this.#append(conversation, { type: 'notice', level: 'warning', message });
    }
  }

  answer(token: string, decision: ApprovalDecision): boolean {
    return this.#approvals.answer(token, decision);
  }

  /** Ends the conversation with its run, and shows an empty one. */
  async startOver(): Promise<void> {
    const { conversationId } = this.#conversation;
    await this.#leave();
    this.#ports.ended(conversationId);
  }

  async #leave(): Promise<void> {
    this.#runs.leave();
    this.#replace(new Conversation());
    if (this.#feed.isFollowed) await this.show(null, 0);
  }

  /** Sends the view what it is missing. It has the first `have` events of conversation `id`. */
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
    const elsewhere = this.#runs.kind === 'elsewhere' ? conversation.elsewhere?.where : undefined;
    this.#ports.post({
      type: 'conversation',
      id: conversation.id,
      info,
      draft,
      running,
      ...(conversation.mode !== 'default' && { mode: conversation.mode }),
      ...(conversation.withoutContextFiles && { withoutContextFiles: true }),
      ...(elsewhere !== undefined && { elsewhere }),
      ...(this.#restored && { restored: this.#restored.id }),
      ...batch,
      ...waiting,
    });
  }

  /** Called when the view is gone. Events are kept until a view asks for them. */
  hide(): void {
    this.#feed.leave();
  }

  /** Sends the provider, skills and trust, which may have changed. If the sample was just added, drafts its request. */
  async updateInfo(): Promise<void> {
    if (!this.#feed.isFollowed) return;
    const info = await this.#ports.readInfo();
    this.#feed.say({ type: 'info', info });
    const text = firstDraft(info);
    if (text === '' || this.#drafted || !this.#conversation.isEmpty) return;
    this.#drafted = true;
    this.#feed.say({ type: 'draft', text, suggested: true });
  }

  /** Ends every run and waits until each has reported its end. */
  async end(): Promise<void> {
    await this.#runs.end();
    this.#feed.dispose();
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

/** If only a recording can answer, the first press of Send plays the sample that it belongs to. */
export function firstDraft(info: ChatInfo): string {
  return info.recording && info.skills.some(({ skill }) => skill === 'kickoff') ? 'run daily kickoff' : '';
}

function replayLabel(startedAt: string): RunEvent {
  const time = new Date(startedAt);
  const when = Number.isNaN(time.getTime()) ? '' : describeTime(time);
  const message = t(
    'This is a replay of a run ({0}). Nothing runs. A request that you send here starts a new conversation that continues from what is shown. The replayed conversation does not change.',
    when,
  );
  return { type: 'notice', level: 'info', message };
}
