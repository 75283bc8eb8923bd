import assert from 'node:assert/strict';
import { changesSkills, type PathChange } from '../../../src/extension/skills/skillFiles.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('changesSkills', () => {
  let folder: TempFolder;
  /** A path below the root that has held a skill; it is gone. */
  const held = 'kairos/skills/version-1.2';

  before(() => {
    folder = tempFolder({
      'node_modules/.skills/kairos/skills/kickoff/LICENSE': 'Free.',
      'node_modules/.skills/kairos/skills/v1.2/LICENSE': 'Free.',
      'node_modules/.skills/kairos/.git/refs/HEAD': '',
      'node_modules/.skills/kairos/node_modules/x/SKILL.md': 'Do.',
      'node_modules/.skills/.telos-1/skills/x/SKILL.md': 'Do.',
    });
  });
  after(() => folder.remove());

  function changes(path: string, change: PathChange): Promise<boolean> {
    const root = `${folder.path}/node_modules/.skills`;
    return changesSkills(root, `${root}/${path}`, change, async gone => gone === `${root}/${held}`);
  }

  it('follows the files that Telos reads, in any case', async () => {
    for (const name of ['SKILL.md', 'skill.md', 'Skills.md', 'agent.toml', 'agents.toml', 'mcp.json']) {
      for (const change of ['created', 'changed', 'deleted'] as const)
        assert.equal(await changes(`kairos/${name}`, change), true, name);
    }
  });

  it('follows folders that come, also one with a dot in its name, for their files are not told of', async () => {
    assert.equal(await changes('kairos', 'created'), true);
    assert.equal(await changes('kairos/skills/v1.2', 'created'), true);
  });

  it('follows folders that go when they have held a skill', async () => {
    assert.equal(await changes(held, 'deleted'), true);
    assert.equal(await changes('kairos/skills/notes', 'deleted'), false);
  });

  it('follows a folder that was made anew, which is told of as changed', async () => {
    assert.equal(await changes('kairos/skills/kickoff', 'changed'), true);
    assert.equal(await changes('kairos/skills/kickoff/LICENSE', 'changed'), false);
  });

  it('does not follow anything else', async () => {
    for (const path of [
      'kairos/notes.md',
      'kairos/skills/kickoff/LICENSE',
      'kairos/node_modules/x/SKILL.md',
      'kairos/node_modules/x',
      'kairos/.git/refs',
      '.telos-1/skills/x/SKILL.md',
    ])
      assert.equal(await changes(path, 'created'), false, path);
  });
});
