/** Looks after checks in a folder that stays as they leave it. A slot is put back after each; the person's own folder is not. */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { KeptWrites } from '../changes/keptWrites.ts';
import { WatchedFolders } from '../changes/watchedFolders.ts';
import type { Config } from '../config.ts';
import type { Human } from '../human.ts';
import { lookAfter } from '../run/afterLook.ts';
import type { CommandBox, CommandStart, EnclosedCommand } from '../tools/tool.ts';
import { CheckBox, checkFolders } from './checks.ts';

const refuses: Human = {
  isAway: true,
  approve: async () => ({ allow: false, reason: 'A check may not change them.' }),
  ask: async questions => questions.map(() => ''),
};

const never = new AbortController().signal;

/** A box of checks that takes back what a check changed of files that others run or obey. No one is asked. */
export class LookedCheckBox implements CommandBox {
  readonly #config: Config;
  readonly #dir: string;
  readonly #box: CheckBox;
  readonly #watched: WatchedFolders;

  /** No check changes what is `closed`. Absolute. */
  constructor(config: Config, dir: string, closed: readonly string[] = []) {
    this.#config = config;
    this.#dir = dir;
    this.#box = new CheckBox(config, dir, { closed });
    this.#watched = new WatchedFolders(config.dataDir, [config.dataDir, config.configDir]);
  }

  /** See `CheckBox.works`. */
  works(): Promise<boolean> {
    return this.#box.works();
  }

  async enclose(start: CommandStart): Promise<EnclosedCommand> {
    if (!(await this.works())) return this.#box.enclose(start);
    const look = await this.#watch(start);
    try {
      const enclosed = await this.#box.enclose(start);
      return {
        ...enclosed,
        async end() {
          const { notes } = await enclosed.end();
          return { notes: [...notes, ...(await look())] };
        },
      };
    } catch (error) {
      await look();
      throw error;
    }
  }

  /** Returns what looks at the changes when the check has ended, and says what it took back. */
  async #watch({ env }: CommandStart): Promise<() => Promise<string[]>> {
    const { dataDir, home } = this.#config;
    const places = checkFolders(this.#config, this.#dir);
    // What is left there after a crash goes with the boxes that are old.
    const folder = join(dataDir, 'box', `look-${randomUUID()}`);
    const keeper = new KeptWrites(
      folder,
      () => undefined,
      place => this.#watched.begin(place),
    );
    const watch = await keeper.watchCommand({ ...places, env, outside: false, signal: never });
    const policy = { ...places, home, protectedDirs: [], role: 'worker' as const };
    return async () => {
      const call = { id: 'check', name: 'run_command', input: {} };
      const notes: string[] = [];
      if (watch)
        notes.push(...(await endOf(lookAfter(call, watch, true, { human: refuses, policy }, never))).notes);
      await this.#watched.settled();
      await rm(folder, { recursive: true, force: true }).catch(() => undefined);
      for (let one = keeper.takeProblem(); one !== undefined; one = keeper.takeProblem()) notes.push(one);
      return notes;
    };
  }
}

/** Returns what the events lead to. */
async function endOf<Result>(events: AsyncGenerator<unknown, Result>): Promise<Result> {
  for (;;) {
    const step = await events.next();
    if (step.done) return step.value;
  }
}
