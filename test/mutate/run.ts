/**
 * Breaks the sources in small ways, one at a time in a temporary copy, and prints which breaks no test notices. `--room NAME` (or a
 * source file) narrows, `--seed N` repeats, `--count N` limits, `--list` prints the breaks alone.
 */
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { projectSources } from '../map.ts';
import type { Equivalent } from './choose.ts';
import { drawSurvivors, drawTable, lineOf } from './report.ts';
import { breaksFor, tryBreaks } from './tryBreaks.ts';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const usage = 'Usage: npm run mutate -- [--room NAME] [--seed N] [--count N] [--list]';

const { values } = parseArgs({
  options: {
    room: { type: 'string' },
    seed: { type: 'string' },
    count: { type: 'string' },
    list: { type: 'boolean' },
  },
});
const seed = wholeNumber('seed', values.seed) ?? randomInt(1_000_000);
const count = wholeNumber('count', values.count) ?? (values.room === undefined ? 150 : 40);
const breaks = breaksFor({ root, files: [...projectSources().keys()], room: values.room, seed, count });
if (breaks.length === 0) {
  fail(
    `There is no room or source file named ${values.room}, or nothing in it to break. npm run map prints the rooms.`,
  );
}
const again = [
  'npm run mutate --',
  ...(values.room ? ['--room', values.room] : []),
  `--seed ${seed} --count ${count}`,
];
console.log(`${breaks.length} breaks. To see the same ones again: ${again.join(' ')}\n`);

if (values.list) {
  for (const one of breaks) console.log(lineOf(one));
} else {
  const known = JSON.parse(readFileSync(join(root, 'test/mutate/equivalent.json'), 'utf8')) as Equivalent[];
  const stopped = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopped.abort());
  const { tried, unusable } = await tryBreaks(root, breaks, known, stopped.signal, ({ one, outcome }) =>
    console.log(`${outcome.padEnd(12)} ${one.file}:${one.line} ${one.kind}`),
  );
  console.log(`\n${drawSurvivors(tried)}\n${drawTable(tried)}`);
  for (const test of unusable) console.log(`Not used, since it fails without a break: ${test}`);
  if (stopped.signal.aborted) fail('Stopped before the end.');
}

function wholeNumber(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text)) fail(`--${name} takes a whole number, and "${text}" is none.\n${usage}`);
  return Number(text);
}

function fail(why: string): never {
  console.error(why);
  process.exit(1);
}
