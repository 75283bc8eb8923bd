/**
 * `npm run real-skills [-- --only NAME] [--layout pack|dot] [--cases FILE|plugins] [--yes]`: skills as people publish them, run as their text has it.
 * Prints the figures and what to look at; exit 1 below the bar. `--yes` shows what a person who answers every question with yes would get.
 */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { readCases } from './caseFile.ts';
import { runAll } from './runAll.ts';
import type { Layout } from './skillWorld.ts';
import { belowTheBar, figuresOf, findings, tableOf } from './table.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    layout: { type: 'string' },
    cases: { type: 'string', default: fileURLToPath(new URL('cases.yaml', import.meta.url)) },
    yes: { type: 'boolean', default: false },
  },
});
const file =
  values.cases === 'plugins' ? fileURLToPath(new URL('plugins.yaml', import.meta.url)) : values.cases;
const cases = readCases(file).filter(({ name }) => values.only?.includes(name) ?? true);
const layouts = (['pack', 'dot'] as const).filter(layout => (values.layout ?? layout) === layout);
if (cases.length === 0 || layouts.length === 0) {
  console.error('There is no such skill or layout.');
  process.exit(2);
}
const outcomes = await runAll(cases, layouts, values.yes);
const columns = layouts.map((layout: Layout) => figuresOf(outcomes, layout));
for (const line of findings(outcomes)) console.log(line);
console.log(`\n${tableOf(columns)}\n`);
const below = columns.flatMap(belowTheBar);
for (const line of below) console.log(`Below the bar: ${line}.`);
process.exitCode = below.length === 0 ? 0 : 1;
