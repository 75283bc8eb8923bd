/** Collects the skills for lists. Reads them in short slices, so that thousands of them do not block the editor. */
import type { Agent, Skill } from '../../engine/skills/agent.ts';

export interface PickableSkill {
  agent: Agent;
  skill: Skill;
}

/**
 * Returns all skills except those that their authors keep out of lists and those whose text cannot be read. The text of
 * the returned skills has been read already.
 */
export async function pickableSkills(agents: readonly Agent[]): Promise<PickableSkill[]> {
  const found: PickableSkill[] = [];
  for await (const pair of inSlices(agents.flatMap(agent => agent.skills.map(skill => ({ agent, skill }))))) {
    const { userInvocable, diagnostics } = pair.skill;
    if (userInvocable && !diagnostics.some(({ severity }) => severity === 'error')) found.push(pair);
  }
  return found;
}

/** Returns the author's description, or the beginning of the text. */
export const descriptionOf = ({ description, synopsis }: Skill): string => synopsis ?? description;

/** The time of work between two pauses. Several readers may take turns. In milliseconds. */
const sliceMs = 4;

/** Yields the values one by one. Pauses after each slice of work so that other code can run. */
export async function* inSlices<Value>(values: Iterable<Value>): AsyncGenerator<Value> {
  await othersTurn(); // the caller has often just done something long
  let start = performance.now();
  for (const value of values) {
    yield value;
    if (performance.now() - start < sliceMs) continue;
    await othersTurn();
    start = performance.now();
  }
}

const othersTurn = (): Promise<void> => new Promise(resolve => setImmediate(resolve));

/** Returns true if a file of this name is read as a skill. */
export function isSkillFile(path: string): boolean {
  return /(^|[\\/])skills?\.md$/i.test(path);
}
