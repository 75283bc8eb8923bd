/** `npm run conformance [-- FILE...] [--only ID or operation]`: one line for each case, then what contradicts the design, then the totals. */
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suiteOptions } from '../harness/options.ts';
import { finish, lineOf, type Result } from '../harness/report.ts';
import { readCases } from './caseFile.ts';
import { contradictions } from './contradictions.ts';
import { caseFiles, runCase } from './runCases.ts';

const options = suiteOptions();
const files =
  options.files.length > 0
    ? options.files
    : caseFiles.map(name => fileURLToPath(new URL(name, import.meta.url)));
const results: Result[] = [];
for (const file of files) {
  const area = basename(file);
  for (const testCase of readCases(file)) {
    const { op } = testCase.when;
    if (!options.isWanted(testCase.id, op, area)) continue;
    const verdict = await runCase(testCase);
    results.push({ ...verdict, id: testCase.id, area });
    console.log(lineOf({ ...verdict, id: `${testCase.id} ${op}`, area }));
  }
}
const contradicting = results.filter(({ result }) => result === 'contradicts');
finish(
  results,
  contradicting.map(({ id }) => [id, contradictions[id] ?? '']),
);
