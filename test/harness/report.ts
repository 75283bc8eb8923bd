/** Judges cases, and prints a line for each and the totals of all. */

export interface Verdict {
  /** `contradicts`: the case fails, and a list of the suite gives the reason why it should. */
  result: 'pass' | 'fail' | 'not judged' | 'contradicts';
  /** Why it did not pass. */
  problems: readonly string[];
  /** Assertions of the case that nothing has observed. */
  notJudged?: readonly string[];
}

export interface Result extends Verdict {
  id: string;
  /** The group in which it is counted. */
  area: string;
  /** The measured value, if the case is a measurement. */
  measured?: string;
}

/** Thrown if this machine or this runner cannot bring about what a case describes: it is then not judged. */
export class CannotJudge extends Error {}

/** No case takes as long unless it hangs. In milliseconds. */
const longestMs = 12 * 60_000;

/** Resolves with the verdict of `act`: not judged if that cannot be brought about, failed if it breaks or hangs. */
export async function judged<Judged extends Verdict>(act: () => Promise<Judged>): Promise<Judged | Verdict> {
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<never>((_, reject) => {
    const message = `it hangs: no end after ${longestMs / 60_000} minutes`;
    timer = setTimeout(() => reject(new Error(message)), longestMs);
  });
  try {
    return await Promise.race([act(), tooLong]);
  } catch (error) {
    if (error instanceof CannotJudge) return { result: 'not judged', problems: [error.message] };
    const problem = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { result: 'fail', problems: [`broke: ${problem}`] };
  } finally {
    clearTimeout(timer);
  }
}

const words = {
  pass: 'pass',
  fail: 'FAIL',
  'not judged': 'not judged',
  contradicts: 'contradicts',
} as const;

/** Returns one line for people. What a case says may contain anything, so characters that are not plain text are escaped. */
export function lineOf({ id, result, measured, problems, notJudged = [] }: Result): string {
  const left =
    notJudged.length > 0 ? [`${notJudged.length} assertions not judged (${notJudged.join(' | ')})`] : [];
  const why = [...(measured ? [measured] : []), ...problems, ...left]
    .join('; ')
    .replace(/[^\x20-\x7e\u00a0-\u024f]/g, character => JSON.stringify(character).slice(1, -1));
  return `${words[result]} ${id}${why ? `: ${why.slice(0, 600)}` : ''}`;
}

/** Returns the totals by area and of all. Contradictions are counted only if there are any. */
export function totals(results: readonly Result[]): string {
  const columns = (Object.keys(words) as Verdict['result'][]).filter(
    one => one !== 'contradicts' || results.some(({ result }) => result === one),
  );
  const areas = [...new Set(results.map(({ area }) => area))];
  const width = Math.max(12, ...areas.map(area => area.length + 2));
  const row = (name: string, of: readonly Result[]): string =>
    [
      name.padEnd(width),
      ...columns.map(one => String(of.filter(({ result }) => result === one).length).padStart(12)),
    ].join('');
  const unjudged = results.reduce((sum, { notJudged = [] }) => sum + notJudged.length, 0);
  return [
    ['area'.padEnd(width), ...columns.map(one => words[one].padStart(12))].join(''),
    ...areas.map(name =>
      row(
        name,
        results.filter(({ area }) => area === name),
      ),
    ),
    row('total', results),
    ...(unjudged > 0 ? [`${unjudged} assertions were not judged; each is named with its case.`] : []),
  ].join('\n');
}

/** Prints the reasons that the suite notes for its cases, then `more`, then the totals. Sets the exit code: 1 if a case failed or none was asked for. */
export function finish(
  results: readonly Result[],
  reasons: Iterable<readonly [id: string, why: string]> = [],
  more: readonly string[] = [],
): void {
  for (const [id, why] of reasons) if (results.some(one => one.id === id)) console.log(`note: ${id}: ${why}`);
  for (const line of more) console.log(line);
  console.log(`\n${totals(results)}`);
  if (results.length === 0) console.log('No case was asked for by that.');
  process.exitCode = results.length === 0 || results.some(({ result }) => result === 'fail') ? 1 : 0;
}
