/**
 * Runs git for a plan: without hooks, prompts, signing, editors and networks, and without anything that a variable of the
 * environment would change. Nothing here touches the index, the HEAD or the files of the person's own work tree.
 */
import { spawn } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { TelosError } from '../errors.ts';

export interface GitAnswer {
  stdout: string;
  stderr: string;
  code: number;
}

interface GitCall {
  /** Its standard input. */
  input?: string;
  /** Exit codes besides 0 that are not failures. */
  allow?: readonly number[];
}

/** A commit that a plan made on its branch, as its trailers say. */
export interface PlanCommit {
  commit: string;
  tree: string;
  story: string;
  /** The boxes that it closed. */
  items: number[];
  /** Boxes of its story were still open. */
  isPart: boolean;
}

/** The first version with `merge-tree --write-tree`. */
export const oldestGit = [2, 38] as const;

/** Longer than any call takes, even on a slow disk. In milliseconds. */
const callLimit = 10 * 60_000;

/** Switches off what would run programs, ask, or go over a network; and writes objects so that a power cut keeps them. */
const neutral = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.fsync=committed',
  'core.askPass=',
  'core.quotePath=false',
  'core.pager=cat',
  'commit.gpgSign=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'credential.helper=',
  'core.sparseCheckout=false',
  'core.trustctime=true',
  'submodule.recurse=false',
  'rerere.enabled=false',
  'log.showSignature=false',
  'advice.detachedHead=false',
].flatMap(setting => ['-c', setting]);

/** The variable that everything carries that a plan's runner starts. A later runner ends what a killed one left. */
export const runnerMark = 'TELOS_PLAN_RUNNER';

type Environment = Readonly<Record<string, string | undefined>>;

interface Place {
  gitDir: string;
  workTree: string;
  index: string;
}

export class Git {
  readonly dir: string;
  readonly #env: Environment;
  readonly #place: Place | undefined;
  /** Asked once for all work trees. */
  #asked: { identity?: Promise<Environment> } = {};

  /** `dir` lies in the repository. With a `place`, every call works on that work tree, whatever a `.git` file there says. */
  constructor(dir: string, env: Environment = process.env, place?: Place) {
    this.dir = dir;
    this.#env = env;
    this.#place = place;
  }

  /** Returns the same for another work tree of the repository, whose own folder below `.git` is known. */
  at(place: Place): Git {
    const git = new Git(place.workTree, this.#env, place);
    git.#asked = this.#asked;
    return git;
  }

  /** Throws TelosError `config` if git cannot be started, runs for too long, or ends with a code that is not allowed. */
  async run(args: readonly string[], { input, allow = [] }: GitCall = {}): Promise<GitAnswer> {
    const [name = ''] = args;
    const answer = await this.#call(args, input);
    if (answer.code === 0 || allow.includes(answer.code)) return answer;
    const said = answer.stderr.trim().split('\n').at(-1) || `it ended with ${answer.code}`;
    throw new TelosError(
      'config',
      `git ${name} failed in ${this.dir}: ${said.replace(/^(fatal|error): /, '')}`,
    );
  }

  /** Returns the standard output without its last newline. */
  async read(args: readonly string[], call: GitCall = {}): Promise<string> {
    return (await this.run(args, call)).stdout.replace(/\n$/, '');
  }

  async #call(args: readonly string[], input = ''): Promise<GitAnswer> {
    const identity = args[0] === 'commit-tree' ? await this.identity() : {};
    const child = spawn('git', [...neutral, ...args], {
      cwd: this.dir,
      env: { ...neutralEnvironment(this.#env, this.#place), ...identity },
      stdio: ['pipe', 'pipe', 'pipe'],
      windowsHide: true,
    });
    // An option of spawn goes on for a program that could not be started, and keeps the process alive.
    const timer = setTimeout(() => child.kill(), callLimit);
    const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
    child.stdout.on('data', (part: Buffer) => stdout.push(part));
    child.stderr.on('data', (part: Buffer) => stderr.push(part));
    // It may end before it has read all of it.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    const ended = new Promise<GitAnswer>((done, failed) => {
      child.once('error', error => failed(this.#notStarted(error)));
      child.once('close', (code, signal) =>
        code === null
          ? failed(new TelosError('config', `git ${args[0]} was ended by ${signal} in ${this.dir}.`))
          : done({
              code,
              stdout: Buffer.concat(stdout).toString(),
              stderr: Buffer.concat(stderr).toString(),
            }),
      );
    });
    return ended.finally(() => clearTimeout(timer));
  }

  #notStarted(error: Error): TelosError {
    const message = existsSync(this.dir)
      ? `git could not be started (${error.message}). Install git ${oldestGit.join('.')} or later, and see that it is on the PATH.`
      : `${this.dir} does not exist any more, so git cannot work there.`;
    return new TelosError('config', message, { cause: error });
  }

  /** The person's name for commits; one of Telos where git knows none. */
  identity(): Promise<Environment> {
    this.#asked.identity ??= this.#call(['-c', 'user.useConfigOnly=true', 'var', 'GIT_AUTHOR_IDENT']).then(
      ({ code }) => {
        if (code === 0) return {};
        const [name, email] = ['Telos', 'telos@localhost'];
        return {
          ...{ GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email },
          ...{ GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email },
        };
      },
    );
    return this.#asked.identity;
  }

  /** Returns for example `[2, 39, 5]`. Throws TelosError `config` if git cannot be started. */
  async version(): Promise<number[]> {
    const [, version = ''] = /(\d+(?:\.\d+)+)/.exec(await this.read(['version'])) ?? [];
    return version.split('.').map(Number);
  }

  /** Returns the commit that a ref or another name means, or undefined if there is none that can be read. */
  async tip(ref: string): Promise<string | undefined> {
    const { stdout, code } = await this.run(
      ['rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`],
      {
        allow: [1, 128],
      },
    );
    return code === 0 ? stdout.trim() : undefined;
  }

  async treeOf(commit: string): Promise<string> {
    return this.read(['rev-parse', '--verify', '--quiet', '--end-of-options', `${commit}^{tree}`]);
  }

  async commitTree(tree: string, parents: readonly string[], message: string): Promise<string> {
    const args = ['commit-tree', tree, ...parents.flatMap(parent => ['-p', parent])];
    return (await this.run(args, { input: message })).stdout.trim();
  }

  /**
   * Moves a ref from the commit `old` to `next` in one step; `old` is undefined if it must not exist yet. Returns false if it is
   * elsewhere. Throws TelosError `config` if it cannot be moved for another reason.
   */
  async casRef(ref: string, next: string, old: string | undefined, why = 'telos'): Promise<boolean> {
    const answer = await this.run(['update-ref', '-m', why, ref, next, old ?? ''], { allow: [1, 128] });
    if (answer.code === 0) return true;
    if ((await this.tip(ref)) !== old) return false;
    const [said = ''] = answer.stderr.trim().split('\n');
    throw new TelosError('config', `${ref} could not be moved: ${said.replace(/^(fatal|error): /, '')}`);
  }

  /** Returns the absolute real path of the folder that all work trees of the repository share. */
  async commonDir(): Promise<string> {
    return realpathSync(resolve(this.dir, await this.read(['rev-parse', '--git-common-dir'])));
  }

  /** Returns the commits of the plan between `base` and `branch`, the oldest first. A branch that is missing has none. */
  async planCommits(base: string, branch: string, plan: string): Promise<PlanCommit[]> {
    const tip = await this.tip(branch);
    if (tip === undefined) return [];
    const fields = ['Plan', 'Story', 'Part', 'Item'].map(
      name => `%(trailers:key=Telos-${name},valueonly,separator=%x2C)`,
    );
    const format = ['%H', '%T', ...fields].join('%x1f');
    const log = await this.read([
      'log',
      '--reverse',
      `--format=${format}%x1e`,
      '--end-of-options',
      `${base}..${tip}`,
    ]);
    return log.split('\x1e').flatMap(record => {
      const [commit = '', tree = '', of, story = '', part = '', items = ''] = record.trim().split('\x1f');
      if (of !== plan || (story || part) === '') return [];
      const numbers = items
        .split(',')
        .map(Number)
        .filter(number => number > 0);
      return [{ commit, tree, story: story || part, items: numbers, isPart: story === '' }];
    });
  }

  /** Returns the commit of each story that has passed. */
  async storiesOn(base: string, branch: string, plan: string): Promise<Map<string, string>> {
    const commits = await this.planCommits(base, branch, plan);
    return new Map(commits.filter(({ isPart }) => !isPart).map(({ story, commit }) => [story, commit]));
  }

  /**
   * Returns the files of this work tree that are not as the last commit has them, those included that git does not know. Without those
   * of plans, which change as a plan goes on and are in no story.
   */
  async dirtyFiles(): Promise<string[]> {
    const status = await this.read(['status', '--porcelain', '-z', '--no-renames']);
    const paths = status.split('\0').map(entry => entry.slice(3));
    return paths.filter(path => path !== '' && !path.startsWith('.telos/'));
  }

  /**
   * Returns the commit of a branch and the work tree in which it is checked out, as far as there are such. Moving a branch that is
   * checked out would make that tree look edited.
   */
  async branch(name: string): Promise<{ tip?: string; checkedOut?: string }> {
    const format = '--format=%(objectname) %(worktreepath)';
    const line = await this.read(['for-each-ref', format, '--', `refs/heads/${name}`]);
    const [, tip, checkedOut] = /^(\S+) (.*)$/.exec(line) ?? [];
    return { ...(tip && { tip }), ...(checkedOut && { checkedOut }) };
  }
}

/** Nothing of git's own is inherited: a hook that starts Telos would have it work on the wrong index. */
function neutralEnvironment(env: Environment, place: Place | undefined): Environment {
  const others = Object.entries(env).filter(([name]) => !/^GIT_/i.test(name));
  return {
    ...Object.fromEntries(others),
    LC_ALL: 'C',
    GIT_TERMINAL_PROMPT: '0',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_EDITOR: 'true',
    GIT_ADVICE: '0',
    GIT_LITERAL_PATHSPECS: '0',
    ...(place && { GIT_DIR: place.gitDir, GIT_WORK_TREE: place.workTree, GIT_INDEX_FILE: place.index }),
  };
}
