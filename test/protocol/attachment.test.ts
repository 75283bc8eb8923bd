/** How the lines of a selection are named. */
import assert from 'node:assert/strict';
import { placeOfSelection } from '../../src/protocol/attachment.ts';

describe('a selection', () => {
  const named = (file: string, line: number, text: string): string =>
    placeOfSelection({ file, line, text, language: '' });

  it('is named by its file and its lines', () => {
    assert.equal(named('/home/ada/math.ts', 1, 'a\nb\nc\n'), 'math.ts:1-3');
    assert.equal(named('C:\\work\\math.ts', 7, 'one line'), 'math.ts:7');
    assert.equal(named('Untitled-1', 2, 'a\n\nb'), 'Untitled-1:2-4');
    assert.equal(named('terminal zsh', 1, 'a\nb'), 'terminal zsh');
  });
});
