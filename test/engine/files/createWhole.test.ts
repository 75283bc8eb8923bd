import assert from 'node:assert/strict';
import { existsSync, promises, readdirSync, readFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { createWhole } from '../../../src/engine/files/atomicWrite.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('a file that is created whole', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  it('is there with all of its text, or was there before and stays as it was', async () => {
    const path = join(folder.path, 'new/file.txt');
    assert.equal(await createWhole(path, 'first'), true);
    assert.equal(await createWhole(path, 'second'), false);
    assert.equal(readFileSync(path, 'utf8'), 'first');
    assert.deepEqual(readdirSync(join(folder.path, 'new')), ['file.txt']);
  });

  it('is no file that was there before where the disk knows no second names: that is an error', async () => {
    const { link } = promises;
    // As exFAT and some network disks answer.
    promises.link = async () => {
      throw Object.assign(new Error('EPERM: operation not permitted, link'), { code: 'EPERM' });
    };
    syncBuiltinESMExports();
    try {
      await assert.rejects(createWhole(join(folder.path, 'file.txt'), 'first'), /EPERM/);
    } finally {
      promises.link = link;
      syncBuiltinESMExports();
    }
    assert.equal(existsSync(join(folder.path, 'file.txt')), false);
    assert.deepEqual(readdirSync(folder.path), []);
  });
});
