/**
 * `npm test`: builds once and runs the layers of the table in two lanes at once. `npm run test:night` runs all of them, longer.
 * `npm test -- --list` prints the table; `npm test -- unit cli` runs the named layers alone.
 */
import { mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findBox } from '../../src/engine/box/findBox.ts';
import { rememberFlakes, tolerated } from './flakes.ts';
import { endAll, type LayerResult, root, runLayer } from './layerRun.ts';
import { firstLines } from './outcomes.ts';
import { secondTry } from './secondTry.ts';
import { budgetsOf, drawSummary } from './summary.ts';
import { drawTable, type Layer, layers } from './table.ts';

const folder = join(root, 'test-results', 'layers');

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    endAll();
    process.exit(130);
  });

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: { list: { type: 'boolean' }, night: { type: 'boolean' } },
    allowPositionals: true,
  });
  if (values.list) {
    console.log(drawTable());
    return 0;
  }
  const unknown = positionals.filter(name => layers.every(layer => layer.name !== name));
  if (unknown.length > 0) {
    console.error(`There is no layer ${unknown.join(', ')}. The layers are:\n${drawTable()}`);
    return 2;
  }
  const isNight = values.night ?? false;
  const chosen = layers.filter(layer =>
    positionals.length > 0 ? positionals.includes(layer.name) : isNight || layer.when === 'day',
  );
  return runAll(
    chosen.filter(canRun),
    chosen.filter(layer => !canRun(layer)),
    isNight,
  );
}

const canRun = ({ needs }: Layer): boolean => needs === undefined || Boolean(process.env[needs.variable]);

async function runAll(chosen: readonly Layer[], left: readonly Layer[], isNight: boolean): Promise<number> {
  mkdirSync(folder, { recursive: true });
  if (chosen.some(layer => layer.needsBuild) && !(await build(isNight))) return 1;
  const results = await runLanes(chosen, isNight);
  for (const [at, layer] of chosen.entries()) {
    const again = await secondTry(layer, results[at]!, { folder, isNight });
    if (again) results[at] = again;
  }
  const flaky = results.flatMap(result => result.flaky.map(one => one.title));
  const flakes = rememberFlakes(flaky);
  const tooFlaky = isNight ? flaky.filter(title => (flakes.get(title) ?? 0) > tolerated) : [];
  const isOver = isNight && budgetsOf(results, isNight).some(one => one.over);
  console.log(
    drawSummary({
      results,
      isNight,
      flakes,
      tooFlaky,
      notRun: [...left.map(leftOut), ...(await missingHere())],
    }),
  );
  return results.every(one => one.ok) && tooFlaky.length === 0 && !isOver ? 0 : 1;
}

async function build(isNight: boolean): Promise<boolean> {
  const layer: Layer = {
    name: 'build',
    shows: 'what is shipped',
    lane: 'computes',
    when: 'day',
    needsBuild: false,
    command: { kind: 'npm', script: 'build' },
    budget: { day: 1, night: 1 },
  };
  const result = await runLayer(layer, { folder, isNight });
  say(result);
  if (!result.ok)
    console.log(drawSummary({ results: [result], isNight, flakes: new Map(), tooFlaky: [], notRun: [] }));
  return result.ok;
}

/** A lane that is done takes over from the other. On one core there is one lane. Results are in the order of the table. */
async function runLanes(chosen: readonly Layer[], isNight: boolean): Promise<LayerResult[]> {
  const waiting = [...chosen];
  const results = new Map<string, LayerResult>();
  const runLane = async (lane: Layer['lane']): Promise<void> => {
    for (;;) {
      const next = waiting.find(layer => layer.lane === lane) ?? waiting[0];
      if (!next) return;
      waiting.splice(waiting.indexOf(next), 1);
      console.log(`${next.name} …`);
      const result = await runLayer(next, { folder, isNight, echoes: chosen.length === 1 });
      results.set(next.name, result);
      say(result);
    }
  };
  await Promise.all([runLane('computes'), ...(availableParallelism() > 1 ? [runLane('waits')] : [])]);
  return chosen.flatMap(layer => results.get(layer.name) ?? []);
}

function say({ name, ok, passed, failed, wallSeconds, why }: LayerResult): void {
  const tests = passed > 0 ? `, ${passed} tests` : '';
  console.log(`${name} ${ok ? 'passed' : 'FAILED'} in ${wallSeconds.toFixed(0)} s${tests}`);
  for (const one of failed.slice(0, 5))
    console.log(`  ${one.title}: ${firstLines(one.error ?? '', 1).slice(0, 200)}`);
  if (!ok && failed.length === 0) console.log(`  ${why}`);
}

const leftOut = ({ name, needs }: Layer): string =>
  `${name}: ${needs?.variable} names no ${needs?.names.replace(/^an? /, '')} here.`;

/** Returns what the tests need and this machine lacks. */
async function missingHere(): Promise<string[]> {
  const box = await findBox({ env: { PATH: process.env['PATH'] ?? '' } });
  if (box.works) return [];
  const mend = box.mend === undefined ? '' : ` To run them: ${box.mend}`;
  return [`the tests of the sandbox, but for what is promised without one: ${box.why}${mend}`];
}

process.exitCode = await main();
