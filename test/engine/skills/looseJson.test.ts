import assert from 'node:assert/strict';
import { parseLooseJson } from '../../../src/engine/skills/frontmatterLines.ts';

describe('parseLooseJson', () => {
  it('reads what people write for JSON', () => {
    assert.deepEqual(
      parseLooseJson(`{ // note
        always:true, 'it\\'s': "https://x.test/a,b", /* more */ n: 0x10, list: [1, 'two',], $key: bare, t: "\\u0041\\n", }`),
      { always: true, "it's": 'https://x.test/a,b', n: 16, list: [1, 'two'], $key: 'bare', t: 'A\n' },
    );
  });

  it('answers undefined for anything else, however long it is left open', () => {
    for (const text of ['', '{', '{"a"', 'a b', '{"a":"', '/*'.repeat(30_000), `{${'"a'.repeat(20_000)}`])
      assert.equal(parseLooseJson(text), undefined);
  });
});
