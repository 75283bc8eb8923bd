import assert from 'node:assert/strict';
import { withOutput } from '../../src/protocol/liveText.ts';
import { assertGrowsWithSize } from '../growth.ts';

describe('output of a running command', () => {
  const shown = (...parts: string[]): string => parts.reduce((text, part) => withOutput(text, part, 40), '');

  it('writes a line anew after a carriage return, also where the parts are cut', () => {
    assert.equal(shown('10 %\r20 %\r30 %'), '30 %');
    assert.equal(shown('one\n10 %\r', '20 %', '\r100 %\n', 'two'), 'one\n100 %\ntwo');
    assert.equal(shown('one\r', '\ntwo\r\nthree'), 'one\ntwo\nthree');
  });

  it('keeps the end, from the beginning of a line', () => {
    assert.equal(shown('a line\n'.repeat(100)), 'a line\n'.repeat(5));
    assert.equal(shown('x'.repeat(1_000)), 'x'.repeat(40));
  });

  it('takes no longer for a long line', () => {
    assertGrowsWithSize(2_000_000, size => withOutput('', 'x'.repeat(size), 8_000));
  });
});
