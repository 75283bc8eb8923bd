/**
 * Keeps a plan going: fills its slots, carries out what a person tells it, waits for limits of providers, and ends when every story
 * is over or only a person can go on. Knows nothing of how an attempt works; that is handed in.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { Interruption, reasonOf, TelosError } from '@telos/engine/errors';
import type { Actor, JournalLine, PlanEvent, PlanPhase, SteerCommand } from '@telos/protocol/plan';
import { spoken } from '@telos/protocol/text';
import type { AttemptCall } from './attemptScene.ts';
import { isForThisRun, notRunning, type SentCommand, vainCommand } from './inbox.ts';
import type { Journal } from './journal.ts';
import type { MissingStory } from './planCommits.ts';
import { isPartOf } from './planning.ts';
import { interruptedWhy, type PlanState } from './planState.ts';
import { storyProblems } from './scheduler.ts';
import { NoRoom } from './slots.ts';
import type { StorySlots } from './storySlots.ts';
import { isOver, type StoryState } from './storyState.ts';

export interface RunnerParts {
  journal: Pick<Journal, 'append'>;
  /** Brings the files of the plan in line with its journal, and returns its state. */
  project: () => Promise<PlanState>;
  /** Stories that can begin now, best first. */
  next: (state: PlanState, running: ReadonlySet<string>, slots: number) => readonly StoryState[];
  slots: StorySlots;
  /** Splits a story into smaller ones. Notes it in the journal, and throws as an attempt does. */
  split: (story: StoryState, signal: AbortSignal) => Promise<void>;
  /** Returns the commands that wait. One is given again until it is done. */
  inbox: () => Promise<readonly SentCommand[]>;
  /** Returns why the plan may not ask a model now, or undefined. */
  overBudget: (state: PlanState) => Promise<string | undefined>;
  /**
   * Looks at the last commit. Returns the stories that are to be done again. Throws TelosError `config` for what no story can mend.
   */
  finalChecks: (state: PlanState, signal: AbortSignal) => Promise<readonly MissingStory[]>;
  /** Aborts when another runner took over. */
  lost: AbortSignal;
}

export interface RunnerOptions {
  slots: number;
  unattended?: boolean;
  /** Only this story. */
  only?: string;
  /** This story and those behind it. */
  from?: string;
  /** This story and those before it. Then the plan is paused. */
  until?: string;
  /** Attempts that count before a story has failed. */
  maxAttempts?: number;
  /** Ends at a limit of the provider instead of waiting. */
  stopsAtLimit?: boolean;
}

const usualAttempts = 5;
/** How long a provider that names no time is left alone, the first and the longest. In milliseconds. */
const firstWait = 30_000;
const longestWait = 15 * 60_000;
/** How often commands are looked for. In milliseconds. */
const lookInterval = 250;

/** Why the attempt at a story ends, by the command that ends it. */
const endWords: Partial<Record<SteerCommand['kind'], string>> = {
  skip: 'The story needs no more work.',
  accept: 'The story needs no more work.',
  reopen: 'The story needs no more work.',
  redo: 'The story starts over.',
  split: 'The story is split.',
};

interface Working {
  done: Promise<void>;
  stop: AbortController;
  slot: number;
  mail: string[];
  /** It waits between two rounds until the plan goes on. */
  isHeld: boolean;
}

export class PlanRunner {
  readonly #parts: RunnerParts;
  readonly #options: RunnerOptions;
  readonly #working = new Map<string, Working>();
  #slots: number;
  #paused: { over: Promise<void>; end: () => void; isNoted: boolean } | undefined;
  #stop: 'now' | 'after-step' | undefined;
  /** By the clock that is shown, and by the one that nobody sets: the first of the two ends the wait. */
  #waitUntil = 0;
  #waitEnds = 0;
  /** Why it waits, until the journal says so; then that it does. */
  #waitWhy: string | undefined;
  #isWaitNoted = false;
  #wait = firstWait;
  #fatal: TelosError | undefined;
  /** Why only the person can say how it goes on. */
  #attention: string | undefined;

  constructor(parts: RunnerParts, options: RunnerOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#slots = options.slots;
  }

  /** Returns the phase with which the plan rests. An abort ends the steps that run; their work is kept. Throws errors of the journal. */
  async run(signal: AbortSignal): Promise<{ phase: PlanPhase; why?: string }> {
    try {
      for (;;) {
        await this.#takeCommands();
        const running = [...this.#working.keys()];
        const state = await this.#parts.project();
        if (await this.#failStories(state)) continue;
        if (signal.aborted || this.#parts.lost.aborted) this.#stop = 'now';
        if (this.#stop === 'now') await this.#abortAll();
        const over = await this.#parts.overBudget(state);
        // Of an attempt that has ended meanwhile the state does not know yet: the story would be begun once more.
        if (running.some(id => !this.#working.has(id))) continue;
        const ends = [this.#stop, over, this.#fatal, this.#attention].some(reason => reason !== undefined);
        const isWaiting = Date.now() < this.#waitUntil && performance.now() < this.#waitEnds;
        await this.#noteWait(isWaiting);
        if (!ends && !isWaiting && !this.#paused) this.#fill(state);
        if (this.#working.size === 0 && (ends || !(isWaiting || this.#paused))) {
          const end = await this.#end(state, over, signal);
          if (end) return end;
          continue;
        }
        await this.#notePause();
        await this.#idle(signal);
      }
    } finally {
      await this.#abortAll();
    }
  }

  /** A person sees that nothing is asked of the provider, until when, and when that is over. */
  async #noteWait(isWaiting: boolean): Promise<void> {
    const why = this.#waitWhy;
    this.#waitWhy = undefined;
    if (isWaiting && why !== undefined) {
      this.#isWaitNoted = true;
      await this.#note({ type: 'waiting', until: new Date(this.#waitUntil).toISOString(), why });
    } else if (!isWaiting && this.#isWaitNoted) {
      this.#isWaitNoted = false;
      if (!this.#paused?.isNoted) await this.#note({ type: 'phase', phase: 'running' });
    }
  }

  #waitFor(milliseconds: number, why: string): void {
    const ends = performance.now() + milliseconds;
    if (ends <= this.#waitEnds) return;
    this.#waitEnds = ends;
    this.#waitUntil = Date.now() + milliseconds;
    this.#waitWhy = why;
  }

  /** The plan is paused once everything that ran has come to its next round. */
  async #notePause(): Promise<void> {
    if (!this.#paused || this.#paused.isNoted) return;
    if ([...this.#working.values()].some(({ isHeld }) => !isHeld)) return;
    this.#paused.isNoted = true;
    await this.#note({ type: 'phase', phase: 'paused', why: 'You paused it.' });
  }

  /** Begins as many stories as there are free slots. One that was cut off goes on in the slot that has its files. */
  #fill(state: PlanState): void {
    const running = new Set(this.#working.keys());
    for (const one of state.stories) if (one.isToSplit && !running.has(one.story.id)) this.#split(one);
    const free = this.#freeSlots();
    const taken = new Set([...this.#working.values()].map(({ slot }) => slot));
    const wanted = this.#parts.next(state, running, this.#room()).filter(one => this.#isWanted(one, state));
    const own = new Map(wanted.flatMap(one => (one.open ? [[one, one.open.slot - 1] as const] : [])));
    for (const [story, slot] of own) {
      if (!taken.has(slot)) this.#begin(story, slot);
      taken.add(slot);
    }
    const left = free.filter(slot => ![...own.values()].includes(slot));
    for (const story of wanted.filter(one => !own.has(one)).slice(0, left.length))
      this.#begin(story, left.shift() ?? 0);
  }

  #freeSlots(): number[] {
    const taken = new Set([...this.#working.values()].map(({ slot }) => slot));
    return Array.from({ length: this.#room() }, (_, index) => index).filter(slot => !taken.has(slot));
  }

  #room(): number {
    return Math.max(1, this.#parts.slots.room(this.#slots));
  }

  #isWanted({ story }: StoryState, { stories }: PlanState): boolean {
    const { only, from } = this.#options;
    // A split that was cut off leaves parts behind, which are made again.
    const whole = stories.filter(({ isToSplit }) => isToSplit).map(one => one.story.id);
    if (whole.some(id => id === story.id || isPartOf(story.id, id))) return false;
    if (only !== undefined) return story.id === only;
    if (!this.#upTo(stories).some(one => one.story.id === story.id)) return false;
    if (from === undefined) return true;
    const place = (id: string): number => stories.findIndex(one => one.story.id === id);
    return place(story.id) >= place(from);
  }

  /** The stories up to the one that is named, with those that it was split into; all if none is named. */
  #upTo(stories: readonly StoryState[]): readonly StoryState[] {
    const { until } = this.#options;
    if (until === undefined) return stories;
    const isLast = (id: string): boolean => id === until || isPartOf(id, until);
    return stories.slice(0, stories.findLastIndex(({ story }) => isLast(story.id)) + 1);
  }

  #begin(story: StoryState, slot: number): void {
    const { id } = story.story;
    const working: Working = {
      done: Promise.resolve(),
      stop: new AbortController(),
      slot,
      mail: [],
      isHeld: false,
    };
    const attempt = story.open ? story.open.attempt : story.attempts + 1;
    const call: AttemptCall = {
      story,
      attempt,
      slot,
      mail: () => this.#mailOf(working),
      onWait: (milliseconds, why) => this.#waitFor(milliseconds, why),
    };
    working.done = this.#parts.slots
      .run(call, working.stop.signal)
      .then(() => {
        this.#wait = firstWait;
      })
      .catch(error => this.#failed(error, { story: id, attempt }))
      .finally(() => this.#working.delete(id));
    this.#working.set(id, working);
  }

  #split(story: StoryState): void {
    const { id } = story.story;
    const stop = new AbortController();
    const done = this.#parts
      .split(story, stop.signal)
      .catch(error => (stop.signal.aborted ? undefined : this.#failed(error)))
      .finally(() => this.#working.delete(id));
    // It takes no slot, and has no rounds between which it could be held.
    this.#working.set(id, { done, stop, slot: -1, mail: [], isHeld: true });
  }

  async #mailOf(working: Working): Promise<readonly string[]> {
    const { signal } = working.stop;
    working.isHeld = true;
    while (this.#paused && !signal.aborted) {
      const stopped = new AbortController();
      const abort = new Promise<void>(done => {
        signal.addEventListener('abort', () => done(), { once: true, signal: stopped.signal });
      });
      await Promise.race([this.#paused.over, abort]);
      stopped.abort();
    }
    working.isHeld = false;
    return working.mail.splice(0);
  }

  /** Decides what an error of one attempt means for the whole plan. */
  async #failed(error: unknown, of?: { story: string; attempt: number }): Promise<void> {
    if (!(error instanceof TelosError)) {
      // Nothing says that a defect goes away. Unless the plan ends, the story would begin again and again.
      const message = reasonOf(error);
      this.#fatal ??= new TelosError('internal', message, { cause: error });
      if (of) await this.#noteDefect(of, message);
      return;
    }
    if (error instanceof NoRoom) {
      this.#slots = Math.max(1, Math.min(this.#slots, error.room));
      return;
    }
    if (error.code !== 'rate_limit' || this.#options.stopsAtLimit) {
      this.#fatal ??= error;
      return;
    }
    this.#waitFor(error.retryAfterMs ?? this.#wait, error.message);
    this.#wait = Math.min(this.#wait * 2, longestWait);
  }

  /** An attempt that the journal has as begun ends there too, so that it counts. */
  async #noteDefect(of: { story: string; attempt: number }, details: string): Promise<void> {
    try {
      const { open } = (await this.#parts.project()).story(of.story) ?? {};
      if (open?.attempt === of.attempt)
        await this.#note({ type: 'attempt_ended', ...of, status: 'error', details });
    } catch {
      // The next run finds an attempt that was cut off.
    }
  }

  async #abortAll(): Promise<void> {
    const working = [...this.#working.values()];
    this.#endWorking('The plan stops.');
    await Promise.allSettled(working.map(({ done }) => done));
  }

  #endWorking(why: string): void {
    for (const { stop } of this.#working.values()) stop.abort(new Interruption(why));
  }

  /** Waits until an attempt ends or it is time to look for commands. */
  async #idle(signal: AbortSignal): Promise<void> {
    const timer = new AbortController();
    const look = delay(lookInterval, undefined, { signal: AbortSignal.any([timer.signal, signal]) });
    await Promise.race([...[...this.#working.values()].map(({ done }) => done), look.catch(() => undefined)]);
    timer.abort();
    if (signal.aborted) await delay(0);
  }

  async #takeCommands(): Promise<void> {
    for (const { id, command, by, isEarlier, done } of await this.#parts.inbox()) {
      const isLate = isEarlier && isForThisRun(command);
      // First the effect: a crash before the note has it carried out once more, and one after it not at all.
      const ignored = isLate ? notRunning : await this.#carryOut(command, by);
      await this.#note({ type: 'steered', command, by, id, ...(ignored !== undefined && { ignored }) });
      await done();
    }
  }

  /** Returns why the command has changed nothing, or undefined. Whoever sent it may not have known what the plan is now. */
  async #carryOut(command: SteerCommand, by: Actor): Promise<string | undefined> {
    const ends = endWords[command.kind];
    // An attempt that is stopped may just have passed.
    if (ends !== undefined && 'story' in command) await this.#stopWork(command.story ?? '', ends);
    const vain = vainCommand(command, await this.#parts.project());
    if (vain) return spoken([vain]);
    switch (command.kind) {
      case 'pause':
        this.#paused ??= pause();
        if (!this.#parts.slots.canHold) this.#endWorking('The plan is paused.');
        break;
      case 'resume':
        await this.#resume();
        break;
      case 'stop':
        this.#stop = command.when;
        break;
      case 'tell':
        for (const [id, { mail }] of this.#working)
          if (command.story === undefined || command.story === id) mail.push(command.text);
        break;
      case 'answer':
        await this.#note({ type: 'question_answered', id: command.id, text: command.text, by });
        break;
      case 'parallel':
        this.#slots = command.slots;
        break;
      case 'skip':
      case 'accept':
      case 'redo':
      case 'reopen':
        await this.#settle(command.kind, command.story, command.why ?? '', by);
        break;
    }
    return undefined;
  }

  async #resume(): Promise<void> {
    const wasNoted = this.#paused?.isNoted;
    this.#paused?.end();
    this.#paused = undefined;
    if (wasNoted) await this.#note({ type: 'phase', phase: 'running' });
  }

  /** Notes what the person decided on the story. */
  async #settle(
    kind: 'skip' | 'accept' | 'redo' | 'reopen',
    story: string,
    why: string,
    by: Actor,
  ): Promise<void> {
    const type = {
      skip: 'story_skipped',
      accept: 'story_accepted',
      redo: 'story_reopened',
      reopen: 'story_reopened',
    };
    await this.#note({ type: type[kind] as 'story_skipped', story, why: why || `by ${kind}`, by });
  }

  async #stopWork(story: string, why: string): Promise<void> {
    const working = this.#working.get(story);
    working?.stop.abort(new Interruption(why));
    await working?.done.catch(() => undefined);
  }

  /** Returns how the plan rests, or undefined if it goes on after all. */
  async #end(
    state: PlanState,
    over: string | undefined,
    signal: AbortSignal,
  ): Promise<{ phase: PlanPhase; why?: string } | undefined> {
    // A limit of the day is one of the plan too: it goes on later, with the same stories.
    if (this.#fatal)
      return this.#rest(this.#fatal.code === 'budget' ? 'paused' : 'failed', this.#fatal.message);
    if (this.#stop !== undefined) return this.#rest('stopped', whyStopped(signal));
    if (over !== undefined) return this.#rest('paused', over);
    if (this.#attention !== undefined) return this.#rest('needs_you', this.#attention);
    if (state.stories.length > 0 && state.stories.every(({ status }) => isOver(status)))
      return this.#checkEnd(state, signal);
    if (this.#options.only !== undefined && isOver(state.story(this.#options.only)?.status ?? 'ready'))
      return this.#rest('paused', `Only ${this.#options.only} was to run.`);
    const upTo = this.#upTo(state.stories);
    if (upTo.length > 0 && upTo.every(({ status }) => isOver(status)))
      return this.#rest('paused', `Everything up to ${this.#options.until} is done, as you wanted.`);
    const asks = state.questions.length > 0 || state.stories.some(({ status }) => status === 'needs_you');
    if (asks) return this.#rest('needs_you', needed(state));
    const failed = state.stories.filter(({ status }) => status === 'failed').map(({ story }) => story.id);
    const stuck = storyProblems(state.stories.map(one => one.story));
    const why = failed.length > 0 ? [`${failed.join(', ')} failed.`] : ['No story can start.', ...stuck];
    return this.#rest('failed', why.join(' '));
  }

  /** Notes the stories that have used up their attempts. Returns true if there are new ones. */
  async #failStories({ stories }: PlanState): Promise<boolean> {
    const most = this.#options.maxAttempts ?? usualAttempts;
    const spent = stories.filter(({ status, charged }) => status === 'ready' && charged >= most);
    for (const { story, lastDenial } of spent) {
      const why = `${most} attempts did not pass. ${lastDenial ?? ''}`.trim();
      await this.#note({ type: 'story_failed', story: story.id, why, by: 'engine' });
      if (!this.#options.unattended) this.#attention = `${story.id} failed: ${why}`;
    }
    return spent.length > 0;
  }

  async #checkEnd(
    state: PlanState,
    signal: AbortSignal,
  ): Promise<{ phase: PlanPhase; why?: string } | undefined> {
    let broken: readonly MissingStory[];
    try {
      broken = await this.#parts.finalChecks(state, signal);
    } catch (error) {
      if (!(error instanceof TelosError) || error.code !== 'config') throw error;
      return this.#rest('failed', error.message);
    }
    for (const { story, why, items } of broken)
      await this.#note({ type: 'story_reopened', story, why, by: 'engine', ...(items && { items }) });
    return broken.length > 0 ? undefined : this.#rest('done', '');
  }

  async #rest(phase: PlanPhase, why: string): Promise<{ phase: PlanPhase; why?: string }> {
    await this.#note({ type: 'phase', phase, ...(why && { why }) });
    await this.#parts.project();
    return { phase, ...(why && { why }) };
  }

  #note(event: PlanEvent): Promise<JournalLine> {
    return this.#parts.journal.append(event);
  }
}

function whyStopped({ aborted, reason }: AbortSignal): string {
  if (!aborted) return '';
  return reason instanceof Interruption ? interruptedWhy : 'You stopped it.';
}

function pause(): { over: Promise<void>; end: () => void; isNoted: boolean } {
  let end: () => void = () => undefined;
  const over = new Promise<void>(resolve => {
    end = resolve;
  });
  return { over, end, isNoted: false };
}

function needed({ questions, stories }: PlanState): string {
  if (questions.length > 0)
    return questions.length === 1 ? 'A question waits.' : `${questions.length} questions wait.`;
  const stuck = stories.filter(({ status }) => status === 'needs_you').map(({ story }) => story.id);
  return `${stuck.join(', ')} changed nothing twice. Say what the story should do, skip it, or start it over.`;
}
