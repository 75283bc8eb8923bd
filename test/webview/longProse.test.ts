import assert from 'node:assert/strict';
import { splitLong } from '../../webview/markdownBlocks.ts';

describe('long prose', () => {
  it('is whole up to a length that no page of prose has', () => {
    const text = 'word '.repeat(8_000);
    assert.deepEqual(splitLong(text), { head: text, rest: '' });
  });

  it('is its beginning and the rest beyond that, and no character is lost or halved', () => {
    for (const text of ['a'.repeat(5_000_000), '😀'.repeat(50_000), `x${'😀'.repeat(50_000)}`]) {
      const { head, rest } = splitLong(text);
      assert.ok(head.length <= 20_000 && head.length >= 19_999);
      assert.equal(head + rest, text);
      assert.doesNotMatch(`${head}|${rest}`, /\p{Surrogate}/u);
    }
  });
});
