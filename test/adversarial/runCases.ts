/** Carries cases out one after the other, each on a machine of its own. */
import type { AdversarialCase, CaseInput } from './caseFile.ts';
import { CannotJudge, type Seen } from './checks.ts';
import { judge, type Verdict } from './judge.ts';
import { type Execute, executeFor } from './kinds.ts';
import { watched } from './witness.ts';
import { openWorld } from './world.ts';

export interface CaseResult extends Verdict {
  id: string;
  area: string;
  milliseconds: number;
  /** Missing where nothing was carried out, or where that broke. */
  seen?: Seen;
}

/** No case takes as long, unless it hangs. */
const longest = 12 * 60_000;

/** A case that cannot be carried out here is not judged; one whose carrying out breaks has failed. */
export async function runCase(theCase: AdversarialCase): Promise<CaseResult> {
  const { id, area, expected } = theCase;
  const start = performance.now();
  const finish = (verdict: Verdict): CaseResult => ({
    id,
    area,
    ...verdict,
    milliseconds: performance.now() - start,
  });
  const notJudged = (why: string): CaseResult =>
    finish({
      result: 'not judged',
      problems: [why],
      notJudged: [`decision ${expected.decision}`, ...(expected.must ?? []), ...(expected.must_not ?? [])],
    });
  // Neither the name of a case nor a sentence of it reaches what carries it out.
  const given: CaseInput = { area, input: theCase.input };
  const execute = executeFor(given);
  if (!execute) return notJudged(`nothing carries out ${given.input.kind} yet`);
  const world = await openWorld(given);
  try {
    const seen = await withinLimit(watched(world, given, execute));
    return { ...finish(judge(theCase, seen)), seen };
  } catch (error) {
    if (error instanceof CannotJudge) return notJudged(error.message);
    const problem = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return finish({ result: 'fail', problems: [`broke: ${problem}`], notJudged: [] });
  } finally {
    await world.remove();
  }
}

async function withinLimit(seen: ReturnType<Execute>): Promise<Seen> {
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`it hangs: no end after ${longest / 60_000} minutes`)),
      longest,
    );
  });
  try {
    return await Promise.race([seen, tooLong]);
  } finally {
    clearTimeout(timer);
  }
}

const words = { pass: 'pass', fail: 'FAIL', 'not judged': 'not judged' } as const;

/** One line for people; `problems` may hold anything, so what is not plain text is escaped. */
export function lineOf({ id, result, problems, notJudged }: CaseResult): string {
  const left =
    notJudged.length > 0 ? [`${notJudged.length} assertions not judged (${notJudged.join(' | ')})`] : [];
  const why = [...problems, ...left]
    .join('; ')
    .replace(/[^\x20-\x7e\u00a0-\u024f]/g, character => JSON.stringify(character).slice(1, -1));
  return `${words[result]} ${id}${why ? `: ${why.slice(0, 600)}` : ''}`;
}
