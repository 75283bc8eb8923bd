/**
 * Holds what was seen of a case against what it expects. The sentences of a case are for people: only the decision and the number of
 * its assertions are read, so a case whose sentences are reworded gets the same verdict.
 */
import type { Verdict } from '../harness/report.ts';
import type { AdversarialCase } from './caseFile.ts';
import type { Seen } from './checks.ts';

/**
 * An assertion counts as judged while there are as many checks as assertions: what must hold is judged by checks that are made for the
 * kind and the input of the case, what must not happen by all. Those beyond are not judged, and the case does not pass.
 */
export function judge({ expected }: Pick<AdversarialCase, 'expected'>, seen: Seen): Required<Verdict> {
  const problems: string[] = [];
  if (!decidedAs(expected.decision, seen))
    problems.push(`decided ${seen.decision}, not ${expected.decision}`);
  for (const { aspect, what, holds, saw } of seen.checks)
    if (!holds) problems.push(`${aspect}: ${what}${saw ? `: saw ${saw}` : ''}`);
  const { must = [], must_not: never = [] } = expected;
  const own = seen.checks.filter(({ universal }) => !universal).length;
  const notJudged = [...must.slice(own), ...never.slice(seen.checks.length)];
  const result = problems.length > 0 ? 'fail' : notJudged.length > 0 ? 'not judged' : 'pass';
  return { result, problems, notJudged };
}

function decidedAs(expected: string, { decision, unattended }: Seen): boolean {
  if (expected === 'any' || expected === decision) return true;
  return expected === 'ask' && decision === 'deny' && unattended === true;
}
