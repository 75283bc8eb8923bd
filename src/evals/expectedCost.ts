/** Estimates what runs of evals cost before a person agrees to them: as they did when they were recorded, or as runs usually do. */
import { readRecording } from '@telos/engine/providers';
import type { EvaluatedSkill } from './evalWorld.ts';
import { recordedRuns } from './recordings.ts';
import type { plannedRuns, SkillEvals } from './runSuite.ts';
import { recordedUse } from './strictReplay.ts';
import type { EvalModel } from './suiteBudget.ts';

/** Rounds and tokens of a run of which nothing is known. */
const usual = { rounds: 4, ownTokens: 2500, outputTokens: 400 };

/** Returns a sum in US dollars, unknown if the price of one of the models is. `all` are the skills with their evals. */
export function expectedCost(
  runs: ReturnType<typeof plannedRuns>,
  all: readonly SkillEvals[],
): number | 'unknown' {
  const known = new Map<EvaluatedSkill, Map<string, number>>(
    all.map(each => [each.one, recordedCosts(each)]),
  );
  const costs = runs.map(({ one, answers, model, eval: { prompt } }) => {
    const before = known.get(one)?.get(model);
    return before ?? usualCost(one.skill.body.length + prompt.length, answers);
  });
  if (costs.includes('unknown')) return 'unknown';
  return costs.reduce<number>((total, cost) => total + (cost === 'unknown' ? 0 : cost), 0);
}

function usualCost(characters: number, { priceOf }: EvalModel): number | 'unknown' {
  const perRound = usual.ownTokens + characters / 4;
  return priceOf({
    inputTokens: perRound * usual.rounds,
    outputTokens: usual.outputTokens * usual.rounds,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
  });
}

/** Returns what a run of the skill has cost with each model, on average, as far as it was recorded. */
function recordedCosts({ one, evals }: SkillEvals): Map<string, number> {
  const costs = new Map<string, number[]>();
  for (const { file, run } of recordedRuns(one, evals)) {
    const { cost } = recordedUse(readRecording(file));
    if (cost !== undefined) costs.set(run.model, [...(costs.get(run.model) ?? []), cost]);
  }
  return new Map(
    [...costs].map(([model, all]) => [model, all.reduce((sum, one) => sum + one, 0) / all.length]),
  );
}
