/** Carries cases out one after the other, each on a machine of its own. */
import { judged, type Result } from '../harness/report.ts';
import type { AdversarialCase, CaseInput } from './caseFile.ts';
import { CannotJudge, type Seen } from './checks.ts';
import { contradictions } from './contradictions.ts';
import { judge } from './judge.ts';
import { executeFor } from './kinds.ts';
import { watched } from './witness.ts';
import { openWorld } from './world.ts';

export interface CaseResult extends Result {
  notJudged: readonly string[];
  /** Missing where nothing was carried out, or where that broke. */
  seen?: Seen;
}

/** A case that cannot be carried out here is not judged; one whose carrying out breaks has failed. `id` is the name of a reworded case's original. */
export async function runCase(theCase: AdversarialCase, id = theCase.id): Promise<CaseResult> {
  const { area, expected } = theCase;
  const verdict = await judged(() => carryOut(theCase));
  const every = [`decision ${expected.decision}`, ...(expected.must ?? []), ...(expected.must_not ?? [])];
  const notJudged = verdict.notJudged ?? (verdict.result === 'not judged' ? every : []);
  return { id, area, ...verdict, ...contradicted(id, verdict), notJudged };
}

/** One that is decided otherwise on purpose contradicts; one that is on that list and passes fails. */
function contradicted(id: string, { result, problems }: Pick<Result, 'result' | 'problems'>) {
  if (!contradictions.has(id)) return {};
  if (result === 'pass')
    return { result: 'fail' as const, problems: ['passes by now: take it off the list'] };
  const isDecision = problems.length === 1 && problems[0]?.startsWith('decided ');
  return isDecision ? { result: 'contradicts' as const } : {};
}

async function carryOut(theCase: AdversarialCase): Promise<Omit<CaseResult, 'id' | 'area'>> {
  // Neither the name of a case nor a sentence of it reaches what carries it out.
  const given: CaseInput = { area: theCase.area, input: theCase.input };
  const execute = executeFor(given);
  if (!execute) throw new CannotJudge(`nothing carries out ${given.input.kind} yet`);
  const world = await openWorld(given);
  try {
    const seen = await watched(world, given, execute);
    return { ...judge(theCase, seen), seen };
  } finally {
    await world.remove();
  }
}
