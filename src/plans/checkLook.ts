/** Lands the changes of checks in a folder that stays as they leave it. A slot is put back after each; the person's own folder is not. */

import type { Config } from '@telos/engine/config';
import { type Human, landLayer, unseen } from '@telos/engine/run';
import type { CommandBox, CommandLayer, CommandStart, EnclosedCommand } from '@telos/engine/tools';
import { hashOf, type RunBytes } from '@telos/engine/undo';
import { CheckBox, checkFolders } from './checks.ts';

const refuses: Human = {
  isAway: true,
  approve: async () => ({ allow: false, reason: 'A check may not change them.' }),
  ask: async questions => questions.map(() => ''),
};

const notLooked = 'The changes of this check are in the folder unseen: nothing here can hold them back';
const never = new AbortController().signal;

/** A box of checks in which no change of a file that others run or obey reaches the folder. No one is asked. */
export class LookedCheckBox implements CommandBox {
  readonly #config: Config;
  readonly #dir: string;
  readonly #box: CheckBox;

  /** No check changes what is `closed`. Absolute. */
  constructor(config: Config, dir: string, closed: readonly string[] = []) {
    this.#config = config;
    this.#dir = dir;
    this.#box = new CheckBox(config, dir, { closed });
  }

  /** See `CheckBox.works`. */
  works(): Promise<boolean> {
    return this.#box.works();
  }

  async enclose(start: CommandStart): Promise<EnclosedCommand> {
    const { layer, ...enclosed } = await this.#box.enclose(start, undefined, true);
    if (!(await this.works())) return enclosed;
    return {
      ...enclosed,
      end: async () => {
        const { notes } = await enclosed.end();
        return { notes: [...notes, ...(layer ? await this.#land(layer) : [notLooked])] };
      },
    };
  }

  /** Lands what the check has written, and says what was not kept. Nothing of it is undone: a plan has its own history. */
  async #land(layer: CommandLayer): Promise<string[]> {
    const notes: string[] = [];
    const run: RunBytes = {
      keepBytes: hashOf,
      addProblem: problem => void notes.push(problem),
      write: () => undefined,
    };
    const { home } = this.#config;
    const policy = {
      ...checkFolders(this.#config, this.#dir),
      home,
      protectedDirs: [],
      role: 'worker' as const,
    };
    const call = { id: 'check', name: 'run_command', input: {} };
    const looked = await unseen(landLayer(call, layer, { human: refuses, policy }, run, never));
    return [...notes, ...looked.notes];
  }
}
