/** Finds the folder that an agent of a name is installed to, and refuses where one of that name is somewhere else. */
import { readdirSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type AgentEntry, readAgentsToml } from '../agents/agentsToml.ts';
import { readAgentToml } from '../agents/agentToml.ts';
import { foldersIn } from '../agents/findSkills.ts';
import { exists } from '../changes/swapFolder.ts';
import type { Config } from '../config.ts';
import { TelosError } from '../errors.ts';
import { isInside } from '../tools/paths.ts';
import { folded } from '../tools/secretNames.ts';

export interface InstallPlace {
  /** Absolute; there may be something already. */
  target: string;
  /** The entry of version 3 whose description is that of the pack, and the file it is in. */
  older: (AgentEntry & { file: string }) | undefined;
}

/** Throws TelosError `pack` when an agent of that name, or of one that many file systems take for the same, has another place. */
export function installPlace(name: string, config: Config): InstallPlace {
  const { entries, file, ofProject } = readAgentsToml(config);
  const entry = entries.find(candidate => candidate.name === name);
  if (entry?.skillsDir !== undefined)
    throw taken(`Agent '${name}' is linked in ${file}: it uses the skills in ${entry.skillsDir}.`, name);
  const older = entry?.mode === 'installed' && !ofProject ? { ...entry, file } : undefined;
  const ofVersion3 = join(config.dataDir, 'agents');
  refuseTwins(name, [config.skillsDir, ofVersion3]);
  const here = join(config.skillsDir, name);
  const there = join(ofVersion3, name);
  // A pack of version 3 is replaced where it stands, since its entry in agents.toml points there.
  const target = !exists(here) && (older || exists(there)) ? there : here;
  return { target, older: target === there ? older : undefined };
}

function refuseTwins(name: string, parents: readonly string[]): void {
  for (const parent of parents) {
    for (const entry of namesIn(parent)) {
      if (entry !== name && folded(entry) === folded(name))
        throw taken(
          `${join(parent, entry)} already exists, and many file systems take '${name}' for the same name.`,
          name,
        );
    }
    for (const folder of foldersIn(parent)) {
      const path = join(parent, folder);
      const other = readAgentToml(path).name;
      if (folder === name && other !== name) throw taken(`${path} holds another agent, '${other}'.`, name);
      if (folder !== name && folded(other) === folded(name))
        throw taken(`There is an agent '${other}' already, in ${path}.`, name);
    }
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function taken(what: string, name: string): TelosError {
  return new TelosError(
    'pack',
    `${what} Install this one under another name (--as <name>), or remove or rename that one. Agent '${name}' was not installed; nothing was changed.`,
  );
}

/** A folder cannot be copied into itself, and what stands in the skills folder already is installed. */
export async function checkApart(source: string, target: string): Promise<void> {
  const folder = dirname(target);
  const place = join(await realpath(folder).catch(() => folder), basename(target));
  if (source === place)
    throw new TelosError('pack', `${source} is installed already; it is read where it stands.`);
  if (isInside(source, place))
    throw new TelosError('pack', `${source} holds the skills folder itself. Give the folder of one pack.`);
  if (isInside(place, source))
    throw new TelosError(
      'pack',
      `${source} lies inside the agent that it would replace, ${place}. Copy it to another folder first, or give another name with --as. Nothing was changed.`,
    );
}
