/** Fifty runs of twenty rounds at once in one process: whether all finish, what the engine adds to a round, and whether anything crosses over. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { loadavg, setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { tempFolder } from '../fakes/tempFolder.ts';
import { type Figure, percentile } from './figure.ts';
import type { EngineReport } from './manyRunsProcess.ts';
import type { ServerReport } from './manyRunsServer.ts';

const runs = 50;
const rounds = 20;
/** A model's answer takes half to one and a half times this long; real ones take longer, which would leave the engine more time. */
const pauseMs = 600;
const p95LimitMs = 60;
const memoryLimit = 500;
/** Two questions a run: a command, and a file that other tools obey. */
const questions = runs * 2;

export async function manyRunsFigures(): Promise<Figure[]> {
  const load = loadavg()[0] ?? 0;
  // The same requests by a loop without an engine, in the same minute: what of a gap is the machine's.
  const bare = await measured('bare');
  const { seen, served, isAlone } = await measured('engine');
  const machine = `${load.toFixed(1)}${isAlone ? ', put before everything else' : ''}`;
  return figuresOf(seen, served, Object.values(bare.served.gaps).flat(), machine);
}

async function measured(
  by: 'engine' | 'bare',
): Promise<{ seen: EngineReport; served: ServerReport; isAlone: boolean }> {
  const folder = tempFolder({
    'skills/kairos/agent.toml': 'working_dir = "."\n',
    'skills/kairos/skills/kickoff/SKILL.md': '---\ndescription: Plans the day\n---\nDo what is asked.\n',
    'work/.keep': '',
  });
  const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
  const server = fork(script('manyRunsServer.ts'), [String(rounds), String(pauseMs)]);
  let runner: ChildProcess | undefined;
  const isAlone = putFirst(server);
  try {
    const [url] = (await once(server, 'message')) as [string];
    runner = fork(script(by === 'engine' ? 'manyRunsProcess.ts' : 'manyBareLoops.ts'), [
      ...[url, String(runs)],
      ...(by === 'engine' ? [folder.path] : [String(rounds)]),
    ]);
    putFirst(runner);
    const [seen] = (await once(runner, 'message')) as [EngineReport];
    server.send('report');
    const [served] = (await once(server, 'message')) as [ServerReport];
    return { seen, served, isAlone };
  } finally {
    runner?.kill('SIGKILL');
    server.kill('SIGKILL');
    folder.remove();
  }
}

/** What else the machine does is not the engine's; false where nobody may be put first. */
function putFirst(child: ChildProcess): boolean {
  try {
    setPriority(child.pid ?? 0, -20);
    return true;
  } catch {
    return false;
  }
}

function figuresOf(
  seen: EngineReport,
  served: ServerReport,
  bareGaps: readonly number[],
  load: string,
): Figure[] {
  const on = `${runs} runs of ${rounds} rounds at once`;
  const completed = seen.outcomes['completed'] ?? 0;
  const foreign = [...seen.foreign, ...served.foreign];
  const gaps = Object.values(served.gaps).flat();
  const ms = (values: readonly number[], share: number): string =>
    `${percentile(values, share).toFixed(1)} ms`;
  const own = percentile(gaps, 0.95) - percentile(bareGaps, 0.95);
  const byTool = Object.entries(served.gaps).map(
    ([tool, of]) => `${tool} ${ms(of, 0.5)} and ${ms(of, 0.95)}`,
  );
  return [
    {
      name: `${on}: finished`,
      value: completed === runs ? `${completed}` : JSON.stringify(seen.outcomes),
      limit: 'all',
      met: completed === runs,
    },
    {
      name: `${on}: engine overhead a round`,
      value: `p95 ${own.toFixed(1)} ms (${ms(gaps, 0.95)} from an answer's last byte to the next request, less the ${ms(bareGaps, 0.95)} of a bare loop in the same minute), median ${ms(gaps, 0.5)} (bare ${ms(bareGaps, 0.5)}), over ${gaps.length} rounds with their tools and log; median and p95 by tool: ${byTool.join(', ')}; the machine's load before: ${load}`,
      limit: `p95 under ${p95LimitMs} ms, the server's delay (${pauseMs / 2} to ${pauseMs * 1.5} ms) left out`,
      met: own < p95LimitMs,
    },
    {
      name: `${on}: memory`,
      value: `peak RSS ${seen.peakMegabytes.toFixed(0)} MB`,
      limit: `under ${memoryLimit} MB`,
      met: seen.peakMegabytes < memoryLimit,
    },
    {
      name: `${on}: text or approvals that crossed over`,
      value: `${foreign.length}${foreign[0] ? ` (first: ${foreign[0]})` : ''}, ${seen.approvals} questions`,
      limit: 'none',
      met: foreign.length === 0 && seen.approvals === questions,
    },
  ];
}
