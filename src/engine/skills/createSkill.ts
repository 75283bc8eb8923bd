/** Gives an agent a skill to start from, and creates the agent if there is none of that name. */

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { TelosError } from '../errors.ts';
import { createWhole } from '../files/atomicWrite.ts';
import { discover } from './discover.ts';
import { agentNameProblem, checkPackName, skillNameProblem, writeNewSkill } from './scaffold.ts';

/**
 * Adds a skill to an agent. Returns the path of the new SKILL.md. Throws TelosError `pack` if a name is unusable or the skill
 * exists.
 */
export async function addSkill(agentName: string, skillName: string, config: Config): Promise<string> {
  const problem = skillNameProblem(skillName);
  if (problem)
    throw new TelosError('pack', `The skill cannot be called ${JSON.stringify(skillName)}. ${problem}`);
  const agent = discover(config).agents.find(({ name }) => name === agentName);
  if (agent?.source === 'builtin') {
    throw new TelosError(
      'pack',
      `Agent '${agentName}' comes with Telos. Give the skill to an agent of your own.`,
    );
  }
  if (agent?.skills.some(({ dir }) => dir === agent.packDir)) {
    const message = `Agent '${agentName}' is a single skill, ${agent.packDir}. Give the skill to another agent.`;
    throw new TelosError('pack', message);
  }
  if (!agent) {
    checkPackName(agentName, 'as given');
    const agentProblem = agentNameProblem(agentName);
    if (agentProblem) {
      throw new TelosError(
        'pack',
        `The agent cannot be called ${JSON.stringify(agentName)}. ${agentProblem}`,
      );
    }
  }
  const skillsDir = agent?.skillsDir ?? join(config.skillsDir, agentName, 'skills');
  const file = await writeNewSkill(skillsDir, skillName);
  if (file) return file;
  throw new TelosError('pack', `There is a skill ${join(skillsDir, skillName)} already; it stays as it is.`);
}

export interface InitialFolders {
  configFile: string;
  skillsDir: string;
  /** False if agents.toml existed already. It is then unchanged. */
  configWritten: boolean;
}

/** Creates the config folder with a commented agents.toml, and the skills folder. Existing files are left alone. */
export async function initFolders({ configDir, skillsDir }: Config): Promise<InitialFolders> {
  await mkdir(configDir, { recursive: true, mode: 0o700 });
  await mkdir(skillsDir, { recursive: true });
  const configFile = join(configDir, 'agents.toml');
  return { configFile, skillsDir, configWritten: await createWhole(configFile, commentedAgentsToml) };
}

const commentedAgentsToml = `# What you want different about your agents. Everything here is optional.
# Agents are found by themselves: each folder in the skills folder with skills/<skill>/SKILL.md is one.
# Keys and tokens go into the file .env beside this one, as NAME=value.

# Lay a value over that of an agent:
# [agents.kairos]
# working_dir = "~/notes"          # where it reads and writes; "." is the folder you call telos in
# description = "My day"
# mcp_config = "~/mcp.json"

# Use skills where they lie, an Obsidian vault for one:
# [agents.vault]
# skills_dir = "~/vault/skills"
# working_dir = "~/vault"
`;
