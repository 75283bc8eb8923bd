import assert from 'node:assert/strict';
import { changesSkills } from '../../src/extension/skillFiles.ts';

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

  it('does not follow anything else', () => {
    assert.equal(changesSkills(root, `${root}/kairos/notes.md`, 'created'), false);
    assert.equal(changesSkills(root, `${root}/kairos/skills`, 'changed'), false);
    assert.equal(changesSkills(root, `${root}/kairos/node_modules/x/SKILL.md`, 'created'), false);
    assert.equal(changesSkills(root, `${root}/kairos/.git/HEAD`, 'created'), false);
  });
});
