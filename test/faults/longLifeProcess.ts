/** Run after run in one engine: `node --expose-gc longLifeProcess.ts <runs> <samples>`; tells its parent about memory and handles. */
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { StreamEvent } from '../../src/engine/core/ports.ts';
import { calls, done, says, scriptedProvider } from '../fakes/scriptedProvider.ts';
import { endOf, engineWorld, eventsOf } from './engineWorld.ts';

export interface LifeReport {
  /** Megabytes after each part of the runs, garbage collected: heap and buffers, and the whole process. */
  heap: number[];
  rss: number[];
  /** Kinds of handles that were not there before. */
  left: string[];
  failed: number;
  seconds: number;
}

const [runs = 0, samples = 1] = process.argv.slice(2).map(Number);
/** Processes are slow to start, so only some of the runs have them. */
const commandEvery = 50;
const serverEvery = 250;
const cancelEvery = 20;

const usage = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0 };
const end: StreamEvent = { type: 'done', stopReason: 'end_turn', usage };
const script = [
  [
    says('Looking.'),
    calls('c1', 'write_file', { path: 'a.md', content: 'text\n'.repeat(200) }),
    done('tool_use'),
  ],
  [calls('c2', 'read_file', { path: 'a.md' }), calls('c3', 'glob', { pattern: '*.md' }), done('tool_use')],
  [says('Done.'), end],
];
const withCommand = [
  [calls('c4', 'run_command', { command: 'echo hello; sleep 0.01' }), done('tool_use')],
  ...script,
];
const fault = fileURLToPath(new URL('../fakes/mcpServer.ts', import.meta.url));
const plain = engineWorld();
const withServer = engineWorld({
  'skills/kairos/mcp.json': JSON.stringify({
    mcpServers: { fake: { command: process.execPath, args: [fault] } },
  }),
});
let events: readonly (readonly StreamEvent[])[] = script;
const telos = plain.open(() => scriptedProvider(events));
const telosWithServer = withServer.open(() => scriptedProvider(script));
const report: LifeReport = { heap: [], rss: [], left: [], failed: 0, seconds: 0 };

const before = handles();
const started = performance.now();
for (let run = 1; run <= runs; run++) {
  await oneRun(run);
  if (run % Math.floor(runs / samples) === 0) await measure();
}
report.seconds = (performance.now() - started) / 1000;
await delay(1500);
const after = handles();
for (const [kind, count] of after) {
  const more = count - (before.get(kind) ?? 0);
  if (more > 0) report.left.push(`${more} ${kind}`);
}
plain.remove();
withServer.remove();
process.send?.(report);
// A handle that is left keeps the process, and would be ended by its parent.
process.disconnect();

async function oneRun(run: number): Promise<void> {
  const stop = new AbortController();
  const isCancelled = run % cancelEvery === 0;
  events = run % commandEvery === 0 ? withCommand : script;
  const engine = run % serverEvery === 0 ? telosWithServer : telos;
  if (isCancelled) setImmediate(() => stop.abort());
  const { outcome } = endOf(await eventsOf(engine, `run ${run}`, undefined, stop.signal));
  if (outcome !== 'completed' && !(isCancelled && outcome === 'cancelled')) report.failed++;
}

async function measure(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    globalThis.gc?.();
    await delay(20);
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  report.heap.push((heapUsed + external) / 2 ** 20);
  report.rss.push(rss / 2 ** 20);
}

function handles(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}
