/** A folder changes as a whole: whatever fails on the way, the old one is there, and nothing beside it. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { placeFolder, removeFolder, replaceFolder } from '../../../src/engine/packs/placeFolder.ts';
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

  it('replaces what is there, and places only where there is nothing', async () => {
    assert.equal(await placeFolder(target(), fill), false);
    assert.deepEqual(held(), [['p'], 'old']);
    assert.equal(await replaceFolder(target(), fill), true);
    assert.deepEqual(held(), [['p'], 'new']);
  });

  it('lets the last of several win that replace it at once, and leaves nothing of the others', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    await Promise.all(
      names.map(name => replaceFolder(target(), staged => writeFile(join(staged, 'f'), name))),
    );
    assert.deepEqual(readdirSync(join(folder.path, 'packs')), ['p']);
    assert.ok(names.includes(readFileSync(join(target(), 'f'), 'utf8')));
  });

  it('puts the old folder back when the new one cannot be moved in', async () => {
    await assert.rejects(replaceFolder(target(), staged => rm(staged, { recursive: true })));
    assert.deepEqual(held(), [['p'], 'old']);
  });

  it('leaves the old folder alone when the new one cannot be filled', async () => {
    const fails = () => Promise.reject(new Error('full'));
    await assert.rejects(replaceFolder(target(), fails), /full/);
    await assert.rejects(placeFolder(join(folder.path, 'packs/q'), fails), /full/);
    assert.deepEqual(held(), [['p'], 'old']);
  });

  it('removes a link, and not what it leads to', async () => {
    const link = join(folder.path, 'packs/link');
    symlinkSync(target(), link);
    assert.equal(await removeFolder(link), true);
    assert.equal(await removeFolder(link), false);
    assert.deepEqual(held(), [['p'], 'old']);
  });
});
