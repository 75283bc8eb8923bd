/** A folder appears as a whole: whatever fails on the way, there is nothing of it. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { placeFolder } from '../../../src/engine/skills/scaffold.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('placing folders', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({ 'packs/p/f': 'old' });
  });
  afterEach(() => folder.remove());

  const target = () => join(folder.path, 'packs/p');
  const held = () => [readdirSync(join(folder.path, 'packs')), readFileSync(join(target(), 'f'), 'utf8')];
  const fill = (staged: string) => writeFile(join(staged, 'f'), 'new');

  it('places only where there is nothing', async () => {
    assert.equal(await placeFolder(target(), fill), false);
    assert.deepEqual(held(), [['p'], 'old']);
    assert.equal(await placeFolder(join(folder.path, 'packs/q'), fill), true);
    assert.deepEqual(readdirSync(join(folder.path, 'packs')), ['p', 'q']);
  });

  it('leaves the old folder alone when the new one cannot be filled', async () => {
    const fails = () => Promise.reject(new Error('full'));
    await assert.rejects(placeFolder(join(folder.path, 'packs/q'), fails), /full/);
    assert.deepEqual(held(), [['p'], 'old']);
  });
});
