import assert from 'node:assert/strict';
import { faultIn } from '../../../src/engine/mcp/config.ts';

describe('faultIn', () => {
  it('finds the first part that has no place', () => {
    for (const [text, line, column] of [
      ['{"a": }', 1, 7],
      ['{\n  "a": 1,\n}', 3, 1],
      ['{"a": [1, 2}', 1, 12],
      ['{"a" 1}', 1, 6],
      ["{'a': 1}", 1, 2],
      ['[1 2]', 1, 4],
      ['[1,]', 1, 4],
      ['{"a": "b\nc"}', 1, 7],
      ['{"a": tru}', 1, 7],
      ['{} {}', 1, 4],
      ['', 1, 1],
      ['{"a": {', 1, 8],
    ] as const)
      assert.deepEqual(faultIn(text), { line, column }, text);
  });

  it('agrees with the parser on what is JSON: the fault of a whole text is its end', () => {
    const value = { a: [1, -2.5e3, true, null, { b: 'x\\"\u00e4', c: [] }], d: {} };
    const text = `${JSON.stringify(value, null, 2)} `;
    const lines = text.split('\n');
    assert.deepEqual(faultIn(text), { line: lines.length, column: lines.at(-1)!.length + 1 });
  });

  it('takes no long over a deep one', () => {
    assert.equal(faultIn('['.repeat(200_000)).column, 200_001);
  });
});
