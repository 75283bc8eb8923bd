/** A pack arrives whole or not at all, under a name that cannot lead anywhere else, and over another one only after a yes. */
import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import { ReplacedFolders } from '../../../src/engine/files/replacedFolders.ts';
import { installPack } from '../../../src/engine/skills/install.ts';
import { planInstall } from '../../../src/engine/skills/planInstall.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';
import { treeOf } from './treeOf.ts';

const skill = '---\ndescription: D\n---\nB';

describe('installPack', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  const config = () => loadConfig({ env: {}, home: join(folder.path, 'home'), cwd: folder.path });
  /** With a yes to whatever would be replaced. */
  const install = async (path: string, as?: string) =>
    installPack(path, config(), { as, agreed: (await planInstall(path, config(), { as })).token });
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
    assert.deepEqual(readdirSync(skills()), ['gmail', 'telos-lock.json']);
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
    assert.equal((await install('solo')).summary, "Installed agent 'solo' with 1 skill");
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
    assert.deepEqual(readdirSync(skills()), ['p', 'q', 'telos-lock.json']);
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

  it('says what is wrong with a folder that is not a pack', async () => {
    folder.add({
      'empty/notes.txt': 'x',
      'bad/agent.toml': '# x\nname =\n',
      'home/.skills/p/skills/s/SKILL.md': skill,
    });
    await rejects('absent', /absent does not exist/);
    await rejects('empty', /is not a pack/);
    await rejects('empty/notes.txt', /is a file/);
    await rejects('bad', /agent\.toml:2: .*Nothing was installed\. Correct line 2/);
    await rejects(skills('p'), /in your skills folder already/);
    folder.add({ 'home/skills/s/SKILL.md': skill });
    await rejects('home', /contains the skills folder/);
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

  describe('over an agent that is there', () => {
    const plan = (path: string, as?: string) => planInstall(path, config(), { as });
    const changes = async (path: string) =>
      (await plan(path)).replaces?.changes.map(({ path, change, isYours, files }) =>
        [change, path, isYours ? 'yours' : '', files ?? ''].join(' ').trim(),
      );

    it('replaces nothing without a yes to that very plan', async () => {
      folder.add({ 'p/skills/s/SKILL.md': skill, 'home/.skills/p/notes.md': 'mine' });
      await assert.rejects(installPack('p', config()), /already/);
      const { token } = await plan('p');
      for (const late of ['home/.skills/p/more.md', 'p/more.md']) {
        folder.add({ [late]: 'x' });
        await assert.rejects(installPack('p', config(), { agreed: token }), /changed after/);
      }
      assert.deepEqual(readdirSync(skills('p')), ['more.md', 'notes.md']);
      assert.deepEqual(readdirSync(skills()), ['p']);
    });

    it('says whose it is, what goes and what changes', async () => {
      folder.add({
        'p/agent.toml': 'name = "p"\n',
        'p/skills/s/SKILL.md': skill,
        'p/skills/new/SKILL.md': skill,
        'p/data.txt': 'one',
        'home/.skills/p/skills/s/SKILL.md': 'mine',
        'home/.skills/p/notes/a.md': 'x',
        'home/.skills/p/notes/deep/b.md': 'x',
        'home/.skills/p/.git/config': 'x',
      });
      const { replaces } = await plan('p');
      assert.deepEqual([replaces?.origin, replaces?.isSameSource], [{ kind: 'by hand' }, false]);
      assert.deepEqual(await changes('p'), [
        'removed .git/',
        'added agent.toml',
        'added data.txt',
        'removed notes/  2',
        'added skills/new/  1',
        'changed skills/s/SKILL.md',
      ]);
      await install('p');
      assert.equal((await plan('p')).replaces?.isSame, true);
      folder.add({ 'home/.skills/p/data.txt': 'two', 'home/.skills/p/own/x': 'x', 'p/data.txt': 'three' });
      rmSync(join(folder.path, 'p/skills/new'), { recursive: true });
      assert.deepEqual(await changes('p'), [
        'changed data.txt yours',
        'removed own/ yours 1',
        'removed skills/new/  1',
      ]);
      const origin = (await plan('p')).replaces?.origin;
      assert.deepEqual(origin?.kind === 'installed' && origin.source, join(folder.path, 'p'));
    });

    it('tells an installed agent from one of another source, and from one made by hand in its place', async () => {
      folder.add({ 'a/p/skills/s/SKILL.md': skill, 'b/p/skills/s/SKILL.md': `${skill}!` });
      await install('a/p');
      assert.equal((await plan('b/p')).replaces?.isSameSource, false);
      folder.add({ 'a/p/more': 'x' });
      assert.equal((await plan('a/p')).replaces?.isSameSource, true);
      rmSync(skills('p'), { recursive: true });
      folder.add({ 'home/.skills/p/skills/s/SKILL.md': 'by hand' });
      assert.deepEqual((await plan('a/p')).replaces?.origin, { kind: 'by hand' });
    });

    it('changes nothing where nothing is different', async () => {
      folder.add({ 'p/skills/s/SKILL.md': skill });
      await install('p');
      const before = treeOf(skills('p'));
      const again = await installPack('p', config());
      assert.deepEqual([again.unchanged, again.undoId, treeOf(skills('p'))], [true, undefined, before]);
    });

    it('keeps what was there, to the byte', async () => {
      folder.add({
        'p/skills/s/SKILL.md': skill,
        'home/.skills/p/notes.md': 'mine',
        'home/.skills/p/.git/HEAD': 'x',
        'home/.skills/p/closed/x': 'x',
      });
      mkdirSync(skills('p/empty'));
      symlinkSync('/etc/passwd', skills('p/link'));
      chmodSync(skills('p/notes.md'), 0o600);
      chmodSync(skills('p/closed/x'), 0);
      chmodSync(skills('p/closed'), 0o555);
      const before = treeOf(skills('p'));
      const { undoId } = await install('p');
      assert.deepEqual(readdirSync(skills('p')), ['skills']);
      await new ReplacedFolders(config()).undo(undoId ?? '');
      assert.equal(treeOf(skills('p')), before);
      assert.deepEqual(readdirSync(skills()), ['p']);
      chmodSync(skills('p/closed'), 0o755);
    });

    it('replaces a link, never what it leads to, and brings it back', async () => {
      folder.add({
        'p/skills/s/SKILL.md': skill,
        'mine/skills/old/SKILL.md': 'mine',
        'home/.skills/.keep': '',
      });
      symlinkSync('../../mine', skills('p'));
      const [link, mine] = [treeOf(skills('p')), treeOf(join(folder.path, 'mine'))];
      const { replaces } = await plan('p');
      assert.deepEqual([replaces?.kind, replaces?.linkTo], ['link', '../../mine']);
      const { undoId } = await install('p');
      assert.ok(lstatSync(skills('p')).isDirectory());
      await new ReplacedFolders(config()).undo(undoId ?? '');
      assert.deepEqual([treeOf(skills('p')), treeOf(join(folder.path, 'mine'))], [link, mine]);
    });

    it('refuses another agent that many file systems take for the same, or that is somewhere else', async () => {
      folder.add({
        'home/.skills/Gmail/skills/s/SKILL.md': skill,
        'home/.skills/caf\u00e9/skills/s/SKILL.md': skill,
        'home/.skills/hn-pack/agent.toml': 'name = "hackernews"\n',
        'home/.skills/mail/agent.toml': 'name = "post"\n',
        'home/.config/telos/agents.toml': '[agents.vault]\nskills_dir = "~/vault"\n',
        'src/skills/s/SKILL.md': skill,
      });
      const before = treeOf(skills());
      for (const name of ['gmail', 'GMAIL', 'cafe\u0301', 'hackernews', 'HackerNews', 'mail', 'vault'])
        await assert.rejects(
          install('src', name),
          { name: 'TelosError', remedy: { kind: 'choose_name' } },
          name,
        );
      assert.equal(treeOf(skills()), before);
    });

    it('refuses a source inside the agent that it would replace', async () => {
      folder.add({ 'home/.skills/p/copies/p/skills/s/SKILL.md': skill });
      await rejects(skills('p/copies/p'), /is inside the agent/);
      assert.equal((await install(skills('p/copies/p'), 'other')).name, 'other');
    });

    it('gives the pack another name, in its agent.toml too', async () => {
      const toml = '# Mail\nname = "gmail" # short\ndescription = "D"\n[more]\nname = "x"\n';
      folder.add({
        'src/agent.toml': toml,
        'src/skills/s/SKILL.md': skill,
        'bare/skills/s/SKILL.md': skill,
        'odd/agent.toml': '"na\\u006de" = "odd"\n',
        'odd/skills/s/SKILL.md': skill,
      });
      const { name, path } = await install('src', 'daily notes');
      assert.deepEqual([name, path], ['daily notes', skills('daily notes')]);
      assert.equal(
        readFileSync(skills('daily notes/agent.toml'), 'utf8'),
        toml.replace('name = "gmail" # short', 'name = "daily notes"'),
      );
      assert.equal((await plan('src', 'daily notes')).replaces?.isSame, true);
      assert.equal((await install('bare', 'second')).summary, "Installed agent 'second' with 1 skill");
      await assert.rejects(install('odd', 'third'), /cannot change safely/);
      assert.deepEqual(readdirSync(skills()), ['daily notes', 'second', 'telos-lock.json']);
    });

    it('takes no hostile name', async () => {
      folder.add({ 'src/skills/s/SKILL.md': skill, 'home/victim/keep': 'x' });
      for (const name of [
        '',
        '.',
        '..',
        '../victim',
        '/abs',
        'a/b',
        'a\\b',
        '.git',
        '.telos-x',
        'nul',
        'a\x1b',
        'a\u202e',
        'telos',
        '~',
      ])
        await assert.rejects(install('src', name), /as given/, name);
      assert.deepEqual(readdirSync(join(folder.path, 'home')), ['victim']);
    });

    it('lets one of several win that install at once, and loses none that was agreed to be replaced', async () => {
      const names = ['a', 'b', 'c', 'd', 'e', 'f'];
      for (const name of names)
        folder.add({ [`${name}/p/skills/s/SKILL.md`]: skill, [`${name}/p/${name}`]: name });
      folder.add({ 'home/.skills/p/mine': 'mine' });
      const ended = await Promise.allSettled(names.map(name => install(`${name}/p`)));
      assert.ok(ended.some(({ status }) => status === 'fulfilled'));
      assert.deepEqual(readdirSync(skills()), ['p', 'telos-lock.json']);
      const records = await new ReplacedFolders(config()).list();
      const kept = records.flatMap(({ kept }) => (kept ? readdirSync(kept) : []));
      assert.ok(kept.includes('mine'), kept.join());
      assert.ok(names.some(name => existsSync(skills(`p/${name}`))));
    });
  });
});
