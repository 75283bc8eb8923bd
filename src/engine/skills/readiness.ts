/** Finds out before a run what a skill lacks on this machine, and how to get it. Nothing is installed or started. */

import type { InstallStep, Missing, Skill } from './agent.ts';
import { foreignToolsIn } from './foreignTools.ts';
import type { Machine } from './machine.ts';
import { missingInFiles } from './whatRuns.ts';

export interface Readiness {
  ready: boolean;
  /** Empty if the skill is ready. */
  missing: readonly Missing[];
}

const systemNames: Readonly<Record<string, string>> = { darwin: 'macOS', linux: 'Linux', win32: 'Windows' };
const systemName = (platform: string): string => systemNames[platform] ?? platform;

/** Returns what a skill lacks. Reads the skill's file if that has not been done. Never throws. */
export function readinessOf(skill: Skill, machine: Machine): Readiness {
  const { metadata } = skill;
  const missing = [
    ...unreadableFile(skill),
    ...missingSystem(metadata.os, machine),
    ...(metadata.always ? [] : missingRequirements(skill, machine)),
    ...missingTools(skill),
  ];
  for (const one of missingInFiles(skill, machine))
    if (!missing.some(({ what }) => what === one.what)) missing.push(one);
  return { ready: missing.length === 0, missing };
}

/** Reports a skill file that cannot be read. Nothing else is known of such a skill. */
function unreadableFile({ diagnostics }: Skill): Missing[] {
  const error = diagnostics.find(({ severity }) => severity === 'error');
  if (!error) return [];
  const nextStep = error.fix ?? 'Mend the file.';
  return [{ kind: 'file', what: 'a readable file', reason: error.message, nextStep, commands: [] }];
}

function missingSystem(os: readonly NodeJS.Platform[], { platform }: Machine): Missing[] {
  if (os.length === 0 || os.includes(platform)) return [];
  const names = os.map(systemName).join(' or ');
  return [
    {
      kind: 'os',
      what: names,
      reason: `It is made for ${names}, and this is ${systemName(platform)}.`,
      nextStep: `Run it on ${names}.`,
      commands: [],
    },
  ];
}

function missingRequirements({ metadata }: Skill, machine: Machine): Missing[] {
  const { bins, anyBins, env, config } = metadata.requires;
  const steps = metadata.install.filter(({ os }) => os.length === 0 || os.includes(machine.platform));
  const programs = bins.filter(name => !machine.hasProgram(name));
  const anyOf = anyBins.length > 0 && !anyBins.some(name => machine.hasProgram(name)) ? [anyBins] : [];
  return [
    ...programs.map(name =>
      missingProgram(name, `It runs the program ${name}, which is not on the PATH.`, steps, [name]),
    ),
    ...anyOf.map(names =>
      missingProgram(
        names.join(' or '),
        `It runs one of the programs ${names.join(', ')}; none is on the PATH.`,
        steps,
        names,
      ),
    ),
    ...env.filter(name => !machine.env[name]).map(missingVariable),
    ...config.map(missingSetting),
  ];
}

function missingProgram(
  what: string,
  reason: string,
  steps: readonly InstallStep[],
  names: readonly string[],
): Missing {
  const bringing = steps.filter(({ bins }) => bins.length === 0 || bins.some(name => names.includes(name)));
  const commands = bringing.flatMap(({ command }) => command ?? []);
  const words = bringing.find(({ label }) => label)?.label;
  const nextStep =
    commands.length > 0
      ? `Install it; the author gives: ${commands.join(', or ')}`
      : words
        ? `Install it; the author says: ${words}`
        : 'Install it, and see that it is on the PATH.';
  return { kind: 'program', what, reason, nextStep, commands };
}

const missingVariable = (name: string): Missing => ({
  kind: 'variable',
  what: name,
  reason: `It needs the variable ${name}, which is not set.`,
  nextStep: `Set ${name} in the environment or in the .env of Telos's configuration folder.`,
  commands: [],
});

const missingSetting = (name: string): Missing => ({
  kind: 'setting',
  what: name,
  reason: `It depends on the setting ${name} of another runner, which Telos does not have.`,
  nextStep: 'Leave out of the request what depends on it.',
  commands: [],
});

function missingTools({ body }: Skill): Missing[] {
  return foreignToolsIn(body).map(({ what, words, nextStep }) => ({
    kind: 'tool',
    what,
    reason: `Its text counts on ${what} ("${words.replace(/\s+/g, ' ').trim()}"), which Telos does not have.`,
    nextStep,
    commands: [],
  }));
}
