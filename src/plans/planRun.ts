/**
 * Runs a plan's stories: takes its lock, brings it back to where a crash left it, asks for its card, looks at its base, and hands its
 * slots to the runner.
 */

import { TelosError } from '@telos/engine/errors';
import type { Human } from '@telos/engine/run';
import { hasTraces, importTraced } from '@telos/engine/traces';
import type { Actor, CheckResult, PlanCheck, PlanLimits, PlanPhase } from '@telos/protocol/plan';
import type { PlanCard } from '@telos/protocol/planCard';
import { endOf, sentence } from '@telos/protocol/text';
import { LocalSlots } from './attempt.ts';
import type { AttemptParts } from './attemptScene.ts';
import { resultsAt } from './commitChecks.ts';
import { contextFolders, projectContext } from './contextFolders.ts';
import { contextTools } from './contextServer.ts';
import { type Git, Git as RepositoryGit, runnerMark } from './git.ts';
import { dirtyFiles, lfsPointers } from './gitCheckouts.ts';
import { type GitProblem, problemsOfPlan } from './gitProblems.ts';
import { take, waitingIds } from './inbox.ts';
import { Journal } from './journal.ts';
import { PlanBudget } from './planBudget.ts';
import { planCard } from './planCard.ts';
import {
  branchGone,
  type MissingStory,
  missingStories,
  type PlanCommit,
  planCommits,
} from './planCommits.ts';
import type { PlanFolder } from './planFolder.ts';
import { PlanRunner, type RunnerOptions } from './planRunner.ts';
import type { PlanSettings } from './planSettings.ts';
import type { PlanState } from './planState.ts';
import { checksOf, type Preflight, preflight, setupDigest } from './preflight.ts';
import { Projection } from './projection.ts';
import { endMarked, noteAway, recover } from './recover.ts';
import { readRoles } from './roles.ts';
import { type RunnerLock, takeRunner } from './runnerLock.ts';
import { nextStories } from './scheduler.ts';
import { Slots } from './slots.ts';
import type { Runs } from './steps.ts';
import type { StorySlots } from './storySlots.ts';

/** Who works with a plan. */
export interface PlanCaller {
  runs: Runs;
  human: Human;
  by: Actor;
}

/**
 * Opens the places in which workers do the stories in place of this machine. Throws TelosError `config` if the plan's remote or their
 * database cannot be used.
 */
export type PlanWorkers = (
  parts: AttemptParts,
  limits: PlanLimits,
  signal: AbortSignal,
) => Promise<StorySlots>;

export interface PlanRunOptions extends RunnerOptions {
  limits?: PlanLimits;
  workers?: PlanWorkers;
  /** Restarts failed stories. What they have passed in part stays. */
  retry?: boolean;
  /** Folder to which recordings of the steps are written. */
  recordTo?: string;
  /** Decides whether to begin although checks fail on the base. Missing: no. */
  goOnRed?: (red: readonly CheckResult[]) => Promise<boolean>;
}

/** How a run of a plan ended, or why it did not begin. */
export type PlanRunEnd =
  | { kind: 'rest'; phase: PlanPhase; why?: string }
  /** Another process runs it. */
  | { kind: 'busy'; pid: number }
  | { kind: 'unapproved'; phase: PlanPhase }
  | { kind: 'card'; card: PlanCard }
  | { kind: 'red'; checks: readonly CheckResult[] };

/** Runs the plan until it rests. Throws TelosError for what hinders every plan here, and errors of the journal. */
export async function runPlan(
  folder: PlanFolder,
  caller: PlanCaller,
  options: PlanRunOptions,
  signal: AbortSignal,
): Promise<PlanRunEnd> {
  const { runs } = caller;
  if (!hasTraces(runs.config.env)) return runUntraced(folder, caller, options, signal);
  const { inWorkflow } = await importTraced();
  return inWorkflow(runs.config.env, `plan ${folder.name}`, traceParent => {
    const below: Runs = {
      config: runs.config,
      run: (request, ...rest) => runs.run({ ...request, traceParent }, ...rest),
    };
    return runUntraced(folder, { ...caller, runs: below }, options, signal);
  });
}

async function runUntraced(
  folder: PlanFolder,
  caller: PlanCaller,
  options: PlanRunOptions,
  signal: AbortSignal,
): Promise<PlanRunEnd> {
  const waiting = waitingIds(folder);
  const taken = await takeRunner(folder, caller.by);
  if (taken.kind === 'busy') return { kind: 'busy', pid: taken.runner.pid };
  const { lock } = taken;
  // What a runner had not taken when it was killed still stands.
  const earlier = new Set(lock.previous ? [] : waiting);
  try {
    const settings = await folder.settings();
    const problems = await problemsOfPlan(folder, caller.runs.config.env);
    const stop = problems.find(({ stops }) => stops);
    if (stop) throw new TelosError('config', stop.sentences ?? stop.text);
    const journal = await Journal.open(folder.journal, folder.seal);
    try {
      const given = caller.runs.config.env;
      const pointers = await lfsPointers(new RepositoryGit(folder.repo, given));
      const env = {
        ...given,
        [runnerMark]: lock.mark,
        // As in the user's own checkout.
        ...(pointers.length > 0 && { GIT_LFS_SKIP_SMUDGE: '1' }),
      };
      const git = new RepositoryGit(folder.repo, env);
      try {
        const slots = await Slots.open(folder, git, settings, env);
        const projection = new Projection(folder, journal);
        const keepsJobs = options.workers !== undefined;
        await recover({ folder, journal, git, slots, lock, branch: settings.branch, keepsJobs });
        return await begin(
          { folder, caller, options, journal, projection, git, slots, settings, lock, problems, earlier },
          signal,
        );
      } finally {
        await git.close();
      }
    } finally {
      await journal.close();
    }
  } finally {
    // Whatever a check or a coder has left running ends with its runner.
    await endMarked(lock.mark);
    await lock.release();
  }
}

interface Open {
  folder: PlanFolder;
  caller: PlanCaller;
  options: PlanRunOptions;
  journal: Journal;
  projection: Projection;
  git: Git;
  slots: Slots;
  settings: PlanSettings;
  lock: RunnerLock;
  problems: readonly GitProblem[];
  /** Ids of the commands that were sent while nothing worked on the plan. */
  earlier: ReadonlySet<string>;
}

async function begin(open: Open, signal: AbortSignal): Promise<PlanRunEnd> {
  const { folder, caller, options, journal, projection, git, slots, settings, lock } = open;
  const { state, stories } = await projection.project();
  if (stories.length === 0) return { kind: 'unapproved', phase: state.phase };
  const base = state.base ?? settings.base ?? (await git.tip('HEAD')) ?? '';
  const context = contextFolders(caller.runs.config, folder);
  const facts = { base, dirtyFiles: await dirtyFiles(git), context };
  const card = planCard({ folder, settings, stories, facts, config: caller.runs.config });
  if (!card.isAccepted) return { kind: 'card', card };
  const flight = await preflight(
    {
      git,
      slots,
      folder,
      settings,
      stories,
      base,
      dirtyFiles: facts.dirtyFiles,
      problems: open.problems,
      known: state.base === undefined ? new Map() : resultsIn(journal, settings),
      config: caller.runs.config,
      env: { [runnerMark]: lock.mark },
    },
    signal,
  );
  await journal.append(flight.event);
  if (flight.stops.length > 0) throw new TelosError('config', flight.stops.join(' '));
  if (flight.red.length > 0 && state.base === undefined && !(await options.goOnRed?.(flight.red)))
    return { kind: 'red', checks: flight.red };
  const limits = { ...settings.limits, ...options.limits };
  await journal.append({
    type: 'runner_started' as const,
    base,
    branch: settings.branch,
    slots: options.slots,
    limits,
    pid: process.pid,
  });
  const failed = options.retry ? state.stories.filter(({ status }) => status === 'failed') : [];
  for (const { story } of failed)
    await journal.append({
      type: 'story_reopened' as const,
      story: story.id,
      items: [],
      why: 'It is tried once more.',
      by: caller.by,
    });
  return { kind: 'rest', ...(await work(open, base, limits, flight, signal)) };
}

/** Returns what the checks were like at the base when the plan last began, by their command. None if work trees are set up otherwise now. */
function resultsIn({ lines }: Journal, settings: PlanSettings): Map<string, CheckResult> {
  const last = lines.findLast(line => line.type === 'preflight');
  const isSame = last?.type === 'preflight' && last.setup === setupDigest(settings);
  const checks = isSame ? last.checks : [];
  return new Map(
    checks.flatMap(({ command, ...result }) => (command === undefined ? [] : [[command, result]])),
  );
}

async function work(
  open: Open,
  base: string,
  limits: PlanLimits,
  flight: Preflight,
  signal: AbortSignal,
): Promise<{ phase: PlanPhase; why?: string }> {
  const { folder, caller, options, journal, projection, git, slots, settings, lock } = open;
  let { state } = await projection.project();
  const budget = new PlanBudget(
    () => limits,
    () => state,
  );
  const context = projectContext(caller.runs.config, folder);
  const hadBranch = (await git.tip(`refs/heads/${settings.branch}`)) !== undefined;
  const begun = journal.lines.length;
  const parts: AttemptParts = {
    folder,
    journal,
    git,
    slots,
    settings,
    base,
    budget,
    atBase: flight.atBase,
    hadTests: flight.hadTests,
    runs: caller.runs,
    human: caller.human,
    isUnattended: options.unattended === true,
    roles: readRoles(folder.repo),
    env: { [runnerMark]: lock.mark },
    isOurs: () => lock.isOurs(),
    branchWasThere: () => hadBranch || journal.lines.slice(begun).some(({ type }) => type === 'story_passed'),
    state: () => state,
    contextTools: () => contextTools(context),
    ...(options.recordTo !== undefined && { recordTo: options.recordTo }),
  };
  /** What lay in the inbox and was no word of the person, said once although it could not be put aside. */
  const told = new Set<string>();
  const storySlots = options.workers ? await options.workers(parts, limits, signal) : new LocalSlots(parts);
  const runner = new PlanRunner(
    {
      journal,
      lost: lock.lost,
      next: nextStories,
      project: async () => {
        await noteAway(lock, journal);
        state = (await projection.begin()).state;
        return state;
      },
      slots: storySlots,
      split: async (story, stop) => (await import('./storySplit.ts')).splitInPlan(parts, story, stop),
      inbox: async () => {
        const refused: string[] = [];
        const sent = await take(
          folder,
          id => state.steered.has(id),
          said => refused.push(said),
        );
        const news = refused.filter(said => !told.has(said));
        for (const said of news) told.add(said);
        if (news.length > 0) await journal.append({ type: 'recovered', what: firstOf(news) });
        return sent.map(one => ({ ...one, isEarlier: open.earlier.has(one.id) }));
      },
      overBudget: async () => budget.overText,
      finalChecks: (now, stop) => brokenAtEnd(open, now, base, flight.atBase, stop),
    },
    { ...(settings.maxAttempts !== undefined && { maxAttempts: settings.maxAttempts }), ...options },
  );
  const closed = () => Promise.all([context.close(), projection.written(), storySlots.close()]);
  return runner.run(signal).finally(closed);
}

/** Of the files of an inbox that were put aside. A folder that is shared may have any number of them. */
const mostNamed = 10;

const firstOf = (said: readonly string[]): string[] =>
  said.length <= mostNamed
    ? [...said]
    : [...said.slice(0, mostNamed), `So were ${said.length - mostNamed} more files.`];

/**
 * Looks whether the branch has what the plan says that it has: the commits of all stories that have passed, on which every check passes that
 * passed at the base or after one of them. Returns the stories that are to be done again. Throws TelosError `config` if the branch is gone, or
 * if a check fails that no story broke.
 */
async function brokenAtEnd(
  open: Open,
  { stories }: PlanState,
  base: string,
  atBase: Preflight['atBase'],
  signal: AbortSignal,
): Promise<readonly MissingStory[]> {
  const { folder, git, slots, settings, caller, lock } = open;
  const tip = await git.tip(`refs/heads/${settings.branch}`);
  if (tip === undefined) {
    const last = stories.flatMap(({ commits }) => commits).at(-1);
    if (last) throw branchGone(settings.branch, last.commit);
    return [];
  }
  const commits = await planCommits(git, base, settings.branch, folder.name);
  const missing = missingStories(stories, commits, settings.branch);
  if (missing.length > 0) return missing;
  const parts = { slots, settings, base, env: { [runnerMark]: lock.mark }, config: caller.runs.config };
  const fails = async (commit: string, wanted: readonly PlanCheck[]) => {
    const { results } = await resultsAt(parts, commit, wanted, signal, atBase);
    return [...results.values()].filter(({ result }) => result.exitCode !== 0);
  };
  const checks = checksOf(
    settings,
    stories.map(({ story }) => story),
  );
  const broken = new Map<string, string>();
  const done = passedOn(await git.treeOf(tip), open.journal);
  const left = checks.filter(({ command }) => !done.has(command));
  for (const { check, result } of left.length > 0 ? await fails(tip, left) : []) {
    const passedAt = firstPass(check, stories, commits);
    const isKnown = (await fails(base, [check])).length > 0;
    // Red at the base, and nothing has turned it green.
    if (isKnown && passedAt < 0) continue;
    const since = isKnown ? commits.slice(passedAt + 1) : commits;
    const why = `${endOf(result.output, 500)}`;
    const story = await breakingStory(since, async commit => (await fails(commit, [check])).length > 0);
    if (story === undefined)
      throw new TelosError('config', [
        sentence(
          'The check {0} fails on {1}, and no story of the plan broke it: {2}',
          check.name,
          settings.branch,
          why,
        ),
        sentence('Look at the other commits there, then run the plan again.'),
      ]);
    broken.set(story, `The check ${check.name} fails on the whole plan since this story: ${why}`);
  }
  return [...broken].map(([story, why]) => ({ story, why }));
}

/** Returns the commands of the checks that have passed on these very files. The last story has run those of the whole plan. */
const passedOn = (tree: string, { lines }: Journal): ReadonlySet<string> =>
  new Set(
    lines.flatMap(line => {
      const isPass = line.type === 'check_ended' && line.tree === tree && line.exitCode === 0;
      return isPass && line.suspicious === undefined && line.command !== undefined ? [line.command] : [];
    }),
  );

/** Returns the place of the first commit that says that it passed the check; -1 if none does. */
function firstPass(check: PlanCheck, stories: PlanState['stories'], commits: readonly PlanCommit[]): number {
  const owners = stories.filter(({ story }) => story.checks.some(({ command }) => command === check.command));
  const ids = new Set(owners.map(({ story }) => story.id));
  return commits.findIndex(
    ({ story, isPart, checks }) =>
      (ids.has(story) && !isPart) || (ids.size === 0 && checks.includes(check.name)),
  );
}

/** Returns the story of the commit from which on the check fails up to the last one. Undefined if it passes at the last one. */
async function breakingStory(
  commits: readonly PlanCommit[],
  isRed: (commit: string) => Promise<boolean>,
): Promise<string | undefined> {
  let breaking: string | undefined;
  for (const { commit, story } of [...commits].reverse()) {
    if (!(await isRed(commit))) return breaking;
    breaking = story;
  }
  return breaking;
}
