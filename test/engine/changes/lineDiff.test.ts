/** Lines that come and go, counted and told. */
import assert from 'node:assert/strict';
import { countLines, unifiedDiff } from '../../../src/engine/changes/lineDiff.ts';

describe('line changes', () => {
  it('counts what has come and gone', () => {
    const rows: readonly (readonly [before: string, after: string, added: number, removed: number])[] = [
      ['', '', 0, 0],
      ['', 'a\nb\n', 2, 0],
      ['a\nb', '', 0, 2],
      ['a\n', 'a', 1, 1],
      ['a\r\nb\r\n', 'a\nb\n', 2, 2],
      ['a\nb\nc\nd\n', 'a\nc\nx\nd\n', 1, 1],
      ['x\na\nb\nc\n', 'a\nb\nc\ny\n', 1, 1],
      ['a\na\na\n', 'a\na\n', 0, 1],
    ];
    for (const [before, after, added, removed] of rows)
      assert.deepEqual(countLines(before, after), { added, removed }, JSON.stringify([before, after]));
  });

  it('writes hunks that patch understands', () => {
    const before = Array.from({ length: 30 }, (_, index) => `line ${index + 1}\n`);
    const after = before.with(1, 'second\n').toSpliced(20, 1).concat('last');
    assert.equal(
      unifiedDiff(before.join(''), after.join('')),
      [
        '@@ -1,5 +1,5 @@\n line 1\n-line 2\n+second\n line 3\n line 4\n line 5\n',
        '@@ -18,7 +18,6 @@\n line 18\n line 19\n line 20\n-line 21\n line 22\n line 23\n line 24\n',
        '@@ -28,3 +27,4 @@\n line 28\n line 29\n line 30\n+last\n\\ No newline at end of file\n',
      ].join(''),
    );
    assert.equal(unifiedDiff('', 'a\n'), '@@ -0,0 +1,1 @@\n+a\n');
    assert.equal(unifiedDiff('same\n', 'same\n'), '');
  });

  it('takes texts that share nothing as one block, fast', () => {
    const lines = (word: string): string =>
      Array.from({ length: 20_000 }, (_, n) => `${word} ${n}\n`).join('');
    assert.deepEqual(countLines(lines('a'), lines('b')), { added: 20_000, removed: 20_000 });
  });
});
