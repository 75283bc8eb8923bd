/**
 * The long work as programs use it: interview, plan, stories, and what builds them, in a folder that need not be a Git
 * repository. The plan's files lie in the project unless another folder is named.
 */

import { statSync } from 'node:fs';
import { mkdir, readdir, rename } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { importCreate, importModels } from '@telos/engine/providers';
import { denyAll, type Human, newToken } from '@telos/engine/run';
import type { StepName, Story } from '@telos/protocol/plan';
import type { RunEvent } from '@telos/protocol/run';
import type { ProjectContext } from './contextAnswer.ts';
import type { RalphEvent, RalphResult } from './inPlace.ts';
import type { AskInterviewer, Interview, InterviewRound } from './interview.ts';
import type { PlanFolder } from './planFolder.ts';
import type { AskStep } from './planning.ts';
import type { Runs, StepCall, StepEnd } from './steps.ts';

export type { IterationResult, RalphEvent, RalphResult } from './inPlace.ts';
export type { InterviewRound } from './interview.ts';
export type { WrittenVerdict } from './stepTools.ts';

export interface OrchestratorOptions {
  /** The folder that is worked in. It must exist. */
  projectDir: string;
  /** Further folders with notes, pictures and documents about the project. */
  contextDir?: string | readonly string[] | undefined;
  /** Defaults to 10. */
  maxIterations?: number | undefined;
  /** A model of the provider in force, `provider:model`, or `opus`, `sonnet` or `haiku`. Defaults to `opus`, or to the model of the settings. */
  model?: string | undefined;
  /** Seconds of one iteration. Defaults to 900. */
  timeout?: number | undefined;
  /** Where plan.md, prds/, progress.txt and verdict.json lie. Made when a plan is written. Defaults to the project. */
  planDir?: string | undefined;
  /** Who is asked about commands and the like. Defaults to no one, so that only what needs no question is done. */
  human?: Human | undefined;
  signal?: AbortSignal | undefined;
}

/** What a call reports while it runs. */
export type OrchestratorEvent =
  | RalphEvent
  | { type: 'run_event'; step: StepName; key: string; event: RunEvent };

export interface CallOptions {
  onEvent?: ((event: OrchestratorEvent) => void) | undefined;
  /** Ends this call, besides the signal of the options. */
  signal?: AbortSignal | undefined;
}

const never = new AbortController().signal;

export class Orchestrator {
  readonly projectDir: string;
  readonly contextDir: string | readonly string[] | null;
  readonly maxIterations: number;
  readonly model: string;
  readonly timeout: number;
  readonly planDir: string;
  readonly #human: Human;
  readonly #signal: AbortSignal;
  readonly #open: () => Promise<Runs>;
  readonly #isModelChosen: boolean;
  #runs: Promise<Runs> | undefined;
  #context: ProjectContext | undefined;

  /**
   * `open` opens the engine at the first call that needs it. What else is heavy is loaded then too. Throws TelosError `config` for what the
   * options lack, and for a folder that does not exist.
   */
  constructor(options: OrchestratorOptions, open: () => Promise<Runs>) {
    const { projectDir, contextDir, maxIterations = 10, model, timeout = 900, planDir } = options;
    if (typeof projectDir !== 'string' || projectDir === '')
      throw new TelosError('config', 'There is no project folder. Give it as projectDir.');
    if (!(Number.isInteger(maxIterations) && maxIterations > 0))
      throw new TelosError('config', `maxIterations is ${maxIterations}. Give a whole number of at least 1.`);
    if (!(timeout > 0)) throw new TelosError('config', `timeout is ${timeout}. Give at least 1 second.`);
    for (const dir of [projectDir, ...[contextDir ?? []].flat()]) refuseMissing(resolve(dir));
    this.projectDir = resolve(projectDir);
    this.contextDir = contextDir ?? null;
    this.maxIterations = maxIterations;
    this.model = model ?? 'opus';
    this.timeout = timeout;
    this.planDir = resolve(planDir ?? projectDir);
    this.#human = options.human ?? denyAll;
    this.#signal = options.signal ?? never;
    this.#isModelChosen = model !== undefined;
    this.#open = open;
  }

  /** Returns a new interview. */
  interview(): InterviewRunner {
    return new InterviewRunner((words, options) => this.#askInterviewer(words, options));
  }

  /** Writes plan.md from an interview and returns its path. Throws TelosError if the planner fails or writes nothing. */
  async generatePlan(context: string, options: CallOptions = {}): Promise<string> {
    const [folder, { writePlan }] = await Promise.all([this.#folder(), import('./planning.ts')]);
    const plan = await writePlan(context, this.#ask(options), this.#signalOf(options));
    await mkdir(this.planDir, { recursive: true });
    await folder.write('plan.md', plan);
    return folder.path('plan.md');
  }

  /**
   * Splits plan.md into the files of prds/ and returns that folder. Files of an earlier split are put into a folder beside them. Throws
   * TelosError without plan.md, and if no story is handed in.
   */
  async generatePrds(options: CallOptions = {}): Promise<string> {
    const folder = await this.#folder();
    const plan = folder.read('plan.md');
    if (plan === undefined)
      throw new TelosError('config', `There is no plan.md in ${folder.dir}. Generate the plan first.`);
    const { splitPlan } = await import('./planning.ts');
    const { stories } = await splitPlan(plan, this.#ask(options), this.#signalOf(options));
    await putAside(folder);
    for (const { path, text } of stories) await folder.write(path, text);
    return folder.path('prds');
  }

  /** Works through the stories of prds/. Never throws for what a model does: that is in the result. Throws the abort reason on abort. */
  async execute(options: CallOptions = {}): Promise<RalphResult> {
    const [folder, project, { config }, { storiesIn }, { workInPlace }] = await Promise.all([
      this.#folder(),
      this.#folder(this.projectDir),
      this.#opened(),
      import('./inPlaceAttempt.ts'),
      import('./inPlace.ts'),
    ]);
    const signal = this.#signalOf(options);
    return workInPlace({
      folder,
      project,
      config,
      accepted: await this.#accept(storiesIn(folder), signal),
      step: (call, ofStep) => this.#step(call, options, ofStep),
      maxIterations: this.maxIterations,
      timeoutMs: this.timeout * 1000,
      onEvent: event => options.onEvent?.(event),
      signal,
    });
  }

  /** Writes the plan, splits it, and builds it. Throws the errors of the first two. */
  async planAndExecute(context: string, options: CallOptions = {}): Promise<RalphResult> {
    await this.generatePlan(context, options);
    await this.generatePrds(options);
    return this.execute(options);
  }

  /** Ends what is kept for questions about the project. */
  async close(): Promise<void> {
    await this.#context?.close();
    this.#context = undefined;
  }

  async #askInterviewer(words: string, options: CallOptions): ReturnType<InterviewAsk> {
    const end = await this.#ask(options)(
      { name: 'interview', key: 'interview', words },
      this.#signalOf(options),
    );
    const submitted = end.answers.findLast(({ tool }) => tool === 'submit_round')?.input;
    if (!submitted) (await import('./planning.ts')).throwIfFailed(end, 'interviewer');
    return { text: end.text, ...(submitted && { submitted }) };
  }

  #ask(options: CallOptions): AskStep {
    return async (step, signal) => {
      const [{ contextTools }, context] = await Promise.all([
        import('./contextServer.ts'),
        this.#projectContext(),
      ]);
      const end = await this.#step({ ...step, contextTools: contextTools(context) }, options, signal);
      signal.throwIfAborted();
      return end;
    };
  }

  async #step(
    call: Omit<StepCall, 'plan' | 'workingDir'>,
    { onEvent }: CallOptions,
    signal: AbortSignal,
  ): Promise<StepEnd> {
    const [{ runStep }, runs] = await Promise.all([import('./steps.ts'), this.#opened()]);
    const model = await this.#modelFor(runs);
    const { name, key } = call;
    return runStep(
      runs,
      {
        ...call,
        plan: this.planDir,
        workingDir: this.projectDir,
        timeoutMs: this.timeout * 1000,
        ...(model !== undefined && { model }),
        onEvent(event) {
          call.onEvent?.(event);
          onEvent?.({ type: 'run_event', step: name, key, event });
        },
      },
      this.#human,
      signal,
    );
  }

  #opened(): Promise<Runs> {
    this.#runs ??= this.#open();
    return this.#runs;
  }

  async #projectContext(): Promise<ProjectContext> {
    const [{ ProjectContext }, { contextModel }, { config }] = await Promise.all([
      import('./contextAnswer.ts'),
      import('./contextModel.ts'),
      this.#opened(),
    ]);
    const folders = [this.projectDir, ...[this.contextDir ?? []].flat().map(dir => resolve(dir))];
    this.#context ??= new ProjectContext(folders, () => contextModel(config));
    return this.#context;
  }

  /** Returns the model of a step; undefined for the one of the settings. */
  async #modelFor({ config }: Runs): Promise<string | undefined> {
    if (!this.#isModelChosen && config.model !== undefined) return undefined;
    if (!/^(?:opus|sonnet|haiku)$/.test(this.model)) return this.model;
    const [{ Models }, { latestModel }] = await Promise.all([importCreate(), importModels()]);
    // A provider of the frontend is not known here. It has its own usual model.
    const choice = await new Models(config).choice().catch(() => undefined);
    return choice && latestModel(choice.name, this.model);
  }

  /** Has the person accept the checks: a model wrote them. Without a yes they are not run, and the result says so. */
  async #accept(stories: readonly Story[], signal: AbortSignal): Promise<ReadonlySet<string>> {
    const commands = new Set(stories.flatMap(({ checks }) => checks.map(({ command }) => command)));
    if (commands.size === 0) return commands;
    const decision = await this.#human.approve(
      {
        callId: 'plan-checks',
        token: newToken(),
        tool: 'run_command',
        subject: [...commands].join('\n'),
        folder: this.projectDir,
        rule: 'workflow.card',
        reason:
          'These are the checks of the plan. They run after each piece of work, without a further question.',
        scopes: ['once'],
      },
      signal,
    );
    return decision.allow ? commands : new Set();
  }

  async #folder(dir = this.planDir): Promise<PlanFolder> {
    const { PlanFolder } = await import('./planFolder.ts');
    return new PlanFolder(dir, this.projectDir);
  }

  #signalOf({ signal }: CallOptions): AbortSignal {
    return signal ? AbortSignal.any([signal, this.#signal]) : this.#signal;
  }
}

type InterviewAsk = (words: string, options: CallOptions) => ReturnType<AskInterviewer>;

/** One interview, round by round. */
export class InterviewRunner {
  readonly #ask: InterviewAsk;
  #interview: Interview | undefined;
  #options: CallOptions = {};
  #transcript = '';

  constructor(ask: InterviewAsk) {
    this.#ask = ask;
  }

  /**
   * Returns further questions, or that a plan can be written. `transcript` is the whole conversation so far. Throws TelosError if the
   * model fails, and the abort reason on abort.
   */
  async processRound({
    transcript,
    noMoreQuestions = false,
    ...options
  }: { transcript: string; noMoreQuestions?: boolean } & CallOptions): Promise<InterviewRound> {
    this.#options = options;
    this.#transcript = transcript;
    const { Interview } = await import('./interview.ts');
    this.#interview ??= new Interview(words => this.#ask(words, this.#options));
    return this.#interview.processRound(transcript, noMoreQuestions);
  }

  /** Returns the latest transcript. */
  getContext(): string {
    return this.#transcript;
  }
}

/** Throws TelosError `config` if there is no such folder. One that was mistyped must not be made. */
function refuseMissing(dir: string): void {
  const stats = statSync(dir, { throwIfNoEntry: false });
  if (stats?.isDirectory()) return;
  const what = stats ? `${dir} is not a folder.` : `The folder ${dir} does not exist.`;
  throw new TelosError('config', `${what} Make it, or correct its name.`);
}

/** Moves the stories of an earlier split out of the way, so that nothing of them is built or lost. */
async function putAside(folder: PlanFolder): Promise<void> {
  const earlier = folder.readPrds();
  if (earlier.length === 0) return;
  const taken = (await readdir(folder.path('prds'))).filter(name => /^earlier-\d+$/.test(name)).length;
  const place = folder.path('prds', `earlier-${taken + 1}`);
  await mkdir(place, { recursive: true });
  for (const { path } of earlier) await rename(folder.path(path), join(place, path.slice('prds/'.length)));
}
