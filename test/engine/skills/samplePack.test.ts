/** The sample pack comes beside what a person has, never over it. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { addSamplePack, copySampleFolder } from '../../../src/engine/skills/scaffold.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('addSamplePack', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({
      'demo/kairos/skills/kickoff/SKILL.md': 'sample',
      'demo/kairos/agent.toml': 'x',
      'demo/notes.txt': 'n',
    });
  });
  afterEach(() => folder.remove());

  const add = (): Promise<string[]> =>
    addSamplePack(join(folder.path, 'demo'), join(folder.path, 'home', '.skills'));
  const read = (path: string): string => readFileSync(join(folder.path, 'home', '.skills', path), 'utf8');

  it('copies every agent with all of its files, into a folder that was not there', async () => {
    assert.deepEqual(await add(), ['kairos']);
    assert.equal(read('kairos/skills/kickoff/SKILL.md'), 'sample');
    assert.equal(read('kairos/agent.toml'), 'x');
  });

  it('leaves an agent of that name as it is, with nothing half-copied beside it', async () => {
    folder.add({ 'home/.skills/kairos/skills/kickoff/SKILL.md': 'mine' });
    assert.deepEqual(await add(), []);
    assert.equal(read('kairos/skills/kickoff/SKILL.md'), 'mine');
    assert.deepEqual(readdirSync(join(folder.path, 'home', '.skills')), ['kairos']);
    assert.deepEqual(readdirSync(join(folder.path, 'home', '.skills', 'kairos')), ['skills']);
  });

  it('copies its folder to a place of its own each time, which nobody else may read', async () => {
    folder.add({ 'workspace/notes/a.md': 'a' });
    const source = join(folder.path, 'workspace');
    const copies = [await copySampleFolder(source), await copySampleFolder(source)];
    try {
      assert.notEqual(copies[0], copies[1]);
      for (const copy of copies) {
        assert.equal(readFileSync(join(copy, 'notes/a.md'), 'utf8'), 'a');
        assert.equal(statSync(dirname(copy)).mode & 0o077, 0);
      }
    } finally {
      for (const copy of copies) rmSync(dirname(copy), { recursive: true });
    }
  });
});
