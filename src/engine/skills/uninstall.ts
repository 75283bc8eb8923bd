/** Removes an installed pack, and nothing that was not put there by installing. */

import { dirname, join } from 'node:path';
import type { AgentOrigin } from '../../protocol/installPlan.ts';
import type { Config } from '../config.ts';
import { TelosError } from '../errors.ts';
import { listFolder } from '../files/folderRecord.ts';
import { ReplacedFolders } from '../files/replacedFolders.ts';
import { exists, swapFolder } from '../files/swapFolder.ts';
import { type AgentEntry, readAgentsToml, removeAgentEntry } from './agentsToml.ts';
import { discover, type FileAgent } from './discover.ts';
import { originFile } from './installPlace.ts';
import { originOf } from './planInstall.ts';
import { checkPackName } from './scaffold.ts';

export interface UninstallTarget {
  name: string;
  /** The folder to remove, directly below the skills folder (or the folder of version 3's packs). Absolute path. */
  path: string;
  /** The agents.toml whose entry is removed too. Undefined if there is none. */
  entryIn: string | undefined;
}

/**
 * Returns what `uninstallPack` would remove, for a question beforehand. Throws TelosError `pack` if there is nothing to remove.
 */
export function findInstalled(name: string, config: Config): UninstallTarget {
  checkPackName(name, 'as given');
  const { agents } = discover(config);
  const agent = agents.find(candidate => candidate.name === name);
  const olderFolder = join(config.dataDir, 'agents');
  const toml = readAgentsToml(config);
  const entry = toml.ofProject ? undefined : toml.entries.find(candidate => candidate.name === name);
  const entryIn = entry && isOfInstall(entry, config) ? toml.file : undefined;
  if (agent && dirname(agent.packDir) === config.skillsDir) return { name, path: agent.packDir, entryIn };
  if (agent && dirname(agent.packDir) === olderFolder) return { name, path: agent.packDir, entryIn };
  if (agent) throw notInstalled(agent, toml.file);
  const path = join(config.skillsDir, name);
  if (exists(path)) return { name, path, entryIn };
  const installed = agents.filter(({ packDir }) =>
    [config.skillsDir, olderFolder].includes(dirname(packDir)),
  );
  const names = installed.map(candidate => candidate.name).join(', ');
  const known = names ? `Installed agents: ${names}` : `There is none in ${config.skillsDir}.`;
  throw new TelosError('pack', `Agent '${name}' not found. ${known}`);
}

/** Whether an entry has nothing but what an install writes. */
function isOfInstall(entry: AgentEntry, { workingRoot }: Config): boolean {
  if (entry.mode === 'installed') return true;
  const { workingDir, description, mcpConfig, skillsDir, mode } = entry;
  const others = [description, mcpConfig, skillsDir, mode];
  const isUsual = workingDir === '.' || workingDir === join(workingRoot, entry.name);
  return isUsual && others.every(value => value === undefined);
}

/**
 * Returns where the agent came from, and how many of its files were edited or added since. That number is undefined if unknown.
 */
export async function describeInstalled(
  { path }: UninstallTarget,
  { dataDir }: Config,
): Promise<{ origin: AgentOrigin; edited: number | undefined }> {
  const { origin, edits } = await originOf(dataDir, path, await listFolder(path));
  return { origin, edited: edits?.size };
}

/**
 * Moves the agent's folder away. `undo` restores it by the returned id. The agent's working_dir, with what it has written there,
 * stays. Throws TelosError `pack` as `findInstalled` does.
 */
export async function uninstallPack(
  name: string,
  config: Config,
): Promise<UninstallTarget & { undoId: string }> {
  const target = findInstalled(name, config);
  const { path, entryIn } = target;
  const { record } = await swapFolder(config.dataDir, {
    kind: 'uninstall',
    agent: name,
    target: path,
    from: null,
    replaces: true,
    prepare: async () => ({ left: null, along: [originFile(config.dataDir, path)] }),
    async after() {
      const edit = entryIn === undefined ? undefined : await removeAgentEntry(entryIn, name);
      return edit ? [edit] : [];
    },
  });
  await new ReplacedFolders(config).sweep();
  return { ...target, undoId: record.id };
}

function notInstalled({ name, source, skillsDir, packDir }: FileAgent, agentsToml: string): TelosError {
  const what: Record<FileAgent['source'], string> = {
    linked: `is linked: its skills lie in ${skillsDir} and stay there. To forget it, remove [agents.${name}] from ${agentsToml}.`,
    project: `belongs to the project: its skills lie in ${skillsDir}. Delete them there.`,
    builtin: 'comes with Telos and cannot be removed.',
    user: `was not installed by Telos: its skills lie in ${packDir}. Delete them there.`,
  };
  return new TelosError('pack', `Agent '${name}' ${what[source]}`);
}
