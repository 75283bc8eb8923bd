/** A pack arrives whole or not at all, under a name that cannot lead anywhere else. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, lstatSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { installPack } from '../../../src/engine/packs/install.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const skill = '---\ndescription: D\n---\nB';

describe('installPack', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  const config = () => loadConfig({ env: {}, home: join(folder.path, 'home'), cwd: folder.path });
  const install = (path: string) => installPack(path, config());
  const skills = (path = '') => join(folder.path, 'home/.skills', path);
  const rejects = (path: string, message: RegExp) =>
    assert.rejects(install(path), { name: 'TelosError', code: 'pack', message });

  it('copies a pack under its own name, and says so', async () => {
    folder.add({
      'src/agent.toml': 'name = "gmail"\n',
      'src/mcp.json': '{}',
      'src/skills/check/SKILL.md': skill,
      'src/skills/check/scripts/run.sh': '#!/bin/sh\n',
      'src/skills/send/SKILL.md': skill,
    });
    const { name, skillCount, path, replaced, summary } = await install('src');
    assert.deepEqual([name, skillCount, path, replaced], ['gmail', 2, skills('gmail'), false]);
    assert.equal(summary, "Installed agent 'gmail' with 2 skills");
    assert.equal(readFileSync(skills('gmail/mcp.json'), 'utf8'), '{}');
    assert.equal(readFileSync(skills('gmail/skills/check/SKILL.md'), 'utf8'), skill);
    assert.deepEqual(readdirSync(skills()), ['gmail']);
  });

  it('makes scripts executable, and nothing else', async () => {
    folder.add({ 'p/skills/s/SKILL.md': skill, 'p/run': '#!/bin/sh\n', 'p/tool': 'x', 'p/data': 'x' });
    chmodSync(join(folder.path, 'p/tool'), 0o744);
    await install('p');
    const mode = (name: string) => statSync(skills(`p/${name}`)).mode & 0o777;
    assert.deepEqual([mode('run'), mode('tool'), mode('data')], [0o755, 0o755, 0o644]);
  });

  it('takes a bare skill for an agent of one', async () => {
    folder.add({ 'solo/SKILL.md': skill });
    assert.equal((await install('solo')).summary, "Installed agent 'solo' with 1 skills");
    assert.ok(existsSync(skills('solo/SKILL.md')));
  });

  it('leaves links and repositories behind', async () => {
    folder.add({ secret: 's', 'p/skills/s/SKILL.md': skill, 'p/.git/config': 'x', 'p/skills/s/.git': 'x' });
    symlinkSync(join(folder.path, 'secret'), join(folder.path, 'p/skills/s/leak'));
    symlinkSync(folder.path, join(folder.path, 'p/all'));
    assert.deepEqual((await install('p')).leftOut, ['all', 'skills/s/leak']);
    assert.deepEqual(readdirSync(skills('p')), ['skills']);
    assert.deepEqual(readdirSync(skills('p/skills/s')), ['SKILL.md']);
  });

  it('replaces an earlier version as a whole, and a link without what it leads to', async () => {
    folder.add({
      'p/skills/new/SKILL.md': skill,
      'home/.skills/p/skills/old/SKILL.md': 'old',
      'q/skills/new/SKILL.md': skill,
      'mine/skills/old/SKILL.md': 'mine',
    });
    symlinkSync(join(folder.path, 'mine'), skills('q'));
    assert.equal((await install('p')).replaced, true);
    await install('q');
    assert.deepEqual(readdirSync(skills('p/skills')), ['new']);
    assert.ok(lstatSync(skills('q')).isDirectory());
    assert.ok(existsSync(join(folder.path, 'mine/skills/old/SKILL.md')));
    assert.deepEqual(readdirSync(skills()), ['p', 'q']);
  });

  it('keeps the earlier version when the new one cannot be copied', async () => {
    if (process.getuid?.() === 0) folder.add({ [`p/${'d/'.repeat(30)}f`]: 'too deep' });
    folder.add({
      'p/skills/new/SKILL.md': skill,
      'home/.skills/p/skills/old/SKILL.md': 'old',
      'p/locked': 'x',
    });
    chmodSync(join(folder.path, 'p/locked'), 0);
    await assert.rejects(install('p'));
    assert.deepEqual(readdirSync(skills('p/skills')), ['old']);
    assert.deepEqual(readdirSync(skills()), ['p']);
  });

  it('refuses names that lead elsewhere, before anything is touched', async () => {
    folder.add({ 'home/victim/keep': 'x', 'home/.skills/keep/SKILL.md': 'x' });
    for (const name of [
      '../victim',
      '/abs',
      'a/b',
      'a\\b',
      '..',
      '.',
      '.git',
      '.telos-x',
      'CON',
      'com1.txt',
      'telos',
      'x.',
    ]) {
      folder.add({
        'src/agent.toml': `name = ${JSON.stringify(name)}\n`,
        'src/skills/s/SKILL.md': skill,
      });
      await rejects('src', /agent name .*Nothing was changed/);
    }
    assert.deepEqual(readdirSync(join(folder.path, 'home')), ['.skills', 'victim']);
    assert.deepEqual(readdirSync(skills()), ['keep']);
  });

  it('says what is wrong with a folder that is no pack', async () => {
    folder.add({
      'empty/notes.txt': 'x',
      'bad/agent.toml': '# x\nname =\n',
      'home/.skills/p/skills/s/SKILL.md': skill,
    });
    await rejects('absent', /There is no folder/);
    await rejects('empty', /is no pack/);
    await rejects('empty/notes.txt', /is no folder/);
    await rejects('bad', /agent\.toml, line 2/);
    await rejects(skills('p'), /installed already/);
    folder.add({ 'home/skills/s/SKILL.md': skill });
    await rejects('home', /holds the skills folder/);
  });

  it('replaces an agent of version 3 where it stands, with its description', async () => {
    const toml =
      '# mine\n[agents.gmail]\nmode = "installed"\ndescription = "old"\n\n[agents.k]\nskills_dir = "/v" # keep\n';
    folder.add({
      'src/agent.toml': 'name = "gmail"\ndescription = "new"\n',
      'src/skills/s/SKILL.md': skill,
      'home/.config/telos/agents.toml': toml,
    });
    assert.equal((await install('src')).path, join(folder.path, 'home/.local/share/telos/agents/gmail'));
    const written = readFileSync(join(folder.path, 'home/.config/telos/agents.toml'), 'utf8');
    assert.equal(written, toml.replace('"old"', '"new"'));
  });
});
