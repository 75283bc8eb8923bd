/** Texts that were made to be slow to compare: what a model or a file gives holds up nobody. */
import assert from 'node:assert/strict';
import { likeliest, nearestLines } from '../../../src/engine/tools/editMatch.ts';
import { assertGrowsWithSize } from '../../growth.ts';

describe('finding the text of an edit', () => {
  it('takes time by the size of the texts alone', () => {
    const long: Record<string, (size: number) => void> = {
      'blanks before a letter': size => void likeliest(`${' '.repeat(size)}x`, 'y', 'z'),
      'blanks in a text that fits': size =>
        void likeliest(`a${' '.repeat(size)}b\t`, `a${' '.repeat(size)}b`, 'z'),
      'many lines': size => void nearestLines('a b\n'.repeat(size), 'b c\n'.repeat(size)),
    };
    for (const [name, work] of Object.entries(long)) assertGrowsWithSize(8_000, work, name);
  });

  it('compares blanks inside of a line and none at its end, takes a tab for an indent, and keeps those of the file', () => {
    const found = likeliest(
      'if (a)  {\t\n\tb( 1,\t2);  \n}\n',
      'if (a)  {\n    b( 1,\t2);\n}',
      'if (a) {\n    c();\n}',
    );
    assert.equal(found?.fresh, 'if (a) {\t\n\tc();  \n}');
    assert.deepEqual([found?.start, found?.end], [0, 25]);
  });
});
