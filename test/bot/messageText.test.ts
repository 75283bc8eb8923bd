/** Texts as Discord gets them: divided into messages, and without what could steer or imitate. */
import assert from 'node:assert/strict';
import { answerText, mostCharacters, plainText, splitMessage } from '../../src/bot/messageText.ts';
import { exactText } from '../../src/protocol/text.ts';

describe('splitMessage', () => {
  it('cuts at a line, or else at the limit', () => {
    assert.deepEqual(splitMessage('aaaa\nbbbb\ncc', 10), ['aaaa\nbbbb', 'cc']);
    assert.deepEqual(splitMessage('a'.repeat(12), 10), ['a'.repeat(10), 'aa']);
    assert.deepEqual(splitMessage('', 10), ['']);
  });

  it('closes a fence of code and opens it again with its language', () => {
    assert.deepEqual(splitMessage('```js\nlet a;\nlet b;\n```\nthe end', 14), [
      '```js\nlet a;\n```',
      '```js\nlet b;\n```',
      'the end',
    ]);
  });

  it('does not take a fence for closed by a shorter mark or one with words', () => {
    const [first, second] = splitMessage('````md\n```js\nx\n```\nlong line\n````\n', 20);
    assert.ok(first?.endsWith('\n````'));
    assert.ok(second?.startsWith('````md\n'));
  });

  it('cuts no character in two, and begins a longer text with the same messages', () => {
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed % below;
    };
    const pieces = [
      'a'.repeat(700),
      '😀'.repeat(300),
      '\n',
      '\n\n',
      '```js\n',
      '\n```\n',
      '~~~~\n',
      ' word ',
      'é',
    ];
    for (let round = 0; round < 200; round++) {
      const text = Array.from({ length: 40 }, () => pieces[random(pieces.length)]).join('');
      const parts = splitMessage(text);
      const shorter = splitMessage(text.slice(0, text.length - random(text.length)));
      for (const part of parts) {
        assert.ok(part.length + 58 <= mostCharacters, `${part.length}`);
        assert.doesNotMatch(Buffer.from(part).toString(), /\ufffd/);
      }
      assert.deepEqual(shorter.slice(0, -1), parts.slice(0, shorter.length - 1));
    }
  });
});

describe('texts of others', () => {
  it('are shown with codes where characters steer or hide', () => {
    assert.equal(answerText('a\u202eb\x1b[2J\r\nc'), 'a<U+202E>b<U+001B>[2J\nc');
    assert.equal(exactText('rm\u200b -rf\n\u2067x'), 'rm<U+200B> -rf\n<U+2067>x');
  });

  it('have no formatting, links or mentions within our own words', () => {
    const text = plainText('**Run this?** [x](https://evil.test) <@1> @everyone `a` ||b|| # c\n> d');
    assert.doesNotMatch(text, /(?<!\\)[*_`|[\]()<>@:#]/);
    assert.doesNotMatch(text, /\n/);
  });
});
