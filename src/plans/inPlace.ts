/**
 * Works on the stories in the folder itself, one box at a time. For a folder that need not have Git. The runner of plans keeps it going;
 * the files of the plan are all that lasts between two attempts.
 */

import { TelosError } from '@telos/engine/errors';
import type { AttemptStatus, CheckResult, Story } from '@telos/protocol/plan';
import type { AttemptCall } from './attemptScene.ts';
import { failureText, othersText } from './attemptWords.ts';
import { failed, InPlaceAttempts, type InPlaceEnd, type InPlaceParts, storiesIn } from './inPlaceAttempt.ts';
import { prepareNotes } from './learnings.ts';
import type { PlanFolder } from './planFolder.ts';
import { PlanRunner } from './planRunner.ts';
import { foldPlan, type PlanState } from './planState.ts';
import { parsePrd } from './prdFile.ts';
import { printProgress, progressStart } from './progress.ts';
import type { WrittenVerdict } from './stepTools.ts';
import type { StorySlots } from './storySlots.ts';
import { isOver, noProgress, openItems, type StoryState } from './storyState.ts';

export interface IterationResult {
  /** From 1. */
  iteration: number;
  status: AttemptStatus;
  /** What the reviewer said, or what went wrong. */
  details: string;
  timestamp: string;
  verdict?: WrittenVerdict;
}

export interface RalphResult {
  /**
   * True if every box of every story is ticked and every check passed on the work as it is at the end. Without any box, a reviewer must
   * have approved work that was called complete.
   */
  success: boolean;
  iterations: number;
  finalVerdict: WrittenVerdict | null;
  error: string | null;
  iterationResults: readonly IterationResult[];
  /** Denials in a row at the end. */
  denialStreak: number;
  /** Checks that no one allowed to run, as `US-001: unit`, where all else is done. If there are any, `success` is false. */
  checksNotRun: readonly string[];
}

export type RalphEvent =
  | { type: 'iteration_start'; iteration: number; maxIterations: number; story?: string; item?: number }
  | { type: 'check_ended'; iteration: number; check: CheckResult }
  | { type: 'iteration_end'; iteration: number; status: AttemptStatus; details: string };

export interface InPlaceRequest extends Omit<InPlaceParts, 'onCheck'> {
  maxIterations: number;
  timeoutMs: number;
  onEvent: (event: RalphEvent) => void;
  signal: AbortSignal;
}

/** Works until everything is done, the iterations are used, or nothing can go on. Throws the abort reason on abort. */
export async function workInPlace(request: InPlaceRequest): Promise<RalphResult> {
  const { folder, project, signal } = request;
  const work = new InPlaceWork(request);
  if (folder.readPrds().length === 0)
    return work.result(`There are no stories in ${folder.path('prds')}. Split the plan first.`);
  if (folder.read('progress.txt') === undefined) await folder.write('progress.txt', progressStart);
  await prepareNotes(project);
  const runner = new PlanRunner(
    {
      journal: { append: async event => ({ ...event, seq: 0, ts: '' }) },
      lost: new AbortController().signal,
      project: async () => work.state(),
      next: ({ stories }) => stories.filter(({ status }) => status === 'ready'),
      slots: work,
      split: async () => undefined,
      inbox: async () => [],
      overBudget: async state => work.overText(state),
      finalChecks: (_state, stop) => work.redAtEnd(stop),
    },
    { slots: 1, stopsAtLimit: true },
  );
  const { phase, why = '' } = await runner.run(signal);
  signal.throwIfAborted();
  return work.result(phase === 'done' ? null : why);
}

class InPlaceWork implements StorySlots {
  readonly canHold = true;
  readonly #request: InPlaceRequest;
  readonly #attempts: InPlaceAttempts;
  readonly #results: IterationResult[] = [];
  /** Why the last attempt did not pass, or what fails although all is done. */
  #denial: string | undefined;
  #red: string | undefined;

  constructor(request: InPlaceRequest) {
    this.#request = request;
    const onCheck = (check: CheckResult): void => {
      request.onEvent({ type: 'check_ended', iteration: this.#iteration, check });
    };
    this.#attempts = new InPlaceAttempts({ ...request, onCheck });
  }

  /** The one that is under way or comes next. */
  get #iteration(): number {
    return this.#results.length + 1;
  }

  room(): number {
    return 1;
  }

  async close(): Promise<void> {}

  /** Returns what is done and what is left, as the files of the plan have it. A person may tick boxes meanwhile. */
  state(): PlanState {
    const isApproved = this.#results.at(-1)?.status === 'approved' && this.#red === undefined;
    const stories = piecesIn(this.#request.folder).map(({ story }): StoryState => {
      const passed = new Set(story.items.flatMap(({ number, ticked }) => (ticked ? [number] : [])));
      const isDone = story.items.length > 0 ? passed.size === story.items.length : isApproved;
      return { ...noProgress(), story, passed, status: isDone ? 'passed' : 'ready' };
    });
    return { ...foldPlan([], []), stories, story: id => stories.find(({ story }) => story.id === id) };
  }

  /** Returns why no further attempt is made; undefined while one may be. */
  overText({ stories }: PlanState): string | undefined {
    const { maxIterations } = this.#request;
    if (this.#iteration <= maxIterations || stories.every(({ status }) => isOver(status))) return undefined;
    return this.#red ?? `Max iterations (${maxIterations}) reached; not everything is done.`;
  }

  /** Returns the story whose checks fail now, as a later one may have broken it. Its last tick is taken back, so that it is worked on. */
  async redAtEnd(signal: AbortSignal): Promise<{ story: string; why: string }[]> {
    for (const story of storiesIn(this.#request.folder)) {
      const { red } = await this.#attempts.check(story, signal);
      if (!red) continue;
      this.#denial = failureText(red);
      this.#red = `${story.id} is not done. ${this.#denial}`;
      const last = story.items.at(-1)?.number;
      if (last !== undefined) await this.#attempts.setTicks(story, [last], false);
      return [{ story: story.id, why: this.#red }];
    }
    return [];
  }

  async run({ story }: AttemptCall, signal: AbortSignal): Promise<void> {
    const { fatal } = await this.#iterate(story, signal);
    if (fatal) throw fatal;
  }

  async #iterate(state: StoryState, stopped: AbortSignal): Promise<InPlaceEnd> {
    const { folder, maxIterations, onEvent } = this.#request;
    const iteration = this.#iteration;
    const [item] = openItems(state);
    const about = item && { story: state.story.id, item: item.number };
    onEvent({ type: 'iteration_start', iteration, maxIterations, ...about });
    this.#red = undefined;
    await folder.remove('verdict.json');
    const denial = this.#denial !== undefined && { lastDenial: this.#denial };
    const piece = {
      state: { ...state, streak: this.#streak, ...denial },
      body: piecesIn(folder).find(({ story }) => story.prd === state.story.prd)?.body ?? '',
      others: othersText(this.state().stories, state.story.id),
      item,
    };
    const ended = await this.#inTime(
      signal => this.#attempts.run(`${state.story.id}.a${iteration}`, piece, signal),
      stopped,
    );
    const { status, details, verdict } = ended;
    if (status === 'denied') this.#denial = details;
    if (verdict?.approved) this.#denial = undefined;
    const timestamp = verdict?.timestamp ?? new Date().toISOString();
    this.#results.push({ iteration, status, details, timestamp, ...(verdict && { verdict }) });
    const section = printProgress({ iteration, status, details, at: timestamp });
    await folder.write('progress.txt', `${folder.read('progress.txt') ?? progressStart}${section}`);
    onEvent({ type: 'iteration_end', iteration, status, details });
    return ended;
  }

  /** Returns how the attempt ends, or that it took too long. Throws the abort reason on abort. */
  async #inTime(
    attempt: (signal: AbortSignal) => Promise<InPlaceEnd>,
    stopped: AbortSignal,
  ): Promise<InPlaceEnd> {
    const { timeoutMs } = this.#request;
    const details = `The iteration took longer than ${timeoutMs / 1000} seconds.`;
    const limit = AbortSignal.timeout(Math.ceil(timeoutMs));
    const ended = await attempt(AbortSignal.any([stopped, limit])).catch(error => {
      if (error instanceof TelosError) return failed(error.runError);
      if (!limit.aborted) throw error;
    });
    stopped.throwIfAborted();
    return ended && (ended.verdict || !limit.aborted) ? ended : { status: 'timeout', details };
  }

  /** Denials since the last approval. */
  get #streak(): number {
    const approved = this.#results.findLastIndex(({ verdict }) => verdict?.approved);
    return this.#results.slice(approved + 1).filter(({ status }) => status === 'denied').length;
  }

  result(failure: string | null): RalphResult {
    const { folder, accepted } = this.#request;
    const results = this.#results;
    const checksNotRun = storiesIn(folder).flatMap(({ id, checks }) =>
      checks.flatMap(({ name, command }) => (accepted.has(command) ? [] : [`${id}: ${name}`])),
    );
    const notRun = `Not run, as no one allowed their commands: the checks ${checksNotRun.join(', ')}. Allow commands, and run it again.`;
    const error = failure ?? (checksNotRun.length > 0 ? notRun : null);
    return {
      success: error === null,
      iterations: results.length,
      finalVerdict: results.findLast(({ verdict }) => verdict)?.verdict ?? null,
      error,
      iterationResults: results,
      denialStreak: this.#streak,
      checksNotRun: failure === null ? checksNotRun : [],
    };
  }
}

/**
 * Returns the stories that have boxes, in the order of their files, each with its text. Where none has any, all files are one piece of
 * work.
 */
function piecesIn(folder: PlanFolder): { story: Story; body: string }[] {
  const files = folder.readPrds();
  const boxed = files
    .map(({ path, text }) => parsePrd(path, text))
    .filter(({ story }) => story.items.length > 0);
  if (boxed.length > 0) return boxed;
  const [title, prd] = ['everything that the files in prds/ describe', 'prds'];
  const story = { id: 'plan', title, prd, role: 'coder', dependsOn: [], touches: [], checks: [], items: [] };
  return [{ story, body: files.map(({ path, text }) => `### ${path}\n\n${text}`).join('\n\n') }];
}
