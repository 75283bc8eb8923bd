import assert from 'node:assert/strict';
import {
  errorText,
  exactText,
  remedyText,
  terminalJson,
  terminalLine,
  terminalText,
} from '../../src/cli/terminalText.ts';
import { TelosError } from '../../src/engine/core/errors.ts';
import { sentence } from '../../src/protocol/text.ts';

describe('terminalText', () => {
  it('shows what could steer the terminal and keeps newlines and tabs', () => {
    assert.equal(terminalText('a\x1b[2Jb\x07\tc\nd\r\ne\rf'), 'a\\x1b[2Jb\\x07\tc\nd\ne\\x0df');
    assert.equal(terminalText('\x9b31m\u202eevil\u2066\x7f'), '\\x9b31m\\u202eevil\\u2066\\x7f');
  });

  it('leaves the letters of every language alone, joiners included', () => {
    const text = 'Grüße, 日本語, می‌خواهم, 👩‍👩‍👧, ❤️';
    assert.equal(terminalText(text), text);
  });

  it('shows invisible characters too where somebody decides', () => {
    assert.equal(exactText('rm\u200b -rf\u00ad \u{e0041}/\r\n'), 'rm\\u200b -rf\\xad \\u{e0041}/\\x0d\n');
  });

  it('makes one line of several and cuts at whole characters', () => {
    assert.equal(terminalLine(' a\n\tb '), 'a b');
    assert.equal(terminalLine('👍👍👍👍', 5), '👍👍…');
  });

  it('writes JSON that reads back the same and holds no character that steers', () => {
    const value = { text: 'a\x1b\x7f\x9b\u202e\u2028b' };
    const line = terminalJson(value);
    assert.match(line, /^[\x20-\x7e]*$/);
    assert.deepEqual(JSON.parse(line), value);
  });
});

describe('errorText', () => {
  it('says what to do with the commands of the command line, and with no command of the editor', () => {
    const error = new TelosError('auth', [sentence('The provider {0} has no key.', 'openai')], {
      remedy: { kind: 'set_key', variable: 'OPENAI_API_KEY' },
    });
    assert.match(
      errorText(error),
      /^The provider openai has no key\. `telos key` sets it, or OPENAI_API_KEY in the environment does/,
    );
    assert.equal(remedyText({ kind: 'review_agent', agent: 'kairos' }), 'Review it with: telos trust kairos');
    assert.equal(errorText(new Error('\x1b[2Jplain')), '\\x1b[2Jplain');
  });
});
