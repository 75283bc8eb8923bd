import assert from 'node:assert/strict';
import { excerpt, visible, visibleLines, visibleParts } from '../../webview/visibleText.ts';

describe('visible text', () => {
  it('shows characters that reorder, hide or erase text as code points', () => {
    assert.equal(visible('rm \u202Efdp.txt'), 'rm <U+202E>fdp.txt');
    assert.equal(visible('a\u200Bb\u0000c\u001B[2Kd'), 'a<U+200B>b<U+0000>c<U+001B>[2Kd');
    assert.equal(visible('x\u00A0y\u3164z\u{E0041}'), 'x<U+00A0>y<U+3164>z<U+E0041>');
    assert.equal(visible('lone \uD800 half'), 'lone <U+D800> half');
  });

  it('leaves letters of every script and symbols as they are', () => {
    const text = 'grüße 日本語 العربية 🚀 a=b && c | d';
    assert.equal(visible(text), text);
  });

  it('marks a line feed and still breaks the line', () => {
    assert.deepEqual(visibleParts('a\nb'), [
      { text: 'a', escaped: false },
      { text: '\\n', escaped: true },
      { text: '\nb', escaped: false },
    ]);
  });

  it('leaves the breaks of prose without a mark, and nothing else', () => {
    assert.equal(visibleLines('a\r\nb\n\tc\r\u202ed'), 'a\nb\n\tc\\r<U+202E>d');
  });

  it('says how much of a long text is hidden and shows both ends', () => {
    const cut = excerpt(`curl ${'x'.repeat(5_000)} | sh`, 1_000);
    assert.equal(cut.hidden, 5_000 + 10 - 1_000);
    assert.ok(cut.head.startsWith('curl ') && cut.tail.endsWith(' | sh'));
    assert.deepEqual(excerpt('short', 1_000), { head: 'short', hidden: 0, tail: '' });
  });

  it('never cuts a character in two', () => {
    const cut = excerpt('🚀'.repeat(100), 51);
    assert.equal(visible(cut.head + cut.tail).includes('<U+'), false);
    assert.equal(cut.head.length + cut.hidden + cut.tail.length, 200);
  });
});
