/** Tells which skill runs where several have one name. */
import type { SkillSource } from './agent.ts';
import type { FileSkill } from './skillFile.ts';

interface SkillHolder {
  readonly name: string;
  readonly skills: readonly FileSkill[];
}

const rank: Readonly<Record<SkillSource, number>> = { project: 2, user: 1, linked: 1, builtin: 0 };

/**
 * On equal names the project's skill wins over the user's, and that over the built-in one; the others get to know what wins.
 * Skills of one rank do not shadow each other.
 */
export function noteShadows(agents: readonly SkillHolder[]): void {
  const strongest = new Map<string, { agent: SkillHolder; skill: FileSkill }>();
  for (const agent of agents) {
    for (const skill of agent.skills) {
      const other = strongest.get(skill.id);
      if (!other || rank[skill.source] > rank[other.skill.source]) strongest.set(skill.id, { agent, skill });
    }
  }
  for (const agent of agents) {
    for (const skill of agent.skills) {
      const winner = strongest.get(skill.id);
      if (winner && rank[winner.skill.source] > rank[skill.source])
        skill.shadowedBy = { agent: winner.agent.name, skill: winner.skill.id };
    }
  }
}
