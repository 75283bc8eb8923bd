/**
 * Keeps and numbers the events of one conversation, so that a reopened view can draw itself again. Holds the messages
 * from which the next request continues.
 */

import { randomUUID } from 'node:crypto';
import { joinedDeltas, messagesFrom } from '@telos/engine/records';
import type { EarlierConversation, RunRequest } from '@telos/engine/run';
import type { AttachedName } from '@telos/protocol/attachment';
import { withOutput } from '@telos/protocol/liveText';
import {
  innermost,
  type Message,
  type RunEvent,
  type RunMode,
  type RunOutcome,
  type SkillRef,
  withInnermost,
} from '@telos/protocol/run';
import type { ToWebview } from '@telos/protocol/webview';
import { localized, t } from '../base/labels.ts';

/** `from` is the number of the first event. The next batch starts at `from + events.length`. */
export interface Batch {
  from: number;
  events: readonly RunEvent[];
}

export interface ChatRequest extends RunRequest {
  /**
   * Set if the request was made in an earlier window. Its attachments are stored with that run, and `attached` names
   * them.
   */
  keptWith?: { runId: string; attached: readonly AttachedName[] };
  /**
   * How the request continues the conversation. Either with its skill (the usual case), with a skill chosen by the
   * words alone, or from nothing.
   */
  continuation?: 'with_skill' | 'anew' | 'from_start';
  /** Set for work of Telos's own, which no skill does. */
  isWork?: true;
}

/** A request as it was made. `earlier` is the conversation before it. */
interface Turn {
  request: ChatRequest;
  earlier: EarlierConversation;
}

/** A stored run. Without a `run_end` it was interrupted. */
export interface RestoredRun {
  request: ChatRequest;
  events: readonly RunEvent[];
  /** Its own messages, as far as they were stored. */
  messages?: readonly Message[];
  /** True if the run knew of nothing that was said before it. */
  beginsAnew?: boolean;
  /** True if the run belongs to the conversation that this one has branched off. */
  isInherited?: boolean;
  /** Set if the run is active elsewhere. */
  elsewhere?: RemoteRun;
}

/** A run that can only be watched. */
export interface RemoteRun {
  /** The place, in words for a person. */
  where: string;
  /**
   * Yields the events after the stored ones, up to the run's end. `said` is everything said before it. Returns silently
   * when the signal aborts.
   */
  follow(said: readonly Message[], isWatched: () => boolean, signal: AbortSignal): AsyncIterable<RunEvent>;
}

/** Number of posted parts of a running command's output that are kept for a view that is opened now. */
const mostOutputs = 40;

const nothingSaid: EarlierConversation = { messages: [] };

export class Conversation {
  /** The id under which its runs are stored. */
  readonly conversationId: string;
  /** The id that a view uses. It changes each time that runs are dropped, because the numbers then start again. */
  readonly id: string;
  readonly #dropped: number;
  /** The runs as they were restored. Empty for a conversation that began in this window. */
  restoredRuns: readonly RestoredRun[] = [];
  /** Mode of its next run. A stored conversation continues in the mode of its latest run. */
  mode: RunMode = 'default';
  /** True if its next runs read no files such as AGENTS.md. */
  withoutContextFiles = false;
  #numbered: RunEvent[] = [];
  /** Events without numbers. Those that arrive within one frame are sent as one batch, their text as one delta. */
  #waiting: RunEvent[] = [];
  /** Numbers of the latest events with output of a running command. */
  #outputs: number[] = [];
  /** One for each `run_start`. */
  #turns: Turn[] = [];
  #earlier = nothingSaid;
  #skill: SkillRef | undefined;
  #givenTitle: string | undefined;
  /** The number of turns that were only replayed. Later turns are the conversation's own. */
  #replayed = 0;
  #replayOf = '';
  /** The stored runs, in their order. */
  #storedRuns: { runId: string; turn: number }[] = [];
  /** The number of turns that belong to the conversation that this one has branched off. */
  #inherited = 0;

  constructor(conversationId: string = randomUUID(), dropped = 0) {
    this.conversationId = conversationId;
    this.#dropped = dropped;
    this.id = dropped === 0 ? conversationId : `${conversationId}.${dropped}`;
  }

  /**
   * Returns the conversation as it was when its latest run was stored. `title` is the title that the person has given
   * it.
   */
  static restored(conversationId: string, runs: readonly RestoredRun[], title?: string): Conversation {
    const conversation = new Conversation(conversationId);
    conversation.#givenTitle = title;
    conversation.restoredRuns = runs;
    for (const run of runs) {
      const before = conversation.#earlier.messages;
      conversation.begin(run.request);
      if (run.isInherited) conversation.#inherited = conversation.#turns.length;
      for (const event of run.events) {
        if (event.type === 'run_start') {
          conversation.noteStored(event.runId);
          conversation.mode = event.mode ?? 'default';
          conversation.withoutContextFiles = event.withoutContextFiles === true;
        }
        conversation.append(event);
      }
      conversation.restoreTranscript(run, before);
    }
    return conversation;
  }

  /** The ids of the runs that it shows, in their order. */
  get runIds(): readonly string[] {
    return this.#numbered.flatMap(event => (event.type === 'run_start' ? [event.runId] : []));
  }

  /** The title that the person gave it, or else the words of its own first request. Empty before one. */
  get title(): string {
    if (this.#givenTitle) return this.#givenTitle;
    const own = this.#turns[Math.max(this.#replayed, this.#inherited)]?.request;
    const first = this.#turns[0]?.request;
    if (own || !first) return own ? wordsOf(own) : '';
    if (this.#inherited > this.#replayed) return wordsOf(first);
    return t('Replay: {0}', this.#replayOf || wordsOf(first));
  }

  get isEmpty(): boolean {
    return this.#numbered.length + this.#waiting.length === 0;
  }

  /** Its latest run, if that is active elsewhere. */
  get elsewhere(): RemoteRun | undefined {
    const last = this.#waiting.at(-1) ?? this.#numbered.at(-1);
    return last?.type === 'run_end' ? undefined : this.restoredRuns.at(-1)?.elsewhere;
  }

  /** The messages before its latest request. */
  get saidBefore(): readonly Message[] {
    return this.#turns.at(-1)?.earlier.messages ?? [];
  }

  /** The conversation that the next request continues. */
  get earlier(): EarlierConversation {
    return this.#earlier;
  }

  /** Like `earlier`, but leaves out the latest request if that has the same text. */
  earlierForRetry(text: string): EarlierConversation {
    const latest = this.#turns.at(-1);
    return latest?.request.text === text ? latest.earlier : this.#earlier;
  }

  /** Attaches the latest request's attachments to one with the same words, for example with another skill. */
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

  /** Adds a request. Call it once for each, before its events. */
  begin(request: ChatRequest): void {
    this.#turns.push({ request, earlier: this.#earlier });
  }

  /** Adds a request that is only replayed, from a conversation with this title. Call it before all others. */
  beginReplay(request: ChatRequest, title = ''): void {
    this.begin(request);
    this.#replayed = this.#turns.length;
    this.#replayOf = title;
  }

  /** Notes that the run that has just begun is stored. */
  noteStored(runId: string): void {
    this.#storedRuns.push({ runId, turn: this.#turns.length - 1 });
  }

  /** The run that the next one follows. Undefined for the first. */
  get latestRunId(): string | undefined {
    return this.#storedRuns.at(-1)?.runId;
  }

  /** Returns true if this is the latest run and it can be resumed: it was stopped, at its limit of rounds too, or never ended. */
  isInterrupted(runId: string): boolean {
    const events = [...this.#numbered, ...this.#waiting];
    const start = events.findLastIndex(event => event.type === 'run_start');
    const first = events[start];
    if (first?.type !== 'run_start' || first.runId !== runId) return false;
    const last = events.findLast((event, index) => index > start && event.type === 'run_end');
    return last?.type !== 'run_end' || ['cancelled', 'round_limit'].includes(last.outcome);
  }

  /** How its latest run ended. Undefined before the end. */
  get latestOutcome(): RunOutcome | undefined {
    const last = this.#waiting.at(-1) ?? this.#numbered.at(-1);
    return last?.type === 'run_end' ? last.outcome : undefined;
  }

  append(event: RunEvent): void {
    if (event.type === 'routed') this.#skill = { agent: event.agent, skill: event.skill };
    if (/^(?:tool|run)_end$/.test(innermost(event).type)) this.#forgetOutput();
    if (event.type !== 'run_end') {
      pushJoined(this.#waiting, event);
      return;
    }
    // A run that ended before the model was asked has said nothing.
    if (event.messages.length > 0 && this.#skill) {
      const failed = event.outcome === 'failed' && { skillFailed: true };
      this.#earlier = { messages: event.messages, skill: this.#skill, ...failed };
    }
    // The transcript stays here. The view already has what it shows.
    pushJoined(this.#waiting, { ...event, messages: [] });
  }

  /**
   * Returns the conversation before a run, and that run's request. Undefined if the run is not part of this
   * conversation.
   */
  before(runId: string): { conversation: Conversation; request: ChatRequest } | undefined {
    return this.#cutAt(runId, new Conversation(this.conversationId, this.#dropped + 1));
  }

  /** Like `before`, as a conversation of its own that begins there. */
  branchAt(runId: string): { conversation: Conversation; request: ChatRequest } | undefined {
    const cut = this.#cutAt(runId, new Conversation());
    if (!cut) return undefined;
    cut.conversation.#inherited = cut.conversation.#turns.length;
    cut.conversation.#givenTitle = undefined;
    return cut;
  }

  /** Returns the stored runs from this one on. Empty if the run is not stored with this conversation. */
  runIdsFrom(runId: string): string[] {
    const from = this.#storedRuns.findIndex(run => run.runId === runId);
    const first = this.#storedRuns[from];
    if (!first || first.turn < this.#inherited) return [];
    return this.#storedRuns.slice(from).map(run => run.runId);
  }

  /** When the run has begun. In ISO 8601 format; empty for a run that is not part of the conversation. */
  startOf(runId: string): string {
    const start = this.#numbered.find(event => event.type === 'run_start' && event.runId === runId);
    return start?.type === 'run_start' ? start.startedAt : '';
  }

  #cutAt(
    runId: string,
    conversation: Conversation,
  ): { conversation: Conversation; request: ChatRequest } | undefined {
    const events = [...this.#numbered, ...this.#waiting];
    const end = events.findIndex(event => event.type === 'run_start' && event.runId === runId);
    const kept = events.slice(0, Math.max(0, end));
    const index = kept.filter(({ type }) => type === 'run_start').length;
    const turn = this.#turns[index];
    if (end === -1 || !turn) return undefined;
    conversation.#inherited = Math.min(this.#inherited, index);
    conversation.#givenTitle = this.#givenTitle;
    conversation.mode = this.mode;
    conversation.withoutContextFiles = this.withoutContextFiles;
    conversation.#storedRuns = this.#storedRuns.filter(({ turn }) => turn < index);
    for (const event of kept) pushJoined(conversation.#waiting, event);
    conversation.#turns = this.#turns.slice(0, index);
    conversation.#replayed = Math.min(this.#replayed, index);
    conversation.#earlier = turn.earlier;
    conversation.#skill = turn.earlier.skill;
    return { conversation, request: turn.request };
  }

  /**
   * Rebuilds the messages of a stored run without an end from its events. Call it after them, with what was said before
   * the run.
   */
  restoreTranscript({ events, messages: own = [], beginsAnew }: RestoredRun, said: readonly Message[]): void {
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

  /** Numbers and returns the events since the last call. Undefined if there are none. */
  nextBatch(): Batch | undefined {
    if (this.#waiting.length === 0) return undefined;
    const batch = { from: this.#numbered.length, events: this.#waiting };
    for (const event of batch.events) this.#numbered.push(event);
    this.#waiting = [];
    this.#boundOutput(batch.from);
    return { from: batch.from, events: batch.events.map(localized) };
  }

  /**
   * Returns everything from number `have` on. A view with no events gets the whole conversation, its text joined and
   * its events renumbered. So does a view whose number was never given.
   */
  since(have: number): Batch {
    this.nextBatch();
    if (have > 0 && have <= this.#numbered.length)
      return { from: have, events: this.#numbered.slice(have).map(localized) };
    const joined: RunEvent[] = [];
    for (const event of this.#numbered) {
      const output = outputOf(event);
      if (output === undefined || output !== '') pushJoined(joined, event);
    }
    this.#numbered = joined;
    this.#outputs = [];
    this.#boundOutput(0);
    return { from: 0, events: joined.map(localized) };
  }

  /** Empties the oldest output of commands, which keeps its numbers, so that what is kept stays small however much they print. */
  #boundOutput(from: number): void {
    for (let at = from; at < this.#numbered.length; at++)
      if (outputOf(this.#numbered[at]) !== undefined) this.#outputs.push(at);
    while (this.#outputs.length > mostOutputs) this.#empty(this.#outputs.shift());
  }

  #empty(at: number | undefined): void {
    const event = at === undefined ? undefined : this.#numbered[at];
    if (at !== undefined && event)
      this.#numbered[at] = withInnermost(event, own =>
        own.type === 'tool_output' ? { ...own, text: '' } : own,
      );
  }

  /** Empties the output of a command that has ended: its result has the whole. */
  #forgetOutput(): void {
    for (const at of this.#outputs.splice(0)) this.#empty(at);
  }

  /** The folder in which the latest skill worked. Undefined before any was picked. */
  get workingDir(): string | undefined {
    const routed = [...this.#numbered, ...this.#waiting].findLast(event => event.type === 'routed');
    return routed?.workingDir;
  }
}

const wordsOf = ({ text, skill }: ChatRequest): string => text.trim() || t('Run {0}', skill?.skill ?? '');

/** In characters. */
const mostOutput = 8_000;

/** Returns what a command has printed by an event, its own or one of a skill; undefined for all other events. */
function outputOf(event: RunEvent | undefined): string | undefined {
  const own = event && innermost(event);
  return own?.type === 'tool_output' ? own.text : undefined;
}

function pushJoined(events: RunEvent[], event: RunEvent): void {
  const joined = joinedEvents(events.at(-1), event);
  if (joined) events[events.length - 1] = joined;
  else events.push(event);
}

/** Returns one event for both if a view needs no more than that. */
function joinedEvents(last: RunEvent | undefined, event: RunEvent): RunEvent | undefined {
  if (last?.type === 'skill_event' && event.type === 'skill_event' && last.callId === event.callId) {
    const own = joinedEvents(last.event, event.event);
    return own && { ...event, event: own };
  }
  if (event.type === 'tool_output' && last?.type === 'tool_output' && last.callId === event.callId)
    return { ...event, text: withOutput(last.text, event.text, mostOutput) };
  if (last?.type === 'tool_progress' && event.type === 'tool_progress' && last.callId === event.callId)
    return event;
  return joinedDeltas(last, event);
}

/** Returns the id under which a conversation's runs are stored, from the id that a view uses. */
export const conversationIdOf = (id: string): string => id.replace(/\.\d+$/, '');

/** About one frame of the screen. In milliseconds. */
const batchInterval = 16;
/** Text faster than reading speed is sent in larger parts, each drawn once. In milliseconds. */
const fastBatchInterval = 48;
/** The rate from which text counts as fast: about 1,000 tokens a second. In UTF-16 units per millisecond. */
const fastText = 4;

export class ChatFeed {
  readonly #post: (message: ToWebview) => void;
  /** The conversation whose start the view has. Undefined while no view waits for the rest. */
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

  /** Called when a view has the conversation's start and waits for the rest. */
  follow(conversation: Conversation): void {
    this.#followed = conversation;
  }

  /** Called when the view is gone. Events are kept until a view asks for them. */
  leave(): void {
    this.#followed = undefined;
  }

  /** Schedules a batch after an addition to a conversation. */
  soon(conversation: Conversation): void {
    if (this.#followed === conversation) this.#timer ??= setTimeout(() => this.now(), this.#interval);
  }

  /** Sends the events since the last batch. */
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

  /** Sends a message that is not about the run. It is lost if no view follows. */
  say(message: ToWebview): void {
    if (this.#followed) this.#post(message);
  }

  dispose(): void {
    clearTimeout(this.#timer);
  }
}

const textLength = (events: readonly RunEvent[]): number =>
  events.reduce(
    (sum, event) => sum + (event.type === 'text' || event.type === 'reasoning' ? event.text.length : 0),
    0,
  );
