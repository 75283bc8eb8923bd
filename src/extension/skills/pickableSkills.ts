/** The skills that lists offer, read in short pieces so that thousands of them do not hold the editor up. */
import type { Agent, Skill } from '../../engine/skills/agent.ts';

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

/** The work between two pauses, in milliseconds; several readers may be at work in turn. */
const sliceMs = 4;

/** Hands the values on one by one, and lets everybody else have a turn whenever the reader has been busy for a slice. */
export async function* inSlices<Value>(values: Iterable<Value>): AsyncGenerator<Value> {
  await othersTurn(); // whoever calls has often just done something long
  let start = performance.now();
  for (const value of values) {
    yield value;
    if (performance.now() - start < sliceMs) continue;
    await othersTurn();
    start = performance.now();
  }
}

const othersTurn = (): Promise<void> => new Promise(resolve => setImmediate(resolve));
