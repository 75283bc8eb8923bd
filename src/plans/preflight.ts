/** Looks at a plan's repository before the first story: what hinders it, and what its checks are like before anything is done. */
import type { CheckResult, PlanCheck, PlanEvent, Story } from '@telos/protocol/plan';
import { hasTests, otherPackages, removePackages, withoutScripts } from './attemptChanges.ts';
import { failureText } from './attemptWords.ts';
import { type BoxConfig, type CheckPlace, namesTests, outsideOnly, runCheck, setupPlace } from './checks.ts';
import type { Git } from './git.ts';
import type { GitProblem } from './gitProblems.ts';
import type { PlanFolder } from './planFolder.ts';
import type { PlanSettings } from './planSettings.ts';
import { storyProblems } from './scheduler.ts';
import type { Slots } from './slots.ts';

export interface PreflightParts {
  folder: PlanFolder;
  git: Git;
  slots: Slots;
  settings: PlanSettings;
  stories: readonly Story[];
  /** The commit that the plan begins with. */
  base: string;
  /** What was found about the repository, and the files there that no commit has. */
  problems: readonly GitProblem[];
  dirtyFiles: string[];
  /** Results at that commit from an earlier run of the plan, by the command of the check. They do not run again. */
  known: ReadonlyMap<string, CheckResult>;
  env: Readonly<Record<string, string>>;
  config: BoxConfig;
}

export interface Preflight {
  event: Extract<PlanEvent, { type: 'preflight' }>;
  /** What hinders the plan so that it must not begin, in sentences. */
  stops: readonly string[];
  /** Checks that fail before anything is done although nothing of theirs is to be built first. */
  red: readonly CheckResult[];
  /** The results by the command of the check. */
  atBase: ReadonlyMap<string, CheckResult>;
  hadTests: boolean;
}

/** Runs every check on the commit that the plan begins with, unless its result is known. Throws TelosError `config` if the slot cannot be made. */
export async function preflight(parts: PreflightParts, signal: AbortSignal): Promise<Preflight> {
  const { git, settings, stories, base, dirtyFiles, known } = parts;
  const wanted = checksOf(settings, stories);
  const fresh = wanted.filter(({ command }) => !known.has(command));
  const none: CommitResults = { results: new Map(), setup: [] };
  const { results, setup } = fresh.length > 0 ? await resultsAt(parts, base, fresh, signal, 'base') : none;
  for (const check of wanted) {
    const result = known.get(check.command);
    if (result) results.set(check.command, { check, result });
  }
  const red = [...results.values()].filter(({ check, result }) => isRed(check, result, settings, stories));
  const unknown = [...results.values()].filter(({ result }) => result.exitCode === 127);
  const problems = [
    ...parts.problems.map(({ text }) => text),
    ...setup,
    ...stories.flatMap(problemsOfStory(settings)),
    ...storyProblems(stories),
    ...[...results.values()].flatMap(({ check, result }) =>
      result.outside
        ? [
            `The check "${check.name}" fails in the box for commands and passes outside of it, so it runs outside.`,
          ]
        : [],
    ),
    ...unknown.map(
      ({ check }) => `The check "${check.name}" starts a program that is not there: ${check.command}`,
    ),
  ];
  const checks = [...results].map(([command, { result }]) => ({ ...result, command }));
  return {
    event: { type: 'preflight', checks, dirtyFiles, problems },
    stops: setup,
    red: red.map(({ result }) => result),
    atBase: new Map([...results].map(([command, { result }]) => [command, result])),
    hadTests: await hasTests(git, base),
  };
}

const problemsOfStory =
  ({ checks }: PlanSettings) =>
  ({ id, checks: own }: Story): string[] =>
    own.length + checks.length === 0 ? [`${id} has no check, so that only the reviewer decides on it.`] : [];

/** Returns every check once: those of the plan, then those of its stories. */
export function checksOf({ checks }: PlanSettings, stories: readonly Story[]): PlanCheck[] {
  const all = [...checks, ...stories.flatMap(story => story.checks)];
  return [...new Map(all.map(check => [check.command, check])).values()];
}

export interface CommitResults {
  /** By the command of the check. */
  results: Map<string, { check: PlanCheck; result: CheckResult }>;
  /** Why the work tree could not be made ready, in sentences. Then no check ran. */
  setup: string[];
}

export type ResultParts = Pick<PreflightParts, 'slots' | 'settings' | 'env' | 'config'> &
  Partial<Pick<PreflightParts, 'base'>>;

/**
 * Runs all of the checks on a commit, also behind one that fails. At the base nothing was written by a model: there, one that fails in
 * the box is tried outside. Later, those run outside that `atBase` names, and packages that
 * are others than at the base are installed without their scripts. Throws TelosError `config` if the slot cannot be made.
 */
export async function resultsAt(
  { slots, settings, env, config, base }: ResultParts,
  commit: string,
  checks: readonly PlanCheck[],
  signal: AbortSignal,
  atBase: 'base' | ReadonlyMap<string, CheckResult>,
): Promise<CommitResults> {
  const results: CommitResults['results'] = new Map();
  const outsideResult = async (check: PlanCheck): Promise<CheckResult | undefined> => {
    await slots.reset(slot, commit);
    const { box: _, ...bare } = place;
    const result = await runCheck(check, bare, config, signal);
    return result.exitCode === 0 ? { ...result, outside: true } : undefined;
  };
  const slot = await slots.openSlot(1, commit);
  const box = slots.boxOf(slot, config);
  const outside = atBase === 'base' || config.sandbox === 'required' ? {} : { outside: outsideOnly(atBase) };
  const place: CheckPlace = { dir: slot.dir, env: { ...slots.environmentOf(slot), ...env }, box, ...outside };
  if (await slots.needsSetup(slot)) {
    await removePackages(slot, settings);
    const isOther =
      atBase !== 'base' &&
      (base === undefined || (await otherPackages(slot.git, base, commit)) !== undefined);
    const { env: given, ...around } = setupPlace(place, config);
    const outer = { ...around, env: { ...given, ...(isOther && withoutScripts) } };
    for (const command of settings.setup) {
      const check = { name: command, command, timeoutS: 15 * 60 };
      const result = await runCheck(check, outer, config, signal);
      if (result.exitCode !== 0)
        return { results, setup: [failureText(result, ' while the worktree was set up')] };
    }
    await slots.noteSetup(slot);
  }
  for (const check of checks) {
    await slots.reset(slot, commit);
    const result = await runCheck(check, place, config, signal);
    const mayLeave = atBase === 'base' && box.isUsed && config.sandbox !== 'required';
    const other = result.exitCode !== 0 && mayLeave ? await outsideResult(check) : undefined;
    results.set(check.command, { check, result: other ?? result });
  }
  return { results, setup: [] };
}

/**
 * A check of one story may well fail while that is not built. It is red if it is for more than that, or if it ran tests that are
 * there already.
 */
function isRed(
  { command, red }: PlanCheck,
  { exitCode, output }: CheckResult,
  settings: PlanSettings,
  stories: readonly Story[],
): boolean {
  if (exitCode === 0 || red) return false;
  const isOfPlan = settings.checks.some(check => check.command === command);
  const users = stories.filter(({ checks }) => checks.some(check => check.command === command));
  return isOfPlan || users.length > 1 || namesTests(output);
}
