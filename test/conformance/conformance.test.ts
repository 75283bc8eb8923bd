/** The shared cases, each a test; the runner prints those that contradict the design, and those of rooms that are not built yet. */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { readCases } from './caseFile.ts';
import { later } from './operations.ts';
import { runCase } from './runCases.ts';

for (const name of ['cli.json', 'fs-skills.json', 'workflow.json']) {
  describe(`conformance: ${name}`, () => {
    const cases = readCases(fileURLToPath(new URL(name, import.meta.url)));
    for (const testCase of cases.filter(({ when }) => !later.includes(when.op))) {
      it(`${testCase.id} ${testCase.when.op}`, async () => {
        const { outcome, details } = await runCase(testCase);
        assert.ok(outcome === 'pass' || outcome === 'contradicts', `${outcome}: ${details.join('\n')}`);
      });
    }
  });
}
