/** Gives an agent a skill to start from, and a new agent with it where there is none of that name. */
import { join } from 'node:path';
import { discover } from '../agents/discover.ts';
import type { Config } from '../config.ts';
import { TelosError } from '../errors.ts';
import { agentNameProblem, skillNameProblem, writeNewSkill } from './newSkill.ts';
import { checkPackName } from './packName.ts';

/** Returns the path of the new SKILL.md. Throws TelosError `pack` for names that will not do and a skill that is there already. */
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
