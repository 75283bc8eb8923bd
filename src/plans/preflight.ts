/** Looks at a plan's repository before the first story: what hinders it, and what its checks are like before anything is done. */

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { shellWord } from '@telos/engine/files';
import type { CheckResult, PlanCheck, PlanEvent, Story } from '@telos/protocol/plan';
import { hasTests } from './attemptChanges.ts';
import { type BoxConfig, namesTests } from './checks.ts';
import { troubleIn } from './checkTrouble.ts';
import { type CommitResults, resultsAt } from './commitChecks.ts';
import type { Git } from './git.ts';
import type { GitProblem } from './gitProblems.ts';
import type { PlanFolder } from './planFolder.ts';
import type { PlanSettings } from './planSettings.ts';
import { detectSetup } from './projectSetup.ts';
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
  const lacking = await Promise.all([...results.values()].map(one => lackOf(parts, one)));
  const stops = [...setup, ...new Set(lacking.flatMap(said => said ?? []))];
  const problems = [
    ...parts.problems.map(({ text }) => text),
    ...stops,
    ...stories.flatMap(problemsOfStory(settings)),
    ...storyProblems(stories),
    ...[...results.values()].flatMap(({ check, result }) =>
      result.outside
        ? [
            `The check "${check.name}" fails in the sandbox for commands and passes outside of it, so it runs outside.`,
          ]
        : [],
    ),
  ];
  const checks = [...results].map(([command, { result }]) => ({ ...result, command }));
  return {
    event: { type: 'preflight', checks, dirtyFiles, problems, setup: setupDigest(settings) },
    stops,
    red: red.map(({ result }) => result),
    atBase: new Map([...results].map(([command, { result }]) => [command, result])),
    hadTests: await hasTests(git, base),
  };
}

/** Returns what the results of a preflight hold for: how work trees are set up. */
export const setupDigest = ({ setup, slot }: PlanSettings): string =>
  createHash('sha256')
    .update(JSON.stringify([setup, slot]))
    .digest('hex')
    .slice(0, 16);

/**
 * Returns why a check can say nothing here about any work, and what to do; undefined if it can. What a story is to build is not missed: a
 * program of the project's own, or a package that it does not name yet.
 */
async function lackOf(
  { git, settings, base, folder }: PreflightParts,
  { check, result }: { check: PlanCheck; result: CheckResult },
): Promise<string | undefined> {
  const trouble = check.outside || check.red ? undefined : troubleIn(result);
  if (!trouble || trouble.kind === 'localhost' || trouble.kind === 'path') return undefined;
  const detected = await detectSetup(git);
  const [command] = detected.setup;
  const isMissing = settings.setup.length === 0 && command !== undefined;
  const advice = isMissing
    ? `Nothing sets up the worktrees. Install its packages there with: telos plan setup --plan ${folder.name} ${shellWord(command)}`
    : `Name what installs it with: telos plan setup --plan ${folder.name} "...". If the story brings it, give the check red: true.`;
  const fails = `The check "${check.name}" cannot run in a worktree:`;
  if (trouble.kind === 'program') {
    const isOwn = existsSync(join(git.dir, 'node_modules', '.bin', basename(trouble.name)));
    const help =
      isOwn && !isMissing ? `It stands in node_modules alone: write "npx ${trouble.name}".` : advice;
    return `${fails} the program ${trouble.name} was not found. ${help}`;
  }
  if (trouble.kind === 'package')
    return (await isNeeded(git, base, trouble.name))
      ? `${fails} the package ${trouble.name} is not installed. ${advice}`
      : undefined;
  const hostName = trouble.name === '' ? '' : ` (${trouble.name})`;
  // What a story is to install, such a program tries to fetch.
  if (!isMissing && /\b(?:npx|dlx|bunx|uvx|pipx)\b/.test(check.command)) return undefined;
  return isMissing
    ? `${fails} it tries to reach the network${hostName}, and packages are missing. ${advice}`
    : `${fails} it needs the network${hostName}, which the sandbox does not have. Give the check outside: true in its story, or in plan.json, if it may run outside the sandbox.`;
}

/** Whether a project names the package among those that it needs. Its tests are known to need their runner. */
async function isNeeded(git: Git, base: string, name: string): Promise<boolean> {
  const plain = (text: string): string => text.toLowerCase().replaceAll('_', '-');
  const files = [
    'package.json',
    'pyproject.toml',
    'requirements.txt',
    'requirements-dev.txt',
    'setup.py',
    'setup.cfg',
    'Pipfile',
    'tox.ini',
  ];
  const texts = await Promise.all(files.map(file => git.text(`${base}:${file}`, 512 * 1024)));
  return name === 'pytest' || texts.some(text => text !== undefined && plain(text).includes(plain(name)));
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
