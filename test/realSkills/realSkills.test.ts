/**
 * The bar for skills as people publish them: what `npm run real-skills` prints may not fall below it. By day as they lie in `.claude/skills`;
 * with `TELOS_NIGHTLY=1` also as a pack, in which most other tests have theirs.
 */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { readCases } from './caseFile.ts';
import { runAll } from './runAll.ts';
import { belowTheBar, figuresOf, findings } from './table.ts';

describe('skills as their authors wrote them', () => {
  it('do their work with only the card accepted', async () => {
    const cases = readCases(fileURLToPath(new URL('cases.yaml', import.meta.url)));
    const layouts = process.env['TELOS_NIGHTLY'] === '1' ? (['pack', 'dot'] as const) : (['dot'] as const);
    const outcomes = await runAll(cases, layouts);
    const below = layouts.flatMap(layout => belowTheBar(figuresOf(outcomes, layout)));
    assert.deepEqual(below, [], findings(outcomes).join('\n'));
  });

  it('do their work in the shapes of plugins', async () => {
    const cases = readCases(fileURLToPath(new URL('plugins.yaml', import.meta.url)));
    assert.ok(cases.length >= 60, String(cases.length));
    const outcomes = await runAll(cases, ['pack']);
    assert.deepEqual(belowTheBar(figuresOf(outcomes, 'pack')), [], findings(outcomes).join('\n'));
  });
});
