/** The box in which the checks of a plan run: what they see is the work tree, and what that has of the person's. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { TelosError } from '../errors.ts';
import { realPlace } from '../files/paths.ts';
import type { CommandBox, CommandStart, EnclosedCommand } from '../tools/tool.ts';

/** What of a configuration decides on the box. */
export type BoxConfig = Pick<Config, 'env' | 'home'> &
  Partial<Pick<Config, 'sandbox' | 'dataDir' | 'configDir'>>;

/** What a work tree has of the person's. `copied` are paths in it, which may be secrets; `linked` lead out of it. */
export interface SlotFiles {
  copied?: readonly string[];
  linked?: readonly string[];
}

/** Runs checks in a box where one works. Where none does they have the person's rights, unless the person wants a box for each. */
export class CheckBox implements CommandBox {
  readonly #config: BoxConfig;
  readonly #dir: string;
  readonly #files: SlotFiles;
  #opening: Promise<CommandBox | undefined> | undefined;
  /** True when a command has been enclosed. */
  isUsed = false;

  constructor(config: BoxConfig, dir: string, files: SlotFiles = {}) {
    this.#config = config;
    this.#dir = dir;
    this.#files = files;
  }

  async enclose(start: CommandStart): Promise<EnclosedCommand> {
    this.#opening ??= this.#open();
    const box = await this.#opening;
    if (!box) return { ...start, end: async () => ({ notes: [] }) };
    this.isUsed = true;
    return box.enclose(start);
  }

  async #open(): Promise<CommandBox | undefined> {
    const { env, home, sandbox = 'off', dataDir, configDir } = this.#config;
    if (sandbox === 'off' || dataDir === undefined || configDir === undefined) return undefined;
    const dir = this.#dir;
    const folders = { workingDir: dir, packDir: dir, skillDir: dir, commandDir: dir, workFolders: [dir] };
    const { findBox } = await import('../box/findBox.ts');
    const finding = await findBox({ ...folders, env });
    if (!finding.works) {
      if (sandbox !== 'required') return undefined;
      throw new TelosError(
        'config',
        `Commands run in a box only (telos.sandbox is required), and none works here: ${finding.why}`,
      );
    }
    const { commandBox } = await import('../box/commandBox.ts');
    const { copied = [], linked = [] } = this.#files;
    const alsoReadable = linked.flatMap(path => realPlace(join(dir, path)) ?? []).filter(existsSync);
    return commandBox({
      finding,
      config: { home, dataDir, configDir },
      folders: { ...folders, alsoReadable },
      conversation: `checks ${dir}`,
      shown: copied.map(path => join(realPlace(dir) ?? dir, path)),
    });
  }
}
