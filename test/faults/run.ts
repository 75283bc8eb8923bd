/**
 * `npm run faults [-- --only NAME] [--quick] [--seed N]`: faults and load on real parts, figure by figure, each with its limit; exit 1 when
 * one is missed. What cannot be measured on this machine is not judged. The seed repeats what is random, and is printed.
 */
import { randomInt } from 'node:crypto';
import { suiteOptions } from '../harness/options.ts';
import { finish, lineOf, type Result } from '../harness/report.ts';
import { type Figure, resultOf } from './figure.ts';
import { type Given, measurements } from './measurements.ts';

const { only, isWanted, flags, values } = suiteOptions(['quick'], ['corpus', 'seed']);
const names = [...new Set(measurements.flatMap(({ area, name }) => [...(area ? [area] : []), name]))];
const unknown = only.find(name => !names.includes(name));
if (unknown !== undefined) {
  console.error(`There is no '${unknown}'. There are ${names.join(', ')}.`);
  process.exit(2);
}
const given: Given = {
  corpus: values.get('corpus'),
  seed: Number(values.get('seed') ?? randomInt(1_000_000)),
};
if (!Number.isSafeInteger(given.seed) || given.seed < 0) {
  console.error(`--seed takes a whole number, and '${values.get('seed')}' is none.`);
  process.exit(2);
}
const wanted = measurements.filter(({ name, area = name }) => isWanted(name, area));
if (wanted.some(({ isRandom }) => isRandom)) console.log(`Seed: ${given.seed}`);
const extent = flags.has('quick') ? 'quick' : 'whole';
const results: Result[] = [];

async function show(name: string, measured: Promise<readonly Figure[]>): Promise<void> {
  let more: readonly Figure[];
  try {
    more = await measured;
  } catch (error) {
    const value = error instanceof Error ? error.message : String(error);
    more = [{ name, value: `it broke off: ${value}`, limit: 'it ends', met: false }];
  }
  const added = more.map(figure => resultOf(figure, name));
  results.push(...added);
  for (const result of added) console.log(lineOf(result));
}

// What only waits goes on beside the others.
const beside = wanted
  .filter(one => one.onlyWaits)
  .map(one => ({ name: one.name, measured: one.measure(extent, given) }));
// Its failure is told when its turn comes.
for (const { measured } of beside) measured.catch(() => undefined);
for (const one of wanted.filter(({ onlyWaits }) => !onlyWaits))
  await show(one.name, one.measure(extent, given));
for (const { name, measured } of beside) await show(name, measured);
finish(results);
