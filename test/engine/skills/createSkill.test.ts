/** A skill goes to the agent that was named, or to a new one. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { addSkill } from '../../../src/engine/skills/scaffold.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

describe('addSkill', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  const add = (agent: string, skill: string) =>
    addSkill(agent, skill, loadConfig({ env: {}, home: folder.path, cwd: folder.path }));
  const rejects = (agent: string, skill: string, message: RegExp) =>
    assert.rejects(add(agent, skill), { code: 'pack', message });

  it('writes into the folder of an agent, wherever its skills lie', async () => {
    folder.add({
      '.skills/hn-pack/agent.toml': 'name = "hn"\n',
      '.skills/hn-pack/skills/a/SKILL.md': 'x',
      'vault/skills/a/SKILL.md': 'x',
      '.config/telos/agents.toml': '[agents.vault]\nskills_dir = "~/vault/skills"\n',
    });
    assert.equal(await add('hn', 'new-one'), join(folder.path, '.skills/hn-pack/skills/new-one/SKILL.md'));
    assert.equal(await add('vault', 'new-one'), join(folder.path, 'vault/skills/new-one/SKILL.md'));
    assert.equal(await add('fresh', 'new-one'), join(folder.path, '.skills/fresh/skills/new-one/SKILL.md'));
  });

  it('says why it cannot', async () => {
    folder.add({ '.skills/hn/skills/a/SKILL.md': 'x', '.skills/solo/SKILL.md': 'x' });
    await rejects('hn', 'a', /already/);
    await rejects('hn', '../a', /cannot be the name of/);
    await rejects('../x', 'a', /Nothing was changed/);
    await rejects('x y', 'a', /cannot be the name of/);
    await rejects('solo', 'a', /single skill/);
  });
});
