/** A folder that is too much for a pack is refused with its reason. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { copyPack } from '../../../src/engine/skills/installPlace.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';

describe('copyPack', () => {
  it('stops at its limits', async () => {
    const folder = tempFolder({ 'p/a': '12345', 'p/b': '12345', 'p/c/d/e': '1' });
    const copy = (limits: Partial<Record<'files' | 'bytes' | 'depth', number>>) => {
      const target = join(folder.path, JSON.stringify(limits));
      mkdirSync(target);
      const all = { files: 3, bytes: 11, depth: 2, ...limits };
      return copyPack(join(folder.path, 'p'), target, all as never);
    };
    const { contents, ...counts } = await copy({});
    assert.deepEqual(counts, { files: 3, bytes: 11, leftOut: [] });
    assert.deepEqual(Object.keys(contents), ['a', 'b', 'c', 'c/d', 'c/d/e']);
    assert.deepEqual(await copyPack(join(folder.path, 'p'), undefined), { ...counts, contents });
    await assert.rejects(copy({ files: 2 }), /more than 2 files/);
    await assert.rejects(copy({ bytes: 10 }), /more than 10 bytes/);
    await assert.rejects(copy({ depth: 1 }), /more than 1 deep/);
    folder.remove();
  });
});
