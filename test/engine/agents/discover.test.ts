/** What lies on disk becomes agents and skills; one broken file never hides the others. */
import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { discoverAgents } from '../../../src/engine/agents/discover.ts';
import { loadConfig } from '../../../src/engine/config.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const skill = (description: string) => `---\ndescription: ${description}\n---\nBody`;

describe('discoverAgents', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  const discover = () =>
    discoverAgents(
      loadConfig({
        env: { TELOS_SKILLS_DIR: join(folder.path, 'skills') },
        home: join(folder.path, 'home'),
        cwd: join(folder.path, 'call'),
        workspaceFolders: [{ name: 'shop', path: join(folder.path, 'shop') }],
      }),
    );

  it('reads a pack with agent.toml, and one without', () => {
    folder.add({
      'skills/hn-pack/skills/frontpage/SKILL.md': skill('News'),
      'skills/hn-pack/agent.toml': 'name = "hackernews"\ndescription = "news"\nworking_dir = "~/x/y"\n',
      'skills/plain/skills/b/SKILL.md': skill('Second'),
      'skills/plain/skills/a/SKILL.md': skill('First'),
      'skills/call/skills/c/SKILL.md': skill('Here'),
      'skills/call/agent.toml': 'working_dir = "."',
    });
    const [call, hackernews, plain] = discover();
    assert.deepEqual(
      [hackernews?.name, hackernews?.description, hackernews?.workingDir],
      ['hackernews', 'news', join(folder.path, 'home/x/y')],
    );
    assert.deepEqual(
      [plain?.description, plain?.workingDir],
      ['First', join(folder.path, 'home/obsidian/telos/plain')],
    );
    assert.deepEqual(
      plain?.skills.map(({ id }) => id),
      ['a', 'b'],
    );
    assert.equal(call?.workingDir, join(folder.path, 'call'));
  });

  it('takes a bare skill folder as an agent of one skill, and a workspace as an agent of its own', () => {
    folder.add({
      'skills/solo/SKILL.md': skill('Alone'),
      'shop/.claude/skills/deploy/skill.md': skill('Ship it'),
    });
    const [shop, solo] = discover();
    assert.deepEqual([solo?.name, solo?.skills.map(({ id }) => id)], ['solo', ['solo']]);
    assert.deepEqual([shop?.name, shop?.skills[0]?.id, shop?.source], ['shop', 'deploy', 'project']);
    assert.equal(shop?.workingDir, join(folder.path, 'shop'));
  });

  it('loads an agent whose agent.toml is broken, and names file and line', () => {
    folder.add({
      'skills/bad/skills/s/SKILL.md': skill('D'),
      'skills/bad/agent.toml': 'description = "ok"\nname = \n',
    });
    const [bad] = discover();
    assert.deepEqual(
      [bad?.name, bad?.diagnostics[0]?.code, bad?.diagnostics[0]?.line],
      ['bad', 'agent-toml', 2],
    );
    assert.equal(bad?.diagnostics[0]?.file, join(folder.path, 'skills/bad/agent.toml'));
  });

  it('lists a skill that is no text with its defect, and its neighbours without', () => {
    folder.add({
      'skills/a/skills/good/SKILL.md': skill('Fine'),
      'skills/a/skills/bad/SKILL.md': new Uint8Array([0xff, 0xfe, 0]),
      'skills/a/skills/odd/SKILL.md/x': 'the skill file is a folder',
    });
    const skills = discover()[0]?.skills ?? [];
    assert.deepEqual(
      skills.map(({ id, diagnostics }) => [id, diagnostics.map(({ code }) => code)]),
      [
        ['bad', ['skill-unreadable']],
        ['good', []],
      ],
    );
  });

  it('finds skills below group folders, tells equal names apart, and survives link cycles', () => {
    folder.add({
      'skills/a/skills/ann/tool/SKILL.md': skill('Hers'),
      'skills/a/skills/bob/tool/SKILL.md': skill('His'),
      'skills/a/skills/bob/tool/nested/SKILL.md': skill('Part of it'),
      'skills/a/skills/.git/x/SKILL.md': skill('Never'),
    });
    symlinkSync(join(folder.path, 'skills/a'), join(folder.path, 'skills/a/skills/loop'));
    assert.deepEqual(
      discover()[0]?.skills.map(({ id }) => id),
      ['ann/tool', 'bob/tool'],
    );
  });

  it('finds nothing where there is nothing', () => {
    assert.deepEqual(discover(), []);
  });
});
