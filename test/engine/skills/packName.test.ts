/** A name becomes a folder only if it can be nothing else. */

import assert from 'node:assert/strict';
import { packNameProblem } from '../../../src/engine/skills/scaffold.ts';

describe('packNameProblem', () => {
  it('has nothing against ordinary names', () => {
    for (const name of ['gmail', 'My Agent', 'a_b-c.d', 'Über', '日本語', 'console', 'com10'])
      assert.equal(packNameProblem(name), undefined, name);
  });

  it('refuses what is empty, a path, a device, hidden or reserved', () => {
    const bad = [
      '',
      ' ',
      '.',
      '..',
      'a..b',
      '/a',
      'a/b',
      'a\\b',
      'C:x',
      '~',
      '~x',
      '.hidden',
      '-rf',
      'a ',
      'a.',
      'a:b',
    ];
    bad.push(
      'a\u0000b',
      'a\nb',
      'a\u202eb',
      'x'.repeat(65),
      'nul',
      'AUX.txt',
      'lpt1',
      'COM¹',
      'telos',
      'Node_Modules',
    );
    for (const name of bad) assert.ok(packNameProblem(name), JSON.stringify(name));
  });
});
