/** Runs cases against the real code, one after the other, and says of each how it went. */
import type { ConformanceCase } from './caseFile.ts';
import { caseWorld } from './caseWorld.ts';
import { contradictions } from './contradictions.ts';
import { differences } from './expectations.ts';
import { NotBuilt } from './notBuilt.ts';
import { operations } from './operations.ts';

export interface CaseResult {
  id: string;
  op: string;
  /** `contradicts`: it fails, and the list of contradictions says why it should. */
  outcome: 'pass' | 'fail' | 'contradicts' | 'not built';
  /** Why it is no pass. */
  details: readonly string[];
}

export async function runCase(testCase: ConformanceCase): Promise<CaseResult> {
  const { id } = testCase;
  const { op } = testCase.when;
  const details = await faultsOf(testCase);
  const reason = contradictions[id];
  if (details === undefined) {
    return { id, op, outcome: 'not built', details: ['this part of the product is not built yet'] };
  }
  if (details.length === 0) {
    const stale = reason && 'passes, but is in the list of contradictions: take it out';
    return stale ? { id, op, outcome: 'fail', details: [stale] } : { id, op, outcome: 'pass', details };
  }
  return { id, op, outcome: reason ? 'contradicts' : 'fail', details };
}

/** What is not as the case wants it; undefined when the product cannot do it yet. */
async function faultsOf(testCase: ConformanceCase): Promise<string[] | undefined> {
  const operation = operations[testCase.when.op];
  if (!operation) return [`there is no operation '${testCase.when.op}'`];
  const world = caseWorld();
  try {
    const given = world.fill(testCase.given);
    const when = world.fill(testCase.when);
    const observed = await operation({ ...testCase, given, when }, world);
    return differences(world.fill(testCase.then), observed, world);
  } catch (error) {
    if (error instanceof NotBuilt) return undefined;
    return [error instanceof Error ? (error.stack ?? error.message) : String(error)];
  } finally {
    world.remove();
  }
}
