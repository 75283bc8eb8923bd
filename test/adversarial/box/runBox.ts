/** Carries out the attempts to leave the box, and says what each came to. */
import type { Result } from '../../harness/report.ts';
import { CannotJudge } from '../../harness/report.ts';
import type { Attempt } from './attempt.ts';
import { reasonForNoBox, runOnOwnMachine } from './ownMachine.ts';

export interface BoxReport {
  results: Result[];
  /** One line over all of them. */
  summary: string;
}

/** How an attempt without a box is judged: then it must be seen to succeed, if it says that it does. */
export interface BoxRunOptions {
  bare?: boolean;
  onResult?: (result: Result) => void;
}

/** Resolves with a result for each attempt. Where no box works none is judged, and the summary says why. */
export async function runBox(
  attempts: readonly Attempt[],
  { bare = false, onResult = () => undefined }: BoxRunOptions = {},
): Promise<BoxReport> {
  const reason = bare ? undefined : reasonForNoBox();
  if (reason !== undefined) return notJudged(attempts, reason);
  const areas = [...new Set(attempts.map(({ area }) => area))];
  const results: Result[] = [];
  const reasons = new Set<string>();
  const next = async (): Promise<void> => {
    for (let area = areas.shift(); area !== undefined; area = areas.shift()) {
      const own = attempts.filter(one => one.area === area);
      for (const result of await areaResults(own, bare, reasons)) {
        results.push(result);
        onResult(result);
      }
    }
  };
  // Two at a time: each has a machine of its own, but what is shown without a box may be seen from the other.
  await Promise.all(bare ? [next()] : [next(), next()]);
  if (reasons.size > 0) return notJudged(attempts, [...reasons].join('; '));
  return { results, summary: bare ? shownOf(attempts, results) : summaryOf(attempts, results) };
}

async function areaResults(
  attempts: readonly Attempt[],
  bare: boolean,
  reasons: Set<string>,
): Promise<Result[]> {
  try {
    const { seen, stderr } = await runOnOwnMachine(attempts, bare);
    const byId = new Map(seen.map(one => [one.id, one]));
    return attempts.map(attempt => {
      const one = byId.get(attempt.id);
      const problems = bare ? [] : [...(one?.escapes ?? [])];
      if (bare && attempt.shown === 'bare' && one?.escapes.length === 0)
        problems.push(`nothing is seen of it: ${one.told}`);
      if (!one) problems.push(`it was never started: ${stderr.slice(-300)}`);
      else if (!one.ran) problems.push(`it did not run: ${one.told.slice(0, 300)}`);
      return resultOf(attempt, problems);
    });
  } catch (error) {
    if (!(error instanceof CannotJudge)) throw error;
    reasons.add(error.message);
    return [];
  }
}

const resultOf = ({ id, area }: Attempt, problems: string[]): Result => ({
  id: `box-${id}`,
  area: `box ${area}`,
  result: problems.length > 0 ? 'fail' : 'pass',
  problems,
});

function notJudged(attempts: readonly Attempt[], reason: string): BoxReport {
  const results = attempts.map(attempt => ({
    ...resultOf(attempt, []),
    result: 'not judged' as const,
    problems: [reason],
  }));
  return { results, summary: `box: none of ${attempts.length} attempts was judged: ${reason}` };
}

function summaryOf(attempts: readonly Attempt[], results: readonly Result[]): string {
  const failed = results.filter(({ result }) => result === 'fail');
  const idle = failed.filter(({ problems }) => problems.every(problem => notRun.test(problem)));
  const shown = attempts.filter(one => one.shown === 'bare').length;
  const rest = idle.length > 0 ? `; ${idle.length} did not run` : '';
  return `box: ${failed.length - idle.length} escapes of ${results.length} attempts (${shown} of them are seen to succeed without a sandbox: --bare)${rest}`;
}

const notRun = /^it (?:did not run|was never started)/;

const shownOf = (attempts: readonly Attempt[], results: readonly Result[]): string =>
  `without a sandbox: ${results.filter(({ result }) => result === 'pass').length} of ${attempts.length} attempts come to what they say`;
