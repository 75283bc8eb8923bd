/** The sample pack comes beside what a person has, never over it. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { addSamplePack } from '../../../src/engine/skills/scaffold.ts';
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
});
