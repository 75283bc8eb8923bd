/** What a command in a real box can do, judged by what it prints and by what is on the disk and runs afterwards. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { eventually } from '../../eventually.ts';
import { type Boxed, boxedRun, itBoxed } from './boxed.ts';

const git = (folder: string, ...args: string[]): string =>
  execFileSync('git', ['-C', folder, '-c', 'user.name=A', '-c', 'user.email=a@b', ...args], {
    encoding: 'utf8',
  });

const text = (path: string): string => readFileSync(path, 'utf8');

describe('a command in the box', () => {
  itBoxed('works in its folder, and sees and changes nothing beside it', async run => {
    run.put('outside/notes.txt', 'private');
    run.put('home/diary.txt', 'private');
    run.put('work/a.txt', 'hello');
    const { out } = await run.sh('pwd; cat a.txt; echo more > b.txt; ls ../outside ~; cat ~/diary.txt');
    assert.equal(out, `${run.work}\nhello${run.home}:`);
    assert.equal(text(join(run.work, 'b.txt')), 'more\n');
    await run.sh(
      `rm -rf ${run.root}/outside ${run.root}/home; rm -rf ${run.outside} ~/diary.txt ../pack; echo x > ../outside/y`,
    );
    assert.deepEqual(readdirSync(run.outside), ['notes.txt']);
    assert.ok(existsSync(join(run.home, 'diary.txt')) && existsSync(run.skill));
  });

  itBoxed('finds nothing in its home that one without secrets has left, if it gets secrets', async run => {
    const env = { ...run.context.env, API_TOKEN: 'tok_5f2c9a7be1d04c33a8' };
    const plant =
      'for place in ~ "$TMPDIR" "$XDG_CACHE_HOME" "$PYTHONPYCACHEPREFIX"; do mkdir -p "$place"; echo x > "$place/NAME"; done';
    const seen = 'find ~ "$TMPDIR" -type f -name "by-*" | sed "s|.*/||" | sort -u';
    await run.sh(plant.replace('NAME', 'by-any'));
    assert.equal((await run.sh(seen, { env })).out, '');
    await run.sh(plant.replace('NAME', 'by-reviewed'), { env });
    assert.equal((await run.sh(seen, { env })).out, 'by-reviewed');
    assert.equal((await run.sh(seen)).out, 'by-any');
  });

  itBoxed('reads the skill and its pack, and does not change them', async run => {
    run.put('pack/data.txt', 'of the pack');
    const { out, err } = await run.sh(`cat ${run.pack}/data.txt; echo x > ${run.pack}/data.txt`);
    assert.equal(out, 'of the pack');
    assert.match(err, /Read-only file system/);
  });

  itBoxed('reads no secret, also of its own folder and under another name', async run => {
    const secrets = ['.env', 'deep/er/.env.local', 'keys/.ssh/id_rsa', 'api/credentials.json', 'server.pem'];
    for (const name of secrets) run.put(`work/${name}`, 'SECRET');
    run.put('pack/.env', 'SECRET');
    run.put('work/.env.example', 'KEY=');
    const tricks = [
      `cat .env deep/er/.env.local keys/.ssh/id_rsa api/credentials.json server.pem ${run.pack}/.env`,
      'mv deep gone; cat gone/er/.env.local; mv .env shown; cat shown; cp .env copy; cat copy',
      'ln .env link; cat link; chmod 777 .env server.pem keys/.ssh; cat .env server.pem; grep -rs SECRET .',
      'rm -f .env; cat .env; cat /proc/self/root/$PWD/.env; tar c . 2>/dev/null | grep -a SECRET',
    ];
    for (const line of tricks) assert.doesNotMatch((await run.sh(line)).out, /SECRET/, line);
    for (const name of secrets) assert.equal(text(join(run.work, name)), 'SECRET');
    assert.equal((await run.sh('cat .env.example')).out, 'KEY=');
    run.put('work/new/.netrc', 'SECRET');
    assert.equal((await run.sh('cat new/.netrc')).out, '', 'one that came later');
  });

  itBoxed('cannot move a folder with a secret away from where the next command hides it', async run => {
    run.put('work/deep/er/.env', 'SECRET');
    run.put('work/deep/er/a.txt', 'a');
    run.put('work/plain/b.txt', 'b');
    // As a background command would, while another is started.
    const moves = 'mv deep gone; mv deep/er gone; mv -T --exchange deep plain; mv plain other';
    const { out } = await run.sh(
      `${moves}; cat deep/er/a.txt; echo more >> deep/er/a.txt; cat */*.txt */*/*`,
    );
    assert.doesNotMatch(out, /SECRET/);
    assert.equal(text(join(run.work, 'deep/er/.env')), 'SECRET');
    assert.equal(text(join(run.work, 'deep/er/a.txt')), 'amore\n');
    assert.equal(text(join(run.work, 'other/b.txt')), 'b');
  });

  itBoxed('keeps a folder read-only that others obey, with a secret in it or not', async run => {
    for (const secret of [[], ['work/.vscode/.env', 'work/.git/.env']]) {
      run.put('work/.vscode/tasks.json', '{}');
      for (const path of secret) run.put(path, 'SECRET');
      await run.sh('echo evil > .vscode/tasks.json; echo evil > .vscode/new.json; cat .vscode/.env');
      assert.deepEqual(
        [text(join(run.work, '.vscode/tasks.json')), existsSync(join(run.work, '.vscode/new.json'))],
        ['{}', false],
      );
    }
  });

  itBoxed(
    'cannot plant code that the next start runs, also when the home is the working folder',
    async run => {
      const inHome = boxedRun(run.finding, { workingDir: run.home, commandDir: run.home }, run, {}, 'home');
      const compiled = join(run.home, '.cache/telos/compiled');
      await inHome.sh('mkdir -p .cache/telos/compiled; echo evil > .cache/telos/compiled/new; echo 1 > made');
      assert.equal(text(join(run.home, 'made')), '1\n');
      assert.ok(!existsSync(join(compiled, 'new')), 'where it did not exist');
      run.put('home/.cache/telos/compiled/start', 'code');
      await inHome.sh(
        'echo evil > .cache/telos/compiled/start; mv .cache/telos/compiled old; mv .cache gone; mkdir -p .cache/telos/compiled && echo evil > .cache/telos/compiled/start',
      );
      assert.equal(text(join(compiled, 'start')), 'code');
    },
  );

  itBoxed('changes no file that programs obey, but what installing and building writes', async run => {
    git(run.work, 'init', '-q');
    run.put('work/.vscode/tasks.json', '{}');
    run.put('work/sub/SKILL.md', 'text');
    run.put('work/package.json', '{}');
    run.put('work/node_modules/a/index.js', '');
    const before = text(join(run.work, '.git/config'));
    await run.sh(
      'for f in .git/config .git/hooks/pre-commit .vscode/tasks.json .vscode/launch.json sub/SKILL.md; do echo evil > $f; rm -rf $f; done; git config core.fsmonitor ./evil; mv .git .old; mv .vscode .old2; rm -rf .git/hooks; ln -sf evil .git/hooks',
    );
    assert.equal(text(join(run.work, '.git/config')), before);
    assert.equal(text(join(run.work, '.vscode/tasks.json')), '{}');
    assert.equal(text(join(run.work, 'sub/SKILL.md')), 'text');
    assert.ok(!existsSync(join(run.work, '.git/hooks/pre-commit')));
    const { code } = await run.sh('echo {} > new && mv new package.json && echo 1 > node_modules/a/index.js');
    assert.equal(code, 0);
  });

  itBoxed('keeps hooks away from a repository that has no folder for them', async run => {
    git(run.work, 'init', '-q');
    rmSync(join(run.work, '.git/hooks'), { recursive: true });
    const { code, err } = await run.sh(
      'echo one > a.txt; git add a.txt; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit',
    );
    assert.notEqual(code, 0);
    assert.match(err, /pre-commit/);
    assert.deepEqual(readdirSync(join(run.work, '.git/hooks')), []);
    assert.equal(git(run.work, 'status', '--short', 'a.txt'), 'A  a.txt\n');
  });

  itBoxed('lets no command lead a repository to other settings, not even while it runs', async run => {
    git(run.work, 'init', '-q');
    const { out, note } = await run.sh(
      'cp -r .git other; echo ../other > .git/commondir; sleep 0.3; ls .git/commondir; echo ../other > .git/commondir',
    );
    assert.equal(out, '');
    assert.match(note ?? '', /commondir was removed: with it, Git would take its settings from elsewhere\]/);
    assert.ok(!existsSync(join(run.work, '.git/commondir')));
  });

  itBoxed("works with Git in a repository of one's own", async run => {
    git(run.work, 'init', '-q');
    run.put('home/.gitconfig', '[user]\nname = Ada\nemail = ada@example.org\n');
    run.put('work/a.txt', 'one\n');
    const line =
      'git add a.txt && git commit -qm first && echo two >> a.txt && git diff --stat && git log --format=%an';
    const { code, out, err } = await run.sh(
      `${line} && git status --short && git checkout -qb other && git stash -q`,
    );
    assert.deepEqual([code, err], [0, '']);
    assert.match(out, /a\.txt \| 1 \+[\s\S]*\nAda\n M a\.txt/);
    assert.match(git(run.work, 'log', '--format=%an %s', 'other'), /Ada first/);
  });

  itBoxed(
    'works with Git in a work tree of another repository, whose settings and branch stay',
    async run => {
      const main = join(run.root, 'main');
      mkdirSync(main);
      git(main, 'init', '-qb', 'trunk');
      git(main, 'commit', '-q', '--allow-empty', '-m', 'first');
      git(main, 'worktree', 'add', '-q', '-b', 'slot', join(run.work, 'slot'));
      const slot = boxedIn(run, join(run.work, 'slot'));
      const { code, err } = await slot.sh(
        'echo 1 > a && git add a && git -c user.name=A -c user.email=a@b commit -qm second && git status',
      );
      assert.deepEqual([code, err], [0, '']);
      assert.match(git(main, 'log', '--format=%s', 'slot'), /second\nfirst/);
      await slot.sh(
        'git config a.b c; D=$(git rev-parse --git-common-dir); echo x > $D/hooks/pre-commit; echo x > $D/HEAD',
      );
      assert.equal(text(join(main, '.git/HEAD')), 'ref: refs/heads/trunk\n');
      assert.doesNotMatch(text(join(main, '.git/config')), /\[a\]/);
      assert.ok(!existsSync(join(main, '.git/hooks/pre-commit')));
      const { note } = await slot.sh(
        'D=$(git rev-parse --git-common-dir); echo x > $D/info/attributes; echo /tmp > $D/commondir; sleep 0.3; echo /tmp > $D/commondir',
      );
      assert.match(note ?? '', /main\/\.git\/commondir was removed/);
      for (const name of ['commondir', 'info/attributes'])
        assert.ok(!existsSync(join(main, '.git', name)), name);
    },
  );

  itBoxed('opens nothing because a file says that the repository is there', async run => {
    run.put('outside/gitdir', `${run.work}/.git`);
    run.put('outside/secret.txt', 'private');
    run.put('work/.git', `gitdir: ${run.outside}\n`);
    const { out, err } = await run.sh(`cat .git; ls ${run.outside}; cat ${run.outside}/secret.txt`);
    assert.equal(out, `gitdir: ${run.outside}`);
    assert.match(err, /secret\.txt: No such file/);
  });

  itBoxed('reaches no server of this machine, and has a loopback of its own', async run => {
    let connections = 0;
    const server = createServer(() => connections++);
    const abstract = createServer(() => connections++);
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
    await new Promise<void>(done => abstract.listen(`\0telos-${process.pid}`, done));
    const { port } = server.address() as { port: number };
    const script = `const n=require('net');for(const o of [{port:${port},host:'127.0.0.1'},{path:'\\0telos-${process.pid}'}])n.connect(o).on('error',e=>console.log(e.code)).on('connect',()=>console.log('connected'))`;
    const { out } = await run.sh(`node -e "${script}"`);
    server.close();
    abstract.close();
    assert.equal(out, 'ECONNREFUSED\nECONNREFUSED');
    assert.equal(connections, 0);
    const own =
      "const n=require('net');const s=n.createServer(c=>{c.end();s.close()}).listen(0,'127.0.0.1',()=>n.connect(s.address().port,'127.0.0.1',()=>console.log('here')))";
    assert.equal((await run.sh(`node -e "${own}"`)).out, 'here');
  });

  itBoxed('sees its own processes only, and gets no right that it has not', async run => {
    const { out } = await run.sh(
      'cat /proc/[0-9]*/comm | sort -u; kill -0 2>/dev/null; grep -E "^(Cap(Eff|Bnd)|NoNewPrivs)" /proc/self/status',
    );
    assert.match(out, /^(?:bwrap|cat|sh|sort|dash|bash|\n)+CapEff:\t0{16}\nCapBnd:\t0{16}\nNoNewPrivs:\t1$/);
    for (const line of [
      'unshare -U true',
      'mount -t tmpfs x /tmp',
      'echo x > /proc/sys/kernel/core_pattern',
      'chroot / true',
    ])
      assert.notEqual((await run.sh(line)).code, 0, line);
    assert.equal((await run.sh('cat /etc/shadow /etc/gshadow; ls -A /etc/ssl/private')).out, '');
    const { out: writable } = await run.sh(
      'for d in / /usr /etc /dev /proc /sys /root; do touch $d/x 2>/dev/null && echo $d; done',
    );
    assert.equal(writable, '');
  });

  itBoxed('ends whole, and says what was left running', async run => {
    const shapes = [
      'sleep 987 & echo hi',
      'setsid nohup sleep 987 >/dev/null 2>&1 & echo hi',
      '(env -i setsid sleep 987 &); echo hi',
    ];
    for (const line of shapes) {
      const { out, note } = await run.sh(line);
      assert.equal(out, 'hi');
      assert.match(note ?? '', /left a process running/, line);
      assert.doesNotMatch(execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' }), /sleep 987/);
    }
    assert.equal((await run.sh('true')).note, undefined);
    assert.equal((await run.sh('kill -9 $$')).code, 137);
  });

  itBoxed('shares a home and temporary files with the other commands of the conversation', async run => {
    const first = await run.sh(
      'echo 1 > /tmp/a; echo 2 > ~/b; mkdir -p "$npm_config_cache"; echo 3 > "$npm_config_cache/c"',
    );
    assert.deepEqual([first.code, first.err], [0, '']);
    assert.equal((await run.sh('cat $TMPDIR/a /var/tmp/a ~/b ~/.cache/npm/c')).out, '1\n1\n2\n3');
    assert.deepEqual(readdirSync(run.home), []);
    assert.ok(!existsSync('/tmp/a'));
  });

  itBoxed('gets the variables of a command, and no way to an agent or a desktop', async run => {
    const env = {
      ...run.context.env,
      XDG_RUNTIME_DIR: '/run/user/0',
      https_proxy: 'http://proxy:1',
      LANG: 'C',
    };
    const { out } = await run.sh('env', { env });
    assert.match(out, /^LANG=C$/m);
    assert.doesNotMatch(out, /XDG_RUNTIME_DIR|proxy:1/);
  });

  itBoxed('writes no image of its memory, and its errors are its own', async run => {
    assert.equal((await run.sh('ulimit -c')).out, '0');
    const { code, err } = await run.sh('echo "bwrap is what I say" >&2; exit 3');
    assert.deepEqual([code, err], [3, 'bwrap is what I say']);
  });

  itBoxed('works in folders of any name, also over a link', async run => {
    const odd = join(run.root, 'a folder, "quoted" – ümläut 日本');
    mkdirSync(odd);
    symlinkSync(odd, join(run.root, 'link'));
    for (const folder of [odd, join(run.root, 'link')]) {
      const { out, err } = await boxedIn(run, folder).sh('pwd -P; echo 1 > "a b"');
      assert.deepEqual([out, err], [odd, '']);
    }
    assert.equal(text(join(odd, 'a b')), '1\n');
  });

  itBoxed('says that its folder is gone, and ends when it goes meanwhile', async run => {
    const folder = join(run.root, 'short');
    mkdirSync(folder);
    const short = boxedIn(run, folder);
    const running = short.sh('echo begun; touch begun; sleep 0.5; ls; echo 1 > a; echo over');
    await eventually(() => assert.ok(existsSync(join(folder, 'begun'))));
    rmSync(folder, { recursive: true });
    assert.match((await running).out, /^begun/);
    assert.ok(!existsSync(folder));
    const { err } = await short.sh('echo hi', { commandDir: run.pack });
    assert.match(err, /The working folder .*short was removed\. Nothing was run\./);
  });

  itBoxed('does not run a command that its box cannot be made for', async run => {
    const broken = boxedRun(
      {
        works: true,
        kind: 'bubblewrap',
        program: '/nowhere/bwrap',
        features: {
          disablesUserNamespaces: true,
          bindsDescriptors: true,
          perl: null,
          layers: false,
        },
      },
      {},
      run,
    );
    const { code, err } = await broken.sh('echo hi > made');
    assert.match(err, /The command was not run, since its sandbox could not be set up: /);
    assert.deepEqual([code, existsSync(join(run.work, 'made'))], [undefined, false]);
  });
});

const boxedIn = (run: Boxed, folder: string): Boxed =>
  boxedRun(run.finding, { workingDir: folder, commandDir: folder }, run);
