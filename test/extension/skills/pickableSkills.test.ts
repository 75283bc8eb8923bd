/** Which skills lists offer. */
import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { discoverAgents } from '../../../src/engine/skills/discover.ts';
import { isSkillFile, pickableSkills } from '../../../src/extension/skills/skillFiles.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';

describe('lists of skills', () => {
  it('offer all but those that are kept out of lists and those that cannot be read', async () => {
    const folder = tempFolder({
      'skills/garden/skills/hedge/SKILL.md': 'Cut it.',
      'skills/garden/skills/inner/SKILL.md': '---\ndescription: d\nuser-invocable: false\n---\n',
    });
    try {
      symlinkSync('/nowhere', join(folder.path, 'skills/garden/skills/moved'));
      const config = loadConfig({
        env: { TELOS_SKILLS_DIR: join(folder.path, 'skills') },
        home: folder.path,
        cwd: folder.path,
      });
      const found = await pickableSkills(await discoverAgents(config));
      assert.deepEqual(
        found.map(({ skill }) => skill.id),
        ['hedge'],
      );
    } finally {
      folder.remove();
    }
  });

  it('offer what is read as a skill, by the name of its file', () => {
    for (const path of ['/a/SKILL.md', '/a/skill.MD', 'C:\\a\\Skills.md', 'SKILL.md'])
      assert.ok(isSkillFile(path), path);
    for (const path of ['/a/MYSKILL.md', '/a/SKILL.md/b.md', '/a/SKILL.txt', ''])
      assert.ok(!isSkillFile(path), path);
  });
});
