/** Chooses the folders of a run. */
import type { Config } from '../config.ts';
import { pluginDataFolder } from '../files/agentHome.ts';
import { isPlugin, pluginRootOf } from '../files/hostPlugin.ts';
import { isInside, resolvePath } from '../files/paths.ts';
import { pluginSchema } from '../files/settingsFile.ts';
import type { PolicyContext } from '../policy/decision.ts';
import type { Agent, Skill } from '../skills/agent.ts';
import type { SkillRoot } from '../skills/findSkills.ts';
import { personFolder } from '../skills/workFolders.ts';
import type { RunFolders } from '../tools/tool.ts';

/**
 * Returns the folders of a run. Commands run where the agent works if that is the current folder or it is foreign, else in the pack; the
 * scripts of a pack of Telos always run in the pack, for which they were written.
 */
export function foldersOf(
  agent: Agent,
  skill: Skill,
  config: Pick<Config, 'cwd' | 'home' | 'dataDir'>,
): RunFolders {
  const personDir = personFolder(config);
  return {
    workingDir: agent.workingDir,
    packDir: agent.packDir,
    skillDir: skill.dir,
    ...(skill.name !== skill.id && { skillName: skill.name }),
    commandDir: agent.isForeign || agent.worksHere ? agent.workingDir : agent.packDir,
    ...(!agent.isForeign && agent.worksHere && { scriptDir: agent.packDir }),
    ...(personDir === undefined ? {} : { personDir }),
    ...dataOf(agent, config),
  };
}

/**
 * Returns where a plugin keeps what is its own. A project's folder is no plugin, whatever it has in it; at agent-plugins.org that folder
 * is for the servers alone, which start programs from it.
 */
export const dataOf = (
  { packDir, source }: Pick<Agent, 'packDir' | 'source'>,
  { dataDir }: Pick<Config, 'dataDir'>,
): Pick<RunFolders, 'pluginData'> =>
  source !== 'project' && isPlugin(packDir) && pluginSchema(packDir) === undefined
    ? { pluginData: pluginDataFolder(packDir, dataDir) }
    : {};

/**
 * Returns the working folder of a run without a skill: the folder of the call.
 * It is `workingRoot` if the folder of the call is the home folder or above it: that shows more than a person wants.
 */
export const workingDirOf = ({ cwd, home, workingRoot }: Config): string =>
  isInside(cwd, home) ? workingRoot : cwd;

export function foldersWithoutSkill(config: Config, roots: readonly SkillRoot[]): RunFolders {
  const workingDir = workingDirOf(config);
  const alsoReadable = roots.map(({ path }) => path);
  return {
    workingDir,
    packDir: workingDir,
    skillDir: workingDir,
    commandDir: workingDir,
    alsoReadable,
  };
}

/** Returns the folders that a skill's text may name. */
export const placesOf = (
  agent: Agent | undefined,
  { dir }: Pick<Skill, 'dir'>,
  config: Pick<Config, 'dataDir'>,
): { skillDir: string; pluginRoot: string; pluginData?: string } => ({
  skillDir: dir,
  pluginRoot: agent ? pluginRootOf({ packDir: agent.packDir, skillDir: dir }) : dir,
  ...(agent && dataOf(agent, config)),
});

/** Returns the real paths of the protected folders, since a search compares real paths. */
export async function realFolders({ protectedDirs, home }: PolicyContext): Promise<string[]> {
  return Promise.all(protectedDirs.map(folder => resolvePath(folder, folder, home).catch(() => folder)));
}
