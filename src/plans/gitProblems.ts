/** Says what of a repository hinders a plan, before the first story begins. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readSettings, shellWord } from '@telos/engine/files';
import { type Sentence, sentence, sentencesOf, spoken } from '@telos/protocol/text';
import { Git } from './git.ts';
import { branchOf, hooksOf, lfsPointers, signsCommits } from './gitCheckouts.ts';
import { oldestGit } from './gitProgram.ts';
import { foreignLines, lookIntoJournal } from './journal.ts';
import { hasMade } from './planCommits.ts';
import { type PlanFolder, progressNames } from './planFolder.ts';

export interface GitProblem {
  /** One sentence, and what to do. */
  text: string;
  /** The same, for another language. Missing for what does not stop a plan. */
  sentences?: readonly Sentence[];
  /** The plan cannot run with it. Otherwise it is only to be known. */
  stops: boolean;
}

/** Longest path that Windows takes from programs that do not ask for more. */
const windowsPath = 260;

/** The branch that a plan is to have, and whether it has made that. */
export interface PlanBranch {
  branch: string;
  isMade: () => Promise<boolean>;
}

/** Returns what hinders a plan with that branch in a folder. Never throws for a repository that is odd. */
export async function problemsOf(
  repo: string,
  { plan, env }: { plan?: PlanBranch; env: Readonly<Record<string, string | undefined>> },
): Promise<GitProblem[]> {
  const git = new Git(repo, env);
  const version = await git.version().catch((error: Error) => error);
  if (version instanceof Error) return [stop(...sentencesOf(version))];
  const [major = 0, minor = 0] = version;
  if (major < oldestGit[0] || (major === oldestGit[0] && minor < oldestGit[1]))
    return [
      stop(
        sentence('This is git {0}; plans need {1} or later.', version.join('.'), oldestGit.join('.')),
        sentence('Install a newer git.'),
      ),
    ];
  const inside = await git.run(['rev-parse', '--is-inside-work-tree'], { allow: [128] });
  if (inside.code !== 0) return [stop(...notARepository(repo, inside.stderr))];
  if (inside.stdout.trim() !== 'true')
    return [
      stop(
        sentence('{0} is not a work tree.', repo),
        sentence('Run the plan where the files are checked out.'),
      ),
    ];
  if ((await git.tip('HEAD')) === undefined)
    return [
      stop(
        sentence('The repository has no commits, and a plan begins with one.'),
        sentence('Make a first commit.'),
      ),
    ];
  return (await Promise.all([stopsOf(git, plan), notesOf(git, repo)])).flat();
}

/** As `problemsOf`, for the plan in a folder. Throws TelosError `config` if its settings or its journal cannot be read. */
export async function problemsOfPlan(
  folder: PlanFolder,
  env: Readonly<Record<string, string | undefined>>,
): Promise<GitProblem[]> {
  const { branch } = await folder.settings();
  const { lines, foreign } = await lookIntoJournal(folder.journal, folder.seal);
  const isMade = () => hasMade(new Git(folder.repo, env), lines, branch, folder.name);
  const problems = await problemsOf(folder.repo, { plan: { branch, isMade }, env });
  return [...problems, ...foreignLines(foreign).map(text => ({ text, stops: false }))];
}

const stop = (...sentences: readonly Sentence[]): GitProblem => ({
  text: spoken(sentences),
  sentences,
  stops: true,
});

const notARepository = (repo: string, said: string): Sentence[] =>
  /dubious ownership/.test(said)
    ? [
        sentence('git does not trust {0}, as it belongs to another user.', repo),
        sentence('Allow it with: {0}', `git config --global --add safe.directory ${shellWord(repo)}`),
      ]
    : [
        sentence('{0} is not in a git repository.', repo),
        sentence('Make one with "git init" and a first commit.'),
      ];

async function stopsOf(git: Git, plan: PlanBranch | undefined): Promise<GitProblem[]> {
  const found = plan ? await problemsOfBranch(git, plan) : [];
  // A folder stands for all that is below it. A star does not, and may be any folder.
  const state = progressNames.flatMap(name => [`.telos/plans/*/${name}`, `.telos/plans/*/${name}/**`]);
  const tracked = await git.read(['ls-files', '-z', '--', ...state.map(path => `:(top,glob,icase)${path}`)]);
  if (tracked !== '')
    found.push(
      stop(
        sentence(
          "{0} is in git, and what came with a repository does not count as a plan's progress.",
          tracked.split('\0')[0] ?? '',
        ),
        sentence('Take it out with: {0}', 'git rm --cached'),
      ),
    );
  return found;
}

async function problemsOfBranch(git: Git, { branch, isMade }: PlanBranch): Promise<GitProblem[]> {
  const { tip, checkedOut } = await branchOf(git, branch);
  if (checkedOut !== undefined)
    return [
      stop(
        sentence(
          "The plan's branch {0} is checked out in {1}, where its files would seem edited whenever a story passes.",
          ...[branch, checkedOut],
        ),
        sentence('Switch to another branch there.'),
      ),
    ];
  if (tip === undefined || (await isMade())) return [];
  return [
    stop(
      sentence('There is a branch {0} already, which this plan did not make.', branch),
      sentence('Name another branch in plan.json, or delete or rename that one.'),
    ),
  ];
}

async function notesOf(git: Git, repo: string): Promise<GitProblem[]> {
  const setting = async (name: string): Promise<string> =>
    (await git.run(['config', '--get', name], { allow: [1] })).stdout.trim();
  const [places, files, head, worktreeConfig] = await Promise.all([
    git.read(['rev-parse', '--show-toplevel', '--absolute-git-dir', '--is-shallow-repository']),
    git.read(['ls-files', '-s', '--', ':(top)']),
    git.run(['symbolic-ref', '--quiet', 'HEAD'], { allow: [1] }),
    setting('extensions.worktreeConfig'),
  ]);
  const [top = '', gitDir = '', isShallow] = places.split('\n');
  const texts: string[] = [];
  if (/^160000 /m.test(files))
    texts.push(
      'The repository has submodules. They are filled in the worktrees of stories by the setup of a plan: git submodule update --init --recursive',
    );
  if (isShallow === 'true')
    texts.push(
      'The clone is shallow, so a merge at the end may miss commits that it needs. Get them with: git fetch --unshallow',
    );
  if (head.code !== 0)
    texts.push(
      'No branch is checked out, so at the end there is none to merge into; the plan keeps its own branch.',
    );
  const hooks = await hooksOf(git);
  if (hooks.length > 0)
    texts.push(
      `Hooks of the repository (${hooks.join(', ')}) run neither for the commits of stories nor when a plan is finished. Make their commands checks of the plan.`,
    );
  if (await signsCommits(git))
    texts.push(
      'Your git signs commits, and those of stories are not signed. Where that is required, finish the plan with --squash: its one commit is signed.',
    );
  if (worktreeConfig === 'true')
    texts.push('Settings of this worktree alone (config.worktree) do not apply in the worktrees of stories.');
  const pointers = usesLfs(top) ? await lfsPointers(git) : [];
  if (pointers.length > 0)
    texts.push(
      `${pointers.length === 1 ? `${pointers[0]} is` : `${pointers.length} files, such as ${pointers[0]}, are`} only a pointer of Git LFS here, so stories see pointers too. Get the contents with: git lfs pull`,
    );
  else if (
    usesLfs(top) &&
    (await git.run(['lfs', 'version'], { allow: [1, 128] }).catch(() => ({ code: 1 }))).code !== 0
  )
    texts.push(
      'Files are kept in Git LFS, which is not installed: stories see pointers in their place. Install git-lfs.',
    );
  if (['MERGE_HEAD', 'rebase-merge', 'rebase-apply'].some(name => existsSync(join(gitDir, name))))
    texts.push('A merge or rebase is under way; the plan begins with the last commit and leaves it alone.');
  if (
    process.platform === 'win32' &&
    repo.length > windowsPath - 100 &&
    (await setting('core.longPaths')) !== 'true'
  )
    texts.push(
      'The path is so long that Windows may refuse files in it. Allow them with: git config core.longPaths true',
    );
  return texts.map(text => ({ text, stops: false }));
}

function usesLfs(top: string): boolean {
  try {
    return /\bfilter=lfs\b/.test(readSettings(join(top, '.gitattributes')));
  } catch {
    return false;
  }
}
