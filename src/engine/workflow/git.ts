/**
 * Runs git for a plan: without hooks, prompts, signing, editors and networks, and without anything that a variable of the
 * environment would change. Nothing here touches the index, the HEAD or the files of the person's own work tree.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { TelosError } from '../errors.ts';
import { type Difference, differenceOptions, readDifference } from './gitDifference.ts';
import {
  endsWith,
  GitTalk,
  gitShell,
  isContents,
  isLine,
  shellAnswer,
  shellLine,
  sizeIn,
} from './gitTalk.ts';

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

/** What all work trees of a repository have in common. */
interface Shared {
  talk(name: TalkName): GitTalk;
  identity?: Promise<Identity>;
  commonDir?: Promise<string>;
  /** The last ones that were asked for, by their trees. Trees never change. */
  differences: Map<string, Promise<Difference>>;
}

const talks = {
  objects: ['cat-file', '--batch-command'],
  differences: ['diff-tree', '--stdin', ...differenceOptions],
  refs: ['update-ref', '-m', 'telos', '--stdin'],
  commits: ['hash-object', '-t', 'commit', '-w', '--no-filters', '--stdin-paths'],
};

type TalkName = keyof typeof talks;

/** A name and an address, and the zone of the person's clock. */
interface Identity {
  author: string;
  committer: string;
  zone: string;
}

const mostDifferences = 8;

export class Git {
  readonly dir: string;
  readonly #env: Environment;
  readonly #place: Place | undefined;
  readonly #shell?: GitTalk;
  #shared: Shared;

  /** `dir` lies in the repository. With a `place`, every call works on that work tree, whatever a `.git` file there says. */
  constructor(dir: string, env: Environment = process.env, place?: Place) {
    this.dir = dir;
    this.#env = env;
    this.#place = place;
    const shell = gitShell;
    if (shell !== undefined) this.#shell = new GitTalk(() => this.#start(shell, []));
    const open = new Map<TalkName, GitTalk>();
    const talk = (name: TalkName): GitTalk => {
      const known = open.get(name) ?? new GitTalk(() => this.#spawn(talks[name]));
      open.set(name, known);
      return known;
    };
    this.#shared = { talk, differences: new Map() };
  }

  /** Returns the same for another work tree of the repository, whose own folder below `.git` is known. */
  at(place: Place): Git {
    const git = new Git(place.workTree, this.#env, place);
    git.#shared = this.#shared;
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

  #call(args: readonly string[], input?: string): Promise<GitAnswer> {
    return this.#shell && input === undefined
      ? this.#callByShell(this.#shell, args)
      : this.#callAlone(args, input);
  }

  /** Node takes longer to start a program than git to run, and longer with each megabyte that it has; a shell that stays does not. */
  async #callByShell(shell: GitTalk, args: readonly string[]): Promise<GitAnswer> {
    const mark = randomUUID();
    const timer = setTimeout(() => shell.kill(), callLimit);
    try {
      const printed = await shell.ask(shellLine(this.dir, [...neutral, ...args], mark), endsWith(mark));
      const answer = shellAnswer(printed.toString(), mark);
      if (answer.code === 127) throw this.#notStarted(new Error('it was not found'));
      if (answer.code !== 0 && !existsSync(this.dir)) throw this.#notStarted(new Error(answer.stderr));
      return answer;
    } catch (error) {
      throw error instanceof TelosError ? error : this.#notStarted(error as Error);
    } finally {
      clearTimeout(timer);
    }
  }

  async #callAlone(args: readonly string[], input = ''): Promise<GitAnswer> {
    const child = this.#spawn(args);
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

  #spawn(args: readonly string[]): ChildProcessWithoutNullStreams {
    return this.#start('git', [...neutral, ...args]);
  }

  #start(program: string, args: readonly string[]): ChildProcessWithoutNullStreams {
    return spawn(program, args, {
      cwd: this.dir,
      env: neutralEnvironment(this.#env, this.#place),
      stdio: ['pipe', 'pipe', 'pipe'],
      windowsHide: true,
    });
  }

  /** Asks a process of git that stays for the next question. Throws TelosError `config` if it ends instead of answering. */
  async ask(name: TalkName, question: string, isWhole: Parameters<GitTalk['ask']>[1]): Promise<string> {
    try {
      return (await this.#shared.talk(name).ask(question, isWhole)).toString();
    } catch (error) {
      throw error instanceof TelosError ? error : this.#notStarted(error as Error);
    }
  }

  /** Ends the processes that stay. */
  async close(): Promise<void> {
    const names = Object.keys(talks) as TalkName[];
    await Promise.all([this.#shell?.close(), ...names.map(name => this.#shared.talk(name).close())]);
  }

  #notStarted(error: Error): TelosError {
    const message = existsSync(this.dir)
      ? `git could not be started (${error.message}). Install git ${oldestGit.join('.')} or later, and see that it is on the PATH.`
      : `${this.dir} does not exist any more, so git cannot work there.`;
    return new TelosError('config', message, { cause: error });
  }

  /** The person's name for commits; one of Telos where git knows none. */
  #identity(): Promise<Identity> {
    this.#shared.identity ??= Promise.all(['AUTHOR', 'COMMITTER'].map(who => this.#identOf(who))).then(
      ([author = '', committer = '']) => ({
        author: author.replace(/ \d+ [+-]\d+$/, ''),
        committer: committer.replace(/ \d+ [+-]\d+$/, ''),
        zone: / ([+-]\d+)$/.exec(author)?.[1] ?? '+0000',
      }),
    );
    return this.#shared.identity;
  }

  async #identOf(who: string): Promise<string> {
    const args = ['-c', 'user.useConfigOnly=true', 'var', `GIT_${who}_IDENT`];
    const { code, stdout } = await this.#call(args);
    return code === 0 ? stdout.trim() : 'Telos <telos@localhost> 0 +0000';
  }

  /** Returns for example `[2, 39, 5]`. Throws TelosError `config` if git cannot be started. */
  async version(): Promise<number[]> {
    const [, version = ''] = /(\d+(?:\.\d+)+)/.exec(await this.read(['version'])) ?? [];
    return version.split('.').map(Number);
  }

  /** Returns the commit that a ref or another name means, or undefined if there is none that can be read. */
  async tip(ref: string): Promise<string | undefined> {
    return (await this.#object(`${ref}^{commit}`))?.id;
  }

  async treeOf(commit: string): Promise<string> {
    const tree = await this.#object(`${commit}^{tree}`);
    if (!tree) throw new TelosError('config', `${commit} is not a commit that can be read in ${this.dir}.`);
    return tree.id;
  }

  /** Each work tree has a HEAD of its own. */
  get #ownHead(): string {
    return this.#place ? `worktrees/${basename(this.#place.gitDir)}/HEAD` : 'HEAD';
  }

  async #object(name: string): Promise<{ id: string; type: string; size: number } | undefined> {
    if (/[\0\n]/.test(name)) return undefined;
    const own = name.replace(/^HEAD\b/, this.#ownHead);
    const line = (await this.ask('objects', `info ${own}\n`, isLine)).trimEnd();
    const [id = '', type = ''] = line.split(' ');
    const size = sizeIn(line);
    return size === undefined ? undefined : { id, type, size };
  }

  /** Returns the text of a blob, such as `COMMIT:PATH`; undefined if there is none, or if it has more than `most` bytes. */
  async text(name: string, most = Number.POSITIVE_INFINITY): Promise<string | undefined> {
    const blob = await this.#object(name);
    if (blob?.type !== 'blob' || blob.size > most) return undefined;
    const answer = await this.ask('objects', `contents ${blob.id}\n`, isContents);
    const start = answer.indexOf('\n') + 1;
    return sizeIn(answer.slice(0, start - 1)) === undefined ? undefined : answer.slice(start, -1);
  }

  /** Returns what differs between two commits or trees. */
  async difference(from: string, to: string): Promise<Difference> {
    const trees = `${await this.treeOf(from)} ${await this.treeOf(to)}`;
    const { differences } = this.#shared;
    const mark = randomUUID();
    const known =
      differences.get(trees) ??
      this.ask('differences', `${trees}\n${mark}\n`, endsWith(mark)).then(printed =>
        readDifference(printed.slice(0, -mark.length - 1)),
      );
    differences.set(trees, known);
    for (const old of [...differences.keys()].slice(0, -mostDifferences)) differences.delete(old);
    known.catch(() => differences.delete(trees));
    return known;
  }

  /** Makes a commit with the person's name. It is on no branch. */
  async commitTree(tree: string, parents: readonly string[], message: string): Promise<string> {
    const { author, committer, zone } = await this.#identity();
    const time = `${Math.floor(Date.now() / 1000)} ${zone}`;
    const ids = await Promise.all(parents.map(parent => this.#commitId(parent)));
    const text = [
      `tree ${tree}`,
      ...ids.map(id => `parent ${id}`),
      ...[`author ${author} ${time}`, `committer ${committer} ${time}`, ''],
      `${message.replaceAll('\0', '').trimEnd()}\n`,
    ].join('\n');
    const file = join(tmpdir(), `telos-commit-${randomUUID()}`);
    try {
      await writeFile(file, text, { mode: 0o600, flag: 'wx' });
      return (await this.ask('commits', `${file}\n`, isLine)).trim();
    } finally {
      await rm(file, { force: true });
    }
  }

  async #commitId(name: string): Promise<string> {
    const id = /^[0-9a-f]{40,64}$/.test(name) ? name : await this.tip(name);
    if (id === undefined) throw new TelosError('config', `${name} is not a commit in ${this.dir}.`);
    return id;
  }

  /** Sets a ref of the plan's own, whatever it was. Throws TelosError `config` if git refuses. */
  setRef(ref: string, commit: string): Promise<void> {
    return this.#moveRef(`update ${ref} ${commit}`);
  }

  /** Points the HEAD of this work tree to a commit and to no branch. Changes no file. Throws TelosError `config` if git refuses. */
  setHead(commit: string): Promise<void> {
    return this.#moveRef(`option no-deref\nupdate ${this.#ownHead} ${commit}`);
  }

  async #moveRef(change: string): Promise<void> {
    await this.ask('refs', `start\n${change}\ncommit\n`, endsWith('commit: ok'));
  }

  /**
   * Moves a ref from the commit `old` to `next` in one step; `old` is undefined if it must not exist yet. Returns false if it is
   * elsewhere. Throws TelosError `config` if it cannot be moved for another reason.
   */
  async casRef(ref: string, next: string, old: string | undefined): Promise<boolean> {
    try {
      await this.#moveRef(`update ${ref} ${next} ${old ?? '0'.repeat(next.length)}`);
      return true;
    } catch (error) {
      if (!(error instanceof TelosError)) throw error;
      if ((await this.tip(ref)) !== old) return false;
      throw new TelosError('config', `${ref} could not be moved: ${error.message}`, { cause: error });
    }
  }

  /** Returns the absolute real path of the folder that all work trees of the repository share. */
  commonDir(): Promise<string> {
    this.#shared.commonDir ??= this.read(['rev-parse', '--git-common-dir']).then(dir =>
      realpathSync(resolve(this.dir, dir)),
    );
    return this.#shared.commonDir;
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
    if (!(await this.#mayBeCheckedOut(name))) {
      const tip = await this.tip(`refs/heads/${name}`);
      if (tip !== undefined) return { tip };
    }
    const format = '--format=%(objectname) %(worktreepath)';
    const line = await this.read(['for-each-ref', format, '--', `refs/heads/${name}`]);
    const [, tip, checkedOut] = /^(\S+) (.*)$/.exec(line) ?? [];
    return { ...(tip && { tip }), ...(checkedOut && { checkedOut }) };
  }

  /** Returns false if every HEAD of the repository is a file that names something else. */
  async #mayBeCheckedOut(branch: string): Promise<boolean> {
    const common = await this.commonDir();
    const entries = join(common, 'worktrees');
    const names = existsSync(entries) ? readdirSync(entries) : [];
    return [common, ...names.map(name => join(entries, name))].some(folder => {
      const head = headIn(folder);
      return head === undefined || head === `ref: refs/heads/${branch}` || head.endsWith('/.invalid');
    });
  }
}

/** Returns undefined if there is none that can be read, as while a work tree is being made. */
function headIn(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, 'HEAD'), 'utf8').trim();
  } catch {
    return undefined;
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
