import assert from 'node:assert/strict';
import { matchesParts, type WildcardPart } from '../../../src/engine/files/globPattern.ts';

const matches = (pattern: string, text: string): boolean =>
  matchesParts(
    [...pattern].map((sign): WildcardPart => (sign === '*' ? '*' : other => other === sign)),
    text,
  );

describe('matchesParts', () => {
  it('takes a star for any run of characters, and everything else for itself', () => {
    for (const [pattern, text, expected] of [
      ['git *', 'git status', true],
      ['git *', 'git', false],
      ['*', '', true],
      ['a*b*c', 'a-b-b-c', true],
      ['a*b*c', 'a-b-b-d', false],
      ['a?', 'ab', false],
      ['a?', 'a?', true],
    ] as const)
      assert.equal(matches(pattern, text), expected, `${pattern} ${text}`);
  });

  it('answers at once whatever the pattern', function () {
    this.timeout(1000);
    assert.equal(matches('*a'.repeat(50), `${'a'.repeat(5000)}b`), false);
  });
});
