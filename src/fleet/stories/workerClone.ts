/** A worker's own clone of a repository that its owner allowed: the place of its work trees. Nothing in it is the owner's. */

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { makeOwnFolders } from '@telos/engine/files';
import { endMarked } from '@telos/plans/executor';
import { Git, runnerMark } from '@telos/plans/gitRepository';
import { type RunnerLock, takeRunner } from '@telos/plans/run';
import { PlanFolder } from '@telos/plans/state';
import { PlanRemote } from './planRemote.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export class WorkerClone {
  readonly remote: PlanRemote;
  readonly git: Git;
  /** What everything that runs there has in its environment. */
  readonly env: Record<string, string>;
  readonly #dir: string;
  readonly #lock: RunnerLock;
  readonly #taken = new Set<number>();

  private constructor(dir: string, remote: PlanRemote, git: Git, lock: RunnerLock) {
    this.#dir = dir;
    this.remote = remote;
    this.git = git;
    this.#lock = lock;
    this.env = { [runnerMark]: lock.mark };
  }

  /**
   * Returns a clone that no other worker uses, made if there is none. What a killed worker has left running there is ended. Throws
   * errors of the file system and of git.
   */
  static async open(url: string, env: Environment, log: (line: string) => void): Promise<WorkerClone> {
    const cache = env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache');
    const hash = createHash('sha256').update(url).digest('hex').slice(0, 16);
    const root = join(cache, 'telos', 'fleet', hash);
    mkdirSync(cache, { recursive: true });
    makeOwnFolders(join(cache, 'telos'), join(cache, 'telos', 'fleet'), root);
    for (let number = 1; ; number++) {
      const dir = join(root, String(number));
      makeOwnFolders(dir);
      const taken = await takeRunner(new PlanFolder(dir, dir), 'cli');
      if (taken.kind === 'busy') continue;
      const { lock } = taken;
      if (lock.previous) await endMarked(lock.mark);
      const repository = join(dir, 'clone.git');
      const git = await openRepository(repository, dir, { ...env, [runnerMark]: lock.mark });
      return new WorkerClone(dir, new PlanRemote({ url, dir: repository, env, log }), git, lock);
    }
  }

  /** Returns the lowest number of a work tree that no job uses. Give it back. */
  takeSlot(): number {
    for (let number = 1; ; number++) {
      if (this.#taken.has(number)) continue;
      this.#taken.add(number);
      return number;
    }
  }

  giveBack(slot: number): void {
    this.#taken.delete(slot);
  }

  /** Returns an empty folder for the files of a job's plan. */
  planFolder(slot: number, plan: string): PlanFolder {
    const dir = join(this.#dir, `job-${slot}`, plan);
    rmSync(dir, { recursive: true, force: true });
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    return new PlanFolder(dir, this.git.dir);
  }

  async close(): Promise<void> {
    await endMarked(this.#lock.mark);
    await this.git.close();
    await this.#lock.release();
  }
}

/** Settings of the owner's own git do not hold there: what they name, such as a filter, would run on the files of others. */
async function openRepository(repository: string, dir: string, env: Environment): Promise<Git> {
  const home = join(dir, 'home');
  makeOwnFolders(home);
  const own = { ...env, HOME: home, XDG_CONFIG_HOME: home };
  if (!existsSync(join(repository, 'HEAD'))) {
    rmSync(repository, { recursive: true, force: true });
    await new Git(dir, own).run(['init', '--quiet', '--bare', '--template=', repository]);
  }
  const git = new Git(repository, own);
  for (const [name, value] of settings) await git.run(['config', name, value]);
  removeLocks(repository);
  return git;
}

const settings = [
  ['filter.lfs.smudge', 'cat'],
  ['filter.lfs.clean', 'cat'],
  ['filter.lfs.process', ''],
  ['filter.lfs.required', 'false'],
  ['core.attributesFile', '/dev/null'],
  ['core.symlinks', 'true'],
] as const;

/** Only a killed git leaves them, and no other one works there. */
function removeLocks(repository: string): void {
  for (const entry of readdirSync(repository, { withFileTypes: true, recursive: true }))
    if (entry.isFile() && entry.name.endsWith('.lock') && !entry.parentPath.includes('/objects/'))
      rmSync(join(entry.parentPath, entry.name), { force: true });
}
