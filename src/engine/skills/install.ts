/** Installs a folder of this machine into the skills folder: a pack, or a single skill. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { InstallPlan } from '../../protocol/installPlan.ts';
import type { Config } from '../config.ts';
import { TelosError } from '../errors.ts';
import type { AlongFile, FolderContents } from '../files/folderRecord.ts';
import { ReplacedFolders } from '../files/replacedFolders.ts';
import { identityOf, OccupiedError, swapFolder } from '../files/swapFolder.ts';
import { setAgentValue } from './agentsToml.ts';
import { copyPack } from './copyPack.ts';
import { originFile } from './installPlace.ts';
import {
  type InstallOptions,
  isAsPlanned,
  planInstall,
  skillCountOf,
  textOfToml,
  type WholePlan,
} from './planInstall.ts';

export interface InstalledPack {
  name: string;
  skillCount: number;
  /** The installed folder. Absolute path. */
  path: string;
  /** True if the previous content is kept, for `undo`. */
  replaced: boolean;
  /** True if the agent was installed already, the same to the byte. Nothing was changed. */
  unchanged: boolean;
  /** Links and special files that were not copied, as paths below the pack. */
  leftOut: readonly string[];
  /** Message for the user: `Installed agent '<name>' with <k> skills`. */
  summary: string;
  /** Id for undoing it. Missing if nothing was changed. */
  undoId?: string;
}

export interface AgreedInstall extends InstallOptions {
  /** `token` of the plan that a person has agreed to. */
  agreed?: string | undefined;
}

/**
 * Installs what `planInstall` plans. An existing agent is replaced only for the plan that was agreed to, and is kept for undo.
 * Nothing of it is touched until the new one is complete. Throws TelosError `pack` if the folder or name is unusable, or if that
 * agreement is missing.
 */
export async function installPack(
  path: string,
  config: Config,
  { as, works, agreed }: AgreedInstall = {},
): Promise<InstalledPack> {
  for (let attempt = 1; ; attempt++) {
    const plan = await planInstall(path, config, { as, works });
    if (plan.replaces?.isSame) {
      if (works !== undefined) await placeInToml(plan, config);
      return installed(plan, { unchanged: true });
    }
    if (plan.replaces && agreed !== plan.token) throw agreed === undefined ? unasked(plan) : changed(plan);
    try {
      return await place(plan, config, works);
    } catch (error) {
      // Another window has installed one of that name, or the source has changed: look at what is there now.
      const isOutdated = error instanceof OccupiedError || error instanceof OutdatedPlan;
      if (isOutdated && attempt < mostAttempts) continue;
      throw error instanceof OutdatedPlan ? changed(plan) : error;
    }
  }
}

const mostAttempts = 5;

/** Thrown if agent or source are no longer what the plan was made from. */
class OutdatedPlan extends Error {}

async function place(
  plan: WholePlan,
  config: Config,
  works: InstallOptions['works'],
): Promise<InstalledPack> {
  const { dataDir } = config;
  const { name, source, target, replaces } = plan;
  const { record } = await swapFolder(dataDir, {
    kind: 'install',
    agent: name,
    target,
    source,
    replaces: replaces !== undefined,
    async prepare(staged) {
      const left = await fill(staged, plan);
      if (!(await isAsPlanned(plan, left, config))) throw new OutdatedPlan();
      return { left, along: [noted(staged, plan, left, dataDir)] };
    },
    after: async () => [
      ...(await describeInToml(plan)),
      ...(await placeInToml(plan, config, works === undefined)),
    ],
  });
  await new ReplacedFolders(config).sweep();
  return installed(plan, { replaced: record.kept !== null, undoId: record.id, path: target });
}

async function fill(staged: string, { source, agentToml }: WholePlan): Promise<FolderContents> {
  const { contents } = await copyPack(source, staged);
  if (agentToml === undefined) return contents;
  await writeFile(join(staged, 'agent.toml'), agentToml, { flush: true });
  return { ...contents, 'agent.toml': textOfToml(agentToml) };
}

function noted(
  staged: string,
  { name, source, target, leftOut }: WholePlan,
  files: FolderContents,
  dataDir: string,
): AlongFile {
  return originFile(dataDir, target, {
    format: 'telos-install',
    version: 1,
    agent: name,
    path: target,
    source: { kind: 'folder', path: source },
    installedAt: new Date().toISOString(),
    identity: identityOf(staged) ?? '',
    files,
    leftOut,
  });
}

async function describeInToml({ name, older, description }: WholePlan): Promise<AlongFile[]> {
  if (!older || !description) return [];
  const edit = await setAgentValue(older.file, name, 'description', description);
  return edit ? [edit] : [];
}

/** Writes where the agent works into the user's own agents.toml, for the person to see and to change. */
async function placeInToml(
  { name, workingDir }: WholePlan,
  { configDir }: Config,
  isUsual = false,
): Promise<AlongFile[]> {
  if (workingDir === undefined) return [];
  try {
    const edit = await setAgentValue(join(configDir, 'agents.toml'), name, 'working_dir', workingDir);
    return edit ? [edit] : [];
  } catch (error) {
    // Without it, the agent works in the same place.
    if (isUsual && error instanceof TelosError) return [];
    throw error;
  }
}

function installed(
  { name, skillCount, target, leftOut }: WholePlan,
  facts: Partial<InstalledPack>,
): InstalledPack {
  // Only copied skills count: a skill behind a link was left out.
  const skills = facts.path === undefined ? skillCount : skillCountOf(target);
  const summary = facts.unchanged
    ? `Agent '${name}' is installed already and is the same; nothing was changed.`
    : `Installed agent '${name}' with ${skills} skills`;
  const path = target;
  return {
    name,
    skillCount: skills,
    replaced: false,
    unchanged: false,
    leftOut,
    summary,
    ...facts,
    path,
  };
}

const unasked = ({ name, target }: InstallPlan): TelosError =>
  new TelosError('pack', `There is an agent '${name}' already, ${target}. Nothing was changed.`);

const changed = ({ name, source }: InstallPlan): TelosError =>
  new TelosError(
    'pack',
    `Agent '${name}' or ${source} changed after you were shown what would be replaced. Nothing was changed; install it again.`,
  );
