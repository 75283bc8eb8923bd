import assert from 'node:assert/strict';
import { changesSkills } from '../../src/extension/skillFiles.ts';
import { tempFolder } from '../fakes/tempFolder.ts';

describe('changesSkills', () => {
  const root = '/home/node_modules/.skills';

  it('follows the files that Telos reads, in any case', () => {
    for (const name of ['SKILL.md', 'skill.md', 'Skills.md', 'agent.toml', 'agents.toml', 'mcp.json']) {
      assert.equal(changesSkills(root, `${root}/kairos/${name}`, 'changed'), true, name);
    }
  });

  it('follows folders that come and go, for their files are not told of', () => {
    assert.equal(changesSkills(root, `${root}/kairos/skills/kickoff`, 'deleted'), true);
    assert.equal(changesSkills(root, `${root}/kairos`, 'created'), true);
  });

  it('follows a folder that was made anew, which is told of as changed', () => {
    const folder = tempFolder({ 'kairos/skills/kickoff/LICENSE': 'Free.' });
    try {
      const kickoff = `${folder.path}/kairos/skills/kickoff`;
      assert.equal(changesSkills(folder.path, kickoff, 'changed'), true);
      assert.equal(changesSkills(folder.path, `${kickoff}/LICENSE`, 'changed'), false);
    } finally {
      folder.remove();
    }
  });

  it('does not follow anything else', () => {
    assert.equal(changesSkills(root, `${root}/kairos/notes.md`, 'created'), false);
    assert.equal(changesSkills(root, `${root}/kairos/skills`, 'changed'), false);
    assert.equal(changesSkills(root, `${root}/kairos/node_modules/x/SKILL.md`, 'created'), false);
    assert.equal(changesSkills(root, `${root}/kairos/.git/HEAD`, 'created'), false);
  });
});
