/** `npm run conformance -- FILE...`: one line for each case, then what contradicts the design, then the totals. */
import { readCases } from './caseFile.ts';
import { contradictions } from './contradictions.ts';
import { type CaseResult, runCase } from './runCases.ts';

const files = process.argv.slice(2);
if (files.length === 0) {
  console.error('Give one or more files of cases: npm run conformance -- test/conformance/cli.json');
  process.exit(2);
}

const results: CaseResult[] = [];
for (const file of files) {
  for (const testCase of readCases(file)) {
    const result = await runCase(testCase);
    results.push(result);
    const why = result.details.map(detail => detail.split('\n')[0]).join('; ');
    console.log(`${result.outcome.padEnd(11)} ${result.id.padEnd(8)} ${result.op}${why ? `: ${why}` : ''}`);
  }
}

const contradicting = results.filter(({ outcome }) => outcome === 'contradicts');
if (contradicting.length > 0) {
  console.log('\nThese contradict the design and stay as they are:');
  for (const { id } of contradicting) console.log(`  ${id}: ${contradictions[id]}`);
}
const count = (outcome: CaseResult['outcome']): number =>
  results.filter(result => result.outcome === outcome).length;
console.log(
  `\n${results.length} cases: ${count('pass')} pass, ${count('fail')} fail, ${count('not built')} not built, ${count('contradicts')} contradict the design.`,
);
process.exitCode = count('fail') + count('not built') === 0 ? 0 : 1;
