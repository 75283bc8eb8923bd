/** An MCP server that fails, babbles, dies and never answers: every call gets its result, the run goes on, and no process stays. */
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { allowAll } from '../../src/engine/human.ts';
import { calls, done, type ScriptedTurn, says, scriptedProvider } from '../fakes/scriptedProvider.ts';
import { type EngineWorld, endOf, engineWorld, eventsOf, ofType } from './engineWorld.ts';
import type { Figure } from './figure.ts';
import { canSeeProcesses, processesWith } from './processTable.ts';

const fault = fileURLToPath(new URL('mcpFaultServer.ts', import.meta.url));
/** How often a cancelled run may take, until it is over, what the start of its server has taken. */
const cancelLimit = 1;
const goneLimitMs = 5_000;

/** In this order on one connection; the last one comes after the server's death. */
const wanted: readonly { tool: string; input?: Record<string, unknown>; expected: RegExp }[] = [
  { tool: 'fails', expected: /the disk of the server is on fire/ },
  { tool: 'babbles', expected: /sober again/ },
  { tool: 'large', input: { bytes: 3 }, expected: /^mmm$/ },
  { tool: 'dies', expected: /faults/ },
  { tool: 'large', input: { bytes: 4 }, expected: /^mmmm$/ },
];

export async function mcpFaultFigures(): Promise<Figure[]> {
  const word = `faults-${process.pid}-${Date.now()}`;
  const world = engineWorld({
    'skills/kairos/mcp.json': JSON.stringify({
      mcpServers: { faults: { command: process.execPath, args: [fault, word] } },
    }),
  });
  try {
    const answered = await answers(world);
    const cancelled = await cancelledCall(world);
    const left = canSeeProcesses ? await leftAfter(word) : undefined;
    return [
      {
        name: 'calls of an MCP server that fails, babbles, dies and is started again',
        value:
          answered.length === 0
            ? `${wanted.length} of ${wanted.length} as they should be`
            : answered.join('; '),
        limit: 'each its one result, the run goes on',
        met: answered.length === 0,
      },
      {
        name: 'a call that an MCP server never answers, cancelled',
        value: `the run was over after ${Math.round(cancelled.milliseconds)} ms, its start up to the call took ${Math.round(cancelled.startMs)} ms; ${cancelled.outcome}, with ${cancelled.results} of 1 result`,
        limit: `cancelled within ${cancelLimit} times its start, with its result`,
        met:
          cancelled.milliseconds <= cancelLimit * cancelled.startMs &&
          cancelled.outcome === 'cancelled' &&
          cancelled.results === 1,
      },
      {
        name: 'processes of MCP servers left behind',
        value: left === undefined ? 'processes are counted in /proc, which is not here' : String(left),
        limit: 'none after 5 s',
        met: left === undefined ? undefined : left === 0,
      },
    ];
  } finally {
    world.remove();
  }
}

async function answers(world: EngineWorld): Promise<string[]> {
  const turns: ScriptedTurn[] = wanted.map(({ tool, input = {} }, index) => [
    calls(`c${index}`, tool, input),
    done('tool_use'),
  ]);
  const provider = scriptedProvider([...turns, [says('Done.'), done()]]);
  const events = await eventsOf(
    world.open(() => provider),
    'faults',
  );
  const results = ofType(events, 'tool_end');
  const { outcome } = endOf(events);
  return [
    ...(outcome === 'completed' ? [] : [`the run ended as ${outcome}`]),
    ...wanted.flatMap(({ tool, expected }, index) => {
      const own = results.filter(({ callId }) => callId === `c${index}`);
      const text = own[0]?.result.content ?? '';
      return own.length === 1 && expected.test(text)
        ? []
        : [`${tool} has ${own.length} results: ${text.slice(0, 200)}`];
    }),
  ];
}

async function cancelledCall(
  world: EngineWorld,
): Promise<{ milliseconds: number; startMs: number; outcome: string; results: number }> {
  const stop = new AbortController();
  let stoppedAt = 0;
  const provider = scriptedProvider([[calls('n', 'never', {}), done('tool_use')]]);
  const telos = world.open(() => provider);
  let results = 0;
  let outcome = 'none';
  let startMs = 0;
  const started = performance.now();
  const request = { text: 'never', skill: { agent: 'kairos', skill: 'kickoff' } };
  for await (const event of telos.run(request, allowAll, stop.signal)) {
    if (event.type === 'tool_start') {
      startMs = performance.now() - started;
      setTimeout(() => {
        stoppedAt = performance.now();
        stop.abort();
      }, 200);
    }
    if (event.type === 'tool_end') results++;
    if (event.type === 'run_end') outcome = event.outcome;
  }
  return { milliseconds: performance.now() - stoppedAt, startMs, outcome, results };
}

async function leftAfter(word: string): Promise<number> {
  const deadline = performance.now() + goneLimitMs;
  while (processesWith('cmdline', word).length > 0 && performance.now() < deadline) await delay(50);
  return processesWith('cmdline', word).length;
}
