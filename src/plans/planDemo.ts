/**
 * A plan for those who only want to see one: a small project in a folder of its own, and a plan for it up to its card, played from a
 * recording. Nothing of the person's projects is read or changed.
 */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { findProgram } from '@telos/engine/tools';
import { sentence } from '@telos/protocol/text';
import { Git } from './git.ts';
import { oldestGit, type PersonPlaces, personPlaces } from './gitProgram.ts';
import { Plan } from './plan.ts';
import type { PlanCaller } from './planRun.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** What the person wants. */
export const demoGoal = 'Give the bakery a discount on rolls, receipts and opening hours';
const answers = ['10 % from ten rolls on', 'English'];
/** In `.git`, where no clone can bring it. */
const mark = join('.git', 'telos-demo');
/** The first with a test runner that finds the project's tests. Major and minor. */
const oldestNode = [20, 0] as const;

/** What came of a step on the way to the card. */
export type DemoFact =
  | { kind: 'answered'; question: string; answer: string }
  | { kind: 'written'; plan: string }
  | { kind: 'story'; path: string };

/**
 * Makes the project in a new temporary folder, as a git repository with one commit. `files` is the folder of the demo. Returns its
 * path. Throws TelosError `config` if git or Node is missing, which the project's checks need.
 */
export async function makeDemoProject(files: string, whole: Environment): Promise<string> {
  const home = await realpath(await mkdtemp(join(tmpdir(), 'telos-plan-')));
  const repo = join(home, 'bakery');
  const known = personPlaces(whole, home);
  const places = { ...known, env: { PATH: known.env['PATH'] ?? '', HOME: home } };
  const git = new Git(repo, places.env);
  try {
    await needProgram('git', oldestGit, home, places);
    await needProgram('node', oldestNode, home, places);
    await cp(join(files, 'project'), repo, { recursive: true });
    await git.run(['init', '--quiet', '--initial-branch=main']);
    await git.run(['add', '--all']);
    const commit = await git.commitTree(await git.read(['write-tree']), [], 'A small bakery\n');
    await git.run(['update-ref', 'HEAD', commit]);
    await writeFile(join(repo, mark), '');
    return repo;
  } catch (error) {
    await rm(home, { recursive: true, force: true });
    throw error;
  } finally {
    await git.close();
  }
}

async function needProgram(
  name: string,
  [major, minor]: readonly [number, number],
  cwd: string,
  places: PersonPlaces,
): Promise<void> {
  const program = findProgram(name, places);
  const options = { cwd, env: places.env, windowsHide: true, timeout: 10_000 };
  const said = await new Promise<string>(done => {
    if (program === undefined) done('');
    else execFile(program, ['--version'], options, (error, stdout) => done(error ? '' : stdout));
  });
  const [, found = 0, part = 0] = (/(\d+)\.(\d+)/.exec(said) ?? []).map(Number);
  if (found > major || (found === major && part >= minor)) return;
  const wanted = `${major}.${minor}`;
  throw new TelosError('config', [
    sentence('The sample plan needs {0} {1} or later, which was not found.', name, wanted),
    sentence('Install it, then try again.'),
  ]);
}

/** Whether the repository was made by `makeDemoProject`. Its plans are played, whatever model is set. */
export const isDemoProject = (repo: string): boolean => existsSync(join(repo, mark));

/** Returns the configuration with the demo's recordings as its model. */
export const playingDemo = (config: Config, files: string): Config => ({
  ...config,
  // The checks of the plan are the demo's own, and so no one is asked about the programs that they name.
  env: personPlaces(config.env, config.cwd).env,
  provider: 'replay',
  model: undefined,
  replayFile: join(files, 'model'),
});

/** Makes the plan and brings it to its card. `runs` plays the demo. Throws the abort reason on abort. */
export async function makeDemoPlan(
  repo: string,
  caller: PlanCaller,
  tell: (fact: DemoFact) => void,
  signal: AbortSignal,
): Promise<Plan> {
  const plan = await Plan.create(repo, demoGoal, caller, 'bakery');
  // As it was recorded: two stories at a time, of which two meet.
  await plan.folder.saveSettings({ ...(await plan.folder.settings()), parallel: 2 });
  for (;;) {
    const { questions, ready } = await plan.interview({}, signal);
    if (ready) break;
    for (const [index, question] of questions.entries())
      tell({ kind: 'answered', question, answer: answers[index] ?? 'Decide for me.' });
    await plan.answer(questions, answers);
  }
  await plan.write(signal);
  tell({ kind: 'written', plan: plan.folder.read('plan.md') ?? '' });
  await plan.review('approved');
  for (const path of await plan.split(signal)) tell({ kind: 'story', path });
  return plan;
}
