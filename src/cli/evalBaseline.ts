/** Finds the earlier versions that `telos eval --baseline` runs beside the skills. */

import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Config } from '@telos/engine/config';
import { TelosError } from '@telos/engine/errors';
import { type EarlierVersion, previousVersion, type SkillEvals, versionIn } from '@telos/evals/suite';
import type { Terminal } from './terminal.ts';
import { terminalLine } from './terminalText.ts';

/** A skill with its evals and the version that it is compared with. */
export interface KnownSkill {
  evals: SkillEvals;
  version?: EarlierVersion | undefined;
}

/**
 * Returns the skills with the versions that they are compared with. Of several, some may have none. Throws TelosError `config` if none
 * has one, if there is no such folder, or if a version cannot be read. Dispose of each version.
 */
export async function withEarlier(
  all: readonly SkillEvals[],
  baseline: string,
  config: Config,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<KnownSkill[]> {
  const folder = baseline === 'previous' ? undefined : resolve(config.cwd, baseline);
  if (folder !== undefined && !statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw new TelosError(
      'config',
      `${folder} is not a folder. --baseline takes none, previous, or a folder.`,
    );
  const known: KnownSkill[] = [];
  const missing: string[] = [];
  try {
    for (const evals of all) {
      const { one } = evals;
      const version: EarlierVersion | undefined =
        folder === undefined
          ? await previousVersion(one, config, signal)
          : versionIn(folder, one, all.length === 1);
      if (!version) missing.push(one.skill.id);
      known.push({ evals: { ...evals, earlier: version?.one }, version });
    }
    if (missing.length === all.length)
      throw new TelosError(
        'config',
        folder === undefined
          ? `No earlier version of ${missing.join(', ')} was found in git or among what installs have replaced. Name a folder with one: --baseline FOLDER`
          : `There is no version of ${missing.join(', ')} in ${folder}.`,
      );
  } catch (error) {
    for (const { version } of known) await version?.dispose();
    throw error;
  }
  for (const id of missing)
    terminal.say(terminalLine(`${id} has no earlier version, so it runs without one.`));
  return known;
}
