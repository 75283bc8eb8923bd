/** Finds out before a run what a skill lacks on this machine, and how to get it. Nothing is installed or started. */

import { accessSync, constants, readdirSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import type { InstallStep, Skill } from './agent.ts';
import { foreignToolsIn } from './foreignTools.ts';

/**
 * Something that a skill lacks. `what` names it, `reason` is why the skill wants it, `nextStep` what a person can do. Each is a
 * sentence or less.
 */
export interface Missing {
  kind: 'file' | 'os' | 'program' | 'variable' | 'setting' | 'tool';
  what: string;
  reason: string;
  nextStep: string;
  /** Commands of the author, to copy. Never run unasked. */
  commands: readonly string[];
}

export interface Readiness {
  ready: boolean;
  /** Empty if the skill is ready. */
  missing: readonly Missing[];
}

/** Facts about the computer. Created once for many skills. */
export interface Machine {
  platform: NodeJS.Platform;
  /** Variables that are set, with those of `.env`. */
  env: Readonly<Record<string, string>>;
  hasProgram(name: string): boolean;
}

const systemNames: Readonly<Record<string, string>> = { darwin: 'macOS', linux: 'Linux', win32: 'Windows' };
const systemName = (platform: string): string => systemNames[platform] ?? platform;

/**
 * Returns this computer. The folders of the PATH are read at the first question for a program, each once. Each name is looked up
 * once.
 */
export function thisMachine(
  env: Readonly<Record<string, string>>,
  platform: NodeJS.Platform = process.platform,
): Machine {
  const known = new Map<string, boolean>();
  let folders: { path: string; names: ReadonlySet<string> }[] | undefined;
  const look = (name: string): boolean => {
    if (isAbsolute(name)) return isProgram(name);
    folders ??= pathFolders(env).map(path => ({ path, names: namesIn(path, platform) }));
    const spellings = platform === 'win32' ? windowsSpellings(name, env) : [name];
    return folders.some(({ path, names }) =>
      spellings.some(spelling => names.has(spelling) && isProgram(join(path, spelling))),
    );
  };
  return {
    platform,
    env,
    hasProgram(name) {
      const before = known.get(name);
      if (before !== undefined) return before;
      const found = look(name);
      known.set(name, found);
      return found;
    },
  };
}

const pathFolders = (env: Readonly<Record<string, string>>): string[] => [
  ...new Set((env['PATH'] ?? env['Path'] ?? '').split(delimiter).filter(isAbsolute)),
];

function namesIn(folder: string, platform: NodeJS.Platform): ReadonlySet<string> {
  try {
    const names = readdirSync(folder);
    return new Set(platform === 'win32' ? names.map(name => name.toLowerCase()) : names);
  } catch {
    return new Set();
  }
}

function windowsSpellings(name: string, env: Readonly<Record<string, string>>): string[] {
  const endings = (env['PATHEXT'] ?? '.COM;.EXE;.BAT;.CMD').split(';');
  return ['', ...endings].map(ending => (name + ending).toLowerCase());
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Returns what a skill lacks. Reads the skill's file if that has not been done. Never throws. */
export function readinessOf(skill: Skill, machine: Machine): Readiness {
  const { metadata } = skill;
  const missing = [
    ...unreadableFile(skill),
    ...missingSystem(metadata.os, machine),
    ...(metadata.always ? [] : missingRequirements(skill, machine)),
    ...missingTools(skill),
  ];
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
