/** What commands have written in their layers, and the way back, with a real sandbox, a real git and real files. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { ChangeStore } from '../../../src/engine/changes/changeStore.ts';
import { KeptWrites } from '../../../src/engine/changes/keptWrites.ts';
import { allowAll } from '../../../src/engine/human.ts';
import { writeFileTool } from '../../../src/engine/tools/writeFiles.ts';
import { skipBecause } from '../../skipBecause.ts';
import { layered, layeredBox } from '../run/layered.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';

describe('changes of commands', function () {
  this.timeout(60_000);
  let run: TemporaryRun;
  let store: ChangeStore;
  let changes: KeptWrites;
  let finding: Awaited<ReturnType<typeof layeredBox>>;

  before(async function () {
    finding = await layeredBox();
    if (!finding) return skipBecause(this, 'no layer works here');
  });
  beforeEach(() => {
    run = temporaryRun();
    store = new ChangeStore({ dataDir: join(run.root, 'data'), configDir: join(run.root, 'config') });
    changes = store.keeper('run-1')!;
  });
  afterEach(() => run.remove());

  const inWork = (path: string): string => join(run.work, path);

  /** Runs a shell script as a command of the run, and returns the changed paths. */
  async function command(script: string, keeper = changes): Promise<string[]> {
    assert.ok(finding);
    const { changedFiles, said, out } = await layered(`set -e; ${script}`, run, store, finding, {
      human: allowAll,
      keeper,
    });
    assert.equal(said + out, '');
    return changedFiles.sort();
  }
  const writes = (path: string, content: string): Promise<unknown> =>
    writeFileTool.execute({ path, content }, { ...run.context, changes });

  /** Returns all that is below the working folder, with modes and bytes. */
  function tree(folder = run.work, path = ''): Record<string, string> {
    const found: Record<string, string> = {};
    for (const name of readdirSync(join(folder, path)).sort()) {
      const below = path === '' ? name : `${path}/${name}`;
      if (name === '.git') continue;
      const stats = lstatSync(join(folder, below));
      const mode = (stats.mode & 0o7777).toString(8);
      if (stats.isSymbolicLink()) found[below] = `link ${readlinkSync(join(folder, below))}`;
      else if (stats.isDirectory()) Object.assign(found, { [below]: `folder ${mode}` }, tree(folder, below));
      else found[below] = `${mode} ${readFileSync(join(folder, below)).toString('hex')}`;
    }
    return found;
  }

  async function undo(runId = 'run-1'): Promise<void> {
    const result = await store.undo(runId);
    assert.equal(result.outcome, 'undone', JSON.stringify(result));
    assert.equal(result.outcome === 'undone' && result.problem, undefined);
  }

  /** Puts files of all kinds into the working folder. */
  function fill(): void {
    run.put('work/bytes.bin', Buffer.from([0, 0xff, 0xfe, 10, 13, 0x80]));
    run.put('work/windows.txt', '\uFEFFone\r\ntwo\r\n');
    run.put('work/empty', '');
    run.put('work/with space/ünï 😀.txt', 'x');
    run.put('work/new\nline', 'two lines in the name');
    run.put('work/tool.sh', '#!/bin/sh\n');
    chmodSync(inWork('tool.sh'), 0o750);
    run.put('work/private', 'mine');
    chmodSync(inWork('private'), 0o600);
    run.put('work/deep/er/est/a', 'a');
    run.put('work/deep/b', 'b');
    mkdirSync(inWork('no files/at all'), { recursive: true });
    chmodSync(inWork('no files'), 0o700);
    symlinkSync('deep/b', inWork('link'));
    symlinkSync('/nowhere/at/all', inWork('dangling'));
    symlinkSync('deep', inWork('folder-link'));
    run.put('work/.gitignore', 'ignored*\n');
    run.put('work/ignored.log', 'kept all the same');
  }

  it('come back to every byte, mode, link and folder, and only those', async () => {
    fill();
    const before = tree();
    const changed = await command(`
      printf x >> bytes.bin; rm windows.txt; printf y > empty; mv 'with space' 'other space'; rm 'new
line'; chmod 600 tool.sh; chmod 711 private; rm -r deep 'no files'; ln -sfn elsewhere link; rm dangling
      rm folder-link; mkdir folder-link; echo in > folder-link/in; rm ignored.log; mkdir -p made/in/here; echo 1 > made/in/here/1
      ln -s /etc/passwd made/link; echo file > deep; mkdir empty-one`);
    assert.ok(changed.length > 15, String(changed));
    assert.notDeepEqual(tree(), before);
    assert.equal((await store.of('run-1')).ranCommands, false);
    await undo();
    assert.deepEqual(tree(), before);
    assert.equal((await store.undo('run-1')).outcome, 'already_undone');
  });

  it('are undone as one with the writes of their run', async () => {
    fill();
    const before = tree();
    await command('echo 1 > deep/b; echo n > new1');
    await writes('deep/b', 'by the tool');
    await command('rm -r deep; echo again > new1; rm new1; echo two > new2');
    await command('mkdir deep; echo other > deep/b');
    await undo();
    assert.deepEqual(tree(), before);
  });

  it('bring a mode back in whatever order commands and tools have changed the file', async () => {
    const steps: Record<string, () => Promise<unknown>> = {
      mode: () => command('chmod 755 a 2>/dev/null || true'),
      append: () => command('echo more >> a'),
      gone: () => command('rm -f a'),
      write: () => writes('a', 'by the tool'),
      same: () => writes('a', 'one\n'),
    };
    let count = 0;
    for (const order of [
      ['mode', 'write', 'append'],
      ['mode', 'gone', 'same'],
      ['mode', 'append', 'write'],
      ['gone', 'append', 'mode'],
      ['gone', 'write', 'append'],
      ['append', 'same', 'mode'],
    ]) {
      count += 1;
      run.put('work/a', 'one\n');
      chmodSync(inWork('a'), 0o640);
      changes = store.keeper(`run-${count}`)!;
      for (const name of order) await steps[name]!();
      await undo(`run-${count}`);
      const left = lstatSync(inWork('a'));
      const found = [(left.mode & 0o7777).toString(8), readFileSync(inWork('a'), 'utf8')];
      assert.deepEqual(found, ['640', 'one\n'], order.join());
    }
  });

  it('leave a mode that the person has given since', async () => {
    run.put('work/a', 'one\n');
    await command('chmod 755 a');
    await writes('a', 'two');
    chmodSync(inWork('a'), 0o600);
    await undo();
    assert.equal(lstatSync(inWork('a')).mode & 0o7777, 0o600);
  });

  it('keep what was changed after the run, and the rest is undone only if that is asked for', async () => {
    for (const name of ['kept', 'edited', 'deleted', 'back', 'linked']) run.put(`work/${name}`, 'old');
    await command(
      'for name in kept edited deleted linked; do echo run > $name; done; rm back; echo new > made',
    );
    writeFileSync(inWork('edited'), 'mine');
    writeFileSync(inWork('back'), 'mine too');
    writeFileSync(inWork('made'), 'mine as well');
    rmSync(inWork('deleted'));
    rmSync(inWork('linked'));
    const outside = run.put('outside/file', 'run\n');
    symlinkSync(outside, inWork('linked'));
    const result = await store.undo('run-1');
    assert.ok(result.outcome === 'refused', result.outcome);
    const named = result.blocked.map(({ path, state }) => [path.slice(run.work.length + 1), state]).sort();
    assert.deepEqual(named, [
      ['back', 'edited'],
      ['deleted', 'deleted'],
      ['edited', 'edited'],
      ['linked', 'replaced'],
      ['made', 'edited'],
    ]);
    const others = await store.undo('run-1', { others: true });
    assert.deepEqual(others.outcome === 'undone' && others.restored, [inWork('kept')]);
    assert.equal(readFileSync(outside, 'utf8'), 'run\n');
    assert.equal(readFileSync(inWork('back'), 'utf8'), 'mine too');
  });

  it('follow no link that a folder has become, neither for what was changed nor for what was deleted', async () => {
    run.put('work/folder/a', 'old');
    run.put('work/folder/gone', 'old');
    await command('echo run > folder/a; rm folder/gone');
    rmSync(inWork('folder'), { recursive: true });
    run.put('outside/a', 'run\n');
    symlinkSync(join(run.root, 'outside'), inWork('folder'));
    const result = await store.undo('run-1', { others: true });
    assert.equal(result.outcome, 'refused');
    assert.equal(existsSync(join(run.root, 'outside', 'gone')), false);
    assert.equal(readFileSync(join(run.root, 'outside', 'a'), 'utf8'), 'run\n');
  });

  it('bring back a folder for which a command has left a link, and leave alone where that leads', async () => {
    fill();
    const before = tree();
    run.put('outside/b', 'not ours');
    await command(`rm -r deep; ln -s '${join(run.root, 'outside')}' deep`);
    await undo();
    assert.deepEqual(tree(), before);
    assert.equal(readFileSync(join(run.root, 'outside', 'b'), 'utf8'), 'not ours');
  });

  it('are none where only times have changed', async () => {
    fill();
    assert.deepEqual(
      await command('touch -d 2001-01-01 bytes.bin; cp -p windows.txt w; mv w windows.txt; echo > n; rm n'),
      [],
    );
    assert.deepEqual(await store.find('run-1'), []);
    assert.equal(lstatSync(inWork('bytes.bin')).mtime.getFullYear(), 2001);
    assert.deepEqual(await command('echo 1 >> windows.txt'), [inWork('windows.txt')]);
    assert.equal((await store.find('run-1')).length, 1);
  });

  it('take what the person has changed between two commands for the person’s', async () => {
    run.put('work/a', 'old');
    await command('true');
    writeFileSync(inWork('a'), 'by me');
    run.put('work/mine', 'mine');
    await command('echo run > a; rm mine');
    await undo();
    assert.equal(readFileSync(inWork('a'), 'utf8'), 'by me');
    assert.equal(readFileSync(inWork('mine'), 'utf8'), 'mine');
  });

  it('obey nothing of a hostile repository, and keep bytes as bytes', async () => {
    const ran = join(run.root, 'ran');
    const program = run.put('evil.sh', `#!/bin/sh\necho "$0" >> '${ran}'\ncat\n`);
    chmodSync(program, 0o755);
    const git = (...args: string[]): string =>
      execFileSync('git', args, {
        cwd: run.work,
        encoding: 'utf8',
        env: { PATH: process.env['PATH'], GIT_CONFIG_GLOBAL: '/dev/null' },
      });
    git('init', '-q', '.');
    const programs = ['core.fsmonitor', 'filter.evil.clean', 'filter.evil.smudge', 'filter.evil.process'];
    for (const [name, value] of [
      ...[...programs, 'diff.evil.textconv', 'core.sshCommand'].map(each => [each, program]),
      ['core.autocrlf', 'input'],
      ['core.hooksPath', run.root],
      ['core.worktree', join(run.root, 'elsewhere')],
      ['filter.evil.required', 'true'],
      ['core.attributesFile', join(run.root, 'attributes')],
    ])
      git('config', name ?? '', value ?? '');
    mkdirSync(join(run.root, 'elsewhere'));
    run.put('work/.git/info/attributes', '* filter=evil');
    run.put('attributes', '* filter=evil');
    run.put(
      'work/.gitattributes',
      '* filter=evil diff=evil text=auto eol=lf ident\n*.u16 text working-tree-encoding=UTF-16\n',
    );
    run.put('work/sub/id.txt', '$Id$\r\nline\r\n');
    run.put('work/a.u16', Buffer.from('\uFEFFa\r\n', 'utf16le'));
    run.put('work/pointer/.git', `gitdir: ${join(run.root, 'elsewhere')}\n`);
    run.put('work/pointer/file', 'in a work tree');
    run.put('work/nested/file', 'in a repository');
    execFileSync('git', ['init', '-q', inWork('nested')]);
    run.put('work/nested/.git/config', `[core]\n\tfsmonitor = ${program}\n`);
    const dotGit = (): string =>
      execFileSync('tar', ['-c', '--sort=name', './.git'], { cwd: run.work }).toString('latin1');
    const [before, ofGit] = [tree(), dotGit()];
    const changed = await command(`
      printf '$Id: x $\\n' > sub/id.txt; printf x > a.u16; echo new > nested/file; rm pointer/file; echo n > nested/new`);
    assert.equal(changed.length, 5);
    await undo();
    assert.deepEqual(tree(), before);
    assert.equal(dotGit(), ofGit, 'the repository is untouched');
    assert.equal(existsSync(ran), false, 'a program of the repository ran');
    assert.deepEqual(readdirSync(join(run.root, 'elsewhere')), []);
  });

  it('are not undone of a file that is too large to be kept, and the rest is', async () => {
    run.put('work/small', 'old');
    run.put('work/large', '');
    truncateSync(inWork('large'), 65 * 1024 * 1024);
    assert.ok(finding);
    const { said } = await layered('echo new > small; rm large; echo more > large', run, store, finding, {
      human: allowAll,
      keeper: changes,
    });
    assert.match(said, /large \(.* bytes\) is too large for its old content to be stored/);
    const { files } = await store.of('run-1');
    assert.deepEqual(files.map(({ path, state }) => [path, state]).sort(), [
      [inWork('large'), 'not_kept'],
      [inWork('small'), 'ready'],
    ]);
    assert.equal((await store.undo('run-1')).outcome, 'refused');
    await store.undo('run-1', { others: true });
    assert.equal(readFileSync(inWork('small'), 'utf8'), 'old');
  });

  it('are kept up to a limit for a run, which is said once, when that happens', async () => {
    for (const name of ['a', 'b', 'c', 'd']) run.put(`work/${name}`, `old ${name}`);
    const folder = join(run.root, 'data', 'changes', 'run-1');
    const full = new KeptWrites(folder, () => undefined, 2 * 'old a'.length);
    await command('echo 1 > a; echo 2 > b', full);
    assert.ok(finding);
    const more = (line: string) =>
      layered(line, run, store, finding!, { human: allowAll, keeper: full }).then(({ said }) => said);
    assert.match(
      await more('echo 3 > c'),
      /too much for all of .*\(10 bytes\); undoing .* not restore the rest/,
    );
    assert.equal(await more('echo 4 > d'), '', 'once a run');
    const { files } = await store.of('run-1');
    const states = Object.fromEntries(files.map(({ path, state }) => [basename(path), state]));
    assert.deepEqual(states, { a: 'ready', b: 'ready', c: 'not_kept', d: 'not_kept' });
  });

  describe('in a repository that was there', () => {
    const git = (...args: string[]): string =>
      execFileSync('git', ['-c', 'user.name=n', '-c', 'user.email=e', ...args], {
        cwd: run.work,
        encoding: 'utf8',
      }).trim();
    const standing = (): string =>
      [
        git('for-each-ref'),
        git('symbolic-ref', 'HEAD'),
        git('ls-files', '-s'),
        git('status', '--short'),
        git('log', '-g', '--format=%gs'),
      ].join('\n');
    beforeEach(() => {
      fill();
      git('init', '-q', '-b', 'main', '.');
      git('config', 'user.name', 'n');
      git('config', 'user.email', 'e');
      git('add', '-A');
      git('commit', '-qm', 'one');
      git('tag', 'v1');
      git('branch', 'side');
      run.put('work/deep/staged', 'staged\n');
      git('add', 'deep/staged');
    });

    for (const [what, script] of [
      ['commits', 'echo new > deep/b; git add -A; git commit -qm two'],
      [
        'stashes and switches',
        'git stash -q -u; git checkout -q side; git branch -qD main; git tag -d v1 > /dev/null',
      ],
      ['discards what is not committed', 'echo more >> deep/b; git checkout -q -- .; git reset -q --hard'],
      [
        'rewrites history',
        'git commit -qm two; git reset -q --hard v1; git reflog expire --expire=now --all',
      ],
      ['packs and prunes', 'git commit -qam two; git pack-refs --all --prune; git gc -q --prune=now'],
      [
        'deletes what says where it stands',
        'rm -rf .git/HEAD .git/refs .git/index .git/logs .git/packed-refs',
      ],
      ['overwrites it', 'for f in $(find .git/refs -type f) .git/HEAD .git/index; do echo x > $f; done'],
    ] as const)
      it(`are undone where a command ${what}`, async () => {
        const before = standing();
        await command(script);
        const shown = await store.of('run-1');
        assert.deepEqual([shown.repositories, shown.movedBranch], [[inWork('.git')], false]);
        assert.equal(await store.latest(), 'run-1');
        const result = await store.undo('run-1');
        assert.equal(result.outcome, 'undone');
        assert.ok(result.outcome === 'undone' && result.restored.every(path => !path.includes('/.git/')));
        assert.equal(standing(), before);
        git('fsck', '--full');
        assert.equal((await store.undo('run-1')).outcome, 'already_undone');
      });

    it('stay where somebody has worked since, with the files undone', async () => {
      await command('echo new > deep/b; git add -A; git commit -qm two');
      git('commit', '-q', '--allow-empty', '-m', 'of the person');
      const shown = await store.of('run-1');
      assert.deepEqual([shown.repositories, shown.movedBranch], [[], true]);
      assert.equal((await store.undo('run-1')).outcome, 'undone');
      assert.equal(readFileSync(inWork('deep/b'), 'utf8'), 'b');
      assert.equal(git('log', '--format=%s'), 'of the person\ntwo\none');
    });

    it('stay while another Git works there', async () => {
      await command('echo new > deep/b; git add -A; git commit -qm two');
      writeFileSync(inWork('.git/index.lock'), '');
      await store.undo('run-1');
      assert.equal(git('log', '--format=%s'), 'two\none');
    });

    it('are left alone where only some files are undone', async () => {
      await command('echo new > deep/b; echo c > deep/c; git add -A; git commit -qm two');
      writeFileSync(inWork('deep/c'), 'of the person');
      assert.equal((await store.undo('run-1', { others: true })).outcome, 'undone');
      assert.equal(git('log', '--format=%s'), 'two\none');
    });
  });
});
