/** What a command writes lands in its folder once it has ended: at once where that is harmless, after a yes where others obey it. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { ChangeStore } from '../../../src/engine/changes/changeStore.ts';
import type { Human } from '../../../src/engine/core/ports.ts';
import { dropLeftLayers } from '../../../src/engine/files/leftLayers.ts';
import { denyAll } from '../../../src/engine/human.ts';
import type { ApprovalRequest } from '../../../src/protocol/run.ts';
import { skipBecause } from '../../skipBecause.ts';
import { itAsUser } from '../changes/asUser.ts';
import { type TemporaryRun, temporaryRun } from '../tools/temporaryRun.ts';
import { type Landed, layeredBox, layered as layeredIn, runId } from './layered.ts';

const asUser = itAsUser(import.meta.filename);

describe('a command that writes into a layer', function () {
  this.timeout(30_000);
  let run: TemporaryRun;
  let store: ChangeStore;
  let asked: ApprovalRequest[];
  let finding: Awaited<ReturnType<typeof layeredBox>>;

  before(async function () {
    finding = await layeredBox();
    if (!finding) return skipBecause(this, 'no layer works here');
  });
  beforeEach(() => {
    run = temporaryRun();
    asked = [];
    store = new ChangeStore({ dataDir: join(run.root, 'data'), configDir: join(run.root, 'config') });
  });
  afterEach(() => run.remove());

  const inWork = (path: string): string => join(run.work, path);
  const text = (path: string): string => readFileSync(inWork(path), 'utf8');
  const yes: Human = answering(true);
  const no: Human = answering(false);

  function answering(allow: boolean): Human {
    return {
      ...denyAll,
      approve: async request => {
        asked.push(request);
        return allow ? { allow, scope: 'once' } : { allow, reason: 'no' };
      },
    };
  }

  const git = (line: string, cwd = run.work): string =>
    execFileSync('/bin/sh', ['-ec', line], {
      cwd,
      encoding: 'utf8',
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: run.home,
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_OPTIONAL_LOCKS: '0',
      },
    });

  const layered = (
    line: string,
    human: Human = denyAll,
    meanwhile?: () => void,
    dataDir?: string,
  ): Promise<Landed> => {
    assert.ok(finding);
    return layeredIn(line, run, store, finding, { human, meanwhile, dataDir });
  };

  /** Returns all names with their modes and contents, but for what Git says of times. */
  function pictureOf(folder: string): Record<string, string> {
    const found: Record<string, string> = {};
    const look = (path: string): void => {
      const stats = lstatSync(join(folder, path));
      const mode = (stats.mode & 0o7777).toString(8);
      if (stats.isSymbolicLink()) found[path] = `-> ${readlinkSync(join(folder, path))}`;
      else if (stats.isFile()) found[path] = `${mode} ${readFileSync(join(folder, path), 'latin1')}`;
      else {
        found[path] = mode;
        for (const name of readdirSync(join(folder, path))) look(join(path, name));
      }
    };
    look('.');
    return found;
  }

  it('lands what is harmless, keeps the rest to itself until there is a yes, and leaves nothing after a no', async () => {
    run.put('work/package.json', '{}\r\n');
    run.put('work/src/a.txt', 'a\n');
    let seen = true;
    const line =
      'mkdir -p .vscode new/deep; echo {} > .vscode/tasks.json; echo x > package.json; echo b >> src/a.txt; echo 1 > new/deep/result; echo up; sleep 0.3';
    const { changedFiles, notes } = await layered(line, no, () => {
      seen = existsSync(inWork('.vscode')) || existsSync(inWork('new'));
    });
    assert.equal(seen, false, 'nothing is there while the command runs');
    assert.deepEqual(changedFiles.sort(), [inWork('new/deep/result'), inWork('src/a.txt')]);
    assert.equal(text('src/a.txt'), 'a\nb\n');
    assert.equal(text('package.json'), '{}\r\n');
    assert.equal(existsSync(inWork('.vscode')), false);
    assert.equal(asked.length, 1);
    assert.match(
      asked[0]?.reason ?? '',
      /\.vscode\/tasks\.json, package\.json|package\.json, \.vscode\/tasks\.json/,
    );
    assert.match(notes.join(), /tasks\.json.* was not kept: .*no/);
    await layered(line, yes);
    assert.equal(text('.vscode/tasks.json'), '{}\n');
    assert.equal(text('package.json'), 'x\n');
  });

  it('tells the person what was not kept since no one could be asked, or since the run was stopped', async () => {
    const line = 'mkdir -p .vscode; echo {} > .vscode/tasks.json; echo b > b.txt';
    const refused = await layered(line, no);
    assert.equal(refused.said, '');
    const { said } = await layered(line);
    assert.match(said, /^Not kept, since no one said yes .*\.vscode\/tasks\.json\. .*\(editors\)\.$/);
    assert.deepEqual([existsSync(inWork('.vscode')), existsSync(inWork('b.txt'))], [false, true]);
  });

  it('is undone to the byte, with modes, links, folders and what replaced one another', async () => {
    run.put('work/a.txt', 'a\r\n');
    run.put('work/b/c.txt', 'c');
    run.put('work/b/d.txt', 'd');
    run.put('work/f', 'file');
    run.put('work/dir/x', 'x');
    symlinkSync('a.txt', inWork('link'));
    chmodSync(inWork('b'), 0o750);
    const before = pictureOf(run.work);
    const { notes, said } = await layered(
      'echo 2 > a.txt; chmod 755 a.txt; rm -rf b; mkdir b; echo n > b/n; rm f; mkdir f; echo i > f/i; rm -rf dir; echo file > dir; ln -sfn b link; mkfifo pipe; mkdir -m 000 closed; rm b/n; echo m > b/m',
    );
    assert.equal(said, '');
    assert.match(notes.join(), /Pipes, sockets and devices .*pipe/);
    const after = pictureOf(run.work);
    assert.deepEqual(
      [after['a.txt'], after['b/m'], after['f/i'], after['dir'], after['link'], after['closed']],
      ['755 2\n', '644 m\n', '644 i\n', '644 file\n', '-> b', '0'],
    );
    assert.equal('b/c.txt' in after || 'b/n' in after || 'pipe' in after, false);
    assert.equal((await store.undo(runId)).outcome, 'undone');
    assert.deepEqual(pictureOf(run.work), before);
  });

  it('never takes what somebody else saves meanwhile for its own, and keeps both where they meet', async () => {
    run.put('work/package.json', '{}\n');
    run.put('work/both.txt', 'old\n');
    run.put('work/gone.txt', 'old\n');
    const { notes, said } = await layered(
      'echo up; sleep 0.5; echo command > both.txt; rm gone.txt',
      no,
      () => {
        run.put('work/package.json', '{"mine":1}\n');
        run.put('work/.vscode/launch.json', '{}\n');
        run.put('work/both.txt', 'mine\n');
        run.put('work/gone.txt', 'mine\n');
      },
    );
    assert.equal(asked.length, 0);
    assert.equal(text('package.json'), '{"mine":1}\n');
    assert.equal(text('.vscode/launch.json'), '{}\n');
    assert.equal(text('both.txt'), 'mine\n');
    assert.equal(text('both.txt.conflict'), 'command\n');
    assert.equal(text('gone.txt'), 'mine\n');
    assert.match(said, /both\.txt was changed by another program .* in both\.txt\.conflict/);
    assert.match(said, /gone\.txt was changed by another program/);
    assert.match(notes.join(), /both\.txt was changed/);
    await store.undo(runId);
    assert.equal(text('both.txt'), 'mine\n');
    assert.equal(existsSync(inWork('both.txt.conflict')), false);
  });

  it('touches nothing elsewhere, whatever it puts in place of a folder', async () => {
    run.put('home/src/lib/package.json', '{"name":"mine"}\n');
    run.put('work/packages/lib/package.json', '{}\n');
    const elsewhere = pictureOf(run.home);
    await layered(`rm -rf packages/lib && ln -s ${run.home}/src/lib packages/lib`, no);
    assert.deepEqual(pictureOf(run.home), elsewhere);
    assert.equal(text('packages/lib/package.json'), '{}\n', 'a folder with what others obey stays');
    await layered(`rm -rf packages/lib && ln -s ${run.home}/src/lib packages/lib`, yes);
    assert.equal(readlinkSync(inWork('packages/lib')), join(run.home, 'src/lib'));
    assert.equal((await store.undo(runId)).outcome, 'undone');
    assert.deepEqual(pictureOf(run.home), elsewhere);
    assert.equal(text('packages/lib/package.json'), '{}\n');
  });

  it('commits, branches, stashes, rebases and makes work trees as outside, and undo brings the branch back', async () => {
    git(
      'git init -qb main; git config user.email a@b.c; git config user.name a; echo 1 > a; git add a; git commit -qm one',
    );
    const head = git('git rev-parse HEAD');
    const { notes, said, out } = await layered(
      'echo 2 > a; git commit -qam two; git checkout -qb side; echo 3 > b; git add b; git commit -qm three; git checkout -q main; echo 4 > c; git add c; git commit -qm four; git rebase -q side; echo 5 >> a; git stash -q; git stash pop -q; git gc -q; git worktree add -q tree; git tag v1; git log --format=%s',
      no,
    );
    assert.deepEqual([notes, said, asked.length], [[], '', 0], out);
    assert.equal(out, 'four\nthree\ntwo\none');
    assert.equal(
      git('git fsck --strict --no-dangling; git log --format=%s; git status --short'),
      'four\nthree\ntwo\none\n M a\n?? tree/\n',
    );
    assert.equal(git('git log -1 --format=%s', inWork('tree')), 'four\n');
    await store.undo(runId);
    assert.equal(git('git rev-parse HEAD'), head);
    assert.equal(git('git status --short -uno'), '');
  });

  it('names a repository that a command has made, and says of no branch that it moved, as there was none', async () => {
    await layered('git init -qb main made');
    const made = await store.of(runId);
    assert.deepEqual([made?.repositories.length ?? 0, made?.movedBranch], [0, false]);
    assert.deepEqual(made?.madeRepositories, [inWork('made/.git')]);
    await layered(
      'cd made; git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m two; git branch other',
    );
    assert.equal((await store.of(runId))?.movedBranch, true);
  });

  it('undoes a commit beside a repository that it made, and says of that one alone that it stays', async () => {
    git('git init -qb main; git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m one');
    await layered(
      'git init -qb main made; git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m two',
    );
    const shown = await store.of(runId);
    assert.deepEqual(shown?.repositories, [inWork('.git')]);
    assert.deepEqual([shown?.movedBranch, shown?.madeRepositories], [false, [inWork('made/.git')]]);
    await store.undo(runId);
    assert.equal(git('git log --format=%s'), 'one\n');
  });

  it('lets nothing of a repository land that starts a program or leads elsewhere', async () => {
    git(
      'git init -qb main; git remote add origin https://example.com/a; git init -q --bare bare.git; git init -q sub',
    );
    run.put('work/.git/modules/libs/foo/HEAD', 'ref: refs/heads/main\n');
    for (const [line, named] of [
      ['git config core.fsmonitor ./x', /\.git\/config/],
      ['git remote set-url origin https://example.org/b', /\.git\/config/],
      [
        'mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit',
        /hooks\/pre-commit/,
      ],
      ['mkdir -p .git/info; echo "* filter=x" > .git/info/attributes', /info\/attributes/],
      ['echo ../elsewhere > .git/commondir', /commondir/],
      [
        'mkdir -p .git/modules/libs/foo/hooks; echo x > .git/modules/libs/foo/hooks/post-checkout',
        /libs\/foo\/hooks/,
      ],
      [
        'mkdir -p .git/modules/a/objects; echo "[core]" > .git/modules/a/objects/config; echo " fsmonitor = x" >> .git/modules/a/objects/config',
        /objects\/config/,
      ],
      ['mkdir -p .git/rebase-merge; echo "exec x" > .git/rebase-merge/git-rebase-todo', /git-rebase-todo/],
      ['echo "[core]\n\tfsmonitor = x" > bare.git/config', /bare\.git\/config/],
      ['echo "gitdir: /tmp/evil" > sub2; mkdir s; mv sub2 s/.git', /s\/\.git/],
      ['mv sub sub3; mkdir -p sub3/.git/hooks; echo x > sub3/.git/hooks/post-commit', /post-commit/],
      [
        'mkdir -p .git/modules/e/objects .git/modules/e/refs; echo "ref: x" > .git/modules/e/HEAD; printf "[core]\n\tworktree = ../../../../home\n" > .git/modules/e/config',
        /modules\/e\/config/,
      ],
      [
        'mkdir -p .git/modules/e/refs/z/rebase-merge; echo "exec x" > .git/modules/e/refs/z/rebase-merge/git-rebase-todo',
        /git-rebase-todo/,
      ],
      ['mkdir -p .git/objects/e/hooks; echo x > .git/objects/e/hooks/pre-commit', /objects\/e\/hooks/],
      ['git remote remove origin', /\.git\/config/],
      ['rm .git/HEAD', /\.git\/HEAD/],
      ['ln -sf pre-commit.sample .git/hooks/pre-commit', /hooks\/pre-commit/],
      ['rm -rf sub/.git', /sub\/\.git/],
    ] as const) {
      asked = [];
      const before = pictureOf(run.work);
      const { notes } = await layered(line, no);
      assert.equal(asked.length, 1, line);
      assert.match(asked[0]?.reason ?? '', named, line);
      assert.match(notes.join(), /was not kept/, line);
      if (!/^mv sub |modules\/e\/HEAD/.test(line)) assert.deepEqual(pictureOf(run.work), before, line);
    }
    asked = [];
    await layered('git remote add more https://example.com/c; git config user.name me', no);
    assert.equal(asked.length, 0);
    assert.match(text('.git/config'), /remote "more"/);
  });

  it('asks about a plain file to which an obeyed name leads: a link, one of the home folder, a folder of hooks', async () => {
    run.put('work/docs/guide.md', 'guide\n');
    run.put('work/zshrc', 'export A=1\n');
    run.put('work/tools/hooks/README', 'hooks\n');
    run.put('work/scripts/check', 'true\n');
    symlinkSync('docs/guide.md', inWork('CLAUDE.md'));
    symlinkSync(inWork('zshrc'), join(run.home, '.zshrc'));
    git('git init -q; git config core.hooksPath tools/hooks');
    mkdirSync(inWork('.git/hooks'), { recursive: true });
    symlinkSync('../../scripts/check', inWork('.git/hooks/pre-push'));
    run.put('work/v1/vimrc', 'set nu\n');
    run.put('work/v2/vimrc', 'set x\n');
    symlinkSync('v1', inWork('current'));
    symlinkSync(inWork('current/vimrc'), join(run.home, '.vimrc'));
    mkdirSync(join(run.home, '.config/nvim'), { recursive: true });
    symlinkSync(inWork('nvim.lua'), join(run.home, '.config/nvim/init.lua'));
    symlinkSync('docs/missing.md', inWork('AGENTS.md'));
    run.put('home/.gitconfig', '[alias] st = status \\\n  --short\n[include] path = more\n');
    run.put('home/more', `[core] sshCommand = "${inWork('bin/ssh')} -v" ; mine\n`);
    const before = pictureOf(run.work);
    for (const line of [
      ...[
        'docs/guide.md',
        'zshrc',
        'tools/hooks/pre-commit',
        'scripts/check',
        'nvim.lua',
        'docs/missing.md',
      ].map(path => `echo more >> ${path}`),
      'ln -sfn v2 current',
      'echo more >> v1/vimrc',
      'mkdir bin; echo more > bin/ssh',
    ]) {
      asked = [];
      await layered(line, no);
      assert.equal(asked.length, 1, line);
    }
    assert.deepEqual(pictureOf(run.work), before);
  });

  asUser(
    'lands behind folders and in files that the command has closed, with its own rights alone',
    async () => {
      run.put('work/a', '1');
      run.put('work/shut/old', 'old');
      chmodSync(inWork('shut'), 0o555);
      const line =
        'mkdir -p x/.vscode; echo {} > x/.vscode/tasks.json; echo 1 > x/f; chmod 000 x; echo 2 > a; chmod 000 a; chmod 755 shut; echo n > shut/new; rm shut/old; chmod 500 shut';
      const { notes, said } = await layered(line, no);
      assert.equal(said, '');
      assert.match(notes.join(), /x\/\.vscode\/tasks\.json was not kept/);
      const modes = ['x', 'a', 'shut'].map(path => statSync(inWork(path)).mode & 0o777);
      assert.deepEqual(modes, [0, 0, 0o500]);
      assert.deepEqual(readdirSync(inWork('shut')), ['new']);
      chmodSync(inWork('x'), 0o700);
      assert.deepEqual(readdirSync(inWork('x')), ['f']);
      chmodSync(inWork('x'), 0);
      execFileSync('chmod', ['-R', 'u+rwX', run.root]);
    },
  );

  asUser('is undone behind folders that the command has left closed', async () => {
    run.put('work/d/a', '1');
    await layered('echo 2 > d/a; mkdir -p n/m; echo 1 > n/m/f; chmod 500 n/m n d .', no);
    assert.equal(statSync(inWork('n')).mode & 0o777, 0o500);
    assert.equal((await store.undo(runId)).outcome, 'undone');
    assert.deepEqual([text('d/a'), existsSync(inWork('n'))], ['1', false]);
    assert.deepEqual(
      ['d', '.'].map(path => statSync(inWork(path)).mode & 0o200),
      [0o200, 0o200],
    );
  });

  asUser('is not undone behind a folder that the person has closed since', async () => {
    run.put('work/d/a', '1');
    await layered('echo 2 > d/a', no);
    chmodSync(inWork('d'), 0o555);
    await assert.rejects(store.undo(runId), /d\/a .*permission denied/);
    assert.deepEqual([text('d/a'), statSync(inWork('d')).mode & 0o777], ['2\n', 0o555]);
    chmodSync(inWork('d'), 0o755);
  });

  it('says how a folder is cloned where Git fails at a link that the layer makes', async () => {
    git('git init -q . && git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m one');
    const { out, note } = await layered('git clone -q . copy', no);
    // An older Git does not look at its links.
    if (out !== '') assert.match(note, /git clone --no-hardlinks/);
    const { note: other } = await layered('git clone -q --no-hardlinks . other', no);
    assert.equal(other, '');
    assert.equal(existsSync(inWork('other/.git/HEAD')), true);
  });

  it('takes the names of one file as what they are, and its group where the folder hands that down', async () => {
    run.put('work/p/a', '1');
    execFileSync('/bin/sh', ['-c', 'ln p/a p/b; ln p/a c; mkdir s; chmod 2770 s'], { cwd: run.work });
    const { said } = await layered('rm -rf p; sed -i s/1/2/ c; mkdir -p s/n/m; echo x > s/n/m/f', no);
    assert.equal(said, '');
    assert.equal(existsSync(inWork('p')), false);
    assert.equal(text('c'), '2');
    assert.equal(statSync(inWork('s/n')).mode & 0o777, 0o755);
  });

  it('removes a folder whole or not at all, and says a save while the question is open', async () => {
    run.put('work/p/a', '1');
    run.put('work/p/package.json', '{}');
    run.put('work/other', 'old');
    const before = pictureOf(run.work);
    await layered('rm -rf p; ln -s /tmp p', no);
    assert.deepEqual(pictureOf(run.work), before);
    const saving: Human = {
      ...denyAll,
      approve: async () => {
        run.put('work/p/package.json', '{"mine":1}');
        return { allow: true, scope: 'once' };
      },
    };
    const { said } = await layered('echo 1 > p/package.json; echo new > other', saving);
    assert.match(said, /p\/package\.json was changed by another program/);
    assert.equal(text('p/package.json'), '{"mine":1}');
    assert.equal((await store.undo(runId)).outcome, 'undone');
    assert.deepEqual([text('other'), text('p/package.json')], ['old', '{"mine":1}']);
  });

  it('works in a part of a repository, with conflicts of each kind, and takes in no false object', async () => {
    git(
      'git init -qb main; git config user.email a@b.c; git config user.name a; mkdir part; echo 1 > part/a; git add .; git commit -qm one; git checkout -qb side; echo 2 > part/a; git commit -qam two; git checkout -q main; echo 3 > part/a; git commit -qam three',
    );
    const picks = await layered('git cherry-pick side || true; git status --short', no);
    assert.deepEqual([asked.length, picks.notes], [0, []], picks.out);
    assert.match(git('git status --short'), /^UU part\/a/);
    git('git cherry-pick --abort');
    const forged =
      'mkdir -p .git/objects/65; printf x > .git/objects/65/b2df87f7df3aeedef04be96703e55ac19c2cfb';
    const { said } = await layered(forged, no);
    assert.match(said, /Objects of Git that are not what their names say were not kept: .*65\/b2df87/);
    assert.equal(existsSync(inWork('.git/objects/65/b2df87f7df3aeedef04be96703e55ac19c2cfb')), false);
  });

  it('says truly what was kept when the question fails', async () => {
    run.put('work/Makefile', 'old\n');
    const broken: Human = {
      ...denyAll,
      approve: async () => {
        throw new Error('the window is gone');
      },
    };
    const { said, changedFiles } = await layered('echo 1 > plain; echo new > Makefile', broken);
    assert.match(said, /^Not all that the command did was kept: the window is gone/);
    assert.deepEqual([changedFiles, text('plain'), text('Makefile')], [[inWork('plain')], '1\n', 'old\n']);
  });

  it('works where no other program than bubblewrap may make namespaces', async () => {
    const tools = ['perl', 'bwrap'].map(name => `ln -s "$(command -v ${name})" bin/`);
    execFileSync('/bin/sh', ['-ec', `mkdir bin; ${tools.join('; ')}`], { cwd: run.root });
    const there = await layeredBox(join(run.root, 'data'), join(run.root, 'bin'));
    assert.ok(there?.kind === 'bubblewrap');
    const line = 'mkdir d; echo 1 > d/f; echo x > Makefile; id -u';
    const { out, notes } = await layeredIn(line, run, store, there, { human: no });
    assert.equal(out, String(process.getuid?.()));
    assert.match(notes.join(), /Makefile was not kept/);
    assert.deepEqual([text('d/f'), existsSync(inWork('Makefile'))], ['1\n', false]);
  });

  it('lands further attributes of files, and names the folders that do not get theirs', async () => {
    run.put('work/same', '1');
    run.put('work/touched', '1');
    run.put('work/d/f', '1');
    run.put('work/plain', '1');
    const python = (code: string): string => `python3 -c 'import os; ${code}'`;
    const set = (name: string): string => `os.setxattr("${name}", "user.note", b"kept")`;
    const names = ['same', 'touched', 'd', 'new', 'e'].map(set).join('; ');
    const { said, changedFiles } = await layered(
      python(`open("new", "w"); os.mkdir("e"); ${names}; os.utime("touched"); os.chmod("plain", 0o644)`),
      no,
    );
    assert.equal(said, 'Extended attributes of folders were not kept: d, e.');
    assert.deepEqual(changedFiles.sort(), ['new', 'same', 'touched'].map(inWork));
    const read = python('print(*[os.getxattr(n, "user.note") for n in ["same", "touched", "new"]])');
    assert.equal(git(read).trim(), "b'kept' b'kept' b'kept'");
  });

  it('leaves no note of the kernel on a file that was changed, renamed or made', async () => {
    run.put('work/changed', '1');
    run.put('work/renamed', '1');
    await layered('echo 2 >> changed; chmod 600 renamed; mv renamed other; echo 1 > new', no);
    const listed = `python3 -c 'import os; print(*[os.listxattr(n) for n in ["changed", "other", "new"]])'`;
    assert.equal(git(listed).trim(), '[] [] []');
  });

  it('makes no list of a work tree that lies elsewhere, and takes none away', async () => {
    git(
      'git init -q -b main; git config user.name n; git config user.email e@x; git commit -q --allow-empty -m 1',
    );
    const there = join(run.root, 'there');
    git(`git worktree add -q ${there}`);
    const added = await layered('git worktree add -q ../beside && git worktree add -q .trees/inside', no);
    assert.match(
      added.said,
      /^The work tree \/.*\/beside is outside of the working folder, so it was not kept\./m,
    );
    assert.match(added.note, /Written into the \/tmp of the sandbox, .*\/beside\/\.git /);
    const pruned = await layered('git worktree prune --expire now; git worktree list', no);
    assert.doesNotMatch(pruned.out, /there/);
    assert.equal(pruned.said, `The work tree ${there} is still there, so its repository still lists it.`);
    assert.deepEqual(readdirSync(inWork('.git/worktrees')).sort(), ['inside', 'there']);
    assert.doesNotMatch(git('git worktree list'), /prunable/);
  });

  it('works where its data is on another disk', async function () {
    const other = existsSync('/dev/shm') ? realpathSync(mkdtempSync('/dev/shm/telos-')) : undefined;
    if (other === undefined) return skipBecause(this, 'there is no /dev/shm');
    try {
      if (!(await layeredBox(other))) return skipBecause(this, 'memory carries no layer here');
      run.put('work/a', '1');
      chmodSync(inWork('a'), 0o640);
      await layered(
        'echo 2 >> a; echo new > b; chmod 755 b; ln -s a l; touch -d 2020-01-01 b',
        no,
        undefined,
        other,
      );
      assert.equal(text('a'), '12\n');
      assert.equal(statSync(inWork('a')).mode & 0o777, 0o640);
      assert.equal(statSync(inWork('b')).mode & 0o777, 0o755);
      assert.equal(statSync(inWork('b')).mtime.getUTCFullYear(), 2020);
      assert.equal(readlinkSync(inWork('l')), 'a');
    } finally {
      rmSync(other, { recursive: true });
    }
  });

  it('says what does not land because of its name, and lands the rest', async () => {
    const { said } = await layered('touch "$(printf "b\\377d")"; mkdir "$(printf "d\\377")"; touch good', no);
    assert.match(said, /names are not UTF-8 were not kept: /);
    assert.deepEqual(readdirSync(run.work), ['good']);
  });

  it('leaves removed what somebody else removes meanwhile, beside the version of the command', async () => {
    for (const name of ['added', 'replaced', 'linked', 'kept']) run.put(`work/${name}`, 'old\n');
    const line =
      'echo more >> added; sed -i s/old/new/ replaced; ln -sf kept linked; echo 1 > made; echo begun; sleep 0.3';
    const { said, changedFiles } = await layered(line, no, () => {
      for (const name of ['added', 'replaced', 'linked']) rmSync(inWork(name));
    });
    assert.match(said, /^added was removed by another program .* stays removed\. .* in added\.conflict\.$/m);
    assert.match(said, /^replaced was removed .* in replaced\.conflict\.$/m);
    assert.match(
      said,
      /^linked was removed by another program while the command ran, so it stays removed\.$/m,
    );
    assert.deepEqual(readdirSync(run.work), ['added.conflict', 'kept', 'made', 'replaced.conflict']);
    assert.deepEqual([text('added.conflict'), text('replaced.conflict')], ['old\nmore\n', 'new\n']);
    assert.equal(changedFiles.length, 3);
  });

  it('lands the rest beside folders that lie too deep', async () => {
    const name = 'd'.repeat(200);
    const deep = `for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23; do mkdir ${name}; cd ${name}; done`;
    const { said } = await layered(`echo 1 > before; (${deep}; echo 1 > far); echo 2 > later`, no);
    assert.match(said, /^Folders that lie too deep in others were not kept: dd/m);
    assert.deepEqual([text('before'), text('later')], ['1\n', '2\n']);
    assert.ok(existsSync(inWork(`${name}/${name}`)));
  });

  it('leaves nothing behind when the program ends in the middle, and the next start says so', () => {
    const own = join(run.root, 'data/box/layers/one');
    mkdirSync(join(own, 'upper0'), { recursive: true });
    mkdirSync(join(own, 'work0/work'), { recursive: true, mode: 0o000 });
    writeFileSync(
      join(own, 'owner.json'),
      JSON.stringify({ pid: 1, owner: { boot: 'x', namespace: '', started: '' }, root: run.work }),
    );
    writeFileSync(join(own, 'upper0/a'), '1');
    assert.deepEqual(dropLeftLayers(join(run.root, 'data')), [{ root: run.work, isLanding: false }]);
    assert.deepEqual(dropLeftLayers(join(run.root, 'data')), []);
    assert.equal(existsSync(own), false);
  });
});
