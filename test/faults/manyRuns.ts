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
/** Beside them, for how long the machine and its disk keep anything waiting. */
const bareLoops = 10;
const rounds = 20;
/** A model's answer takes half to one and a half times this long; real ones take longer, which would leave the engine more time. */
const pauseMs = 600;
/** How often as long as bare loops at the same time it may take, at the 95th percentile. */
const ratioLimit = 4;
/** Of the bare loops, at the 95th percentile: then nothing else wants the machine. */
const calmMs = 20;
const memoryLimit = 500;
/** Two questions a run: a command, and a file that other tools obey. */
const questions = runs * 2;

export async function manyRunsFigures(): Promise<Figure[]> {
  const load = loadavg()[0] ?? 0;
  const calmest = await calmestOfManyRuns();
  return figuresOf(calmest, `${load.toFixed(1)}${calmest.isAlone ? ', put before everything else' : ''}`);
}

interface Measured {
  seen: EngineReport;
  served: ServerReport;
  isAlone: boolean;
  p95: number;
  bareP95: number;
}

/** Returns the only measurement, or the calmest of three, by what the bare loops say: something else may just want the machine. */
async function calmestOfManyRuns(): Promise<Measured> {
  const tries: Measured[] = [];
  do tries.push(await measured());
  while (tries.length < 3 && Math.min(...tries.map(({ bareP95 }) => bareP95)) > calmMs);
  return tries.sort((a, b) => a.bareP95 - b.bareP95)[0]!;
}

/**
 * Returns what the engine adds to a round beside what bare loops take, for the bench: of three measurements, that with the middle ratio.
 * The bare loops do 190 rounds, so their 95th percentile alone varies by half.
 */
export async function manyRunsRatio() {
  const tries: Measured[] = [];
  for (let count = 0; count < 3; count++) tries.push(await measured());
  const ratioOf = ({ p95, bareP95 }: Measured): number => p95 / bareP95;
  const { p95, bareP95 } = tries.sort((a, b) => ratioOf(a) - ratioOf(b))[1]!;
  const name = `${runs} runs of ${rounds} rounds at once, p95 a round`;
  return { name, unit: 'ms', ours: p95, bare: bareP95, limit: ratioLimit };
}

async function measured(): Promise<Measured> {
  const folder = tempFolder({
    'skills/kairos/agent.toml': 'working_dir = "."\n',
    'skills/kairos/skills/kickoff/SKILL.md': '---\ndescription: Plans the day\n---\nDo what is asked.\n',
    'work/.keep': '',
    'bare/.keep': '',
  });
  const started: ChildProcess[] = [];
  let isAlone = true;
  const start = (name: string, args: readonly (string | number)[]): ChildProcess => {
    const child = fork(fileURLToPath(new URL(name, import.meta.url)), args.map(String));
    started.push(child);
    isAlone = putFirst(child) && isAlone;
    return child;
  };
  try {
    const server = start('manyRunsServer.ts', [rounds, pauseMs, runs]);
    const [url] = (await once(server, 'message')) as [string];
    const bare = once(start('manyBareLoops.ts', [url, runs, bareLoops, `${folder.path}/bare`]), 'message');
    const engine = once(start('manyRunsProcess.ts', [url, runs, folder.path]), 'message');
    const [[seen]] = (await Promise.all([engine, bare])) as [[EngineReport], unknown];
    server.send('report');
    const [served] = (await once(server, 'message')) as [ServerReport];
    const p95 = percentile(Object.values(served.gaps).flat(), 0.95);
    return { seen, served, isAlone, p95, bareP95: percentile(served.bareGaps, 0.95) };
  } finally {
    for (const child of started) child.kill('SIGKILL');
    folder.remove();
  }
}

/** Gives the process priority, since the work of others is not the engine's. Returns false if that is not allowed. */
function putFirst(child: ChildProcess): boolean {
  try {
    setPriority(child.pid ?? 0, -20);
    return true;
  } catch {
    return false;
  }
}

function figuresOf({ seen, served, p95, bareP95 }: Measured, load: string): Figure[] {
  const on = `${runs} runs of ${rounds} rounds at once`;
  const completed = seen.outcomes['completed'] ?? 0;
  const foreign = [...seen.foreign, ...served.foreign];
  const gaps = Object.values(served.gaps).flat();
  const ms = (values: readonly number[], share: number): string =>
    `${percentile(values, share).toFixed(1)} ms`;
  const processorMs = seen.processorMs / (runs * rounds);
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
      value: `p95 ${p95.toFixed(1)} ms from an answer's last byte to the next request, median ${ms(gaps, 0.5)}, over ${gaps.length} rounds with their tools and log (beside them, loops without an engine that send, write and start the same: ${ms(served.bareGaps, 0.95)} and ${ms(served.bareGaps, 0.5)}); ${processorMs.toFixed(1)} ms of processor time a round; median and p95 by tool: ${byTool.join(', ')}; the machine's load before: ${load}`,
      limit: `p95 at most ${ratioLimit} times that of the loops, the server's delay (${pauseMs / 2} to ${pauseMs * 1.5} ms) left out`,
      // Where bare loops wait for the machine, the figure says something about the machine alone.
      met: p95 <= ratioLimit * bareP95 || (bareP95 < calmMs ? false : undefined),
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
