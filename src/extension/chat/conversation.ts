/** The events of one conversation, kept and numbered, so that a view that was closed can draw itself again, and what a next request goes on from. */

import { randomUUID } from 'node:crypto';
import { messagesFrom } from '../../engine/records/transcript.ts';
import type { EarlierConversation, RunRequest } from '../../engine/run/request.ts';
import type { AttachedName } from '../../protocol/attachment.ts';
import type { Message, RunEvent, SkillRef } from '../../protocol/run.ts';
import type { ToWebview } from '../../protocol/webview.ts';
import { t } from '../base/labels.ts';

/** `from` is the number of the first event; the next batch starts at `from + events.length`. */
export interface Batch {
  from: number;
  events: readonly RunEvent[];
}

export interface ChatRequest extends RunRequest {
  /** It was made in an earlier window: what went along is kept with that run, and `attached` names it. */
  keptWith?: { runId: string; attached: readonly AttachedName[] };
  /**
   * How it goes on from what was said before: with the conversation's skill (the usual case), with a skill that is chosen by its words
   * alone, or from nothing.
   */
  goesOn?: 'with_skill' | 'anew' | 'from_start';
}

/** A request as it was made; `earlier` is what the conversation was before it. */
interface Turn {
  request: ChatRequest;
  earlier: EarlierConversation;
}

/** A run as it was kept: without a `run_end` it was interrupted. */
export interface KeptRun {
  request: ChatRequest;
  events: readonly RunEvent[];
  /** Its own messages, as far as they were kept. */
  messages?: readonly Message[];
  /** Nothing was said before it that it knew of. */
  beginsAnew?: boolean;
  /** Set for one that goes on in another place. */
  elsewhere?: RunElsewhere;
}

/** A run that can be watched, and no more. */
export interface RunElsewhere {
  /** Where, in words for a person. */
  where: string;
  /** What comes behind its kept events, up to its end; `said` is all that was said before it. Ends without a word when the signal aborts. */
  follow(said: readonly Message[], isWatched: () => boolean, signal: AbortSignal): AsyncIterable<RunEvent>;
}

const nothingSaid: EarlierConversation = { messages: [] };

export class Conversation {
  /** What its runs are kept under. */
  readonly keptId: string;
  /** What a view knows it by: another name for each time that runs were dropped, as numbers begin anew then. */
  readonly id: string;
  readonly #dropped: number;
  /** As they were restored; none for a conversation that began in this window. */
  keptRuns: readonly KeptRun[] = [];
  #numbered: RunEvent[] = [];
  /** Not numbered yet: what arrives here within one frame leaves as one batch, its text as one delta. */
  #waiting: RunEvent[] = [];
  /** One for each `run_start`. */
  #turns: Turn[] = [];
  #earlier = nothingSaid;
  #skill: SkillRef | undefined;
  #givenTitle: string | undefined;
  /** So many of its turns were only played again; what comes behind them is its own. */
  #replayed = 0;
  #replayOf = '';
  /** The runs that are kept, in their order. */
  #keptRuns: { runId: string; turn: number }[] = [];

  constructor(keptId: string = randomUUID(), dropped = 0) {
    this.keptId = keptId;
    this.#dropped = dropped;
    this.id = dropped === 0 ? keptId : `${keptId}.${dropped}`;
  }

  /** The conversation as it was when its latest run was kept. `title` is the one that the person has given it. */
  static restored(keptId: string, runs: readonly KeptRun[], title?: string): Conversation {
    const conversation = new Conversation(keptId);
    conversation.#givenTitle = title;
    conversation.keptRuns = runs;
    for (const run of runs) {
      const before = conversation.#earlier.messages;
      conversation.begin(run.request);
      for (const event of run.events) {
        if (event.type === 'run_start') conversation.noteKept(event.runId);
        conversation.append(event);
      }
      conversation.tellAgain(run, before);
    }
    return conversation;
  }

  /** The runs that it shows, in their order. */
  get runIds(): readonly string[] {
    return this.#numbered.flatMap(event => (event.type === 'run_start' ? [event.runId] : []));
  }

  /** What the person calls it, else the words of the first request of its own; empty before one. */
  get title(): string {
    if (this.#givenTitle) return this.#givenTitle;
    const own = this.#turns[this.#replayed]?.request;
    const first = this.#turns[0]?.request;
    if (own || !first) return own ? wordsOf(own) : '';
    return t('Replay: {0}', this.#replayOf || wordsOf(first));
  }

  get isEmpty(): boolean {
    return this.#numbered.length + this.#waiting.length === 0;
  }

  /** Its latest run, where that goes on in another place. */
  get elsewhere(): RunElsewhere | undefined {
    const last = this.#waiting.at(-1) ?? this.#numbered.at(-1);
    return last?.type === 'run_end' ? undefined : this.keptRuns.at(-1)?.elsewhere;
  }

  /** What had been said before its latest request. */
  get saidBefore(): readonly Message[] {
    return this.#turns.at(-1)?.earlier.messages ?? [];
  }

  /** What a next request goes on from. */
  get earlier(): EarlierConversation {
    return this.#earlier;
  }

  /** The same for a request that takes the place of the latest one when it says the same. */
  earlierInstead(text: string): EarlierConversation {
    const latest = this.#turns.at(-1);
    return latest?.request.text === text ? latest.earlier : this.#earlier;
  }

  /** The same words again, with another skill for example: what went along with them the first time goes along again. */
  completed(request: ChatRequest): ChatRequest {
    const before = this.#turns.at(-1)?.request;
    if (!before || before.text !== request.text || request.attachments || request.selection) return request;
    const { attachments, selection, keptWith } = before;
    return {
      ...request,
      ...(attachments && { attachments }),
      ...(selection && { selection }),
      ...(keptWith && { keptWith }),
    };
  }

  /** To be called once for each request, before its events. */
  begin(request: ChatRequest): void {
    this.#turns.push({ request, earlier: this.#earlier });
  }

  /** The same for a request that is only played again, of a conversation of this title; before all others. */
  beginReplay(request: ChatRequest, title = ''): void {
    this.begin(request);
    this.#replayed = this.#turns.length;
    this.#replayOf = title;
  }

  /** The run that has just begun is kept. */
  noteKept(runId: string): void {
    this.#keptRuns.push({ runId, turn: this.#turns.length - 1 });
  }

  /** The run that a next one comes after; undefined for the first. */
  get latestKept(): string | undefined {
    return this.#keptRuns.at(-1)?.runId;
  }

  /** True when its latest run came to no end of its own or was stopped, so that it can be gone on with. */
  isInterrupted(runId: string): boolean {
    const events = [...this.#numbered, ...this.#waiting];
    const start = events.findLastIndex(event => event.type === 'run_start');
    const first = events[start];
    if (first?.type !== 'run_start' || first.runId !== runId) return false;
    const last = events.findLast((event, index) => index > start && event.type === 'run_end');
    return last?.type !== 'run_end' || last.outcome === 'cancelled';
  }

  append(event: RunEvent): void {
    if (event.type === 'routed') this.#skill = { agent: event.agent, skill: event.skill };
    if (event.type !== 'run_end') {
      pushJoined(this.#waiting, event);
      return;
    }
    // A run that ended before the model was asked has said nothing.
    if (event.messages.length > 0 && this.#skill) {
      this.#earlier = { messages: event.messages, skill: this.#skill };
    }
    // The transcript stays here: what the view shows of it, it has.
    pushJoined(this.#waiting, { ...event, messages: [] });
  }

  /** The conversation as it was before a run, and that run's request; undefined for a run that is not of this conversation. */
  before(runId: string): { conversation: Conversation; request: ChatRequest } | undefined {
    const events = [...this.#numbered, ...this.#waiting];
    const end = events.findIndex(event => event.type === 'run_start' && event.runId === runId);
    const kept = events.slice(0, Math.max(0, end));
    const index = kept.filter(({ type }) => type === 'run_start').length;
    const turn = this.#turns[index];
    if (end === -1 || !turn) return undefined;
    const conversation = new Conversation(this.keptId, this.#dropped + 1);
    conversation.#givenTitle = this.#givenTitle;
    conversation.#keptRuns = this.#keptRuns.filter(({ turn }) => turn < index);
    for (const event of kept) pushJoined(conversation.#waiting, event);
    conversation.#turns = this.#turns.slice(0, index);
    conversation.#replayed = Math.min(this.#replayed, index);
    conversation.#earlier = turn.earlier;
    conversation.#skill = turn.earlier.skill;
    return { conversation, request: turn.request };
  }

  /**
   * To be called behind the events of a kept run, with what was said before it: one that came to no end has said all the same what its events
   * tell.
   */
  tellAgain({ events, messages: own = [], beginsAnew }: KeptRun, said: readonly Message[]): void {
    const before = beginsAnew ? [] : said;
    const end = events.findLast(event => event.type === 'run_end');
    const hasSaid = own.length > 0 || events.some(({ type }) => type === 'text' || type === 'tool_start');
    if ((end?.messages.length ?? 0) > 0 || !hasSaid || !this.#skill) return;
    const routed = events.find(event => event.type === 'routed');
    const { skillIsUnread = false } = this.#earlier;
    const isUnread = own.length === 0 && (skillIsUnread || routed?.reason.rule !== 'continued');
    this.#earlier = {
      messages: messagesFrom(before, events, own),
      skill: this.#skill,
      ...(isUnread && { skillIsUnread: true }),
    };
  }

  /** Numbers and returns what has come since the last call; undefined when nothing has. */
  nextBatch(): Batch | undefined {
    if (this.#waiting.length === 0) return undefined;
    const batch = { from: this.#numbered.length, events: this.#waiting };
    for (const event of batch.events) this.#numbered.push(event);
    this.#waiting = [];
    return batch;
  }

  /**
   * Everything from number `have` on. A view that has nothing yet gets the whole conversation with its text joined again, and with
   * new numbers; a number that was never given means the same.
   */
  since(have: number): Batch {
    this.nextBatch();
    if (have > 0 && have <= this.#numbered.length) return { from: have, events: this.#numbered.slice(have) };
    const joined: RunEvent[] = [];
    for (const event of this.#numbered) pushJoined(joined, event);
    this.#numbered = joined;
    return { from: 0, events: joined.slice() };
  }

  /** The folder in which the latest skill worked; undefined before any was picked. */
  get workingDir(): string | undefined {
    const routed = [...this.#numbered, ...this.#waiting].findLast(event => event.type === 'routed');
    return routed?.workingDir;
  }
}

const wordsOf = ({ text, skill }: ChatRequest): string => text.trim() || t('Run {0}', skill?.skill ?? '');

function pushJoined(events: RunEvent[], event: RunEvent): void {
  const last = events.at(-1);
  if (event.type === 'text' && last?.type === 'text') {
    events[events.length - 1] = { type: 'text', text: last.text + event.text };
  } else {
    events.push(event);
  }
}

/** What the runs of a conversation are kept under, by what a view knows it by. */
export const keptIdOf = (id: string): string => id.replace(/\.\d+$/, '');

/** About one frame of the screen, in milliseconds. */
const batchInterval = 16;
/** Text that comes faster than anybody reads is sent in larger parts, each of which is drawn but once. In milliseconds. */
const fastBatchInterval = 48;
/** UTF-16 units per millisecond from which text counts as fast: about 1,000 tokens a second. */
const fastText = 4;

export class ChatFeed {
  readonly #post: (message: ToWebview) => void;
  /** The conversation whose start the view has; undefined while no view waits for the rest. */
  #followed: Conversation | undefined;
  #timer: NodeJS.Timeout | undefined;
  #interval = batchInterval;
  #postedAt = 0;

  constructor(post: (message: ToWebview) => void) {
    this.#post = post;
  }

  get isFollowed(): boolean {
    return this.#followed !== undefined;
  }

  /** A view has the conversation's start and waits for the rest. */
  follow(conversation: Conversation): void {
    this.#followed = conversation;
  }

  /** The view is gone; events are kept until one asks for them. */
  leave(): void {
    this.#followed = undefined;
  }

  /** Something has been added to a conversation. */
  soon(conversation: Conversation): void {
    if (this.#followed === conversation) this.#timer ??= setTimeout(() => this.now(), this.#interval);
  }

  /** Sends what has come since the last batch. */
  now(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#followed?.nextBatch();
    if (!this.#followed || !batch) return;
    const now = performance.now();
    const isFast = textLength(batch.events) > fastText * (now - this.#postedAt);
    this.#interval = isFast ? fastBatchInterval : batchInterval;
    this.#postedAt = now;
    this.#post({ type: 'events', id: this.#followed.id, ...batch });
  }

  /** Whatever is not about the run; lost where no view follows. */
  say(message: ToWebview): void {
    if (this.#followed) this.#post(message);
  }

  dispose(): void {
    clearTimeout(this.#timer);
  }
}

const textLength = (events: readonly RunEvent[]): number =>
  events.reduce((sum, event) => sum + (event.type === 'text' ? event.text.length : 0), 0);
