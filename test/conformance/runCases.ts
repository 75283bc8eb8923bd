/** Runs cases against the real code, one after the other, and says of each how it went. */
import { judged, type Verdict } from '../harness/report.ts';
import type { ConformanceCase } from './caseFile.ts';
import { caseWorld } from './caseWorld.ts';
import { contradictions } from './contradictions.ts';
import { differences } from './expectations.ts';
import { operations } from './operations.ts';

/** The suite's own cases, in this folder. */
export const caseFiles = ['cli.json', 'fs-skills.json', 'workflow.json'] as const;

/** A case that fails `contradicts` if the list of contradictions says why it should; one that is on that list and passes fails. */
export async function runCase(testCase: ConformanceCase): Promise<Verdict> {
  const verdict = await judged(() => carryOut(testCase));
  if (contradictions[testCase.id] === undefined || verdict.result === 'not judged') return verdict;
  if (verdict.result === 'fail') return { ...verdict, result: 'contradicts' };
  return { result: 'fail', problems: ['passes, but is in the list of contradictions: take it out'] };
}

async function carryOut(testCase: ConformanceCase): Promise<Verdict> {
  const operation = operations[testCase.when.op];
  if (!operation) return { result: 'fail', problems: [`there is no operation '${testCase.when.op}'`] };
  const world = caseWorld();
  try {
    const given = world.fill(testCase.given);
    const when = world.fill(testCase.when);
    const observed = await operation({ ...testCase, given, when }, world);
    const problems = differences(world.fill(testCase.then), observed, world);
    return { result: problems.length > 0 ? 'fail' : 'pass', problems };
  } finally {
    world.remove();
  }
}
