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
  const folder = tempFolder({
    'skills/kairos/agent.toml': 'working_dir = "."\n',
    'skills/kairos/skills/kickoff/SKILL.md': '---\ndescription: Plans the day\n---\nDo what is asked.\n',
    'work/.keep': '',
  });
  const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
  const load = loadavg()[0] ?? 0;
  const server = fork(script('manyRunsServer.ts'), [String(rounds), String(pauseMs)]);
  let engine: ChildProcess | undefined;
  const isAlone = putFirst(server);
  try {
    const [url] = (await once(server, 'message')) as [string];
    engine = fork(script('manyRunsProcess.ts'), [url, String(runs), folder.path]);
    putFirst(engine);
    const [seen] = (await once(engine, 'message')) as [EngineReport];
    server.send('report');
    const [served] = (await once(server, 'message')) as [ServerReport];
    return figuresOf(seen, served, `${load.toFixed(1)}${isAlone ? ', put before everything else' : ''}`);
  } finally {
    engine?.kill('SIGKILL');
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

function figuresOf(seen: EngineReport, served: ServerReport, load: string): Figure[] {
  const on = `${runs} runs of ${rounds} rounds at once`;
  const completed = seen.outcomes['completed'] ?? 0;
  const foreign = [...seen.foreign, ...served.foreign];
  const gaps = Object.values(served.gaps).flat();
  const ms = (values: readonly number[], share: number): string =>
    `${percentile(values, share).toFixed(1)} ms`;
  const p95 = percentile(gaps, 0.95);
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
      value: `p95 ${ms(gaps, 0.95)}, median ${ms(gaps, 0.5)}, from an answer's last byte to the next request, over ${gaps.length} rounds with their tools and log; median and p95 by tool: ${byTool.join(', ')}; the machine's load before: ${load}`,
      limit: `p95 under ${p95LimitMs} ms, the server's delay (${pauseMs / 2} to ${pauseMs * 1.5} ms) left out`,
      met: p95 < p95LimitMs,
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
