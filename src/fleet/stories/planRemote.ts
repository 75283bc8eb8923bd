/**
 * Sends commits of a plan to a git remote and gets them from there, with the credentials of the user. Only refs that are named
 * one by one are read or written, and nothing that comes is believed: each object is checked, and no hook, filter or submodule runs.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { withoutPassword } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import {
  commandPrograms,
  findGit,
  type GitEnvironment,
  gitSettings,
  runGit,
  serverEnvironment,
} from '@telos/engine/tools';
import { type Git, personPlaces } from '@telos/plans/gitRepository';
import { beginningOf, sentence } from '@telos/protocol/text';

const neutral = gitSettings(
  ...[
    'core.askPass=',
    'credential.interactive=false',
    'core.fsync=committed',
    'fetch.writeCommitGraph=false',
  ],
  ...[
    'fetch.recurseSubmodules=false',
    'push.recurseSubmodules=no',
    'push.gpgSign=false',
    'push.followTags=false',
  ],
  ...['fetch.fsckObjects=true', 'protocol.allow=never'],
  ...['https', 'http', 'ssh', 'git', 'file'].map(name => `protocol.${name}.allow=always`),
  // Harmless flaws that old histories have.
  ...[
    'badTimezone',
    'missingSpaceBeforeDate',
    'missingEmail',
    'missingSpaceBeforeEmail',
    'zeroPaddedFilemode',
  ].map(name => `fetch.fsck.${name}=ignore`),
);

/** The pause until another call while the remote is away. In milliseconds. */
const againMs = 1_000;
/** How often a call is repeated that failed for a reason that may pass, such as a connection that was cut in any place. */
const unclearLimit = 3;

const awayWords =
  /Could not resolve host|unable to (?:connect|access)|Connection (?:refused|timed out|reset)|timed out|hung up|early EOF|Network is unreachable|No route to host|unexpected disconnect|HTTP 5\d\d|returned error: 5\d\d/i;
const deniedWords = /denied|not exported|not appear to be a git repository|not found|returned error: 4\d\d/i;
const refusedWords =
  /couldn't find remote ref|fsck error|missing necessary objects|\[(?:remote )?rejected\]/i;

/** What git says of a branch that is not where it was expected. */
const isElsewhere = /stale info|fetch first|non-fast-forward/;

/**
 * Says what the words of git mean: the remote may come back by itself, it has refused, or neither is known.
 * git has no exit codes for these, and many words for a connection that ends early.
 */
function meaningOf(said: string): 'away' | 'refused' | 'unclear' {
  if (deniedWords.test(said) || refusedWords.test(said) || isElsewhere.test(said)) return 'refused';
  return awayWords.test(said) ? 'away' : 'unclear';
}

/** A branch that is moved only from where it is known to be. */
export interface Lease {
  ref: string;
  commit: string;
  /** Undefined if the remote must not have it. */
  from: string | undefined;
}

export interface RemoteParts {
  url: string;
  /** Folder of the repository below which git keeps its own. */
  dir: string;
  env: GitEnvironment;
  /** Says when the remote is away, and when it is back. */
  log: (line: string) => void;
}

export class PlanRemote {
  readonly url: string;
  /** The address without a password. */
  readonly shown: string;
  readonly #parts: RemoteParts;
  #isLost = false;

  constructor(parts: RemoteParts) {
    this.url = parts.url;
    this.shown = withoutPassword(parts.url);
    this.#parts = parts;
  }

  /** Gets the refs, by the names that they have there. Throws TelosError `config` if the remote does not have one or refuses. */
  async fetch(refs: readonly string[], signal: AbortSignal): Promise<void> {
    const options = ['--quiet', '--no-tags', '--no-recurse-submodules', '--no-write-fetch-head', '--force'];
    await this.#patient(['fetch', ...options, '--', this.url, ...refs.map(ref => `${ref}:${ref}`)], signal);
  }

  /**
   * Sets refs of the plan's own there, deletes those of which the commit is empty, and moves a branch if it is where it is expected.
   * Returns false if the branch is elsewhere; then nothing was done. Throws TelosError `config` if the remote refuses.
   */
  async push(
    refs: ReadonlyMap<string, string>,
    lease: Lease | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    const specs = [...refs].map(([ref, commit]) => `${commit === '' ? '' : `+${commit}`}:${ref}`);
    if (specs.length === 0 && !lease) return true;
    const leased = lease ? [`--force-with-lease=${lease.ref}:${lease.from ?? ''}`] : [];
    const branch = lease ? [`${lease.commit}:${lease.ref}`] : [];
    const options = ['--quiet', '--no-verify', '--no-signed', ...(lease ? ['--atomic'] : []), ...leased];
    try {
      await this.#patient(['push', ...options, '--', this.url, ...specs, ...branch], signal);
      return true;
    } catch (error) {
      if (lease && error instanceof TelosError && isElsewhere.test(error.message)) return false;
      throw error;
    }
  }

  /** Returns the commit that a ref has there, or undefined. Throws TelosError `config` if the remote refuses. */
  async tip(ref: string, signal: AbortSignal): Promise<string | undefined> {
    const listed = await this.#patient(['ls-remote', '--quiet', '--', this.url, ref], signal);
    const line = listed.split('\n').find(one => one.endsWith(`\t${ref}`));
    return line?.split('\t')[0];
  }

  /** Calls again until the remote is back. */
  async #patient(args: readonly string[], signal: AbortSignal): Promise<string> {
    for (let unclear = 0; ; ) {
      signal.throwIfAborted();
      const { code, stdout, stderr } = await this.#call(args, signal);
      signal.throwIfAborted();
      if (code === 0) {
        if (this.#isLost) this.#parts.log(`The remote ${this.shown} answers again.`);
        this.#isLost = false;
        return stdout;
      }
      const meaning = code === null ? 'away' : meaningOf(stderr);
      unclear = meaning === 'unclear' ? unclear + 1 : 0;
      if (code !== null && (meaning === 'refused' || unclear > unclearLimit))
        throw this.#problem(args[0] ?? '', stderr, code);
      if (!this.#isLost)
        this.#parts.log(`The remote ${this.shown} does not answer. What needs it waits until it does.`);
      this.#isLost = true;
      await delay(againMs, undefined, { signal });
    }
  }

  #problem(what: string, stderr: string, code: number): TelosError {
    const lines = stderr.trim().split('\n');
    // All other refs of an atomic push are rejected with the one that says why.
    const said =
      lines.find(line => isElsewhere.test(line)) ??
      lines.findLast(line => /^(?:fatal|error|remote|ERROR| !)/.test(line) && !/failed to push/.test(line));
    const words = (said ?? lines.at(-1) ?? `it ended with ${code}`).replace(/^(?:fatal|error): /, '').trim();
    const safe = beginningOf(words.replaceAll(this.url, this.shown), 300);
    return new TelosError('config', [
      sentence('git {0} failed with the remote {1}: {2}', what, this.shown, safe),
    ]);
  }

  async #call(
    args: readonly string[],
    signal: AbortSignal,
  ): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const places = personPlaces(this.#parts.env, this.#parts.dir);
    const git = findGit(places);
    if (git === undefined)
      throw new TelosError('config', [sentence('git could not be started ({0}).', 'it was not found')]);
    try {
      const { code, stdout, stderr } = await runGit(git, [...neutral, ...args], {
        cwd: this.#parts.dir,
        // git itself starts others, such as ssh.
        env: serverEnvironment(commandPrograms(places).env, { GIT_LFS_SKIP_PUSH: '1' }),
        signal,
        mostOutput: 1_000_000,
      });
      return { code, stdout: stdout.toString(), stderr };
    } catch (error) {
      const why = sentence('git could not be started ({0}).', (error as Error).message);
      throw new TelosError('config', [why], { cause: error });
    }
  }
}

/** Returns the remote of that name, or the only one that the repository has. Throws TelosError `config` if that is not clear. */
export async function remoteOf(git: Git, wanted: string | undefined): Promise<{ name: string; url: string }> {
  const names = (await git.read(['remote'])).split('\n').filter(Boolean);
  const known = names.length === 0 ? 'none' : names.join(', ');
  if (names.length === 0)
    throw new TelosError('config', [
      sentence('Workers get the work over a git remote, and this repository has none.'),
      sentence('Add one with: {0}', 'git remote add origin URL'),
    ]);
  if (wanted === undefined && names.length > 1)
    throw new TelosError('config', [
      sentence('This repository has several remotes ({0}).', known),
      sentence('Name the one that workers use.'),
    ]);
  const name = names.find(one => one === (wanted ?? names[0]));
  if (name === undefined)
    throw new TelosError('config', [
      sentence("This repository has no remote '{0}'.", wanted ?? ''),
      sentence('It has: {0}.', known),
    ]);
  const url = (await git.read(['remote', 'get-url', '--push', '--', name])).split('\n')[0] ?? '';
  if (url === '' || url.startsWith('-'))
    throw new TelosError('config', [sentence("The remote '{0}' has no address that can be used.", name)]);
  return { name, url };
}
