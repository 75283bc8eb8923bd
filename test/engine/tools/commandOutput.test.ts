import assert from 'node:assert/strict';
import { OutputCapture } from '../../../src/engine/tools/commandOutput.ts';

const captured = (limit: number, ...chunks: string[]): string => {
  const capture = new OutputCapture(limit);
  for (const chunk of chunks) capture.add(Buffer.from(chunk));
  return capture.text();
};

describe('OutputCapture', () => {
  it('gives back what fits as it came, but for the last newlines', () => {
    assert.equal(captured(10, 'a\n', 'b\n\n'), 'a\nb');
    assert.equal(captured(10, '0123456789'), '0123456789');
    assert.equal(captured(10), '');
  });

  it('keeps the first and last half, however the output is cut into chunks', () => {
    const whole = 'abcdefghijklmnopqrstuvwxyz';
    const expected = 'abcde\n[Cut: 16 of 26 bytes are left out here.]\nvwxyz';
    for (let size = 1; size <= whole.length; size++) {
      const chunks = whole.match(new RegExp(`.{1,${size}}`, 'g'))!;
      assert.equal(captured(10, ...chunks), expected, `chunks of ${size}`);
    }
  });

  it('cuts no character in two', () => {
    assert.equal(captured(10, 'äöü€äöü€'), 'äö\n[Cut: 8 of 18 bytes are left out here.]\nü€');
  });
});
