/** Ten thousand runs in one process: whether its memory grows, and whether anything is left open. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Extent, type Figure, percentile } from './figure.ts';
import type { LifeReport } from './longLifeProcess.ts';

const slopeLimit = 1;

export async function longLifeFigures(extent: Extent): Promise<Figure[]> {
  const [runs, samples] = extent === 'whole' ? [10_000, 20] : [200, 4];
  const program = fileURLToPath(new URL('longLifeProcess.ts', import.meta.url));
  const child = fork(program, [String(runs), String(samples)], { execArgv: ['--expose-gc'] });
  try {
    const [report] = (await once(child, 'message')) as [LifeReport];
    return figuresOf(report, runs);
  } finally {
    child.kill('SIGKILL');
  }
}

function figuresOf({ heap, rss, left, failed, seconds }: LifeReport, runs: number): Figure[] {
  // What is loaded and compiled in the first third belongs to the start.
  const from = Math.ceil(heap.length / 3);
  const per = (values: readonly number[]): number => slope(values.slice(from)) / (runs / heap.length / 1000);
  const [heapSlope, rssSlope] = [per(heap), per(rss)];
  const ends = (values: readonly number[]): string =>
    `${values[from]?.toFixed(1)} to ${values.at(-1)?.toFixed(1)} MB`;
  return [
    {
      name: `memory over ${runs} runs in one process`,
      value: `${heapSlope.toFixed(3)} MB per 1,000 runs (heap and buffers after collection, ${ends(heap)}); RSS ${rssSlope.toFixed(3)} MB per 1,000 runs (${ends(rss)}); ${failed} runs failed; ${Math.round(seconds)} s`,
      limit: `under ${slopeLimit} MB per 1,000 runs`,
      met: Math.max(heapSlope, rssSlope) < slopeLimit && failed === 0,
    },
    {
      name: `handles left after ${runs} runs`,
      value: left.length === 0 ? 'none' : left.join(', '),
      limit: 'none',
      met: left.length === 0,
    },
  ];
}

/**
 * For each step from one value to the next: the middle one of the slopes between all pairs. What grows with the runs shows in it; the single
 * steps in which a process gets its memory from the system hardly do.
 */
function slope(values: readonly number[]): number {
  const slopes = values.flatMap((value, index) =>
    values.slice(index + 1).map((later, distance) => (later - value) / (distance + 1)),
  );
  return percentile(slopes, 0.5);
}
