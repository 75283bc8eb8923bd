/** The files beside a SKILL.md. */
import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { resourcesOf } from '../../../src/engine/skills/skillTexts.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';

describe('companionsOf', () => {
  it('lists files with their sizes, those of the folder itself first, and nothing hidden, fetched or linked', () => {
    const folder = tempFolder({
      'one/SKILL.md': 'x',
      'one/recording.jsonl': 'x',
      'one/.env': 'x',
      'one/z.txt': '12345',
      'one/scripts/run.py': '1',
      'one/node_modules/a/b.js': 'x',
      'outside.txt': 'x',
    });
    try {
      symlinkSync(join(folder.path, 'outside.txt'), join(folder.path, 'one/link.txt'));
      const one = join(folder.path, 'one');
      assert.deepEqual(resourcesOf(one, 10), {
        files: [
          { path: 'z.txt', bytes: 5 },
          { path: 'scripts/run.py', bytes: 1 },
        ],
        isCut: false,
      });
      assert.deepEqual(resourcesOf(one, 1), { files: [{ path: 'z.txt', bytes: 5 }], isCut: true });
      assert.deepEqual(resourcesOf(join(folder.path, 'gone'), 1), { files: [], isCut: false });
    } finally {
      folder.remove();
    }
  });
});
