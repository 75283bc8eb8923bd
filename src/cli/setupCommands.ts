/** What changes what there is to run: `telos init`, `skill add`, `install` and `uninstall`. */
import { resolve } from 'node:path';
import { TelosError } from '../engine/errors.ts';
import { Telos } from '../engine/telos.ts';
import { agrees } from './agrees.ts';
import { type ConfigOptions, configFor } from './openConfig.ts';
import type { Terminal } from './terminal.ts';
import { exactText, terminalText } from './terminalText.ts';

/** Returns the exit code. */
export async function initCommand(options: ConfigOptions, terminal: Terminal): Promise<number> {
  return withTelos(options, terminal, async telos => {
    const { configFile, configWritten, skillsDir } = await telos.init();
    const lines = [
      configWritten ? `Created ${configFile}` : `${configFile} exists; not overwriting it.`,
      `Skills go to ${skillsDir}; \`telos skill add <agent> <name>\` writes a first one.`,
    ];
    terminal.out(terminalText(`${lines.join('\n')}\n`));
    return 0;
  });
}

/** Returns the exit code. */
export async function skillAddCommand(
  agent: string,
  skill: string,
  options: ConfigOptions,
  terminal: Terminal,
): Promise<number> {
  return withTelos(options, terminal, async telos => {
    const file = await telos.addSkill(agent, skill);
    const next = `Say in it when it is to be used and what is to be done, then: telos ${skill}`;
    terminal.out(terminalText(`Created ${file}\n${next}\n`));
    return 0;
  });
}

/** `folder` may be relative to the folder of the call. Returns the exit code. */
export async function installCommand(
  folder: string,
  options: ConfigOptions,
  terminal: Terminal,
): Promise<number> {
  if (folder === '') {
    terminal.say('Give the folder of a pack, or of a skill: telos install <folder>');
    return 2;
  }
  return withTelos(options, terminal, async telos => {
    const { name, skillCount, summary, path, leftOut } = await telos.install(resolve(folder));
    terminal.out(terminalText(`${summary}\n`));
    terminal.say(terminal.style.dim(terminalText(path)));
    if (skillCount === 0) {
      const next = `It shows up once it has a skill: telos skill add ${name} <skill>`;
      terminal.say(terminal.style.yellow(terminalText(next)));
    }
    if (leftOut.length > 0) {
      terminal.say(terminal.style.yellow(terminalText(`Links were left out: ${leftOut.join(', ')}`)));
    }
    return 0;
  });
}

/** Asks first, unless `yes`; without a terminal to ask on that is a no. Returns the exit code. */
export async function uninstallCommand(
  name: string,
  options: ConfigOptions & { yes?: boolean },
  terminal: Terminal,
): Promise<number> {
  return withTelos(options, terminal, async telos => {
    const { path } = await telos.installed(name);
    const about = `This deletes agent '${exactText(name)}', the folder ${exactText(path)}.`;
    const unattended = 'Nobody can be asked here; --yes uninstalls without asking. Nothing was changed.';
    if (!options.yes && !(await agrees(about, 'Uninstall it?', unattended, terminal))) return 1;
    await telos.uninstall(name);
    terminal.out(terminalText(`Uninstalled agent '${name}'\n`));
    return 0;
  });
}

/** Says what the engine refuses and why, with exit code 1. */
async function withTelos(
  options: ConfigOptions,
  terminal: Terminal,
  use: (telos: Telos) => Promise<number>,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  try {
    return await use(Telos.open(config));
  } catch (error) {
    if (!(error instanceof TelosError)) throw error;
    terminal.say(terminal.style.red(terminalText(error.message)));
    return 1;
  }
}
