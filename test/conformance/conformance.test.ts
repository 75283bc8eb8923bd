/** The shared cases, each a test; the runner prints those that contradict the design. */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { readCases } from './caseFile.ts';
import { caseFiles, runCase } from './runCases.ts';

for (const name of caseFiles) {
  describe(`conformance: ${name}`, () => {
    const cases = readCases(fileURLToPath(new URL(name, import.meta.url)));
    for (const testCase of cases) {
      it(`${testCase.id} ${testCase.when.op}`, async () => {
        const { result, problems } = await runCase(testCase);
        assert.ok(result === 'pass' || result === 'contradicts', `${result}: ${problems.join('\n')}`);
      });
    }
  });
}
