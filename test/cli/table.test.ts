import assert from 'node:assert/strict';
import { table } from '../../src/cli/terminalText.ts';

describe('table', () => {
  const rows = [
    ['kickoff', 'Starts the day,\nwith a plan'],
    ['x', 'A \x1b[31mred\x1b[0m lie'],
  ];

  it('aligns the columns, one line a row, with no space at the end and nothing that steers', () => {
    assert.equal(
      table(['Skill', 'Description'], rows),
      [
        'Skill    Description',
        'kickoff  Starts the day, with a plan',
        'x        A \\x1b[31mred\\x1b[0m lie',
      ].join('\n'),
    );
  });

  it('aligns letters that take two columns, or none', () => {
    const wide = table(
      ['Skill', 'Description'],
      [
        ['日本', 'a'],
        ['e\u0301', 'b'],
        ['🚀', '語語語'],
      ],
      18,
    );
    assert.deepEqual(wide.split('\n').slice(1), ['日本   a', 'e\u0301      b', '🚀     語語語']);
    assert.equal(table(['A', 'B'], [['x', '語'.repeat(40)]], 20).split('\n')[1], `x  ${'語'.repeat(8)}…`);
  });

  it('cuts the last column to the width there is', () => {
    const lines = table(['Skill', 'Description'], [['a', 'b'.repeat(300)]], 40).split('\n');
    assert.equal(lines[1]?.length, 40);
    assert.ok(lines[1]?.endsWith('…'));
  });
});
