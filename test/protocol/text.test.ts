import assert from 'node:assert/strict';
import { exactText } from '../../src/cli/terminalText.ts';
import { escapeInvisible } from '../../src/engine/files/plainText.ts';
import { isSensitive } from '../../src/engine/files/sensitiveNames.ts';
import { mcpReach } from '../../src/engine/policy/mcpReach.ts';
import { findRedFlags } from '../../src/engine/policy/text/redFlags.ts';
import { plainLabel, visibleText } from '../../src/extension/base/labels.ts';
import { beginningOf, endOf, hiding, ignored, shortened, steering, unseen } from '../../src/protocol/text.ts';
import { visible } from '../../webview/visibleText.ts';

const everyCharacter = Array.from({ length: 0x110000 }, (_, code) => String.fromCodePoint(code));
const named = (characters: readonly string[]): string =>
  characters
    .slice(0, 20)
    .map(one => one.codePointAt(0)?.toString(16))
    .join(' ');

describe('characters that cannot be seen', () => {
  it('contain those that steer, hide or are ignored', () => {
    const others = everyCharacter.filter(
      one => !unseen.test(one) && [steering, hiding, ignored].some(some => some.test(one)),
    );
    assert.equal(named(others), '');
  });

  it('are shown as code points wherever a person approves', () => {
    const inAWidth = /\p{Zs}/u;
    // Of the many that are private or not assigned, every 256th.
    const few = everyCharacter.filter(
      (one, code) =>
        unseen.test(one) && (code % 256 === 0 || !/[\p{Co}\p{Cn}]/u.test(one) || ignored.test(one)),
    );
    const places: readonly [string, (text: string) => string, except: RegExp][] = [
      ['the command line', exactText, /[\n\t]/],
      ['the editor', visibleText, /\n/],
      ['the chat view', visible, /\n/],
      ['names of files', escapeInvisible, inAWidth],
    ];
    for (const [place, show, except] of places) {
      const passed = few.filter(one => !except.test(one) && show(`a${one}b`).includes(one));
      assert.equal(named(passed), '', place);
    }
  });

  it('hide nothing in a text that is trusted', () => {
    const missed = everyCharacter.filter(
      one =>
        hiding.test(one) && !findRedFlags(`a${one}b`, 'a').some(flag => flag.kind === 'invisible-characters'),
    );
    assert.equal(named(missed), '');
  });

  it('hide no name that is watched, from a file tool or from a server', () => {
    const places = { home: '/home/me', own: ['/home/me/garden'], others: [], isRemote: false };
    const meant = (path: string): string[] =>
      mcpReach({ path }, places)?.paths.flatMap(({ meanings }) => meanings) ?? [];
    const [plain = ''] = meant('/home/me/garden/.ssh');
    assert.notEqual(plain, '');
    const missed = everyCharacter.filter(one => {
      if (!ignored.test(one)) return false;
      const name = `/home/me/garden/.s${one}sh`;
      return !isSensitive(name) || !meant(name).includes(plain);
    });
    assert.equal(named(missed), '');
  });
});

describe('a text that is cut', () => {
  it('has at most as many characters as it may, and ends in an ellipsis', () => {
    assert.equal(shortened('abc', 3), 'abc');
    assert.equal(shortened('abcd', 3), 'ab…');
    assert.equal(plainLabel('abcd', 3), 'ab…');
  });

  it('is cut between characters, not within one', () => {
    for (let most = 1; most < 10; most++) {
      const cut = shortened('🌱🌱🌱🌱🌱', most);
      assert.ok(!/\p{Cs}/u.test(cut) && [...cut].length <= most, `${most}: ${cut}`);
    }
  });

  it('has no half of an emoji, of a flag or of a letter with marks, at either end', () => {
    const signs = ['a', '\n', '\r\n', 'é', 'e\u0301', '漢', '🌱', '👍🏽', '👩‍👩‍👧‍👦', '🇩🇪', '한', '✈️'];
    const text = Array.from({ length: 60 }, (_, index) => signs[(index * 7) % signs.length]!).join('');
    const ends = new Set([...new Intl.Segmenter('en').segment(text)].map(({ index }) => index)).add(
      text.length,
    );
    for (let most = 0; most <= text.length; most++) {
      const [begin, end] = [beginningOf(text, most), endOf(text, most)];
      assert.ok(text.startsWith(begin) && begin.length <= most && begin.length > most - 12, `${most}`);
      assert.ok(text.endsWith(end) && end.length <= most && end.length > most - 12, `${most}`);
      assert.ok(ends.has(begin.length) && ends.has(text.length - end.length), `${most}: ${begin}|${end}`);
    }
  });

  it('is short, and whole characters, where marks are piled up without end or halves come from outside', () => {
    for (const one of ['e', '🌱', '\ud83d'])
      for (const pile of ['\u0301', '\u200d🌱', '\u{e0100}', '🏽', '\ud83d', '\udf31']) {
        const text = one + pile.repeat(2_000);
        for (let most = 900; most < 908; most++)
          for (const cut of [beginningOf(text, most), endOf(text, most)]) {
            assert.ok(cut.length <= most && cut.length > most - 70);
            assert.ok(cut.isWellFormed() || !text.isWellFormed());
          }
      }
  });
});
