import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { Git } from '../../src/plans/git.ts';
import { PlanFolder } from '../../src/plans/planFolder.ts';
import type { PlanSettings } from '../../src/plans/planSettings.ts';
import { type Slot, Slots } from '../../src/plans/slots.ts';
import { type GitRepo, gitRepo } from '../fakes/gitRepo.ts';

const ref = 'refs/telos/bakery/US-001/a1';

/** What a slot holds once it was reset. */
const namesAfterReset = ['.git', '.gitignore', 'README.md', 'node_modules', 'src'];

describe('the work trees of a plan', () => {
  let repo: GitRepo;
  let git: Git;
  let folder: PlanFolder;
  let base: string;
  beforeEach(async () => {
    repo = gitRepo({ 'README.md': '# Bakery\n', 'src/a.txt': 'a\n', '.gitignore': 'dist/\nnode_modules/\n' });
    git = new Git(repo.path, repo.env);
    folder = await PlanFolder.create(repo.path, 'bakery', 'g');
    base = repo.git('rev-parse', 'HEAD');
  });
  afterEach(() => repo.remove());

  async function open(more: Partial<PlanSettings['slot']> = {}, setup: string[] = []): Promise<Slots> {
    const settings = await folder.settings();
    return Slots.open(folder, git, { ...settings, setup, slot: { ...settings.slot, ...more } }, repo.env);
  }

  const write = (slot: Slot, files: Readonly<Record<string, string>>): void => {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(slot.dir, name, '..'), { recursive: true });
      writeFileSync(join(slot.dir, name), text);
    }
  };
  /** As a command would that runs in the work tree. */
  const gitIn = (slot: Slot, ...args: readonly string[]): string =>
    execFileSync('git', args, { cwd: slot.dir, env: repo.env, encoding: 'utf8' }).trim();
  const filesOf = (commit: string): string[] => repo.git('ls-tree', '-r', '--name-only', commit).split('\n');
  const snapshot = (slots: Slots, slot: Slot) => slots.snapshot(slot, { ref, parent: base, message: 'w' });

  /** Everything of the person's that no plan may change. */
  function personsState(): Record<string, string> {
    const state: Record<string, string> = {};
    for (const name of readdirSync(repo.path, { recursive: true, encoding: 'utf8' })) {
      if (
        name.startsWith('.git/') &&
        !/^\.git\/(HEAD|index|refs\/heads\/main|refs\/stash|config)$/.test(name)
      )
        continue;
      const path = join(repo.path, name);
      if (!name.startsWith('.telos') && lstatSync(path).isFile())
        state[name] = createHash('sha256').update(readFileSync(path)).digest('hex');
    }
    return state;
  }

  it('lie in the cache folder, have the files of the commit, and leave the person their own', async () => {
    repo.add({ 'src/a.txt': 'edited by the person\n', 'new.txt': 'n' });
    const before = personsState();
    const slots = await open();
    const slot = await slots.openSlot(1, base);
    assert.ok(
      slot.dir.startsWith(join(repo.env['XDG_CACHE_HOME'] ?? '', 'telos/worktrees/bakery-')),
      slot.dir,
    );
    assert.equal(readFileSync(join(slot.dir, 'src/a.txt'), 'utf8'), 'a\n');
    assert.equal(existsSync(join(slot.dir, 'new.txt')), false);
    write(slot, { 'src/b.txt': 'b\n' });
    await snapshot(slots, slot);
    await slots.reset(slot, base);
    assert.deepEqual(personsState(), before);
  });

  it('keep the work as a commit that no branch has, with its size', async () => {
    const slots = await open();
    const slot = await slots.openSlot(1, base);
    assert.equal(await snapshot(slots, slot), undefined);
    write(slot, { 'src/b.txt': '1\n2\n', 'dist/out.js': 'built', '.telos/plans/x/prd.json': 'ticked' });
    rmSync(join(slot.dir, 'src/a.txt'));
    const kept = await snapshot(slots, slot);
    assert.deepEqual([kept?.files, kept?.added, kept?.removed], [2, 2, 1]);
    assert.deepEqual(filesOf(kept?.commit ?? ''), ['.gitignore', 'README.md', 'src/b.txt']);
    assert.equal(repo.git('rev-parse', ref), kept?.commit);
    assert.equal(repo.git('branch', '--contains', kept?.commit ?? ''), '');
  });

  it('are reset to the commit alone: no file, no folder, no repository of the story before stays', async () => {
    const slots = await open({ keep: ['node_modules'] });
    const slot = await slots.openSlot(1, base);
    write(slot, {
      'src/a.txt': 'x',
      'dist/a': '1',
      'deep/er/b': '1',
      'node_modules/p/i.js': '1',
      'sub/.git/HEAD': 'x',
    });
    await slots.reset(slot, base);
    assert.deepEqual(readdirSync(slot.dir).sort(), namesAfterReset);
    assert.equal(readFileSync(join(slot.dir, 'src/a.txt'), 'utf8'), 'a\n');
  });

  it('have nothing beside the work when the work is what they are reset to', async () => {
    const slots = await open();
    const slot = await slots.openSlot(1, base);
    write(slot, { 'src/b.txt': 'b\n', 'dist/out.js': 'built' });
    const kept = await snapshot(slots, slot);
    const first = statSync(join(slot.dir, 'README.md'));
    write(slot, { 'README.md': '# Bahery\n', 'late.txt': 'l' });
    utimesSync(join(slot.dir, 'README.md'), first.atime, first.mtime);
    mkdirSync(join(slot.dir, 'empty/er'), { recursive: true });
    await slots.reset(slot, kept?.commit ?? '');
    assert.deepEqual(readdirSync(slot.dir).sort(), ['.git', '.gitignore', 'README.md', 'src']);
    assert.equal(readFileSync(join(slot.dir, 'README.md'), 'utf8'), '# Bakery\n');
    assert.equal(gitIn(slot, 'rev-parse', 'HEAD'), kept?.commit);
    assert.equal(gitIn(slot, 'status', '--porcelain'), '');
  });

  it('lose what lies beside unchanged work: ignored files, empty folders, repositories; not what is to be kept', async () => {
    const slots = await open({ keep: ['node_modules'] });
    const slot = await slots.openSlot(1, base);
    write(slot, { 'src/b.txt': 'b\n' });
    const kept = await snapshot(slots, slot);
    const besides: (() => void)[] = [
      () => write(slot, { 'dist/out.js': 'built' }),
      () => mkdirSync(join(slot.dir, 'src/empty/er'), { recursive: true }),
      () => execFileSync('git', ['init', '-q', join(slot.dir, 'nested')]),
    ];
    for (const leave of besides) {
      write(slot, { 'node_modules/p/i.js': '1' });
      leave();
      await slots.reset(slot, kept?.commit ?? '');
      assert.deepEqual(readdirSync(slot.dir).sort(), namesAfterReset);
      assert.deepEqual(readdirSync(join(slot.dir, 'src')).sort(), ['a.txt', 'b.txt']);
    }
  });

  it('keep a folder that git does not ignore out of the work, and run the setup again once it is gone', async () => {
    const slots = await open({ keep: ['.venv', 'src'] }, ['make it']);
    const slot = await slots.openSlot(1, base);
    await slots.noteSetup(slot);
    assert.equal(await slots.needsSetup(slot), false);
    write(slot, { '.venv/bin/python': 'x', 'web/.venv/lib': 'x', 'src/b.txt': 'b\n' });
    await slots.noteSetup(slot);
    const kept = await snapshot(slots, slot);
    assert.deepEqual(filesOf(kept?.commit ?? ''), ['.gitignore', 'README.md', 'src/a.txt', 'src/b.txt']);
    await slots.reset(slot, base);
    assert.equal(existsSync(join(slot.dir, '.venv/bin/python')), true);
    assert.equal(await slots.needsSetup(slot), false);
    rmSync(join(slot.dir, '.venv'), { recursive: true });
    assert.equal(await slots.needsSetup(slot), true);
    write(slot, { '.venv/bin/python': 'x' });
    assert.deepEqual((await slots.removeSlots()).kept, []);
  });

  it('move no branch of the person, even if a command points HEAD to it', async () => {
    const slots = await open();
    const slot = await slots.openSlot(1, base);
    const moved = repo.commit('more');
    gitIn(slot, 'symbolic-ref', 'HEAD', 'refs/heads/main');
    await slots.reset(slot, base);
    assert.equal(repo.git('rev-parse', 'main'), moved);
    assert.equal(gitIn(slot, 'rev-parse', '--abbrev-ref', 'HEAD'), 'HEAD');
  });

  it('have an index that is whole for whoever reads it while they are reset', async () => {
    const slots = await open();
    const slot = await slots.openSlot(1, base);
    const reader = openSync(join(slot.admin, 'index'), 'r');
    try {
      const before = readFileSync(join(slot.admin, 'index'));
      await slots.reset(slot, repo.commit('more', { 'src/more.txt': 'm\n' }));
      assert.deepEqual(readFileSync(reader), before);
      assert.notDeepEqual(readFileSync(join(slot.admin, 'index')), before);
    } finally {
      closeSync(reader);
    }
  });

  it('listen to no .git file that a command wrote there', async () => {
    const evil = gitRepo({ 'evil.txt': 'e' });
    try {
      const slots = await open();
      const slot = await slots.openSlot(1, base);
      evil.git('config', 'core.worktree', slot.dir);
      writeFileSync(join(slot.dir, '.git'), `gitdir: ${join(evil.path, '.git')}\n`);
      write(slot, { 'src/b.txt': 'b\n' });
      const kept = await snapshot(slots, slot);
      assert.deepEqual(filesOf(kept?.commit ?? ''), ['.gitignore', 'README.md', 'src/a.txt', 'src/b.txt']);
      await slots.reset(slot, base);
      assert.match(gitIn(slot, 'rev-parse', '--git-dir'), /bakery\/\.git\/worktrees\/slot-1$/);
      assert.equal(evil.git('rev-list', '--count', 'HEAD'), '1');
    } finally {
      evil.remove();
    }
  });

  it('see a change that a command hides from its own git', async () => {
    const slots = await open();
    const slot = await slots.openSlot(1, base);
    gitIn(slot, 'update-index', '--assume-unchanged', 'src/a.txt');
    gitIn(slot, 'update-index', '--skip-worktree', 'README.md');
    write(slot, { 'src/a.txt': 'hidden\n', 'README.md': 'hidden\n' });
    const kept = await snapshot(slots, slot);
    assert.equal(kept?.files, 2);
    await slots.reset(slot, base);
    assert.equal(readFileSync(join(slot.dir, 'src/a.txt'), 'utf8'), 'a\n');
  });

  it('take the files of a repository that was made within, and keep its history aside', async () => {
    const slots = await open();
    const slot = await slots.openSlot(1, base);
    for (const name of ['born', 'unborn']) {
      write(slot, { [`${name}/f.txt`]: '1' });
      gitIn(slot, 'init', '-q', name);
    }
    gitIn(slot, '-C', 'born', 'add', '-A');
    gitIn(slot, '-C', 'born', '-c', 'user.name=x', '-c', 'user.email=x', 'commit', '-qm', 'x');
    const kept = await snapshot(slots, slot);
    assert.deepEqual(filesOf(kept?.commit ?? '').slice(2), ['born/f.txt', 'src/a.txt', 'unborn/f.txt']);
    assert.equal(readdirSync(slots.root).filter(name => name.startsWith('kept-nested')).length, 2);
  });

  it('get copies and links beside their files, which no commit has', async () => {
    repo.add({ '.env.test': 'KEY=1', 'node_modules/p/i.js': '1' });
    const slots = await open({ copy: ['.env.test', 'missing'], link: ['node_modules'] });
    const slot = await slots.openSlot(1, base);
    assert.equal(readFileSync(join(slot.dir, '.env.test'), 'utf8'), 'KEY=1');
    assert.equal(readFileSync(join(slot.dir, 'node_modules/p/i.js'), 'utf8'), '1');
    assert.equal(await snapshot(slots, slot), undefined);
    await slots.reset(slot, base);
    assert.equal((await slots.removeSlots()).kept.length, 0);
    assert.equal(readFileSync(join(repo.path, 'node_modules/p/i.js'), 'utf8'), '1');
  });

  it('follow no link of the repository out of the work tree', async () => {
    const outside = join(repo.folder.path, 'outside');
    mkdirSync(outside);
    symlinkSync(outside, join(repo.path, 'config'));
    base = repo.commit('a link');
    repo.add({ 'config/.env': 'secret' });
    rmSync(join(outside, '.env'));
    writeFileSync(join(repo.path, '.env'), 'KEY');
    const slots = await open({ copy: ['config/.env'] });
    writeFileSync(join(outside, '.env'), 'mine');
    await slots.openSlot(1, base);
    assert.equal(readFileSync(join(outside, '.env'), 'utf8'), 'mine');
  });

  it("are made again after their folder, or git's entry, or half of it was lost", async () => {
    const slots = await open();
    const slot = await slots.openSlot(1, base);
    rmSync(slot.dir, { recursive: true });
    await slots.openSlot(1, base);
    rmSync(slot.admin, { recursive: true });
    write(slot, { 'mine.txt': 'precious' });
    const anew = await slots.openSlot(1, base);
    assert.equal(existsSync(join(anew.dir, 'mine.txt')), false);
    const [aside = ''] = readdirSync(slots.root).filter(name => name.startsWith('kept-'));
    assert.equal(readFileSync(join(slots.root, aside, 'mine.txt'), 'utf8'), 'precious');
    rmSync(join(anew.admin, 'HEAD'));
    writeFileSync(join(anew.admin, 'locked'), 'initializing');
    await slots.openSlot(1, base);
    assert.equal(readFileSync(join(anew.dir, 'src/a.txt'), 'utf8'), 'a\n');
  });

  it('are made at the same time by several without harm, beside a person who prunes', async () => {
    const all = await Promise.all([1, 2, 3, 4].map(async number => (await open()).openSlot(number, base)));
    repo.git('worktree', 'prune');
    assert.equal(new Set(all.map(({ admin }) => basename(admin))).size, 4);
    assert.equal(repo.git('worktree', 'list').split('\n').length, 5);
  });

  it('write a patch that brings the work back, and overwrite none', async () => {
    const slots = await open();
    const slot = await slots.openSlot(1, base);
    write(slot, { 'src/b.txt': 'b\n', 'image.bin': '\0\x01\x02' });
    const kept = await snapshot(slots, slot);
    const path = await slots.savePatch('US-001.a1', base, kept?.commit ?? '');
    assert.equal(path, 'attempts/US-001.a1.patch');
    assert.equal(await slots.savePatch('US-001.a1', base, kept?.commit ?? ''), 'attempts/US-001.a1-2.patch');
    await slots.reset(slot, base);
    gitIn(slot, 'apply', folder.path(path));
    assert.equal(readFileSync(join(slot.dir, 'image.bin'), 'utf8'), '\0\x01\x02');
  });

  it('are removed when a commit has their files, and stay when none has', async () => {
    const slots = await open();
    const [one, two] = [await slots.openSlot(1, base), await slots.openSlot(2, base)];
    write(one, { 'src/b.txt': 'b\n', 'dist/x': '1' });
    await snapshot(slots, one);
    write(two, { 'src/c.txt': 'mine\n' });
    const { removed, kept } = await slots.removeSlots();
    assert.deepEqual([removed, kept.map(({ dir }) => dir)], [[one.dir], [two.dir]]);
    assert.match(kept[0]?.why ?? '', /in no commit of the plan/);
    assert.equal(readFileSync(join(two.dir, 'src/c.txt'), 'utf8'), 'mine\n');
    await slots.reset(two, base);
    assert.deepEqual((await slots.removeSlots()).removed, [two.dir]);
    assert.equal(repo.git('worktree', 'list').split('\n').length, 1);
    assert.equal(existsSync(slots.root), false);
  });

  it('are not removed through a link', async () => {
    const slots = await open();
    const slot = await slots.openSlot(1, base);
    const moved = join(repo.folder.path, 'moved');
    renameSync(slot.dir, moved);
    symlinkSync(moved, slot.dir);
    const { removed } = await slots.removeSlots();
    assert.deepEqual(removed, []);
    assert.ok(existsSync(join(moved, 'README.md')));
  });

  it('are set up once, and again when the commands or a lock file change', async () => {
    const slots = await open({}, ['npm ci']);
    const slot = await slots.openSlot(1, base);
    assert.equal(await slots.needsSetup(slot), true);
    await slots.noteSetup(slot);
    assert.equal(await slots.needsSetup(slot), false);
    base = repo.commit('packages', { 'package-lock.json': '{}' });
    await slots.reset(slot, base);
    assert.equal(await slots.needsSetup(slot), true);
    await slots.noteSetup(slot);
    assert.equal(await (await open({}, ['npm install'])).needsSetup(slot), true);
    assert.equal(await (await open({}, [])).needsSetup(slot), false);
  });

  it('each have ports of their own', async () => {
    const slots = await open();
    const ports = await Promise.all(
      [1, 2].map(async number =>
        Number(slots.environmentOf(await slots.openSlot(number, base))['TELOS_PORT_BASE']),
      ),
    );
    assert.equal((ports[1] ?? 0) - (ports[0] ?? 0), 10);
  });
});
