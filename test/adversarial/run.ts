/** `npm run adversarial -- FILE [--area A] [--case ID] [--fast]`: one line for each case, then totals by area; the exit code is 1 when one fails. */
import { parseArgs } from 'node:util';
import { readCases } from './caseFile.ts';
import { closeBrowser } from './chatWindow.ts';
import { knownFailures } from './contradictions.ts';
import { slowCases } from './kinds.ts';
import { sumUp } from './outside.ts';
import { type CaseResult, lineOf, runCase } from './runCases.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    area: { type: 'string', multiple: true },
    case: { type: 'string', multiple: true },
    fast: { type: 'boolean', default: false },
  },
});
const files = positionals.length > 0 ? positionals : [new URL('cases.json', import.meta.url).pathname];
const wanted = files
  .flatMap(readCases)
  .filter(({ area }) => !values.area || values.area.includes(area))
  .filter(({ id }) => !values.case || values.case.includes(id))
  .filter(({ id }) => !values.fast || !slowCases.has(id));
const results: CaseResult[] = [];
for (const theCase of wanted) {
  const result = await runCase(theCase);
  results.push(result);
  console.log(lineOf(result));
}
await closeBrowser();
for (const [id, why] of knownFailures)
  if (results.some(one => one.id === id && one.result === 'fail')) console.log(`known: ${id}: ${why}`);
const outside = results.flatMap(({ seen }) => (seen?.outside ? [seen.outside] : []));
if (outside.length > 0) console.log(sumUp(outside));
const count = (area: string | undefined, result: string): string =>
  String(
    results.filter(one => (area === undefined || one.area === area) && one.result === result).length,
  ).padStart(8);
console.log(`\n${'area'.padEnd(12)}${['pass', 'FAIL', 'pending'].map(word => word.padStart(8)).join('')}`);
for (const area of [...new Set(results.map(one => one.area)), undefined])
  console.log(
    `${(area ?? 'total').padEnd(12)}${['pass', 'fail', 'pending'].map(word => count(area, word)).join('')}`,
  );
if (wanted.length === 0) console.log('No case was asked for by that.');
process.exit(wanted.length === 0 || results.some(({ result }) => result === 'fail') ? 1 : 0);
