/** The bar for skills as people publish them: what `npm run real-skills` prints may not fall below it. */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { readCases } from './caseFile.ts';
import { runAll } from './runAll.ts';
import { belowTheBar, figuresOf, findings } from './table.ts';

describe('skills as their authors wrote them', () => {
  it('do their work with only the card accepted, in both layouts', async () => {
    const cases = readCases(fileURLToPath(new URL('cases.yaml', import.meta.url)));
    const layouts = ['pack', 'dot'] as const;
    const outcomes = await runAll(cases, layouts);
    const below = layouts.flatMap(layout => belowTheBar(figuresOf(outcomes, layout)));
    assert.deepEqual(below, [], findings(outcomes).join('\n'));
  });
});
