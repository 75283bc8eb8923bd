/** Drafts a trigger.json from what a skill and its neighbours say of themselves, for its author to correct. */

import { requestsIn, SearchIndex } from '@telos/engine/routing';
import type { FileAgent, FileSkill } from '@telos/engine/skills';
import type { Trigger } from './triggerFile.ts';

/** Requests of each kind. Published sets have about ten. */
const mostOfAKind = 10;
const neighbours = 5;

/**
 * Returns the requests that the skill's own text quotes, and of the skills that are nearest to it those that must not run it. Empty if no
 * text quotes one.
 */
export async function draftTriggers(
  skill: FileSkill,
  among: readonly FileAgent[],
): Promise<Omit<Trigger, 'line'>[]> {
  const own = requestsIn(skill).slice(0, mostOfAKind);
  const index = await SearchIndex.build(among);
  const near = index
    .rank(`${skill.name} ${skill.description}`, neighbours + 1)
    .filter(ranked => ranked.skill !== skill && ranked.skill.id !== skill.id)
    .slice(0, neighbours);
  // One of each neighbour in turn, so that the nearest does not fill the list.
  const others = near.map(ranked => ({ expect: ranked.skill.id, queries: requestsIn(ranked.skill) }));
  const foreign = Array.from({ length: mostOfAKind }, (_, turn) =>
    others.flatMap(({ expect, queries }) => {
      const query = queries[turn];
      return query === undefined || own.includes(query) ? [] : [{ query, shouldTrigger: false, expect }];
    }),
  ).flat();
  const seen = new Set<string>();
  return [...own.map(query => ({ query, shouldTrigger: true })), ...foreign.slice(0, mostOfAKind)].filter(
    ({ query }) => !seen.has(query) && seen.add(query),
  );
}
