/** What a killed process leaves beside a file goes with the next write there, and nothing else does. */
import assert from 'node:assert/strict';
import { linkSync, mkdirSync, readdirSync, symlinkSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { removeLeftTemporaries, replaceFile, writeWhole } from '../../../src/engine/files/atomicWrite.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('temporary files that were left behind', () => {
  const id = '5a2c7d1e-8f30-4b6a-9c41-0d7e2f6b3a99';
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  const at = (name: string): string => join(folder.path, name);
  function put(name: string, hoursAgo: number): void {
    folder.add({ [name]: 'x' });
    const then = new Date(Date.now() - hoursAgo * 60 * 60 * 1000);
    utimesSync(at(name), then, then);
  }

  it('go when they are old, called as ours are, and plain files', async () => {
    put(`.telos-${id}.tmp`, 2);
    const others = [
      [`.telos-${id.replace('5', '6')}.tmp`, 0],
      [`.telos-${id.replace('5', '7')}.tmp`, -2],
      ['.telos-notes.tmp', 2],
      [`.telos-${id}.tmp.bak`, 2],
      [`telos-${id}.tmp`, 2],
      [`.telos-${id}-x.tmp`, 2],
      ['target', 2],
    ] as const;
    for (const [name, hoursAgo] of others) put(name, hoursAgo);
    const [link, named, made] = ['a', 'b', 'c'].map(digit => `.telos-${digit}${id.slice(1)}.tmp`);
    assert.ok(link && named && made);
    symlinkSync('target', at(link));
    linkSync(at('target'), at(named));
    mkdirSync(at(made));
    await removeLeftTemporaries(folder.path, '.telos-');
    const expected = [...others.map(([name]) => name), link, named, made];
    assert.deepEqual(readdirSync(folder.path).sort(), expected.sort());
  });

  it('go with a write of a run, and with one of a file of the user', async () => {
    put(`.telos-${id}.tmp`, 2);
    await replaceFile(at('notes.md'), Buffer.from('y'));
    assert.deepEqual(readdirSync(folder.path), ['notes.md']);
    put(`.policy.toml.${id}.tmp`, 2);
    put(`.other.toml.${id}.tmp`, 2);
    await writeWhole(at('policy.toml'), 'y');
    assert.deepEqual(readdirSync(folder.path).sort(), [`.other.toml.${id}.tmp`, 'notes.md', 'policy.toml']);
  });

  it('are no reason for a write to fail', async () => {
    await removeLeftTemporaries(at('missing'), '.telos-');
  });
});
