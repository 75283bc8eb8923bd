/**
 * Mixed runs in one engine: `node --expose-gc mixedRunsProcess.ts <url> <runs> <samples> <seed>`; tells its parent what the engine holds
 * after each part of them. Conversations go on side by side; between two parts all of them are over.
 */
import { readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { allowAll } from '../../src/engine/human.ts';
import { Conversation } from '../../src/engine/run/conversation.ts';
import type { RunRequest } from '../../src/engine/run/request.ts';
import { Telos } from '../../src/engine/telos.ts';
import { openMachine } from '../harness/machine.ts';
import { inLanes, seeded } from './figure.ts';
import { descendantsOf } from './processTable.ts';
import { diceOf, modelFiles } from './randomModel.ts';

export interface Sample {
  /** Heap and buffers in megabytes, garbage collected. */
  heap: number;
  handles: number;
  files: number;
  processes: number;
}

export interface MixedReport {
  samples: Sample[];
  outcomes: Record<string, number>;
  /** How often each tool was called. */
  calls: Record<string, number>;
  broken: string[];
  seconds: number;
}

const [url = '', ...numbers] = process.argv.slice(2);
const [runs = 0, samples = 1, seed = 0] = numbers.map(Number);
/** Conversations at once. */
const width = 3;
/** A run that is not over after this time meets a server that is silent, and is stopped. In milliseconds. */
const longestRun = 4_000;

const dice = diceOf(seeded(seed));
const mcp = fileURLToPath(new URL('../fakes/mcpServer.ts', import.meta.url));
const skill = (what: string): string => `---\ndescription: ${what}\n---\nDo what is asked.\n`;
const machine = openMachine({
  files: {
    'skills/kairos/agent.toml': 'working_dir = "."\n',
    'skills/kairos/skills/kickoff/SKILL.md': skill('Plans the day'),
    'skills/served/agent.toml': 'working_dir = "."\n',
    'skills/served/skills/ask/SKILL.md': skill('Asks a server'),
    'skills/served/mcp.json': JSON.stringify({
      mcpServers: { fake: { command: process.execPath, args: [mcp] } },
    }),
    ...modelFiles,
  },
});
const telos = Telos.open(
  machine.loadConfig({
    ANTHROPIC_API_KEY: 'key-for-tests-0123456789',
    ANTHROPIC_BASE_URL: url,
    TELOS_CONTEXT_WINDOW: '30000',
    TELOS_ROUTING_MODE: 'name',
  }),
);
const report: MixedReport = { samples: [], outcomes: {}, calls: {}, broken: [], seconds: 0 };
const started = performance.now();
for (let part = 0; part < samples; part++) {
  const lanes = Array.from({ length: width }, (_, lane) => share(Math.round(runs / samples), lane));
  await inLanes(lanes, width, talk);
  report.samples.push(await sample());
}
report.seconds = (performance.now() - started) / 1000;
await telos.closeCommands();
machine.remove();
process.send?.(report, () => process.exit());

/** Divides the number among the lanes. */
function share(count: number, lane: number): number {
  return Math.floor(count / width) + (lane < count % width ? 1 : 0);
}

/** So many runs, in conversations of up to eight. */
async function talk(count: number): Promise<void> {
  for (let left = count; left > 0; ) {
    const conversation = new Conversation();
    const ref = dice.oneIn(3) ? { agent: 'served', skill: 'ask' } : { agent: 'kairos', skill: 'kickoff' };
    for (let length = Math.min(left, 1 + dice.below(8)); length > 0; length--, left--)
      await run(conversation, ref);
    await telos.endCommands(conversation.id);
  }
}

async function run(conversation: Conversation, ref: NonNullable<RunRequest['skill']>): Promise<void> {
  const isNew = conversation.isEmpty;
  const change = !isNew && dice.oneIn(12) && ({ kind: 'compact', focus: '' } as const);
  const request: RunRequest = {
    text: change ? '/compact' : 'go on with the work',
    ...(isNew && { skill: ref }),
    ...(change && { change }),
  };
  const stop = new AbortController();
  const stopAt = dice.oneIn(4) ? 1 + dice.below(25) : Number.POSITIVE_INFINITY;
  const timer = setTimeout(() => stop.abort(), longestRun);
  let count = 0;
  for await (const event of telos.run(conversation.next(request), allowAll, stop.signal)) {
    conversation.note(event);
    if (++count === stopAt) setTimeout(() => stop.abort(), dice.below(20));
    if (event.type === 'tool_start') add(report.calls, event.call.name);
    if (event.type !== 'run_end') continue;
    add(report.outcomes, event.outcome);
    if (event.error?.code === 'internal') report.broken.push(event.error.message);
  }
  clearTimeout(timer);
}

function add(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

async function sample(): Promise<Sample> {
  // Connections that are kept for a while, and servers that are asked to end, are given the time.
  await delay(1_500);
  for (let round = 0; round < 4; round++) {
    globalThis.gc?.();
    await delay(20);
  }
  const { heapUsed, external } = process.memoryUsage();
  return {
    heap: (heapUsed + external) / 2 ** 20,
    handles: process.getActiveResourcesInfo().length,
    files: readdirSync('/proc/self/fd').length,
    processes: descendantsOf(process.pid).length,
  };
}
