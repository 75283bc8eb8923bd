import assert from 'node:assert/strict';
import { exactText } from '../../src/cli/terminalText.ts';
import { escapeInvisible } from '../../src/engine/files/plainText.ts';
import { isSensitive } from '../../src/engine/files/sensitiveNames.ts';
import { mcpReach } from '../../src/engine/policy/mcpReach.ts';
import { findRedFlags } from '../../src/engine/scan/redFlags.ts';
import { plainLabel, visibleText } from '../../src/extension/base/labels.ts';
import { hiding, ignored, shortened, steering, unseen } from '../../src/protocol/text.ts';
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
});
