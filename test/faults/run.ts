/**
 * `npm run faults [-- --only NAME] [--quick]`: faults and load on real parts, figure by figure, each with its limit; exit 1 when one is missed.
 * What cannot be measured on this machine is named and is no miss.
 */
import { parseArgs } from 'node:util';
import { type Figure, figureLine } from './figure.ts';
import { measurements } from './measurements.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    quick: { type: 'boolean', default: false },
    corpus: { type: 'string' },
  },
});
const unknown = values.only?.find(name => !measurements.some(one => one.name === name));
if (unknown !== undefined) {
  console.error(`There is no '${unknown}'. There are ${measurements.map(one => one.name).join(', ')}.`);
  process.exit(2);
}
const wanted = measurements.filter(one => values.only?.includes(one.name) ?? true);
const extent = values.quick ? 'quick' : 'whole';
const figures: Figure[] = [];

async function show(name: string, measured: Promise<readonly Figure[]>): Promise<void> {
  let more: readonly Figure[];
  try {
    more = await measured;
  } catch (error) {
    const value = error instanceof Error ? error.message : String(error);
    more = [{ name, value: `it broke off: ${value}`, limit: 'it ends', met: false }];
  }
  figures.push(...more);
  for (const figure of more) console.log(figureLine(figure));
}

// What only waits goes on beside the others.
const beside = wanted
  .filter(one => one.onlyWaits)
  .map(one => ({ name: one.name, measured: one.measure(extent, values.corpus) }));
// Its failure is told when its turn comes.
for (const { measured } of beside) measured.catch(() => undefined);
for (const one of wanted.filter(({ onlyWaits }) => !onlyWaits))
  await show(one.name, one.measure(extent, values.corpus));
for (const { name, measured } of beside) await show(name, measured);

const count = (met: Figure['met']): number => figures.filter(figure => figure.met === met).length;
console.log(
  `\n${figures.length} figures: ${count(true)} ok, ${count(false)} missed, ${count(undefined)} not measured.`,
);
process.exitCode = count(false) === 0 ? 0 : 1;
