/** The skills that lists offer, read in short pieces so that thousands of them do not hold the editor up. */
import type { Agent, Skill } from '../engine/agents/agent.ts';
import { inSlices } from './slices.ts';

export interface PickableSkill {
  agent: Agent;
  skill: Skill;
}

/** All but those whose authors keep them out of lists, and those whose text cannot be read. What a skill says of itself has been read when it is handed on. */
export async function pickableSkills(agents: readonly Agent[]): Promise<PickableSkill[]> {
  const found: PickableSkill[] = [];
  for await (const pair of inSlices(agents.flatMap(agent => agent.skills.map(skill => ({ agent, skill }))))) {
    const { userInvocable, diagnostics } = pair.skill;
    if (userInvocable && !diagnostics.some(({ severity }) => severity === 'error')) found.push(pair);
  }
  return found;
}

/** The author's description, or what the text says first. */
export const descriptionOf = ({ description, synopsis }: Skill): string => synopsis ?? description;
