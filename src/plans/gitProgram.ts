/**
 * Runs git for a plan: without hooks, prompts, signing, editors and networks, and without anything that a variable of the
 * environment would change.
 */

import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { loadConfig } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { projectFoldersAt, workFoldersOf } from '@telos/engine/skills';
import {
  findGit,
  findProgram,
  type GitEnvironment,
  gitEnvironment,
  gitPatience,
  gitSettings,
  type ProgramPlaces,
  pathIn,
  programEndings,
  startGit,
  trustedPath,
  withPath,
} from '@telos/engine/tools';
import { sentence } from '@telos/protocol/text';
import { endsWith, GitTalk, gitShell, saidUntil, shellAnswer, shellLine } from './gitTalk.ts';

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

/** The first version with `merge-tree --write-tree`. */
export const oldestGit = [2, 38] as const;

/** Switches off what would run programs, ask, or go over a network; and writes objects so that a power cut keeps them. */
const neutral = gitSettings(
  'core.fsync=committed',
  'core.askPass=',
  'core.quotePath=false',
  'core.pager=cat',
  'commit.gpgSign=false',
  'credential.helper=',
  'core.sparseCheckout=false',
  'core.trustctime=true',
  'rerere.enabled=false',
  'log.showSignature=false',
  'advice.detachedHead=false',
);

export type Environment = GitEnvironment;

/** A work tree, its own folder below `.git`, and its index. */
export interface Place {
  gitDir: string;
  workTree: string;
  index: string;
}

/** Where the person's own programs are found. `env` has no folder on its PATH in which runs write. */
export type PersonPlaces = Pick<ProgramPlaces, 'env'> & { readonly workFolders: readonly string[] };

/**
 * Returns where a plan finds the person's programs: in no folder in which agents work or have worked, and in no project, neither that of
 * `dirs` nor that of the call. A file named git there may be what a boxed command has written.
 */
export function personPlaces(env: Environment, ...dirs: readonly [string, ...string[]]): PersonPlaces {
  const given = Object.entries(env).filter((each): each is [string, string] => each[1] !== undefined);
  const own = {
    ...(pathIn(Object.fromEntries(given)) === undefined && { PATH: '/usr/bin:/bin' }),
    ...Object.fromEntries(given),
  };
  const here = hereOr(dirs[0]);
  // What plays a sample has a home folder of its own, in which nothing of the person's is remembered.
  const configs = [loadConfig({ env: own, cwd: here }), loadConfig({ cwd: here })];
  const projects = configs.flatMap(({ home }) =>
    [here, ...dirs].flatMap(cwd => projectFoldersAt({ cwd, home })),
  );
  const workFolders = [...new Set([...configs.flatMap(config => workFoldersOf(config, [])), ...projects])];
  return { env: withPath(own, trustedPath({ env: own, workFolders }).folders), workFolders };
}

/** Returns the folder of the call. It may be gone by now. */
function hereOr(dir: string): string {
  try {
    return process.cwd();
  } catch {
    return dir;
  }
}

export class GitProgram {
  readonly dir: string;
  protected readonly env: Environment;
  protected readonly place: Place | undefined;
  /** Where the person works. A work tree of a plan lies elsewhere. */
  protected readonly project: string;
  readonly #shell?: GitTalk;
  #places: PersonPlaces | undefined;
  #git: string | undefined;

  /** `dir` lies in the repository. With a `place`, every call works on that work tree, whatever a `.git` file there says. */
  constructor(dir: string, env: Environment, place?: Place, project = dir) {
    this.dir = dir;
    this.env = env;
    this.place = place;
    this.project = project;
    const shell = gitShell;
    if (shell !== undefined) this.#shell = new GitTalk(() => this.#start(shell, []));
  }

  /** Throws TelosError `config` if git cannot be started, runs for too long, or ends with a code that is not allowed. */
  async run(args: readonly string[], { input, allow = [] }: GitCall = {}): Promise<GitAnswer> {
    const [name = ''] = args;
    const answer = await this.call(args, input);
    if (answer.code === 0 || allow.includes(answer.code)) return answer;
    const said = reasonIn(answer.stderr) || `it ended with ${answer.code}`;
    throw new TelosError('config', [sentence('git {0} failed in {1}: {2}', name, this.dir, said)]);
  }

  /** Returns the standard output without its last newline. */
  async read(args: readonly string[], call: GitCall = {}): Promise<string> {
    return (await this.run(args, call)).stdout.replace(/\n$/, '');
  }

  /** Returns what git says, whatever code it ends with. */
  protected call(args: readonly string[], input?: string): Promise<GitAnswer> {
    return this.#shell && input === undefined
      ? this.#callByShell(this.#shell, args)
      : this.#callAlone(args, input);
  }

  /** Node takes longer to start a program than git to run, and longer with each megabyte that it has; a shell that stays does not. */
  async #callByShell(shell: GitTalk, args: readonly string[]): Promise<GitAnswer> {
    const mark = randomUUID();
    const timer = setTimeout(() => shell.kill(), gitPatience);
    try {
      const line = shellLine(this.#program(), this.dir, [...neutral, ...args], mark);
      const { stdout, stderr } = await shell.askBoth(line, endsWith(mark), saidUntil(mark));
      const answer = shellAnswer(stdout.toString(), stderr, mark);
      if (answer.code === 127) throw this.notStarted(new Error('it was not found'));
      if (answer.code !== 0 && !existsSync(this.dir)) throw this.notStarted(new Error(answer.stderr));
      return answer;
    } catch (error) {
      throw error instanceof TelosError ? error : this.notStarted(error as Error);
    } finally {
      clearTimeout(timer);
    }
  }

  async #callAlone(args: readonly string[], input = ''): Promise<GitAnswer> {
    const child = this.spawn(args);
    // An option of spawn goes on for a program that could not be started, and keeps the process alive.
    const timer = setTimeout(() => child.kill(), gitPatience);
    const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
    child.stdout.on('data', (part: Buffer) => stdout.push(part));
    child.stderr.on('data', (part: Buffer) => stderr.push(part));
    // It may end before it has read all of it.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    const ended = new Promise<GitAnswer>((done, failed) => {
      child.once('error', error => failed(this.notStarted(error)));
      child.once('close', (code, signal) =>
        code === null
          ? failed(
              new TelosError('config', [
                sentence('git {0} was ended by {1} in {2}.', args[0] ?? '', String(signal), this.dir),
              ]),
            )
          : done({
              code,
              stdout: Buffer.concat(stdout).toString(),
              stderr: Buffer.concat(stderr).toString(),
            }),
      );
    });
    return ended.finally(() => clearTimeout(timer));
  }

  protected spawn(args: readonly string[]): ChildProcessWithoutNullStreams {
    return this.#start(this.#program(), [...neutral, ...args]);
  }

  /** Looked up once, as it takes longer than a call. Throws TelosError `config` if there is no git. */
  #program(): string {
    this.#git ??= findGit(this.#own());
    if (this.#git === undefined) throw this.notStarted(new Error('it was not found'));
    return this.#git;
  }

  /** Returns whether the user has a program of that name, outside of the project and of the folders of agents. */
  finds(name: string): boolean {
    const own = this.#own();
    return findProgram(name, own, programEndings(own.env)) !== undefined;
  }

  #own(): PersonPlaces {
    this.#places ??= personPlaces(this.env, this.dir, this.project);
    return this.#places;
  }

  #start(program: string, args: readonly string[]): ChildProcessWithoutNullStreams {
    return startGit(program, args, { cwd: this.dir, env: ownEnvironment(this.#own().env, this.place) });
  }

  /** Ends the shell that stays. */
  async close(): Promise<void> {
    await this.#shell?.close();
  }

  protected notStarted(error: Error): TelosError {
    const why = existsSync(this.dir)
      ? [
          sentence('git could not be started ({0}).', error.message),
          sentence('Install git {0} or later, and see that it is on the PATH.', oldestGit.join('.')),
        ]
      : [sentence('{0} no longer exists, so git cannot work there.', this.dir)];
    return new TelosError('config', why, { cause: error });
  }
}

/** Nothing of git's own is inherited: a hook that starts Telos would have it work on the wrong index. */
const ownEnvironment = (env: Environment, place: Place | undefined): Environment =>
  gitEnvironment(env, {
    GIT_EDITOR: 'true',
    GIT_ADVICE: '0',
    GIT_LITERAL_PATHSPECS: '0',
    // A file whose object is nowhere to be had stays a pointer, and hinders no other.
    GIT_LFS_SKIP_DOWNLOAD_ERRORS: '1',
    ...(env['GIT_LFS_SKIP_SMUDGE'] && { GIT_LFS_SKIP_SMUDGE: env['GIT_LFS_SKIP_SMUDGE'] }),
    ...(place && { GIT_DIR: place.gitDir, GIT_WORK_TREE: place.workTree, GIT_INDEX_FILE: place.index }),
  });

/** Returns the line that says why git failed: its first error, or its first line that is no hint. Empty if it said nothing. */
function reasonIn(stderr: string): string {
  const lines = stderr.split('\n').map(line => line.trim());
  const [error] = lines.filter(line => /^(?:fatal|error): /.test(line));
  const [first = ''] = lines.filter(line => line !== '' && !/^(?:hint|warning): ?/.test(line));
  return (error ?? first).replace(/^(?:fatal|error): /, '');
}
