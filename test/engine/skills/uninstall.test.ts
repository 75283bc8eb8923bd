/** Only what was installed goes, and only its own folder. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { uninstallPack } from '../../../src/engine/skills/install.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const skill = '---\ndescription: D\n---\nB';

describe('uninstallPack', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  const uninstall = (name: string) =>
    uninstallPack(name, loadConfig({ env: {}, home: join(folder.path, 'home'), cwd: folder.path }));
  const rejects = (name: string, message: RegExp) =>
    assert.rejects(uninstall(name), { name: 'TelosError', code: 'pack', message });
  const installed = () => readdirSync(join(folder.path, 'home/.skills'));
  const toml = 'home/.config/telos/agents.toml';

  it('removes the folder of an agent, also when that has another name', async () => {
    folder.add({
      'home/.skills/hn-pack/agent.toml': 'name = "hackernews"\nworking_dir = "~/work"\n',
      'home/.skills/hn-pack/skills/s/SKILL.md': skill,
      'home/.skills/other/skills/s/SKILL.md': skill,
      'home/work/page.md': 'written by it',
    });
    assert.equal((await uninstall('hackernews')).path, join(folder.path, 'home/.skills/hn-pack'));
    assert.deepEqual(installed(), ['other']);
    assert.ok(existsSync(join(folder.path, 'home/work/page.md')));
  });

  it('removes a pack without skills, and a link without what it leads to', async () => {
    folder.add({ 'home/.skills/empty/agent.toml': '', 'mine/skills/s/SKILL.md': skill });
    symlinkSync(join(folder.path, 'mine'), join(folder.path, 'home/.skills/linked'));
    await uninstall('empty');
    await uninstall('linked');
    assert.deepEqual(installed(), []);
    assert.ok(existsSync(join(folder.path, 'mine/skills/s/SKILL.md')));
  });

  it('refuses names that are none, and says which agents there are', async () => {
    folder.add({ 'home/.skills/a/skills/s/SKILL.md': skill, 'home/victim/x': 'x' });
    for (const name of ['', '.', '..', '../victim', '/etc', 'a/../a'])
      await rejects(name, /Nothing was changed/);
    await rejects('nobody', /'nobody' not found. Installed agents: a/);
    assert.deepEqual([installed(), existsSync(join(folder.path, 'home/victim/x'))], [['a'], true]);
  });

  it('never follows an agent.toml or agents.toml out of the skills folder', async () => {
    folder.add({
      'home/.skills/p/agent.toml': 'name = "p"\nworking_dir = "~/victim"\n',
      'home/.skills/p/skills/s/SKILL.md': skill,
      'home/victim/skills/s/SKILL.md': skill,
      [toml]: '[agents.v]\nskills_dir = "~/victim/skills"\n[agents.".."]\nmode = "installed"\n',
    });
    await uninstall('p');
    await rejects('v', /is linked: its skills are in .*victim/);
    await rejects('..', /Nothing was changed/);
    assert.ok(existsSync(join(folder.path, 'home/victim/skills/s/SKILL.md')));
  });

  it('takes an agent of version 3 out of agents.toml too, and leaves the rest of the file', async () => {
    folder.add({
      [toml]:
        '# top\n[agents.k]\nskills_dir = "/v"\n\n[agents.gmail]\nmode = "installed"\n[agents.gmail.more]\na = 1\n[defaults]\n',
      'home/.local/share/telos/agents/gmail/skills/s/SKILL.md': skill,
    });
    await uninstall('gmail');
    assert.equal(existsSync(join(folder.path, 'home/.local/share/telos/agents/gmail')), false);
    assert.equal(
      readFileSync(join(folder.path, toml), 'utf8'),
      '# top\n[agents.k]\nskills_dir = "/v"\n\n[defaults]\n',
    );
  });

  it('does not touch an agents.toml that it cannot change line by line', async () => {
    const installed = 'home/.local/share/telos/agents/gmail/skills/s/SKILL.md';
    for (const text of [
      'agents = { gmail = { mode = "installed" }, k = { skills_dir = "/v" } }\n',
      '[agents.gmail]\nmode = "installed"\nnote = """\n[agents.k]\n"""\n',
    ]) {
      folder.add({ [toml]: text, [installed]: skill });
      await assert.rejects(uninstall('gmail'), /by hand/);
      assert.equal(readFileSync(join(folder.path, toml), 'utf8'), text);
    }
  });
});
