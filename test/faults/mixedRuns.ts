/** Two thousand mixed runs in one engine: conversations, servers, commands, and runs that are stopped. What it holds must stay as it is. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import { type Extent, type Figure, percentile, seeded } from './figure.ts';
import type { Given } from './measurements.ts';
import type { MixedReport, Sample } from './mixedRunsProcess.ts';
import { diceOf, randomTurn, usualCalls } from './randomModel.ts';

/** How much more it may be at the end than after the first third. */
const mostGrowth = 0.1;

export async function mixedRunFigures(extent: Extent, { seed }: Given): Promise<Figure[]> {
  const [runs, samples] = extent === 'whole' ? [2_000, 20] : [60, 6];
  const dice = diceOf(seeded(seed + 0x5eed));
  const calls = [
    ...usualCalls,
    { name: 'mcp_fake_say', input: { text: 'hello' } },
    { name: 'mcp_fake_count', input: {} },
    { name: 'run_command', input: { command: 'sleep 30', background: true } },
    { name: 'run_command', input: { command: 'for i in 1 2 3; do echo $i; sleep 0.02; done' } },
  ];
  const server = await startAnthropicServer({ turns: request => randomTurn(dice, request, calls) });
  const trim = setInterval(() => void server.requests.splice(0), 500);
  const program = fileURLToPath(new URL('mixedRunsProcess.ts', import.meta.url));
  const args = [server.url, runs, samples, seed].map(String);
  const child = fork(program, args, { execArgv: ['--expose-gc'] });
  try {
    const ended = once(child, 'exit').then(([code]) => {
      throw new Error(`The process with the engine ended with ${code}.`);
    });
    const [report] = (await Promise.race([once(child, 'message'), ended])) as [MixedReport];
    return figuresOf(report, `seed ${seed}: ${runs} runs`, server.refused);
  } finally {
    clearInterval(trim);
    child.kill('SIGKILL');
    server.refused.length = 0;
    await server.close();
  }
}

function figuresOf(report: MixedReport, on: string, refused: readonly string[]): Figure[] {
  const { samples, outcomes, calls, broken, seconds } = report;
  const told = (counts: Readonly<Record<string, number>>): string =>
    Object.entries(counts)
      .sort()
      .map(([name, count]) => `${count} ${name}`)
      .join(', ');
  const wrong = [...broken, ...refused.map(why => `refused: ${why}`)];
  return [
    {
      name: 'mixed runs in one engine: runs that end by a defect, or in a request that is refused',
      value: `${on} (${told(outcomes)}), with ${told(calls)}, in ${Math.round(seconds)} s: ${wrong.length}${wrong.length > 0 ? ` (${wrong.slice(0, 3).join('; ')})` : ''}`,
      limit: 'none',
      met: wrong.length === 0 && (outcomes['completed'] ?? 0) > 0 && (outcomes['cancelled'] ?? 0) > 0,
    },
    flat('memory after collection', on, samples, ({ heap }) => heap, 'MB'),
    flat('open handles', on, samples, ({ handles }) => handles),
    flat('open files', on, samples, ({ files }) => files),
    flat('child processes', on, samples, ({ processes }) => processes),
  ];
}

/** What is loaded and compiled in the first third belongs to the start. The middle of the second third stands beside that of the last. */
function flat(
  what: string,
  on: string,
  samples: readonly Sample[],
  of: (sample: Sample) => number,
  unit = '',
): Figure {
  const values = samples.map(of);
  const third = Math.floor(values.length / 3);
  const before = percentile(values.slice(third, -third), 0.5);
  const end = percentile(values.slice(-third), 0.5);
  const all = values.map(value => (Number.isInteger(value) ? value : value.toFixed(1))).join(' ');
  return {
    name: `mixed runs in one engine: ${what}`,
    value: `${on}: ${[before, end].map(value => +value.toFixed(2)).join(' to ')}${unit && ` ${unit}`} from the second third to the last (${all})`,
    limit: `at most ${mostGrowth * 100} % more`,
    met: end <= before * (1 + mostGrowth),
  };
}
