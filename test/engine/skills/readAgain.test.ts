import assert from 'node:assert/strict';
import { renameSync, symlinkSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { openSkill } from '../../../src/engine/skills/skillFile.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('a skill that is opened again', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({ 'barrel/SKILL.md': '---\ndescription: One\n---\nLook into it.\n' });
  });
  afterEach(() => folder.remove());
  const open = () => openSkill(join(folder.path, 'barrel/SKILL.md'), 'user');

  const write = (text: string): void => {
    folder.add({ 'barrel/SKILL.md': `---\ndescription: ${text}\n---\nLook into it.\n` });
    utimesSync(join(folder.path, 'barrel/SKILL.md'), 1_000, 1_000);
  };
  /** Until a file counts as settled. */
  const settle = () => setTimeout(2_100);

  it('says what its file says by then, however soon and however alike the change', async () => {
    for (const text of ['Two', 'Six', 'Ten']) {
      write(text);
      assert.equal(open().description, text);
    }
    await settle();
    assert.equal(open().description, 'Ten');
    write('Too');
    await settle();
    assert.equal(open().description, 'Too');
  });

  it('is parsed once as long as its file stays, and for each name that it is known by', async () => {
    await settle();
    const { diagnostics } = open();
    assert.equal(open().diagnostics, diagnostics);
    symlinkSync(join(folder.path, 'barrel'), join(folder.path, 'cask'));
    const other = openSkill(join(folder.path, 'cask/SKILL.md'), 'user');
    assert.equal(other.name, 'cask');
    assert.equal(open().name, 'barrel');
  });

  it('is a defect once its file is gone, and a skill when that is back', () => {
    assert.equal(open().description, 'One');
    renameSync(join(folder.path, 'barrel'), join(folder.path, 'gone'));
    assert.equal(open().diagnostics[0]?.code, 'skill-unreadable');
    renameSync(join(folder.path, 'gone'), join(folder.path, 'barrel'));
    assert.equal(open().description, 'One');
  });
});
