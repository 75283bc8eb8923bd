/**
 * `npm run bench`: what Telos costs over a bare script on the same SDK, both measured in one run against a local server in wire format, and
 * what it costs in a real VS Code.
 * Each figure is a median; exit 1 when one is over its limit.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { type AnthropicTurn, anthropicEvents, startAnthropicServer } from '../fakes/anthropicServer.ts';
import { manyRunsRatio } from '../faults/manyRuns.ts';
import { boxFigures } from './boxed.ts';
import { editorFigures } from './editor.ts';
import { farFigures, farRun } from './farRun.ts';
import { largePackFigure } from './largePack.ts';
import { addManySkills, manySkills, rerouteFigure } from './manySkills.ts';
import {
  alternate,
  type Figure,
  figureLine,
  isMet,
  median,
  runOnce,
  runWithPeak,
  type Side,
} from './measure.ts';
import { planCostFigures } from './planCost.ts';
import { planFigures } from './planInEditor.ts';
import { readsAtOnce, readsFigure } from './readsAtOnce.ts';
import { treeFigures } from './treeInEditor.ts';
import { watchedFigures } from './watched.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const runsPerSide = 11;
const toolRounds = 19;
const longAnswerTokens = 200_000;

const folder = mkdtempSync(join(tmpdir(), 'telos-bench-'));

interface Sides {
  ours: Side;
  bare: Side;
}

async function prepare(): Promise<(url: string) => Sides> {
  await build({
    entryPoints: {
      bare: join(root, 'test/bench/bareScript.ts'),
      bareRouter: join(root, 'test/bench/bareRouter.ts'),
    },
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    mainFields: ['module', 'main'],
    banner: {
      js: "import{createRequire as makeRequire}from'node:module';const require=makeRequire(import.meta.url);",
    },
    logLevel: 'error',
  });
  // A copy, so that a build during the bench does not disturb it.
  cpSync(join(root, 'dist/cli.js'), join(folder, 'dist/cli.js'));
  cpSync(join(root, 'dist/chunks/cli'), join(folder, 'dist/chunks/cli'), { recursive: true });
  addFile('dist/package.json', '{"type":"module"}');
  addFile('skills/kairos/agent.toml', 'name = "kairos"\nworking_dir = "."\n');
  addFile('skills/kairos/skills/kickoff/SKILL.md', '---\ndescription: Morning\n---\nPlan the day.\n');
  addFile('work/notes.md', 'Call Ada.\n');
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    TELOS_SKILLS_DIR: join(folder, 'skills'),
    TELOS_DATA_DIR: join(folder, 'data'),
    TELOS_CONFIG_DIR: join(folder, 'config'),
    ANTHROPIC_API_KEY: 'bench-key-0123456789',
  };
  const cwd = join(folder, 'work');
  return url => ({
    ours: {
      args: [join(folder, 'dist/cli.js'), 'run', 'daily', 'kickoff'],
      cwd,
      env: { ...env, ANTHROPIC_BASE_URL: url },
    },
    bare: {
      args: [join(folder, 'bare.mjs'), 'run daily kickoff'],
      cwd,
      env: { ...env, ANTHROPIC_BASE_URL: url },
    },
  });
}

function addFile(name: string, text: string): void {
  mkdirSync(join(folder, name, '..'), { recursive: true });
  writeFileSync(join(folder, name), text);
}

/** From the start of the process to its first request at the server. */
async function startFigure(sidesAt: (url: string) => Sides): Promise<Figure> {
  const server = await startAnthropicServer({ turns: [{ text: ['ok'] }] });
  const sides = sidesAt(server.url);
  const once = (side: Side) => async () => {
    const before = server.requests.length;
    const { startedAt } = await runOnce(side);
    return (server.requests[before]?.arrivedAt ?? Number.NaN) - startedAt;
  };
  try {
    const { ours, bare } = await alternate(2 * runsPerSide, once(sides.ours), once(sides.bare));
    return { name: 'start to first request', unit: 'ms', ours: median(ours), bare: median(bare), limit: 1.3 };
  } finally {
    await server.close();
  }
}

/** Twenty model turns, of which all but the last ask for one small file. */
async function roundFigures(sidesAt: (url: string) => Sides): Promise<Figure[]> {
  const asking: AnthropicTurn = {
    text: ['Looking.'],
    toolCalls: [{ name: 'read_file', input: { path: 'notes.md' } }],
  };
  const server = await startAnthropicServer({
    turns: (_request, index) => (index % (toolRounds + 1) === toolRounds ? { text: ['Done.'] } : asking),
  });
  const sides = sidesAt(server.url);
  const once = (side: Side) => async () => {
    const before = server.requests.length;
    const { totalMs } = await runOnce(side);
    const arrivals = server.requests.slice(before).map(request => request.arrivedAt);
    if (arrivals.length !== toolRounds + 1)
      throw new Error(`${arrivals.length} requests instead of ${toolRounds + 1}`);
    return { totalMs, roundMs: ((arrivals.at(-1) ?? 0) - (arrivals[0] ?? 0)) / toolRounds };
  };
  try {
    const { ours, bare } = await alternate(2 * runsPerSide, once(sides.ours), once(sides.bare));
    const figure = (name: string, of: (one: { totalMs: number; roundMs: number }) => number): Figure => ({
      name,
      unit: 'ms',
      ours: median(ours.map(of)),
      bare: median(bare.map(of)),
      limit: 1.5,
    });
    return [
      figure('one tool round', one => one.roundMs),
      figure('a run of twenty rounds, start to exit', one => one.totalMs),
    ];
  } finally {
    await server.close();
  }
}

/** A long answer in deltas of one token, sent as fast as it is read, from bytes that are made once. */
async function longAnswerFigures(sidesAt: (url: string) => Sides): Promise<Figure[]> {
  const text = Array.from({ length: longAnswerTokens }, (_, index) => `w${index % 97} `);
  const body = Buffer.from(
    anthropicEvents({ text })
      .map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
      .join(''),
  );
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(body);
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const sides = sidesAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  try {
    const { ours, bare } = await alternate(
      7,
      () => runWithPeak(sides.ours),
      () => runWithPeak(sides.bare),
    );
    return [
      {
        name: `an answer of ${longAnswerTokens} tokens, start to exit`,
        unit: 'ms',
        ours: median(ours.map(run => run.totalMs)),
        bare: median(bare.map(run => run.totalMs)),
        limit: 1.3,
      },
      {
        name: 'the same, peak memory',
        unit: 'MB',
        ours: median(ours.map(run => run.peakMegabytes)),
        bare: median(bare.map(run => run.peakMegabytes)),
        limit: 1.3,
      },
    ];
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

/**
 * From the start of the process to its end, which has named the one skill of many that is meant. Beside it a script that parses each file,
 * and Node alone.
 */
async function manySkillsFigures(sidesAt: (url: string) => Sides): Promise<Figure[]> {
  addManySkills(join(folder, 'many'));
  const { ours: plain } = sidesAt('http://127.0.0.1:9');
  const cli = plain.args[0] ?? '';
  const ours: Side = {
    ...plain,
    args: [cli, '--dry-run', 'please do task-39-49'],
    env: { ...plain.env, TELOS_SKILLS_DIR: join(folder, 'many') },
  };
  const bare: Side = {
    ...plain,
    args: [join(folder, 'bareRouter.mjs'), join(folder, 'many'), ...ours.args.slice(-1)],
  };
  const nodeAlone: Side = { ...plain, args: ['--eval', '0'] };
  const totalOf = (side: Side) => async () => (await runOnce(side)).totalMs;
  const runs = await alternate(runsPerSide, totalOf(ours), totalOf(bare));
  const starts = await alternate(runsPerSide, totalOf(nodeAlone), totalOf(nodeAlone));
  const count = manySkills.agents * manySkills.skillsPerAgent;
  console.log(`(Node alone, start to exit: ${median(starts.bare).toFixed(1)} ms)`);
  return [
    {
      name: `routed by name among ${count} skills, start to exit`,
      unit: 'ms',
      ours: median(runs.ours),
      bare: median(runs.bare),
      limit: 0.5,
    },
  ];
}

const figures: Figure[] = [];
function show(...more: Figure[]): void {
  figures.push(...more);
  for (const figure of more) console.log(figureLine(figure));
}

try {
  const sidesAt = await prepare();
  console.log(`Node ${process.versions.node}, ${cpus().length} cores; medians, both sides in turn`);
  show(await startFigure(sidesAt));
  show(...(await roundFigures(sidesAt)));
  show(...(await longAnswerFigures(sidesAt)));
  show(...farFigures(await farRun(url => sidesAt(url).ours)));
  const reader = { agent: 'kairos', config: join(folder, 'webConfig'), times: runsPerSide };
  show(readsFigure(await readsAtOnce(url => sidesAt(url).ours, reader)));
  show(await manyRunsRatio());
  show(...(await manySkillsFigures(sidesAt)));
  show(await rerouteFigure(join(folder, 'many')));
  mkdirSync(join(folder, 'large'));
  show(await largePackFigure(join(folder, 'large'), join(folder, 'dist/cli.js')));
  show(...(await boxFigures()));
  show(...(await watchedFigures()));
  show(...(await editorFigures()));
  show(...(await treeFigures()));
  show(...(await planFigures()));
  // Printed alone: it is not within its limit yet.
  for (const figure of await planCostFigures()) console.log(figureLine(figure));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
const missed = figures.filter(figure => !isMet(figure));
console.log(
  missed.length === 0 ? 'All figures are within their limits.' : `${missed.length} over the limit.`,
);
process.exitCode = missed.length === 0 ? 0 : 1;
