/**
 * Implements the commands that change or check the set-up: `telos demo`, `init`, `skill add`, `uninstall` and `doctor`.
 */

import { release as systemRelease } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { timeText } from '@telos/engine/records';
import { addSamplePack, copySampleFolder } from '@telos/engine/skills';
import { Telos } from '@telos/engine/telos';
import { keptDays } from '@telos/engine/undo';
import { describeReport, isBroken } from '@telos/protocol/doctorReport';
import { describeOrigin } from '@telos/protocol/installPlan';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import { versionIn } from './parser.ts';
import { carryOut, type RequestOptions } from './requestCommand.ts';
import { interruptible, type Terminal } from './terminal.ts';
import { agrees } from './terminalHuman.ts';
import { exactText, messageText, sayError, terminalJson, terminalText } from './terminalText.ts';
import { upgradeNotice } from './upgradeCommand.ts';

/** Plays the sample's recorded run in a temporary folder of its own, which stays for the person to look at. Returns the exit code. */
export async function demoCommand(
  options: RequestOptions,
  terminal: Terminal,
  samples: URL,
): Promise<number> {
  const cwd = await copySampleFolder(fileURLToPath(new URL('workspace/', samples)));
  const home = dirname(cwd);
  await addSamplePack(fileURLToPath(new URL('skills/', samples)), join(home, '.skills'));
  // Nothing of the person's own is read: no key, no rule, no skill.
  const env = { PATH: terminal.surroundings.env['PATH'], HOME: home };
  const config = loadConfig({ env, home, cwd, provider: 'replay', routingMode: 'local' });
  const words = 'run daily kickoff';
  if (!options.json) terminal.say(`The sample, in ${terminalText(cwd)}: telos ${words}\n`);
  const code = await carryOut(Telos.open(config), { text: words }, options, terminal);
  if (code === 0 && !options.json) {
    const next = ['`telos init --sample` adds these skills to yours.', modelHint];
    terminal.say(`\n${terminalText(`The plan is ${join(cwd, 'today.md')}`)}\n${next.join(' ')}`);
  }
  return code;
}

const modelHint = 'With the key of a provider (`telos key`) or a running Ollama, a model answers.';

/** Creates the configuration and the skills folder, with `sample` also the sample's skills. Returns the exit code. */
export async function initCommand(
  options: ConfigOptions & { sample?: boolean },
  terminal: Terminal,
  samples: URL,
): Promise<number> {
  return withTelos(options, terminal, async telos => {
    const { configFile, configWritten, skillsDir } = await telos.init();
    const lines = [
      configWritten ? `Created ${configFile}` : `${configFile} exists; not overwriting it.`,
      options.sample
        ? await addSamples(skillsDir, samples)
        : `Skills go to ${skillsDir}; \`telos skill add <agent> <name>\` writes a first one, \`telos init --sample\` adds the sample.`,
    ];
    terminal.out(terminalText(`${lines.join('\n')}\n`));
    return 0;
  });
}

async function addSamples(skillsDir: string, samples: URL): Promise<string> {
  const [name] = await addSamplePack(fileURLToPath(new URL('skills/', samples)), skillsDir);
  if (name === undefined)
    return `${skillsDir} has the sample already, or an agent of its name; nothing was changed.`;
  return `Added agent '${name}' to ${skillsDir}; run it with: telos run daily kickoff`;
}

/** Writes a first skill. Returns the exit code. */
export async function skillAddCommand(
  agent: string,
  skill: string,
  options: ConfigOptions,
  terminal: Terminal,
): Promise<number> {
  return withTelos(options, terminal, async telos => {
    const file = await telos.addSkill(agent, skill);
    const next = `Describe in it when to use the skill and what to do, then run: telos ${skill}`;
    terminal.out(terminalText(`Created ${file}\n${next}\n`));
    return 0;
  });
}

const keptText = `The old folder is kept for ${keptDays} days. To bring it back:`;

/** Uninstalls an agent. Asks first, unless `yes`; without a terminal to ask on, the answer is no. Returns the exit code. */
export async function uninstallCommand(
  name: string,
  options: ConfigOptions & { yes?: boolean },
  terminal: Terminal,
): Promise<number> {
  return withTelos(options, terminal, async telos => {
    const { path, origin, edited = 0, stored, home } = await telos.installed(name);
    const stays = [
      ...(stored === undefined ? [] : [exactText(`Data that its servers stored stays in ${stored}`)]),
      ...(home === undefined
        ? []
        : [exactText(`Data that its commands stored in the sandbox stays in ${home}`)]),
    ];
    const about = [
      `This removes agent '${exactText(name)}', the folder ${exactText(path)}.`,
      exactText(describeOrigin(origin, timeText)),
      ...(edited > 0 ? [`Files that have been edited, added or deleted since then: ${edited}`] : []),
      ...stays,
      `${keptText} telos undo`,
    ];
    const unattended = 'Nothing was changed. Use --yes to uninstall without being asked.';
    if (!options.yes && !(await agrees(about.join('\n'), 'Uninstall it?', unattended, terminal))) return 1;
    const { undoId } = await telos.uninstall(name);
    terminal.out(terminalText(`Uninstalled agent '${name}'\n`));
    for (const line of stays) terminal.say(line);
    terminal.say(terminal.style.dim(`${keptText} telos undo ${undoId.slice(0, 8)}`));
    return 0;
  });
}

/** Calls `use` with the engine. Reports what the engine refuses and why, and returns exit code 1. */
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
    return sayError(error, terminal);
  }
}

/** Returns the lines for strangers: which Telos and system this is, and no path of the home folder, which has the name of its user. */
const forIssue = (lines: readonly string[], home: string, version: string): string[] => [
  `Telos ${version}, ${process.platform} ${systemRelease()}, ${process.arch}`,
  ...lines.map(line => line.replaceAll(home, '~')),
];

/** Returns the exit code: 1 if something is broken. */
export async function doctorCommand(
  options: ConfigOptions & { json?: boolean; report?: boolean },
  terminal: Terminal,
  packageFile: URL,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const version = versionIn(packageFile);
  return interruptible(terminal, async signal => {
    const report = await Telos.open(config).doctor(signal);
    const lines = describeReport(report, messageText).map(line => terminalText(line.replaceAll('\n', ' ')));
    if (options.json) terminal.out(`${terminalJson(report)}\n`);
    else if (options.report) terminal.out(`${forIssue(lines, config.home, version).join('\n')}\n`);
    else {
      terminal.out(`${lines.join('\n')}\n`);
      const notice = await upgradeNotice(config, terminal, packageFile);
      if (notice) terminal.say(notice);
    }
    return isBroken(report) ? 1 : 0;
  });
}
