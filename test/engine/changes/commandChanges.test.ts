/** What commands change in a working folder, and the way back, with a real git, real commands and real files. */

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
import { basename, dirname, join } from 'node:path';
import { ChangeStore } from '../../../src/engine/changes/changeStore.ts';
import { KeptWrites } from '../../../src/engine/changes/keptWrites.ts';
import { WatchedFolders } from '../../../src/engine/changes/watchedFolders.ts';
import { writeFileTool } from '../../../src/engine/tools/writeFiles.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';

for (const [size, others] of [
  ['small', 0],
  ['large', 1001],
] as const)
  describe(`changes of commands in a ${size} folder`, function () {
    this.timeout(30_000);
    let run: TemporaryRun;
    let store: ChangeStore;
    let changes: KeptWrites;

    beforeEach(() => {
      run = temporaryRun();
      for (let at = 0; at < others; at++) run.put(`work/others/${at}`, '');
      store = new ChangeStore({ dataDir: join(run.root, 'data'), configDir: join(run.root, 'config') });
      changes = store.keeper('run-1')!;
    });
    afterEach(async () => {
      await store.settled();
      run.remove();
    });

    const inWork = (path: string): string => join(run.work, path);
    const place = (outside = false) => ({
      workingDir: run.work,
      env: { PATH: process.env['PATH'] ?? '' },
      outside,
      signal: new AbortController().signal,
    });
    const sh = (script: string): string =>
      execFileSync('/bin/sh', ['-ec', script], { cwd: run.work, encoding: 'utf8' });

    /** Runs a shell script as a command of the run, and returns the changed paths. */
    async function command(script: string, keeper = changes): Promise<string[]> {
      const watch = await keeper.watchCommand(place());
      assert.ok(watch, 'not watched');
      sh(script);
      const found = await watch.end();
      assert.ok(found, 'unknown');
      return watch.record();
    }

    /** Returns all that is below the working folder, with modes and bytes. */
    function tree(folder = run.work, path = ''): Record<string, string> {
      const found: Record<string, string> = {};
      for (const name of readdirSync(join(folder, path)).sort()) {
        const below = path === '' ? name : `${path}/${name}`;
        if (name === '.git') continue;
        const stats = lstatSync(join(folder, below));
        const mode = (stats.mode & 0o7777).toString(8);
        if (stats.isSymbolicLink()) found[below] = `link ${readlinkSync(join(folder, below))}`;
        else if (stats.isDirectory())
          Object.assign(found, { [below]: `folder ${mode}` }, tree(folder, below));
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

    it('brings back every byte, mode, link and folder that a command has changed, deleted or made', async () => {
      fill();
      const before = tree();
      await command('true');
      const changed = await command(`
      printf x >> bytes.bin; rm windows.txt; printf y > empty; mv 'with space' 'other space'; rm 'new
line'; chmod 600 tool.sh; chmod 4711 private; rm -r deep 'no files'; ln -sfn elsewhere link; rm dangling
      rm folder-link; mkdir folder-link; echo in > folder-link/in; rm ignored.log; mkdir -p made/in/here; echo 1 > made/in/here/1
      ln -s /etc/passwd made/link; echo file > deep; mkdir empty-one`);
      assert.ok(changed.length > 15, String(changed));
      assert.notDeepEqual(tree(), before);
      const shown = await store.of('run-1');
      assert.equal(shown.ranCommands, false);
      await undo();
      assert.deepEqual(tree(), before);
      assert.equal((await store.undo('run-1')).outcome, 'already_undone');
    });

    it('undoes several commands and writes of one run as one', async () => {
      fill();
      const before = tree();
      await command('echo 1 > deep/b; echo n > new1');
      await writeFileTool.execute({ path: 'deep/b', content: 'by the tool' }, { ...run.context, changes });
      await command('rm -r deep; echo again > new1; rm new1; echo two > new2');
      await command('mkdir deep; echo other > deep/b');
      await undo();
      assert.deepEqual(tree(), before);
    });

    // The size of the folder plays no part in it.
    if (others === 0)
      it('brings a mode back in whatever order commands and tools have changed the file', async () => {
        const steps: Record<string, () => Promise<unknown>> = {
          mode: () => command('chmod 755 a 2>/dev/null || true'),
          bits: () => command('chmod 4711 a 2>/dev/null || true'),
          append: () => command('echo more >> a'),
          gone: () => command('rm -f a'),
          write: () =>
            writeFileTool.execute({ path: 'a', content: 'by the tool' }, { ...run.context, changes }),
          same: () => writeFileTool.execute({ path: 'a', content: 'one\n' }, { ...run.context, changes }),
        };
        const names = Object.keys(steps);
        let count = 0;
        for (const first of ['mode', 'bits', 'gone'])
          for (const second of names)
            for (const third of ['write', 'same', 'append']) {
              count += 1;
              run.put('work/a', 'one\n');
              chmodSync(inWork('a'), 0o640);
              changes = store.keeper(`run-${count}`)!;
              for (const name of [first, second, third]) await steps[name]!();
              await undo(`run-${count}`);
              const left = lstatSync(inWork('a'));
              const found = [(left.mode & 0o7777).toString(8), readFileSync(inWork('a'), 'utf8')];
              assert.deepEqual(found, ['640', 'one\n'], `${first}, ${second}, ${third}`);
            }
      });

    it('keeps a mode that the person has given since', async () => {
      run.put('work/a', 'one\n');
      await command('chmod 755 a');
      await writeFileTool.execute({ path: 'a', content: 'two' }, { ...run.context, changes });
      chmodSync(inWork('a'), 0o600);
      await undo();
      assert.equal(lstatSync(inWork('a')).mode & 0o7777, 0o600);
    });

    it('names the repositories that the run made, which stay', async () => {
      mkdirSync(inWork('there'));
      await command('git init -q deep/er; git init -q there; git init -q gone; echo x > deep/er/x');
      await command('rm -r gone');
      await undo();
      const { madeRepositories } = await store.of('run-1');
      assert.deepEqual([...madeRepositories].sort(), [inWork('deep/er/.git'), inWork('there/.git')]);
      assert.equal(existsSync(inWork('deep/er/x')), false);
    });

    it('keeps what was changed after the run, and undoes the rest only if that is asked for', async () => {
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
      const named = result.blocked.map(({ path, state }) => [path.slice(run.work.length + 1), state]);
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

    it('follows no link that a folder has become, neither for what was changed nor for what was deleted', async () => {
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

    it('brings back a folder for which a command has left a link, and leaves alone where that leads', async () => {
      fill();
      const before = tree();
      run.put('outside/b', 'not ours');
      await command(`rm -r deep; ln -s '${join(run.root, 'outside')}' deep`);
      await undo();
      assert.deepEqual(tree(), before);
      assert.equal(readFileSync(join(run.root, 'outside', 'b'), 'utf8'), 'not ours');
    });

    it('sees no difference where only times have changed', async () => {
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

    it('sees a change of the same size with the same time, in the same second', async () => {
      run.put('work/a', 'one\n');
      run.put('work/b', 'one\n');
      await command('touch -d 2001-01-01 a; echo two > b; touch -d 2001-01-01 b');
      const changed = await command(
        'printf "six\\n" > a; touch -d 2001-01-01 a; printf "six\\n" > b; touch -d 2001-01-01 b',
      );
      assert.deepEqual(changed, [inWork('a'), inWork('b')]);
      await undo();
      assert.equal(readFileSync(inWork('a'), 'utf8') + readFileSync(inWork('b'), 'utf8'), 'one\none\n');
    });

    it('knows what the person has changed between two commands', async () => {
      run.put('work/a', 'old');
      await command('true');
      writeFileSync(inWork('a'), 'by me');
      run.put('work/mine', 'mine');
      await command('echo run > a; rm mine');
      await undo();
      assert.equal(readFileSync(inWork('a'), 'utf8'), 'by me');
      assert.equal(readFileSync(inWork('mine'), 'utf8'), 'mine');
    });

    it('obeys nothing of a hostile repository, and keeps bytes as bytes', async () => {
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
      for (const [name, value] of [
        ...['core.fsmonitor', 'filter.evil.clean', 'filter.evil.smudge', 'filter.evil.process'].map(name => [
          name,
          program,
        ]),
        ...['diff.evil.textconv', 'diff.evil.command', 'core.sshCommand', 'core.pager'].map(name => [
          name,
          program,
        ]),
        ...[
          ['core.autocrlf', 'input'],
          ['core.hooksPath', run.root],
          ['core.worktree', join(run.root, 'elsewhere')],
        ],
        ...[
          ['filter.evil.required', 'true'],
          ['core.attributesFile', join(run.root, 'attributes')],
        ],
      ])
        git('config', name ?? '', value ?? '');
      for (const hook of ['post-index-change', 'pre-commit', 'reference-transaction']) {
        run.put(`work/.git/hooks/${hook}`, `#!/bin/sh\necho hook >> '${ran}'\n`);
        chmodSync(inWork(`.git/hooks/${hook}`), 0o755);
      }
      mkdirSync(join(run.root, 'elsewhere'));
      run.put('work/.git/objects/info/alternates', join(run.root, 'objects'));
      run.put('work/.git/info/attributes', '* filter=evil');
      run.put('attributes', '* filter=evil');
      run.put(
        'work/.gitattributes',
        '* filter=evil diff=evil text=auto eol=lf ident\n*.u16 text working-tree-encoding=UTF-16\n[attr]binary filter=evil\n',
      );
      run.put('work/sub/.gitattributes', '* binary ident filter=evil -text\n');
      run.put('work/sub/id.txt', '$Id$\r\nline\r\n');
      run.put('work/a.u16', Buffer.from('\uFEFFa\r\n', 'utf16le'));
      run.put('work/pointer/.git', `gitdir: ${join(run.root, 'elsewhere')}\n`);
      run.put('work/pointer/file', 'in a work tree');
      run.put('work/nested/file', 'in a repository');
      execFileSync('git', ['init', '-q', inWork('nested')]);
      run.put('work/nested/.git/config', `[core]\n\tfsmonitor = ${program}\n`);
      const dotGit = (): string =>
        execFileSync('tar', ['-c', '--sort=name', '--exclude=./.git/index', './.git'], {
          cwd: run.work,
        }).toString('latin1');
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

    it('takes nothing for its own that another run or the editor writes meanwhile', async () => {
      for (const name of ['run', 'editor', 'both']) run.put(`work/${name}`, 'old');
      const watch = await changes.watchCommand(place());
      assert.ok(watch);
      const other = { ...run.context, changes: store.keeper('run-2')! };
      for (const [path, content] of Object.entries({ run: 'theirs', fresh: 'theirs', both: 'theirs' }))
        await writeFileTool.execute({ path, content }, other);
      run.put('work/editor', 'saved');
      store.noteSaved(inWork('editor'), Buffer.from('saved'));
      sh('echo more >> both; echo 1 > own');
      assert.ok(await watch.end());
      assert.deepEqual(watch.record().sort(), ['both', 'own'].map(inWork));
      await store.undo('run-1', { others: true });
      const left = readdirSync(run.work).filter(name => name !== 'others');
      assert.deepEqual(left, ['both', 'editor', 'fresh', 'run']);
      assert.deepEqual(
        left.map(name => readFileSync(inWork(name), 'utf8')),
        ['theirsmore\n', 'saved', 'theirs', 'theirs'],
      );
    });

    it('says what is too large to be kept, and undoes the rest', async () => {
      run.put('work/small', 'old');
      run.put('work/large', '');
      truncateSync(inWork('large'), 65 * 1024 * 1024);
      await command('echo new > small; echo more >> large');
      const { files, leftOut } = await store.of('run-1');
      assert.deepEqual(leftOut, [inWork('large')]);
      assert.deepEqual(
        files.map(({ path, state }) => [path, state]),
        [
          [inWork('large'), 'not_kept'],
          [inWork('small'), 'ready'],
        ],
      );
      assert.equal((await store.undo('run-1')).outcome, 'refused');
      await store.undo('run-1', { others: true });
      assert.equal(readFileSync(inWork('small'), 'utf8'), 'old');
    });

    it('says once that the run has kept as much as it may, when that happens', async () => {
      for (const name of ['a', 'b', 'c', 'd']) run.put(`work/${name}`, `old ${name}`);
      const data = join(run.root, 'data');
      const watched = new WatchedFolders(data, []);
      const folder = join(data, 'changes', 'run-1');
      const full = new KeptWrites(
        folder,
        () => undefined,
        where => watched.begin(where),
        2 * 'old a'.length,
      );
      await command('echo 1 > a; echo 2 > b', full);
      assert.equal(full.takeProblem(), undefined);
      await command('echo 3 > c', full);
      assert.match(
        full.takeProblem() ?? '',
        /too much for all of .*\(10 bytes\); undoing .* not restore the rest/,
      );
      await command('echo 4 > d', full);
      assert.equal(full.takeProblem(), undefined, 'once a run');
      await watched.settled();
      const { files } = await store.of('run-1');
      const states = Object.fromEntries(files.map(({ path, state }) => [basename(path), state]));
      assert.deepEqual(states, { a: 'ready', b: 'ready', c: 'not_kept', d: 'not_kept' });
    });

    it('says once in each run that little is kept of its folder', async () => {
      const leftOut = new Map([[run.work, 'it has more than 5 files']]);
      const nothing = { files: [], settings: [], state: [], unlooked: [], vanished: [], reopened: [] };
      const found = { ...nothing, folders: new Map(), movedHead: false, madeRepositories: [], leftOut };
      const watch = { root: run.work, seesContent: true, end: async () => found, contents: async () => {} };
      for (const _ of ['one run', 'the same run, begun again']) {
        const kept = new KeptWrites(
          join(run.root, 'data', 'changes', 'run-1'),
          () => undefined,
          async () => watch,
        );
        await command('true', kept);
        assert.match(
          kept.takeProblem() ?? '',
          /cannot be undone, but for files that other programs run or obey: the folder has more than 5 files\./,
        );
        await command('true', kept);
        assert.equal(kept.takeProblem(), undefined, 'once a run');
      }
    });

    it('tells two runs in one folder apart where one of them waits, and undoes each', async () => {
      for (const name of ['a', 'b', 'c']) run.put(`work/${name}`, 'old');
      const other = store.keeper('run-2')!;
      const first = await changes.watchCommand(place());
      sh('echo 1 > a');
      const second = await other.watchCommand(place());
      sh('echo 2 > b');
      await second?.end();
      assert.deepEqual(second?.record(), [inWork('b')]);
      sh('echo 1 > c');
      await first?.end();
      assert.deepEqual(first?.record(), [inWork('a'), inWork('c')]);
      await undo('run-2');
      assert.equal(readFileSync(inWork('b'), 'utf8'), 'old');
      await undo('run-1');
      assert.deepEqual(
        ['a', 'b', 'c'].map(name => readFileSync(inWork(name), 'utf8')),
        ['old', 'old', 'old'],
      );
    });

    it('goes on from what another process knew, also one that was killed', async () => {
      fill();
      const before = tree();
      await command('echo 1 > deep/b');
      const later = new ChangeStore({ dataDir: join(run.root, 'data'), configDir: join(run.root, 'config') });
      const killed = await changes.watchCommand(place());
      assert.ok(killed);
      sh('echo killed > tool.sh');
      const keeper = later.keeper('run-2')!;
      const now = tree();
      await command('rm -r deep; echo 2 > tool.sh', keeper);
      assert.equal((await store.of('run-1')).ranCommands, true, 'a command without an end is unknown');
      await undo('run-2');
      assert.deepEqual(tree(), now);
      await undo('run-1');
      assert.deepEqual(tree(), { ...before, 'tool.sh': now['tool.sh'] });
    });

    it('begins its store again when that has become too large, and still undoes what came before', async () => {
      fill();
      const before = tree();
      await command('echo 1 > deep/b');
      await store.settled();
      const [own = ''] = readdirSync(join(run.root, 'data/folders'));
      const kept = join(run.root, 'data/folders', own, 'objects/00', '1'.repeat(38));
      mkdirSync(dirname(kept), { recursive: true });
      writeFileSync(kept, '');
      truncateSync(kept, 4 * 1024 ** 3);
      const later = new ChangeStore({ dataDir: join(run.root, 'data'), configDir: join(run.root, 'config') });
      await command('echo 2 > deep/b; rm tool.sh', later.keeper('run-2')!);
      assert.equal(existsSync(kept), false);
      await undo('run-2');
      await undo('run-1');
      assert.deepEqual(tree(), before);
    });

    it('says that it knows nothing without git, in a folder of Telos, and of one that is gone', async () => {
      const without = await changes.watchCommand({ ...place(), env: { PATH: join(run.root, 'empty') } });
      assert.match(changes.takeProblem() ?? '', /cannot be undone: git was not found/);
      sh('echo new > made');
      assert.deepEqual(
        (await without?.end())?.map(({ path }) => path),
        [inWork('made')],
      );
      assert.deepEqual(without?.record(), []);
      assert.deepEqual(await store.find('run-1'), []);
      const above = store.keeper('run-2')!;
      assert.equal(await above.watchCommand({ ...place(), workingDir: run.root }), undefined);
      assert.match(above.takeProblem() ?? '', /contains the folders of Telos itself/);
      const gone = store.keeper('run-3')!;
      const watch = await gone.watchCommand(place());
      rmSync(run.work, { recursive: true });
      assert.equal(await watch?.end(), undefined);
      assert.match(gone.takeProblem() ?? '', /What the command changed cannot be undone/);
    });

    it('waits for no pipe, and removes one that a command has put in place of attributes', async () => {
      fill();
      await command('true');
      const changed = await command('mkfifo .gitattributes deep/pipe; echo new > deep/b');
      assert.deepEqual(changed, [inWork('deep/b')]);
      assert.equal(existsSync(inWork('.gitattributes')), false);
      assert.match(changes.takeProblem() ?? '', /pipe is not a regular file/);
      await undo();
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
        sh('echo staged > deep/staged; git add deep/staged');
      });

      for (const [what, script] of [
        ['commits', 'echo new > deep/b; git add -A; git commit -qm two'],
        ['stashes and switches', 'git stash -q -u; git checkout -q side; git branch -D main; git tag -d v1'],
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
        it(`is undone where a command ${what}`, async () => {
          await command('true');
          const [before, log] = [standing(), git('log', '-g', '--format=%gs')];
          await command(script);
          const shown = await store.of('run-1');
          assert.deepEqual([shown.repositories, shown.movedBranch], [[inWork('.git')], false]);
          assert.ok((await store.latest()) === 'run-1');
          const result = await store.undo('run-1');
          assert.equal(result.outcome, 'undone');
          assert.ok(result.outcome === 'undone' && result.restored.every(path => !path.includes('/.git/')));
          assert.deepEqual([standing(), git('log', '-g', '--format=%gs')], [before, log]);
          git('fsck', '--full');
          assert.equal((await store.undo('run-1')).outcome, 'already_undone');
        });

      it('is undone where the working folder is a part of it', async () => {
        mkdirSync(inWork('part'));
        const before = standing();
        const watch = await changes.watchCommand({ ...place(), workingDir: inWork('part') });
        sh('cd part; echo x > y; git add y; git commit -qm two; git branch -D side');
        assert.ok(await watch?.end());
        watch?.record();
        assert.deepEqual((await store.of('run-1')).repositories, [inWork('.git')]);
        assert.equal((await store.undo('run-1')).outcome, 'undone');
        assert.equal(standing(), before);
      });

      it('stays where somebody has worked since, with the files undone', async () => {
        await command('echo new > deep/b; git add -A; git commit -qm two');
        git('commit', '-q', '--allow-empty', '-m', 'of the person');
        const shown = await store.of('run-1');
        assert.deepEqual([shown.repositories, shown.movedBranch], [[], true]);
        assert.equal((await store.undo('run-1')).outcome, 'undone');
        assert.equal(readFileSync(inWork('deep/b'), 'utf8'), 'b');
        assert.equal(git('log', '--format=%s'), 'of the person\ntwo\none');
      });

      it('stays while another Git works there', async () => {
        await command('echo new > deep/b; git add -A; git commit -qm two');
        writeFileSync(inWork('.git/index.lock'), '');
        await store.undo('run-1');
        assert.equal(git('log', '--format=%s'), 'two\none');
      });

      it('is left alone where only some files are undone', async () => {
        await command('echo new > deep/b; echo c > deep/c; git add -A; git commit -qm two');
        writeFileSync(inWork('deep/c'), 'of the person');
        assert.equal((await store.undo('run-1', { others: true })).outcome, 'undone');
        assert.equal(git('log', '--format=%s'), 'two\none');
      });
    });

    it('says that a commit stays in a repository that the run made', async () => {
      fill();
      await command('git init -q .; git config user.name n; git config user.email e');
      await command('echo new > deep/b; git add -A; git commit -qm one');
      const shown = await store.of('run-1');
      assert.equal(shown.movedBranch, true);
      await undo();
      assert.equal(readFileSync(inWork('deep/b'), 'utf8'), 'b');
      assert.match(execFileSync('git', ['log', '--oneline'], { cwd: run.work, encoding: 'utf8' }), /one/);
    });

    it('is stopped in the middle of the first look', async () => {
      fill();
      const control = new AbortController();
      control.abort(new Error('stopped'));
      await assert.rejects(changes.watchCommand({ ...place(), signal: control.signal }), /stopped/);
      assert.deepEqual((await command('echo 1 > deep/b')).length, 1);
    });

    it('does not let go of a change behind the name of a repository', async () => {
      fill();
      await command('true');
      const changed = await command(`
      mkdir -p .vscode/.git/objects .vscode/.git/refs; echo 'ref: refs/heads/main' > .vscode/.git/HEAD; echo {} > .vscode/tasks.json
      mkdir deep/.GIT; echo x > deep/.GIT/config; touch -d 2001-01-01 .vscode deep .`);
      assert.deepEqual(changed, [inWork('.vscode/tasks.json')]);
      await undo();
      assert.equal(existsSync(inWork('.vscode/tasks.json')), false);
    });

    it('tells commands that begin and end at once what each of them could have changed', async () => {
      fill();
      const before = tree();
      const watches = await Promise.all([1, 2, 3].map(() => changes.watchCommand(place())));
      sh('echo 1 > deep/b; echo 2 > new; rm empty');
      const found = await Promise.all(watches.map(watch => watch?.end()));
      const named = ['deep/b', 'empty', 'new'].map(inWork);
      for (const each of found) assert.deepEqual(each?.map(({ path }) => path).sort(), named);
      for (const watch of watches) watch?.record();
      await undo();
      assert.deepEqual(tree(), before);
    });

    it('goes on with a look that one of those who wait for it gives up', async () => {
      fill();
      const control = new AbortController();
      const [given, kept] = [
        changes.watchCommand({ ...place(), signal: control.signal }),
        changes.watchCommand(place()),
      ];
      control.abort(new Error('stopped'));
      await assert.rejects(given, /stopped/);
      const watch = await kept;
      sh('echo 1 > deep/b');
      assert.deepEqual(
        (await watch?.end())?.map(({ path }) => path),
        [inWork('deep/b')],
      );
    });

    it('brings back what was there while the folder was small, and after', async () => {
      fill();
      const before = tree();
      await command('echo 1 > deep/b; rm empty');
      await command('mkdir many; cd many; i=0; while [ $i -lt 1010 ]; do echo $i > $i; i=$((i + 1)); done');
      await command('echo 2 > deep/b; rm windows.txt; echo x > many/7; rm many/8');
      await command('echo 3 > many/7; mv private many; head -c 20000000 /dev/zero > large');
      await command('rm large; rm -r deep');
      await undo();
      assert.deepEqual(tree(), before);
    });
  });
