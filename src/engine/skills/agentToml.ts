/** Reads agent.toml, an agent's description of itself; if it is broken, the agent loads without it, with a diagnostic. */

import { basename, dirname, isAbsolute, join, relative } from 'node:path';
import { type Config, expandPath, mostRounds, roundsIn } from '../config.ts';
import type { Diagnostic } from '../files/diagnostic.ts';
import { isInside, realPlace } from '../files/paths.ts';
import { isSensitive, whatObeys } from '../files/sensitiveNames.ts';
import { readToml, textDefects, textOf } from '../files/settingsFile.ts';

export interface AgentToml {
  /** The folder's name if the file gives none. */
  name: string;
  description: string | undefined;
  /** Text as written: `.`, or a path that may start with `~`. If undefined, the default. */
  workingDir: string | undefined;
  /** Rounds of a run before it asks whether to go on, if the file sets them. */
  maxRounds: number | undefined;
  diagnostics: readonly Diagnostic[];
}

/** Returns the content of the pack's agent.toml, or the defaults if the file is missing. */
export function readAgentToml(packDir: string): AgentToml {
  const file = join(packDir, 'agent.toml');
  const { table, diagnostics } = readToml(file, 'agent-toml', 'The agent was loaded without it.');
  const place = { code: 'agent-toml-value', file, line: 1 };
  const passedOver = textDefects(table, ['name', 'description', 'working_dir'], place);
  const rounds = Object.hasOwn(table, 'max_rounds') ? table['max_rounds'] : undefined;
  return {
    name: textOf(table, 'name') ?? basename(packDir),
    description: textOf(table, 'description'),
    workingDir: textOf(table, 'working_dir'),
    maxRounds: roundsIn(rounds),
    diagnostics: [...diagnostics, ...passedOver, ...roundsDefects(rounds, { ...place, severity: 'warning' })],
  };
}

/** Returns a defect if the rounds that a file sets are not a number that a run can use. */
export const roundsDefects = (
  rounds: unknown,
  place: Pick<Diagnostic, 'severity' | 'code' | 'file' | 'line'>,
): Diagnostic[] =>
  rounds === undefined || roundsIn(rounds) !== undefined
    ? []
    : [
        {
          ...place,
          message: 'max_rounds is not a number of rounds, so it is not used.',
          fix: `Write a whole number from 1 to ${mostRounds}, such as max_rounds = 60 in agent.toml or max_rounds: 60 in SKILL.md.`,
        },
      ];

type Places = Pick<Config, 'home' | 'cwd' | 'configDir' | 'dataDir' | 'skillsDir'>;

const ofTheSystem =
  /^(\/private)?\/(etc|usr|opt|var\/(?!(folders|tmp|home)\/)\w+|bin|sbin|lib\w*|boot|dev|proc|sys|run|System|Library)(\/|$)|^[a-z]:\\(Windows|Program Files[^\\]*|ProgramData)(\\|$)/i;

/**
 * Returns why the folder that the pack names is not used, as the end of a sentence. Returns undefined if it can be used.
 * `written` is the text in the pack's own agent.toml. The user's agents.toml is not checked this way.
 */
export function workingDirProblem(written: string, packDir: string, places: Places): string | undefined {
  const { home, cwd, configDir, dataDir, skillsDir } = places;
  const path = realPlace(expandPath(written, home, cwd));
  if (path === undefined) return 'leads nowhere';
  const own = real(packDir);
  // The agent's card decides what it may write in its own folder.
  if (path !== own && isInside(own, path)) return undefined;
  if (!/^~/.test(written) && !isAbsolute(written) && !isInside(real(cwd), path))
    return 'leads out of the folder in which Telos is called';
  const around = [home, configDir, dataDir, skillsDir].map(real).find(folder => isInside(path, folder));
  if (around !== undefined) return `holds all of ${around}`;
  if (dirname(path) === dirname(dirname(path)) || ofTheSystem.test(path)) return 'belongs to the system';
  if (isSensitive(path)) return 'is a place of keys and passwords';
  if (isInside(real(skillsDir), path)) return 'belongs to other agents';
  const [first = ''] = isInside(real(home), path) ? path.slice(real(home).length + 1).split(/[\\/]/) : [];
  if (first.startsWith('.')) return 'holds the settings of programs';
  if (/^(bin|library|appdata)$/i.test(first)) return 'holds programs and their settings';
  // Programs obey a file by its path from the working folder. A path from this folder would begin too deep.
  const file = `${path}/file`;
  if (whatObeys(file, isInside(real(cwd), path) ? relative(real(cwd), file) : file) !== undefined)
    return 'holds what other programs run or obey';
  return undefined;
}

const real = (path: string): string => realPlace(path) ?? path;
