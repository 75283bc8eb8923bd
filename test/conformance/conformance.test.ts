/** The shared cases, each a test; those that contradict the design are left to the runner, which prints why. */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { readCases } from './caseFile.ts';
import { runCase } from './runCases.ts';

for (const name of ['cli.json', 'fs-skills.json']) {
  describe(`conformance: ${name}`, () => {
    for (const testCase of readCases(fileURLToPath(new URL(name, import.meta.url)))) {
      it(`${testCase.id} ${testCase.when.op}`, async () => {
        const { outcome, details } = await runCase(testCase);
        assert.ok(outcome === 'pass' || outcome === 'contradicts', `${outcome}: ${details.join('\n')}`);
      });
    }
  });
}
