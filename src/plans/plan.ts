/**
 * A plan from its goal to its stories: asks what must be known, has the plan written and split, and keeps what a person decides. What
 * changes the plan's files happens under its lock, one caller at a time.
 */

import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import type { CommandBox } from '@telos/engine/tools';
import type { CheckResult, FinishKind, PlanEvent, SteerCommand, StepName, Story } from '@telos/protocol/plan';
import type { PlanCard } from '@telos/protocol/planCard';
import { sentence } from '@telos/protocol/text';
import { runCheck } from './checks.ts';
import { contextFolders, keepContextFolders, projectContext } from './contextFolders.ts';
import { contextTools } from './contextServer.ts';
import { type Finished, finishPlan } from './finishPlan.ts';

export type { Finished };

import { Git } from './git.ts';
import { branchOf, dirtyFiles } from './gitCheckouts.ts';
import { idle, isForThisRun, send, vainCommand } from './inbox.ts';
import { decided, Interview, type InterviewRound, openTranscript, withAnswers } from './interview.ts';
import { Journal, readJournal } from './journal.ts';
import { guidesAt } from './learnings.ts';
import { MachineSeal } from './machineSeal.ts';
import { acceptPlanCard, ownFiles, planCard } from './planCard.ts';
import { hasMade } from './planCommits.ts';
import { PlanFolder, slug } from './planFolder.ts';
import { lookAt, type PlanLook } from './planLook.ts';
import { type AskStep, revisePlan, splitPlan, throwIfFailed, writePlan } from './planning.ts';
import type { PlanCaller, PlanRunEnd, PlanRunOptions } from './planRun.ts';
import { type PlanSettings, parseSettings, type SlotSettings } from './planSettings.ts';
import { oneLine, parsePrd, printPrd } from './prdFile.ts';
import { Projection } from './projection.ts';
import { detectSetup, proposeSetup } from './projectSetup.ts';
import { placeText } from './roles.ts';
import { readRunner, takeRunner } from './runnerLock.ts';
import { Slots } from './slots.ts';
import { type Runs, runStep, type StepEnd } from './steps.ts';

/** How work trees are set up from now on. What is missing stays as it is. */
export type SetupChange = Partial<Pick<PlanSettings, 'setup'> & Omit<SlotSettings, 'ports'>>;

export class Plan {
  readonly folder: PlanFolder;
  readonly #caller: PlanCaller;

  constructor(folder: PlanFolder, caller: PlanCaller) {
    this.folder = folder;
    this.#caller = caller;
  }

  /** Makes a plan for the goal. Throws TelosError `config` if the name is taken. */
  static async create(
    repo: string,
    goal: string,
    caller: PlanCaller,
    name = planNameOf(goal, repo),
  ): Promise<Plan> {
    const folder = await PlanFolder.create(repo, name, goal, sealOf(caller.runs));
    await folder.write('interview.md', openTranscript(goal));
    const plan = new Plan(folder, caller);
    await plan.proposeSetup();
    return plan;
  }

  /** Makes a plan of one story, which is done when the check passes and a reviewer says so. */
  static async quick(
    repo: string,
    { goal, check, name = planNameOf(goal, repo) }: { goal: string; check: string; name?: string },
    caller: PlanCaller,
  ): Promise<Plan> {
    const plan = await Plan.create(repo, goal, caller, name);
    const story: Story = {
      id: 'US-001',
      title: oneLine(goal),
      prd: 'prds/01-story.md',
      role: 'coder',
      dependsOn: [],
      touches: [],
      checks: [{ name: 'check', command: check }],
      items: [{ number: 1, text: oneLine(goal), ticked: false }],
    };
    await plan.folder.write('plan.md', `# ${oneLine(goal)}\n\nOne story, without an interview.\n`);
    await plan.folder.write(story.prd, printPrd(story));
    await plan.#locked(async note => {
      await note({ type: 'plan_reviewed', decision: 'approved', comments: [], by: caller.by });
      await note({ type: 'stories_written', stories: [story.id] });
    });
    return plan;
  }

  get name(): string {
    return this.folder.name;
  }

  /** Returns the plan's state from its journal and its files. Writes nothing, so it may be called while the plan runs. */
  look(): Promise<PlanLook> {
    return lookAt(this.folder);
  }

  /** The interview so far. */
  get transcript(): string {
    return this.folder.read('interview.md') ?? '';
  }

  /**
   * Asks what else must be known. A transcript replaces the one so far. `noMoreQuestions` asks no model. Throws errors of the model.
   */
  async interview(
    {
      transcript: given = this.transcript,
      noMoreQuestions = false,
    }: { transcript?: string; noMoreQuestions?: boolean },
    signal: AbortSignal,
  ): Promise<InterviewRound> {
    const transcript = decided(given);
    return this.#locked(async note => {
      await this.folder.write('interview.md', transcript);
      const rounds = (await readJournal(this.folder.journal, this.folder.seal)).filter(
        ({ type }) => type === 'interview_round',
      );
      const interview = new Interview(
        async words => {
          const end = await this.#step('interview', `interview.${rounds.length + 1}`, words, note, signal);
          throwIfFailed(end, 'interviewer');
          const submitted = end.answers.findLast(({ tool }) => tool === 'submit_round')?.input;
          return { text: end.text, ...(submitted && { submitted }) };
        },
        rounds.filter(line => line.type === 'interview_round' && line.questions.length > 0).length,
      );
      const round = await interview.processRound(transcript, noMoreQuestions);
      const { questions, ready } = round;
      await note({ type: 'interview_round', questions: [...questions], ready, forced: noMoreQuestions });
      return round;
    });
  }

  /** Adds answers to the interview. Without any, the questions wait there for them. */
  async answer(questions: readonly string[], answers: readonly string[] | undefined): Promise<void> {
    await this.folder.write('interview.md', withAnswers(this.transcript, questions, answers));
  }

  /** Has plan.md written, or rewritten after comments. Throws errors of the model; then plan.md is as before. */
  async write(signal: AbortSignal, comments: readonly string[] = []): Promise<void> {
    await this.#locked(async note => {
      const before = this.folder.read('plan.md');
      const ask = this.#asking(note, signal);
      const { text, replies } =
        before !== undefined && comments.length > 0
          ? await revisePlan(before, comments, ask, signal)
          : { text: await writePlan(this.transcript, ask, signal), replies: [] };
      await this.folder.write('plan.md', `${text.trimEnd()}\n`);
      await note({
        type: 'plan_written',
        digest: digestOf(text),
        ...(replies.length > 0 && { replies }),
      });
    });
  }

  /** Notes what the person says to plan.md. */
  async review(decision: 'approved' | 'changes', comments: readonly string[] = []): Promise<void> {
    const { by } = this.#caller;
    if (this.folder.read('plan.md') === undefined)
      throw new TelosError('config', [
        sentence("The plan '{0}' has no plan.md yet.", this.name),
        sentence('Have it written first.'),
      ]);
    await this.#locked(note => note({ type: 'plan_reviewed', decision, comments: [...comments], by }));
  }

  /** Has the steps that ask, plan and split know these folders too. Throws TelosError `config` for one that does not exist. */
  useContext(folders: readonly string[]): Promise<void> {
    return keepContextFolders(this.#caller.runs.config, this.folder, folders);
  }

  /** Splits plan.md into stories. Stories that are there are not replaced: throws TelosError `config`. */
  async split(signal: AbortSignal): Promise<readonly string[]> {
    return this.#locked(async (note, journal) => {
      const plan = this.folder.read('plan.md');
      if (plan === undefined)
        throw new TelosError('config', [sentence("The plan '{0}' has no plan.md yet.", this.name)]);
      if (this.folder.readPrds().length > 0)
        throw new TelosError('config', [
          sentence("The plan '{0}' has stories already.", this.name),
          sentence('Delete the files in prds/ to split it anew.'),
        ]);
      const { stories: written, checks } = await splitPlan(plan, this.#asking(note, signal), signal);
      for (const { path, text } of written) await this.folder.write(path, text);
      const settings = await this.folder.settings();
      // What the user wrote there stands.
      if (checks.length > 0 && settings.checks.length === 0)
        await this.folder.saveSettings({ ...settings, checks });
      await note({
        type: 'stories_written',
        stories: written.map(({ path, text }) => parsePrd(path, text).story.id),
      });
      await new Projection(this.folder, journal).project();
      return written.map(({ path }) => path);
    });
  }

  /** Returns what the plan will run and where, for a person who decides whether it may. */
  async card(): Promise<PlanCard> {
    const { runs } = this.#caller;
    const { state, stories } = await this.look();
    const settings = await this.folder.settings();
    const git = new Git(this.folder.repo, runs.config.env);
    const base = state.base ?? settings.base ?? (await git.tip('HEAD')) ?? '';
    const model = settings.model ?? runs.config.model;
    const { estimateLeft } = await import('./estimate.ts');
    const estimate = estimateLeft(state, this.transcript.length, model);
    return planCard({
      folder: this.folder,
      settings,
      stories,
      facts: {
        base,
        dirtyFiles: await dirtyFiles(git),
        context: contextFolders(runs.config, this.folder),
        ...(estimate && { estimate }),
      },
      config: runs.config,
    });
  }

  /** Returns how work trees are set up. `change` replaces what it names; `detect` takes what the files of the project say. */
  async setup(change: SetupChange | 'detect' = {}): Promise<Pick<PlanSettings, 'setup' | 'slot'>> {
    const { folder } = this;
    const before = await folder.settings();
    if (change !== 'detect' && Object.keys(change).length === 0) return before;
    return this.#locked(async () => {
      const found = change === 'detect' ? await this.#detected() : change;
      const { setup = before.setup, ...slot } = found;
      const text = JSON.stringify({ ...before, setup, slot: { ...before.slot, ...slot } });
      const settings = parseSettings(text, folder.path('plan.json'), folder.name);
      await folder.saveSettings(settings);
      return settings;
    });
  }

  /** Writes what the files of the project say, unless something is chosen already or nothing can be read there. */
  async proposeSetup(): Promise<void> {
    await proposeSetup(this.folder, new Git(this.folder.repo, this.#caller.runs.config.env));
  }

  async #detected(): Promise<SetupChange> {
    const { setup, slot } = await detectSetup(new Git(this.folder.repo, this.#caller.runs.config.env));
    return { setup, ...slot };
  }

  /** Accepts the card that was shown. Throws TelosError `config` if it has changed since. */
  async acceptCard(shown: PlanCard): Promise<void> {
    const { runs, by } = this.#caller;
    const { digest } = await this.card();
    if (digest !== shown.digest)
      throw new TelosError('config', [
        sentence('The permissions have changed since they were shown.'),
        sentence('Review them again.'),
      ]);
    await acceptPlanCard(runs.config, this.folder, shown);
    await this.#locked(note => note({ type: 'card_accepted', digest, by }));
  }

  /** Works on the stories until the plan rests. See `runPlan`. */
  async run(options: PlanRunOptions, signal: AbortSignal): Promise<PlanRunEnd> {
    const { runPlan } = await import('./planRun.ts');
    return runPlan(this.folder, this.#caller, options, signal);
  }

  /** Runs the checks of a story, or of all, in the checkout as it is. Throws TelosError `config` for a story that is not there. */
  async check(id: string | undefined, signal: AbortSignal): Promise<CheckResult[]> {
    const { runs } = this.#caller;
    const { state } = await this.look();
    const story = id === undefined ? undefined : state.story(id);
    if (id !== undefined && !story)
      throw new TelosError('config', [sentence("There is no story '{0}' in the plan '{1}'.", id, this.name)]);
    const card = await this.card();
    if (!card.isAccepted)
      throw new TelosError('config', [
        sentence('The checks are commands, and the permissions that list them are not approved.'),
        sentence('Approve them first.'),
      ]);
    const wanted = card.checks.filter(({ stories = [] }) => id === undefined || stories.includes(id));
    const results: CheckResult[] = [];
    const dir = this.folder.repo;
    // The person's own files, checked by hand. So the box is theirs to want.
    const box = runs.config.sandbox === 'required' ? await boxFor(runs.config, dir) : undefined;
    const place = { dir, ...(box && { box }) };
    for (const { name = '', command, timeoutS } of wanted) {
      const check = { name, command, ...(timeoutS !== undefined && { timeoutS }) };
      results.push(await runCheck(check, place, runs.config, signal));
    }
    return results;
  }

  /** Ends the plan in one of the ways. Throws the errors of `finishPlan`. */
  async finish(how: FinishKind): Promise<Finished> {
    const { runs } = this.#caller;
    return this.#locked(async (note, journal) => {
      const settings = await this.folder.settings();
      const { state } = await new Projection(this.folder, journal).project();
      const git = new Git(this.folder.repo, runs.config.env);
      const slots = await Slots.open(this.folder, git, settings, runs.config.env);
      const { branch = settings.branch, base = '', goal } = state;
      const isMade = await hasMade(git, journal.lines, branch, this.folder.name);
      const done = await finishPlan(how, {
        git,
        slots,
        plan: this.name,
        base,
        branch,
        isMade,
        goal,
        stories: state.stories,
        env: runs.config.env,
        ...(state.finished && { before: state.finished }),
      });
      const { commit, into, kept } = done;
      // What a later run goes on from stays, and what could not be removed.
      const isOver = how === 'drop' || (into !== undefined && state.stories.every(({ open }) => !open));
      if (isOver && kept.length === 0) await slots.forgetAttempts();
      await note({
        type: 'finished',
        how,
        ...(commit !== undefined && { commit }),
        ...(into !== undefined && { into }),
      });
      return done;
    });
  }

  /**
   * Removes what a plan that was ended has left besides its report: work trees, refs, patches and outputs. Returns what stays, and why.
   * Throws TelosError `config` for a plan that was not ended.
   */
  async clean(): Promise<Finished['kept']> {
    const { finished } = (await this.look()).state;
    if (!finished)
      throw new TelosError('config', [
        sentence("The plan '{0}' is not finished, so nothing of it was removed.", this.name),
        sentence('Finish it first.'),
      ]);
    return this.#locked(() => this.#tidy());
  }

  /**
   * Removes the plan with all that it has. Its branch goes if the branch that is checked out has its commits, or nothing passed. Returns
   * the branch if it stays, and work trees that stay.
   */
  async remove(): Promise<{ branch?: string; kept: Finished['kept'] }> {
    const { runs } = this.#caller;
    const { folder } = this;
    const done = await this.#locked(async (_note, journal) => {
      const settings = await folder.settings();
      const { state } = await this.look();
      const { branch = settings.branch } = state;
      const git = new Git(folder.repo, runs.config.env);
      const isMade = await hasMade(git, journal.lines, branch, folder.name);
      const { tip, checkedOut } = isMade ? await branchOf(git, branch) : {};
      const within = ['merge-base', '--is-ancestor', tip ?? 'HEAD', 'HEAD'];
      const isMerged = tip !== undefined && (await git.run(within, { allow: [1, 128] })).code === 0;
      const isSquashed = state.finished?.how === 'squash';
      const kept = await this.#tidy();
      if (tip === undefined) return { kept };
      if (checkedOut !== undefined || !(isMerged || isSquashed)) return { branch, kept };
      await git.run(['update-ref', '--no-deref', '-d', `refs/heads/${branch}`, tip]);
      return { kept };
    });
    await rm(folder.dir, { recursive: true, force: true });
    for (const file of ownFiles(runs.config, folder)) await rm(file, { force: true });
    return done;
  }

  async #tidy(): Promise<Finished['kept']> {
    const { env } = this.#caller.runs.config;
    const slots = await Slots.open(
      this.folder,
      new Git(this.folder.repo, env),
      await this.folder.settings(),
      env,
    );
    const { kept } = await slots.removeSlots();
    if (kept.length === 0) await slots.forgetAttempts();
    for (const name of ['attempts', 'checks'])
      await rm(this.folder.own(name), { recursive: true, force: true });
    return kept;
  }

  /**
   * Tells the plan's runner something, or the next runner if there is none now; returns false then. Throws TelosError `config` for what
   * makes no sense for the plan as it is, such as a story that it does not have.
   */
  async steer(command: SteerCommand): Promise<boolean> {
    const { state } = await this.look();
    const story = 'story' in command && command.story !== undefined ? command.story : undefined;
    const known = story === undefined ? undefined : state.story(story);
    if (story !== undefined && !known)
      throw new TelosError('config', [
        sentence("There is no story '{0}' in the plan '{1}'.", story, this.name),
      ]);
    if (command.kind === 'split' && (known?.into || ['passed', 'accepted'].includes(known?.status ?? '')))
      throw new TelosError(
        'config',
        known?.into
          ? [sentence('{0} is split already, into {1}.', known.story.id, known.into.join(', '))]
          : [sentence('{0} is done.', story ?? ''), sentence('Reopen it first.')],
      );
    const isIdle = readRunner(this.folder) === undefined;
    const vain = isIdle && isForThisRun(command) ? idle : vainCommand(command, state);
    if (vain) throw new TelosError('config', [vain]);
    await send(this.folder, command, this.#caller.by);
    return readRunner(this.folder) !== undefined;
  }

  /** Calls `use` under the plan's lock. Throws TelosError `config` while a runner or another door holds it. */
  async #locked<Result>(
    use: (note: (event: PlanEvent) => Promise<void>, journal: Journal) => Promise<Result>,
  ): Promise<Result> {
    const taken = await takeRunner(this.folder, this.#caller.by);
    if (taken.kind === 'busy')
      throw new TelosError('config', [
        sentence(
          "The plan '{0}' is being worked on (process {1}, since {2}).",
          this.name,
          taken.runner.pid,
          taken.runner.since,
        ),
        sentence('Try again when that has ended.'),
      ]);
    try {
      const journal = await Journal.open(this.folder.journal, this.folder.seal);
      try {
        return await use(async event => void (await journal.append(event)), journal);
      } finally {
        await journal.close();
      }
    } finally {
      await taken.lock.release();
    }
  }

  #asking(note: (event: PlanEvent) => Promise<void>, signal: AbortSignal): AskStep {
    return ({ name, key, words }) => this.#step(name, key, words, note, signal);
  }

  async #step(
    step: StepName,
    key: string,
    words: string,
    note: (event: PlanEvent) => Promise<void>,
    signal: AbortSignal,
  ): Promise<StepEnd> {
    const { runs, human } = this.#caller;
    const { model } = await this.folder.settings();
    const { repo } = this.folder;
    const place = await placeText(repo, runs.config);
    // A plan may begin in a folder that is not in git yet.
    const rules = await guidesAt(new Git(repo, runs.config.env), 'HEAD', []).catch(() => '');
    const context = projectContext(runs.config, this.folder);
    const end = await runStep(
      runs,
      {
        key,
        name: step,
        words: [words, `## Where you are\n\n${place}`, rules].filter(Boolean).join('\n\n'),
        plan: this.name,
        workingDir: repo,
        contextTools: contextTools(context),
        ...(model !== undefined && { model }),
        onStart: started => note({ type: 'step_started', key, step, ...started }),
      },
      human,
      signal,
    ).finally(() => context.close());
    const { runId, outcome, usage } = end;
    await note({ type: 'step_ended', key, step, runId, outcome, ...(usage && { usage }) });
    return end;
  }
}

/** Returns the plan of that name. Throws TelosError `config` if there is none. */
export const openPlan = (repo: string, name: string, caller: PlanCaller): Plan =>
  new Plan(PlanFolder.open(repo, name, sealOf(caller.runs)), caller);

const sealOf = ({ config }: Pick<Runs, 'config'>): MachineSeal => new MachineSeal(config.dataDir);

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

const boxFor = async (config: Config, dir: string): Promise<CommandBox> =>
  new (await import('./checkLook.ts')).LookedCheckBox(config, dir);

/** Returns a name for the plan of a goal that no other plan of the repository has. */
function planNameOf(goal: string, repo: string): string {
  const words = slug(goal)
    .split('-')
    .filter(word => !filler.has(word));
  const base = words.slice(0, 3).join('-').slice(0, 36).replace(/-+$/, '') || 'plan';
  const taken = new Set(PlanFolder.list(repo));
  for (let number = 1; ; number++) {
    const name = number === 1 ? base : `${base}-${number}`;
    if (!taken.has(name)) return name;
  }
}

/** Words that say nothing about a plan. */
const filler = new Set([
  'a',
  'an',
  'the',
  'my',
  'our',
  'for',
  'to',
  'of',
  'and',
  'build',
  'make',
  'create',
  'add',
  'please',
  'i',
  'want',
]);
