import assert from 'node:assert/strict';
import { visibleText } from '../../../src/extension/base/labels.ts';

describe('visibleText', () => {
  it('shows what would be invisible, or would rearrange the line, as its code point', () => {
    assert.equal(visibleText('a\u202eb'), 'a<U+202E>b');
    assert.equal(
      visibleText('a\u200bb\ufeff\u0000\u001b[31m\r'),
      'a<U+200B>b<U+FEFF><U+0000><U+001B>[31m<U+000D>',
    );
    assert.equal(visibleText('tag \u{e0041}\u{e0100}\ufe0f'), 'tag <U+E0041><U+E0100><U+FE0F>');
    assert.equal(visibleText('nbsp\u00a0filler\u3164line\u2028'), 'nbsp<U+00A0>filler<U+3164>line<U+2028>');
  });

  it('leaves words of every script, line feeds and blanks as they are', () => {
    const text = 'Überblick (kurz) — 日本語 हिन्दी 😀\n  - two';
    assert.equal(visibleText(text), text);
  });
});
