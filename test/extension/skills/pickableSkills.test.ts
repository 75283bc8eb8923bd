/** Which skills lists offer. */
import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { discoverAgents } from '../../../src/engine/skills/discover.ts';
import { pickableSkills } from '../../../src/extension/skills/pickableSkills.ts';
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
});
