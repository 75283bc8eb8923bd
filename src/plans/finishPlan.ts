/** Ends a plan: brings what passed into the person's branch, or leaves or drops it. The one place that touches the person's checkout. */

import { execFile } from 'node:child_process';
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { TelosError } from '@telos/engine/errors';
import { shellWord } from '@telos/engine/files';
import { commandPrograms, findProgram, programEndings } from '@telos/engine/tools';
import type { FinishKind } from '@telos/protocol/plan';
import { sentence } from '@telos/protocol/text';
import type { Git } from './git.ts';
import { branchOf, dirtyFiles, signsCommits } from './gitCheckouts.ts';
import { personPlaces } from './gitProgram.ts';
import { mergeOnto } from './integrate.ts';
import { missingStories, planCommits } from './planCommits.ts';
import type { Slots } from './slots.ts';
import type { StoryState } from './storyState.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface Finish {
  git: Git;
  slots: Slots;
  plan: string;
  base: string;
  branch: string;
  /** The plan made the branch. Otherwise nothing is done with it. */
  isMade: boolean;
  goal: string;
  stories: readonly StoryState[];
  /** How it was ended before, if nothing was worked on since. */
  before?: { how: FinishKind; commit?: string };
  /** For the person's own git and `gh`. */
  env: Environment;
}

/** What was done, and what of the work trees stays. */
export interface Finished {
  commit?: string;
  /** The branch that it was merged into. */
  into?: string;
  /** Where it was published, and the address of its pull request if that was opened. */
  remote?: string;
  url?: string;
  kept: readonly { dir: string; why: string }[];
}

const mostNamed = 10;

/**
 * Throws TelosError `config` if that was done already, the merge would overwrite what is not committed, no branch is checked out, the two cannot be merged
 * without a conflict, or a branch that is to be deleted is checked out.
 */
export async function finishPlan(how: FinishKind, parts: Finish): Promise<Finished> {
  const { git, slots, branch, isMade } = parts;
  const { tip, checkedOut: place } = isMade ? await branchOf(git, branch) : {};
  if (how !== 'drop') await refuseMissing(parts);
  if (tip === undefined && parts.before?.how === 'drop')
    throw new TelosError('config', [sentence("The plan '{0}' was discarded already.", parts.plan)]);
  if (how === 'keep' && tip === undefined)
    throw new TelosError('config', [
      sentence("The plan '{0}' has no branch yet, so there is none to keep.", parts.plan),
    ]);
  if (how === 'merge' || how === 'squash') {
    if (tip === undefined) throw noCommits(branch);
    const done = await merge(how, tip, parts);
    return { ...done, kept: (await slots.removeSlots()).kept };
  }
  if (how === 'pr') {
    if (tip === undefined) throw noCommits(branch);
    const { base, goal, env } = parts;
    const into = await checkedOut(git, branch);
    const opened = await openPullRequest(git, { branch, base, into, title: goal }, env);
    return { ...opened, commit: tip, kept: (await slots.removeSlots()).kept };
  }
  if (how === 'drop' && place !== undefined)
    throw new TelosError('config', [
      sentence("The plan's branch {0} is checked out in {1}, so it was not deleted.", branch, place),
      sentence('Switch to another branch there.'),
    ]);
  // First the work trees, whose commits the branch has.
  const { kept } = await slots.removeSlots();
  if (how === 'drop' && tip !== undefined)
    await git.run(['update-ref', '--no-deref', '-d', `refs/heads/${branch}`, tip]);
  return { ...(tip !== undefined && how === 'keep' && { commit: tip }), kept };
}

/** Throws TelosError `config` if stories have passed that the branch does not have. */
async function refuseMissing({ git, base, branch, plan, stories }: Finish): Promise<void> {
  const missing = missingStories(stories, await planCommits(git, base, branch, plan), branch);
  if (missing.length === 0) return;
  throw new TelosError('config', [
    sentence(
      'The branch {0} does not have all that has passed: {1}.',
      branch,
      missing.map(({ story }) => story).join(', '),
    ),
    sentence('It was deleted, renamed or reset. Bring its commits back, or run the plan again.'),
    sentence('Nothing was changed.'),
  ]);
}

const noCommits = (branch: string): TelosError =>
  new TelosError('config', [
    sentence('The branch {0} of the plan has no commits yet, so there is nothing to merge.', branch),
  ]);

/** Returns the branch that is checked out, if there is one. */
export async function checkedOutBranch(git: Git): Promise<string | undefined> {
  const { stdout } = await git.run(['symbolic-ref', '--quiet', '--short', 'HEAD'], { allow: [1] });
  return stdout.trim() || undefined;
}

/** Returns the branch that is checked out. Throws TelosError `config` if there is none. */
async function checkedOut(git: Git, branch: string): Promise<string> {
  const name = await checkedOutBranch(git);
  if (name !== undefined) return name;
  throw new TelosError('config', [
    sentence('No branch is checked out, so there is none to merge into.'),
    sentence('Check one out, or keep {0}.', branch),
  ]);
}

async function merge(
  how: 'merge' | 'squash',
  tip: string,
  { git, branch, plan, goal, base, before, env }: Finish,
): Promise<{ commit: string; into: string }> {
  if (tip === base) throw noCommits(branch);
  const into = await checkedOut(git, branch);
  const head = (await git.tip('HEAD')) ?? base;
  for (const commit of [tip, ...(before?.how === 'squash' ? [before.commit ?? tip] : [])])
    if (await isWithin(git, commit, head))
      throw new TelosError('config', [sentence("The plan '{0}' was merged into {1} already.", plan, into)]);
  const parent = await meetingPoint(how, { git, into, head, tip, base });
  const merged = await mergeOnto(git, { tip: head, parent, commit: tip });
  if ('files' in merged)
    throw new TelosError('config', [
      sentence('{0} and {1} both changed {2}.', into, branch, merged.files.slice(0, mostNamed).join(', ')),
      sentence('Nothing was changed.'),
      sentence('Merge by hand with: {0}', `git merge ${shellWord(branch)}`),
    ]);
  await refuseOverwriting(git, head, merged.tree);
  const made = (parents: string[], message: string) =>
    commitAsPerson(git, { tree: merged.tree, parents, message, branch }, env);
  const commit =
    how === 'squash'
      ? await made([head], `${goal}\n\nTelos-Plan: ${plan}\n`)
      : parent === head
        ? tip
        : await made([head, tip], `Merge plan ${plan}\n\n${goal}\n`);
  await git.run(['merge', '--ff-only', '--quiet', '--end-of-options', commit]);
  return { commit, into };
}

/**
 * Returns the commit since which the plan and the branch have changed apart. Throws TelosError `config` if a merge would bring commits along
 * that are not the plan's, as where the branch was rebased or reset meanwhile.
 */
async function meetingPoint(
  how: 'merge' | 'squash',
  { git, into, head, tip, base }: Record<'into' | 'head' | 'tip' | 'base', string> & { git: Git },
): Promise<string> {
  if (base !== '' && !(await isWithin(git, base, head))) {
    // The changes of the stories alone.
    if (how === 'squash') return base;
    throw new TelosError('config', [
      sentence('{0} does not have the commit {1} that the plan began with.', into, base.slice(0, 10)),
      sentence('A merge would bring its commits back. Squash the plan: that brings its own changes alone.'),
      sentence('Nothing was changed.'),
    ]);
  }
  const { stdout } = await git.run(['merge-base', head, tip], { allow: [1] });
  return stdout.trim() || base;
}

/** Returns a commit, signed if the person's git signs commits. Throws TelosError `config` if it cannot. */
async function commitAsPerson(
  git: Git,
  { tree, parents, message, branch }: { tree: string; parents: string[]; message: string; branch: string },
  env: Environment,
): Promise<string> {
  if (!(await signsCommits(git))) return git.commitTree(tree, parents, message);
  const args = ['commit-tree', '-S', ...parents.flatMap(parent => ['-p', parent]), '-m', message, tree];
  return run('git', args, git.dir, env).then(
    said => said.trim(),
    error => {
      throw new TelosError('config', [
        sentence('Your git signs commits, and this one could not be signed: {0}', lastLine(error)),
        sentence('Nothing was changed.'),
        sentence('Mend that, or merge by hand with: {0}', `git merge ${shellWord(branch)}`),
      ]);
    },
  );
}

/** Throws TelosError `config` if files that are not committed are among those that a merge writes or removes. */
async function refuseOverwriting(git: Git, head: string, tree: string): Promise<void> {
  const dirty = await dirtyFiles(git);
  if (dirty.length === 0) return;
  const listed = await git.read([
    'diff',
    '--name-only',
    '-z',
    '--no-renames',
    '--end-of-options',
    head,
    tree,
  ]);
  const written = listed.split('\0').filter(Boolean);
  const isAt = (file: string, path: string): boolean =>
    // A folder that git does not know stands for all that is in it.
    file.endsWith('/')
      ? path.startsWith(file) && lstatSync(join(git.dir, path), { throwIfNoEntry: false }) !== undefined
      : path === file || path.startsWith(`${file}/`) || file.startsWith(`${path}/`);
  const hit = dirty.filter(file => written.some(path => isAt(file, path)));
  if (hit.length > 0) throw notClean(hit);
}

/** Whether the commit is `tip` or comes before it. */
async function isWithin(git: Git, commit: string, tip: string): Promise<boolean> {
  return (await git.run(['merge-base', '--is-ancestor', commit, tip], { allow: [1, 128] })).code === 0;
}

function notClean(files: readonly string[]): TelosError {
  const shown = files.slice(0, mostNamed).join(', ');
  const left = files.length - mostNamed;
  return new TelosError('config', [
    left > 0
      ? sentence('These files are not committed, and the plan changes them: {0} and {1} more.', shown, left)
      : sentence('These files are not committed, and the plan changes them: {0}.', shown),
    sentence('Commit or stash them first.'),
    sentence('Nothing was changed.'),
  ]);
}

interface PullRequest {
  branch: string;
  base: string;
  /** The branch that it is to be merged into. */
  into: string;
  title: string;
}

/** Long enough for a large push. In milliseconds. */
const patience = 10 * 60_000;

/** Returns the remote that the branch went to, and the address of the pull request; without one where `gh` is missing. Throws TelosError `config`. */
async function openPullRequest(
  git: Git,
  { branch, base, into, title }: PullRequest,
  env: Environment,
): Promise<{ remote: string; url?: string }> {
  const remote = await remoteOf(git, into);
  const ref = `refs/heads/${branch}`;
  await run('git', ['push', '--quiet', '--end-of-options', remote, `${ref}:${ref}`], git.dir, env).catch(
    error => {
      throw new TelosError('config', [
        sentence('{0} could not be pushed to {1}: {2}', branch, remote, lastLine(error)),
        sentence('Nothing was changed here.'),
      ]);
    },
  );
  // Titles and names come from models; as code they mention no one and link nowhere.
  const commits = await git.read([
    ...['log', '--reverse', '--no-show-signature'],
    ...['--format=    %h %s', '--end-of-options', `${base}..${ref}`],
  ]);
  const body = `Made by a Telos plan. Each of these passed its checks and a review:\n\n${commits}\n`;
  const asked = ['pr', 'create', `--head=${branch}`, `--base=${into}`, `--title=${title}`, `--body=${body}`];
  try {
    return { remote, url: (await run('gh', asked, git.dir, env)).trim().split('\n').at(-1) ?? '' };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { remote };
    throw new TelosError('config', [
      sentence('{0} is at {1}, but gh did not open a pull request: {2}', branch, remote, lastLine(error)),
    ]);
  }
}

/** Returns the remote of the branch, or the only one. Throws TelosError `config` if there is none. */
async function remoteOf(git: Git, into: string): Promise<string> {
  const own = await git.run(['config', '--get', `branch.${into}.remote`], { allow: [1] });
  const remotes = (await git.read(['remote'])).split('\n').filter(Boolean);
  const named = [own.stdout.trim(), 'origin', ...(remotes.length === 1 ? remotes : [])];
  const remote = named.find(name => remotes.includes(name));
  if (remote !== undefined) return remote;
  throw new TelosError('config', [
    sentence('The repository has no remote that a pull request could go to.'),
    sentence('Add one with: {0}', 'git remote add origin <address>'),
  ]);
}

/** Returns what the person's program printed. Rejects if it is missing or fails; the error has its `code` or its `stderr`. */
function run(name: string, args: readonly string[], cwd: string, env: Environment): Promise<string> {
  const places = personPlaces(env, cwd);
  const program = findProgram(name, places, programEndings(places.env));
  if (program === undefined)
    return Promise.reject(Object.assign(new Error(`${name} was not found`), { code: 'ENOENT' }));
  const {
    GIT_DIR: _dir,
    GIT_WORK_TREE: _tree,
    GIT_INDEX_FILE: _index,
    ...rest
  } = commandPrograms(places).env;
  // No one sees a prompt of theirs.
  const quiet = { ...rest, GIT_TERMINAL_PROMPT: '0', GH_PROMPT_DISABLED: '1' } as NodeJS.ProcessEnv;
  const options = { cwd, timeout: patience, env: quiet, windowsHide: true };
  return new Promise((done, failed) => {
    execFile(program, args, options, (error, stdout, stderr) =>
      error ? failed(Object.assign(error, { stderr })) : done(stdout),
    );
  });
}

function lastLine(error: unknown): string {
  const { stderr = '', message = '' } = error as { stderr?: string; message?: string };
  const line = (stderr.trim() || message).split('\n').at(-1) ?? '';
  return `${line.replace(/^(fatal|error): /, '').replace(/\.$/, '')}.`;
}
