/** What Git has stored stays whatever a boxed command does, and what Git stores in the box is there outside. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Boxed, boxedRun, itBoxed } from './boxed.ts';

const git = (folder: string, ...args: string[]): string =>
  execFileSync('git', ['-C', folder, '-c', 'user.name=A', '-c', 'user.email=a@b', ...args], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], HOME: '/nonexistent', LC_ALL: 'C' },
  }).trim();

/** Makes a repository with a commit of one file, and one with a tag and a branch. */
function repository({ work, put }: Boxed): void {
  put('home/.gitconfig', '[user]\nname = Ada\nemail = ada@example.org\n');
  git(work, 'init', '-qb', 'main');
  put('work/a.txt', 'one\n');
  git(work, 'add', '.');
  git(work, 'commit', '-qm', 'first');
  git(work, 'tag', 'v1');
  git(work, 'repack', '-qad');
  put('work/a.txt', 'two\n');
  git(work, 'commit', '-qam', 'second');
}

const objects = (folder: string): string[] =>
  git(folder, 'cat-file', '--batch-all-objects', '--batch-check').split('\n');

/** Returns the files that wait to be taken in. */
function waiting({ root }: Boxed): string[] {
  const folder = join(root, 'data/box/objects');
  const names = readdirSync(folder, { recursive: true }).map(String);
  return names.filter(name => /\/(?:[\da-f]{2}\/[\da-f]{38}|pack\/pack-.*)$/.test(name));
}

describe('the objects of a repository', () => {
  itBoxed('stay, whatever a command does to them', async run => {
    repository(run);
    const before = objects(run.work);
    for (const line of [
      'chmod -R u+w .git; rm -rf .git/objects/*; ls .git/objects',
      'find .git /run/telos -path "*objects/??/*" -type f 2>/dev/null | while read f; do chmod u+w "$f"; echo x > "$f"; done',
      'mv .git/objects .git/gone; mv .git away; rm -rf .git/objects; git prune --expire=now; git gc -q --prune=now',
      'git repack -qad; rm -rf /run/telos/objects; git update-ref -d refs/tags/v1; git reflog expire --expire=now --all',
    ])
      await run.sh(line);
    assert.deepEqual(
      before.filter(each => !objects(run.work).includes(each)),
      [],
    );
    git(run.work, 'fsck', '--full', '--strict');
    assert.equal(git(run.work, 'log', '--format=%s', 'main'), 'second\nfirst');
  });

  itBoxed('are there for other programs after each usual command, packed or not', async run => {
    repository(run);
    const { code, err } = await run.sh(
      [
        'echo three > b.txt && git add . && git commit -qm third && git gc -q && git fsck --full',
        'echo four > b.txt && git stash -q && git stash list && git stash pop -q && git commit -qam fourth',
        'git init -qb main other && for i in 1 2 3; do echo $i > other/$i; done && git -C other add .',
        'git -C other commit -qm elsewhere && git -c fetch.unpackLimit=1 fetch -q ./other main:theirs',
        'head -c 300000 /dev/urandom > large.bin && git add large.bin && git commit -qm large',
      ].join(' && '),
    );
    assert.deepEqual([code, err], [0, '']);
    assert.equal(git(run.work, 'log', '--format=%s', 'main'), 'large\nfourth\nthird\nsecond\nfirst');
    assert.equal(git(run.work, 'show', 'theirs:3'), '3');
    assert.equal(git(run.work, 'cat-file', '-s', 'HEAD:large.bin'), '300000');
    git(run.work, 'fsck', '--full', '--strict');
    assert.deepEqual(waiting(run), []);
    assert.equal(existsSync(join(run.work, '.git/objects/info/alternates')), false);
  });

  itBoxed('of a repository with longer names are taken in too', async run => {
    git(run.work, 'init', '-qb', 'main', '--object-format=sha256');
    run.put('home/.gitconfig', '[user]\nname = Ada\nemail = ada@example.org\n');
    const { err } = await run.sh('echo 1 > a && git add . && git commit -qm one && git repack -qad');
    assert.equal(err, '');
    git(run.work, 'fsck', '--full');
    assert.equal(git(run.work, 'log', '--format=%s'), 'one');
    assert.equal(git(run.work, 'rev-parse', 'HEAD').length, 64);
    assert.deepEqual(waiting(run), []);
  });

  itBoxed('are taken in while the command still runs', async run => {
    repository(run);
    const stop = new AbortController();
    const line = 'echo x > c.txt && git add . && git commit -qm early && touch done && sleep 60';
    const running = run.sh(line, { signal: stop.signal });
    while (!existsSync(join(run.work, 'done'))) await delay(50);
    for (let tries = 0; tries < 100 && waiting(run).length > 0; tries++) await delay(50);
    assert.match(git(run.work, 'log', '-1', '--format=%s'), /early/);
    git(run.work, 'fsck', '--full');
    stop.abort(new Error('seen'));
    await assert.rejects(running, /seen/);
  });

  itBoxed('are only what their names say, and are read from nowhere else', async run => {
    repository(run);
    run.put('outside/secret.txt', 'SECRET');
    const before = objects(run.work);
    const bogus = 'b'.repeat(38);
    await run.sh(
      [
        `cd .git/objects; mkdir -p aa cc pack; echo x > aa/${bogus}; ln -s ${run.outside}/secret.txt cc/${bogus}`,
        `ln -s ${run.outside} bb; mkfifo cc/${'c'.repeat(38)}; mkdir -p cc/${'d'.repeat(38)}/x`,
        `echo x > pack/pack-${'a'.repeat(40)}.pack; echo x > pack/pack-${'a'.repeat(40)}.idx`,
        `rm -rf info; ln -s ${run.outside} info; printf 'x' | git hash-object -w --stdin`,
      ].join('\n'),
    );
    const added = objects(run.work).filter(each => !before.includes(each));
    assert.match(added.join(), /^[\da-f]{40} blob 1$/, 'the one that Git has made');
    git(run.work, 'fsck', '--full');
    assert.deepEqual(readdirSync(run.outside), ['secret.txt']);
    assert.equal(readFileSync(join(run.outside, 'secret.txt'), 'utf8'), 'SECRET');
    const { code } = await run.sh('git log --oneline && git commit -q --allow-empty -m next');
    assert.equal(code, 0, 'the next command finds everything in order');
    git(run.work, 'fsck', '--full');
  });

  itBoxed('that a killed run left are taken in by the next command', async run => {
    repository(run);
    await run.sh('true');
    const [name = ''] = readdirSync(join(run.root, 'data/box/objects'));
    const hash = git(run.work, 'hash-object', '-w', 'a.txt');
    const blob = execFileSync('git', ['-C', run.work, 'hash-object', '-w', '--stdin'], { input: 'left' });
    const [left, other] = [blob.toString().trim(), join(run.root, 'data/box/objects', name)];
    const folder = left.slice(0, 2);
    mkdirSync(join(other, folder), { recursive: true });
    renameSync(join(run.work, '.git/objects', folder, left.slice(2)), join(other, folder, left.slice(2)));
    await boxedRun(run.finding, {}, run).sh('true');
    assert.equal(git(run.work, 'cat-file', '-p', left), 'left');
    assert.match(hash, /^[\da-f]{40}$/);
  });

  itBoxed(
    'are those of the repository around the working folder, of which nothing else changes',
    async run => {
      repository(run);
      for (const path of ['part/b.txt', 'other/c.txt']) run.put(`work/${path}`, 'b\n');
      git(run.work, 'add', '.');
      git(run.work, 'commit', '-qm', 'third');
      run.put('work/.env', 'SECRET');
      run.put('work/a.txt', 'changed by the person\n');
      const folder = join(run.work, 'part');
      const folders = { workingDir: folder, commandDir: folder, personDir: folder };
      const part = boxedRun(run.finding, folders, run);
      const line = 'echo new > b.txt && git status --short && git commit -qam part && git log --format=%s -2';
      const { code, out, err } = await part.sh(line);
      assert.deepEqual([code, err], [0, '']);
      assert.equal(out, ' M ../a.txt\n M b.txt\n?? ../.env\npart\nthird');
      await part.sh(
        'echo x > ../other/c.txt; rm -rf ../other ../a.txt; git checkout -q . ; cat ../.env > copy',
      );
      await part.sh(
        'cd ../.git; echo x > hooks/pre-commit; echo x > config; echo . > commondir; echo x > info/attributes',
      );
      assert.equal(readFileSync(join(run.work, 'other/c.txt'), 'utf8'), 'b\n');
      assert.equal(readFileSync(join(folder, 'copy'), 'utf8'), '');
      assert.deepEqual(
        ['hooks/pre-commit', 'commondir', 'info/attributes'].filter(name =>
          existsSync(join(run.work, '.git', name)),
        ),
        [],
      );
      git(run.work, 'fsck', '--full');
      assert.equal(git(run.work, 'log', '--format=%s', '-1'), 'part');
      // Where the person stands elsewhere, a working folder in a repository opens none of it.
      const alone = boxedRun(
        run.finding,
        { workingDir: folder, commandDir: folder, personDir: run.outside },
        run,
      );
      assert.match((await alone.sh('git status')).err, /not a git repository/);
    },
  );

  itBoxed('of work trees elsewhere stay too', async run => {
    repository(run);
    const tree = join(run.outside, 'tree');
    git(run.work, 'worktree', 'add', '-q', tree, 'v1');
    const { out } = await run.sh(
      'git log -1 --format=%s; git worktree prune --expire=now; rm -rf .git/worktrees/tree; git gc -q --prune=now; echo over',
    );
    assert.equal(out, 'second\nover');
    assert.equal(git(tree, 'status', '--short'), '');
    assert.equal(git(tree, 'log', '-1', '--format=%s'), 'first');
  });
});
