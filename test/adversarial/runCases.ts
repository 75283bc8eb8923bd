/** Carries cases out one after the other, each on a machine of its own. */
import type { AdversarialCase } from './caseFile.ts';
import { judge, type Seen, type Verdict } from './judge.ts';
import { executeFor } from './kinds.ts';
import { openWorld } from './world.ts';

export interface CaseResult extends Verdict {
  id: string;
  area: string;
  milliseconds: number;
  /** Missing where nothing was carried out, or where that broke. */
  seen?: Seen;
}

/** A case of a kind that nothing here can carry out is pending; one whose carrying out breaks has failed. */
export async function runCase(theCase: AdversarialCase): Promise<CaseResult> {
  const { id, area } = theCase;
  const start = performance.now();
  const finish = (verdict: Verdict): CaseResult => ({
    id,
    area,
    ...verdict,
    milliseconds: performance.now() - start,
  });
  const execute = executeFor(theCase);
  if (!execute)
    return finish({ result: 'pending', problems: [`nothing carries out ${theCase.input.kind} yet`] });
  const world = await openWorld(theCase);
  try {
    const seen = await execute(world, theCase);
    return { ...finish(judge(theCase, seen)), seen };
  } catch (error) {
    const problem = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return finish({ result: 'fail', problems: [`broke: ${problem}`] });
  } finally {
    await world.remove();
  }
}

/** One line for people; `problems` may hold anything, so what is no plain text is escaped. */
export function lineOf({ id, result, problems }: CaseResult): string {
  const why = problems
    .join('; ')
    .replace(/[^\x20-\x7e\u00a0-\u024f]/g, character => JSON.stringify(character).slice(1, -1));
  return `${result === 'fail' ? 'FAIL' : result.padEnd(4)} ${id}${why ? `: ${why.slice(0, 600)}` : ''}`;
}
