import assert from 'node:assert/strict';
import { cutMiddle, escapeInvisible } from '../../../src/engine/files/plainText.ts';

describe('names with characters that cannot be seen', () => {
  it('are shown with their code points, so that they cannot pose as others', () => {
    for (const code of [
      ...[0x0a, 0x1b, 0xad, 0x34f, 0x61c, 0x115f, 0x17b4, 0x180e, 0x200b, 0x202e, 0x2028, 0x2064, 0x2800],
      ...[0x3164, 0xfe0f, 0xfeff, 0xffa0, 0xe000, 0xe0041, 0xe0100],
    ])
      assert.equal(
        escapeInvisible(`pay${String.fromCodePoint(code)}roll.md`),
        `pay\\u{${code.toString(16)}}roll.md`,
      );
  });

  it('stay as they are where everything can be seen, with spaces of any width', () => {
    for (const name of [
      'Bildschirmfoto 2026\u202fPM.png',
      '日記\u3000一.md',
      'été-ß (1).txt',
      '🌱.md',
      'שלום.md',
    ])
      assert.equal(escapeInvisible(name), name);
  });
});

describe('a text that is too long', () => {
  const note = (bytes: number): string => `[${bytes}]`;

  it('keeps its head and its tail within the limit, at whole characters', () => {
    for (const most of [20, 21, 22, 23, 24])
      for (const text of ['ä'.repeat(500), '🌱'.repeat(300), 'a€'.repeat(300)]) {
        const cut = cutMiddle(text, most, note);
        const [head = '', tail = ''] = cut.split(`[${Buffer.byteLength(text)}]`);
        assert.ok(Buffer.byteLength(cut) <= most && head !== '' && tail !== '', cut);
        assert.ok(text.startsWith(head) && text.endsWith(tail), cut);
      }
  });

  it('is counted in bytes, and stays as it is if it fits', () => {
    assert.equal(cutMiddle('ää', 4, note), 'ää');
    assert.equal(cutMiddle('äää', 4, note), '[6]');
  });
});
