/** Installs a folder of this machine into the skills folder, a pack or a single skill, and uninstalls it. */
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { AgentOrigin, InstallPlan } from '@telos/protocol/installPlan';
import { counted, type Sentence, sentence } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import { type AlongFile, contentsOf, type FolderContents, listFolder } from '../files/folderRecord.ts';
import { ReplacedFolders } from '../files/replacedFolders.ts';
import { exists, identityOf, OccupiedError, putAlong, swapFolder } from '../files/swapFolder.ts';
import { type AgentEntry, readAgentsToml, removeAgentEntry, setAgentValue } from './agentsToml.ts';
import { clawhubChanges } from './clawhubFiles.ts';
import { discover, type FileAgent } from './discover.ts';
import { copyPack, type InstallOrigin, originFile } from './installPlace.ts';
import {
  digestOf,
  entryDigest,
  filesOf,
  type LockedPack,
  lockChange,
  lockedPack,
  lockPath,
} from './lockFile.ts';
import {
  type InstallOptions,
  isAsPlanned,
  originOf,
  planInstall,
  skillCountOf,
  textOfToml,
  type WholePlan,
} from './planInstall.ts';
import { checkPackName } from './scaffold.ts';
import { worksIn } from './workFolders.ts';

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
  /** Message for the user, without a full stop: `Installed agent '<name>' with <k> skills`. */
  summary: string;
  /** Id for undoing it. Missing if nothing was changed. */
  undoId?: string;
}

/** Returns where the agent of an installed folder works if it is called from the current folder, in words. Undefined if it has no skill. */
export function worksInOf({ path }: Pick<InstalledPack, 'path'>, config: Config): Sentence | undefined {
  const { agents } = discover(config);
  const agent = agents.find(one => one.packDir === path || one.skills.some(({ dir }) => dir === path));
  return agent && worksIn(agent.workingDir, config.cwd);
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
  { as, works, fetched, agreed }: AgreedInstall = {},
): Promise<InstalledPack> {
  for (let attempt = 1; ; attempt++) {
    const plan = await planInstall(path, config, { as, works, fetched });
    if (plan.replaces?.isSame) {
      if (works !== undefined) await placeInToml(plan, config);
      await noteUnchanged(plan, config);
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
      return { left, along: alongOf(staged, plan, left, config) };
    },
    after: async () => [
      ...(await describeInToml(plan)),
      ...(await placeInToml(plan, config, works === undefined)),
    ],
  });
  await new ReplacedFolders(config).sweep();
  return installed(plan, { replaced: record.kept !== null, undoId: record.id, path: target });
}

/** The same files may come from another version or source by now, or may never have been locked. */
async function noteUnchanged(plan: WholePlan, config: Config): Promise<void> {
  const { name, target, fetched } = plan;
  if (!fetched && lockedPack(lockPath(config), name)) return;
  const files = await contentsOf(target);
  if (files) await putAlong(alongOf(target, plan, files, config), config.dataDir);
}

async function fill(staged: string, { folder, agentToml }: WholePlan): Promise<FolderContents> {
  const { contents } = await copyPack(folder, staged);
  if (agentToml === undefined) return contents;
  await writeFile(join(staged, 'agent.toml'), agentToml, { flush: true });
  return { ...contents, 'agent.toml': textOfToml(agentToml) };
}

function alongOf(staged: string, plan: WholePlan, left: FolderContents, config: Config): AlongFile[] {
  const lock = locked(plan, left, config);
  const entry = lock.find(one => one.entry === plan.name)?.after;
  const digest = entry ? { locked: entryDigest(JSON.parse(entry) as LockedPack) } : {};
  return [noted(staged, plan, left, config.dataDir, digest), ...lock];
}

/** A folder that the person named is locked too, so that later edits show. A fetched one brings more to its entry. */
function locked(
  { name, folder, leftOut, fetched }: WholePlan,
  left: FolderContents,
  config: Config,
): readonly AlongFile[] {
  if (fetched) return fetched.along(name, left);
  const files = filesOf(left);
  const entry: LockedPack = {
    source: folder,
    resolved: { kind: 'folder', path: folder },
    digest: digestOf(files),
    files,
    leftOut,
    pinned: false,
    installedAt: new Date().toISOString(),
  };
  return [lockChange(lockPath(config), name, entry)];
}

function noted(
  staged: string,
  { name, folder, target, leftOut, fetched }: WholePlan,
  files: FolderContents,
  dataDir: string,
  digest: Pick<InstallOrigin, 'locked'>,
): AlongFile {
  return originFile(dataDir, target, {
    format: 'telos-install',
    version: 1,
    agent: name,
    path: target,
    source: fetched ? { kind: 'fetched', text: fetched.text } : { kind: 'folder', path: folder },
    installedAt: new Date().toISOString(),
    identity: identityOf(staged) ?? '',
    files,
    leftOut,
    ...digest,
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
    ? `Agent '${name}' is installed already and is the same`
    : `Installed agent '${name}' with ${counted(skills, 'skill')}`;
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
  new TelosError('pack', [
    sentence("There is an agent '{0}' already, {1}.", name, target),
    sentence('Nothing was changed.'),
  ]);

const changed = ({ name, source }: InstallPlan): TelosError =>
  new TelosError('pack', [
    sentence("Agent '{0}' or {1} changed after you were shown what would be replaced.", name, source),
    sentence('Nothing was changed; install it again.'),
  ]);

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
  if (lockedPack(lockPath(config), name))
    throw new TelosError('pack', [
      sentence("The folder of agent '{0}' is gone, and {1} still lists it.", name, lockPath(config)),
      sentence('Update it to bring it back; then it can be uninstalled.'),
    ]);
  const installed = agents.filter(({ packDir }) =>
    [config.skillsDir, olderFolder].includes(dirname(packDir)),
  );
  const names = installed.map(candidate => candidate.name).join(', ');
  const known = names
    ? sentence('Installed agents: {0}', names)
    : sentence('There is none in {0}.', config.skillsDir);
  throw new TelosError('pack', [sentence("Agent '{0}' not found.", name), known]);
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
    prepare: async () => ({
      left: null,
      along: [originFile(config.dataDir, path), ...unlocked(name, config)],
    }),
    async after() {
      const edit = entryIn === undefined ? undefined : await removeAgentEntry(entryIn, name);
      return edit ? [edit] : [];
    },
  });
  await new ReplacedFolders(config).sweep();
  return { ...target, undoId: record.id };
}

function unlocked(name: string, config: Config): AlongFile[] {
  const lock = lockPath(config);
  const others = clawhubChanges(name, undefined, config.skillsDir);
  return lockedPack(lock, name) ? [lockChange(lock, name, undefined), ...others] : others;
}

function notInstalled({ name, source, skillsDir, packDir }: FileAgent, agentsToml: string): TelosError {
  const what: Record<FileAgent['source'], readonly Sentence[]> = {
    linked: [
      sentence("Agent '{0}' is linked: its skills are in {1} and stay there.", name, skillsDir),
      sentence('To forget it, remove {0} from {1}.', `[agents.${name}]`, agentsToml),
    ],
    project: [
      sentence("Agent '{0}' belongs to the project: its skills are in {1}.", name, skillsDir),
      sentence('Delete them there.'),
    ],
    builtin: [sentence("Agent '{0}' comes with Telos and cannot be removed.", name)],
    user: [
      sentence("Agent '{0}' was not installed by Telos: its skills are in {1}.", name, packDir),
      sentence('Delete them there.'),
    ],
  };
  return new TelosError('pack', what[source]);
}
