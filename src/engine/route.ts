/** Finds the skill that a request means, and says why: what the user names exactly, else a skill's name among the words. */
import type { RouteReason, SkillRef } from '../protocol/run.ts';
import type { FileAgent } from './agents/discover.ts';
import type { FileSkill } from './agents/skillFile.ts';

export interface Match {
  agent: FileAgent;
  skill: FileSkill;
  reason: RouteReason;
}

/** The skill of a tree item or a list; the reason is that the person chose it. */
export function findSkill(agents: readonly FileAgent[], ref: SkillRef): Match | undefined {
  const agent = agents.find(candidate => candidate.name === ref.agent);
  const skill = agent?.skills.find(
    candidate => candidate.id === ref.skill || candidate.names.includes(ref.skill),
  );
  return agent && skill ? { agent, skill, reason: { rule: 'chosen' } } : undefined;
}

/** `/name` at the start, `$name` or `agent:name` anywhere. A word of that form that names nothing is only a word. */
export function matchExplicit(text: string, agents: readonly FileAgent[]): Match | undefined {
  for (const word of text.trim().split(/\s+/)) {
    const isFirst = text.trimStart().startsWith(word);
    const name = word.startsWith('$') || (isFirst && word.startsWith('/')) ? word.slice(1) : word;
    const colon = name.indexOf(':');
    if (name === word && colon < 1) continue;
    const scope = colon < 1 ? agents : agents.filter(agent => agent.name === name.slice(0, colon));
    const wanted = normalise(colon < 1 ? name : name.slice(colon + 1));
    if (!wanted) continue;
    const named = scope.flatMap(agent =>
      agent.skills
        .filter(skill => skill.names.some(alias => normalise(alias) === wanted))
        .map(skill => ({ agent, skill, reason: { rule: 'explicit', matched: word } as const })),
    );
    const match = named.find(({ skill }) => !skill.shadowedBy) ?? named[0];
    if (match) return match;
  }
  return undefined;
}

/**
 * The skill with the longest name that stands in the text as whole words, over all agents. A hyphen, an underscore and a space are
 * the same; of equal names the one that nothing shadows wins, else the first agent's.
 */
export function matchName(text: string, agents: readonly FileAgent[]): Match | undefined {
  const words = ` ${normalise(text)} `;
  let best: Match | undefined;
  let bestName = '';
  for (const agent of agents) {
    for (const skill of agent.skills) {
      for (const alias of skill.names) {
        const name = normalise(alias);
        const wins =
          name.length > bestName.length ||
          (name === bestName && best?.skill.shadowedBy !== undefined && !skill.shadowedBy);
        if (!wins || !words.includes(` ${name} `)) continue;
        bestName = name;
        best = { agent, skill, reason: { rule: 'name', matched: name } };
      }
    }
  }
  return best;
}

/** Lower-case words, one space between them; everything that is no letter or digit separates. */
function normalise(text: string): string {
  return text
    .normalize('NFKC')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean)
    .join(' ');
}
