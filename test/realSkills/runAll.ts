/** Runs many skills, a few at the same time. */
import { availableParallelism } from 'node:os';
import { inLanes } from '../faults/figure.ts';
import type { SkillCase } from './caseFile.ts';
import { runSkill, type SkillOutcome } from './runSkill.ts';
import type { Layout } from './skillWorld.ts';

/** Resolves with the outcomes in the order of the layouts, and of the skills in each. */
export async function runAll(
  cases: readonly SkillCase[],
  layouts: readonly Layout[],
  yesToAll = false,
): Promise<SkillOutcome[]> {
  const work = layouts.flatMap(layout => cases.map(one => ({ one, layout })));
  const outcomes: SkillOutcome[] = [];
  await inLanes(work, Math.min(4, availableParallelism()), async ({ one, layout }, index) => {
    outcomes[index] = await runSkill(one, layout, yesToAll);
  });
  return outcomes;
}
