import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { PlanRemote } from '../../src/fleet/stories/planRemote.ts';
import { Git } from '../../src/plans/git.ts';
import { dirtyFiles } from '../../src/plans/gitCheckouts.ts';
import { problemsOf } from '../../src/plans/gitProblems.ts';
import { hasMade, planCommits } from '../../src/plans/planCommits.ts';
import type { JournalLine } from '../../src/protocol/plan.ts';
import { type GitRepo, gitRepo } from '../fakes/gitRepo.ts';

describe('git for a plan', () => {
  let repo: GitRepo;
  let git: Git;
  beforeEach(() => {
    repo = gitRepo();
    git = new Git(repo.path, repo.env);
  });
  afterEach(() => repo.remove());

  const commitOn = async (parent: string, message: string): Promise<string> =>
    git.commitTree(await git.treeOf(parent), [parent], message);

  it('moves a ref only from where it is expected', async () => {
    const base = repo.git('rev-parse', 'HEAD');
    const [one, two] = [await commitOn(base, 'one'), await commitOn(base, 'two')];
    assert.equal(await git.casRef('refs/heads/telos/x', one, undefined), true);
    assert.equal(await git.casRef('refs/heads/telos/x', two, undefined), false);
    assert.equal(await git.casRef('refs/heads/telos/x', two, base), false);
    assert.equal(await git.tip('telos/x'), one);
    assert.equal(await git.casRef('refs/heads/telos/x', two, one), true);
    writeFileSync(join(repo.path, '.git/refs/heads/telos/x.lock'), '');
    await assert.rejects(git.casRef('refs/heads/telos/x', one, two), /could not be moved: .*x\.lock/);
  });

  it('of a hundred that move a ref at once lets one', async () => {
    const base = repo.git('rev-parse', 'HEAD');
    const commits = await Promise.all(Array.from({ length: 20 }, (_, index) => commitOn(base, `c${index}`)));
    const moved = await Promise.all(
      commits.map(commit => git.casRef('refs/heads/x', commit, undefined).catch(() => false)),
    );
    assert.equal(moved.filter(Boolean).length, 1);
    assert.equal(await git.tip('x'), commits[moved.indexOf(true)]);
  });

  it('reads the stories of a plan from trailers, and none that a text only looks like', async () => {
    const base = repo.git('rev-parse', 'HEAD');
    const one = await commitOn(base, 'US-001: a\n\nTelos-Plan: p\nTelos-Story: US-001\nTelos-Item: 1,2\n');
    const two = await commitOn(one, 'US-002: b\n\nTelos-Plan: p\nTelos-Part: US-002\nTelos-Item: 1\n');
    const other = await commitOn(two, 'c\n\nTelos-Plan: q\nTelos-Story: US-003\n');
    const fake = await commitOn(other, 'd\n\nTelos-Plan: p\nTelos-Story: US-004\n\nMore text.\n');
    await git.casRef('refs/heads/telos/p', fake, undefined);
    const commits = await planCommits(git, base, 'telos/p', 'p');
    assert.deepEqual(
      commits.map(({ commit, story, items, isPart }) => [commit, story, items, isPart]),
      [
        [one, 'US-001', [1, 2], false],
        [two, 'US-002', [1], true],
      ],
    );
    assert.deepEqual(await planCommits(git, base, 'missing', 'p'), []);
  });

  it('runs no hook, editor, signing program or file watcher, and inherits no variable of git', async () => {
    const trace = join(repo.folder.path, 'ran');
    const program = join(repo.folder.path, 'program');
    writeFileSync(program, `#!/bin/sh\ntouch '${trace}'\nexit 1\n`);
    chmodSync(program, 0o755);
    for (const hook of ['reference-transaction', 'post-checkout', 'post-index-change', 'pre-commit']) {
      mkdirSync(join(repo.path, '.git/hooks'), { recursive: true });
      writeFileSync(join(repo.path, '.git/hooks', hook), `#!/bin/sh\ntouch '${trace}'\nexit 1\n`);
      chmodSync(join(repo.path, '.git/hooks', hook), 0o755);
    }
    for (const [name, value] of [
      ['core.fsmonitor', program],
      ['commit.gpgsign', 'true'],
      ['gpg.program', program],
      ['core.editor', program],
      ['core.pager', program],
    ])
      repo.git('config', name ?? '', value ?? '');
    const hostile = {
      ...repo.env,
      GIT_DIR: '/nowhere',
      GIT_INDEX_FILE: '/nowhere/index',
      GIT_EDITOR: program,
    };
    const inside = new Git(repo.path, hostile);
    const base = (await inside.tip('HEAD')) ?? '';
    const commit = await inside.commitTree(await inside.treeOf(base), [base], 'x');
    assert.equal(await inside.casRef('refs/heads/telos/x', commit, undefined), true);
    assert.deepEqual(await dirtyFiles(inside), []);
    assert.equal(existsSync(trace), false);
  });

  it('commits as the person does, and as Telos where git knows no name', async () => {
    const base = repo.git('rev-parse', 'HEAD');
    assert.equal(
      repo.git('log', '-1', '--format=%an <%ae>', await commitOn(base, 'x')),
      'Ada <ada@example.com>',
    );
    repo.git('config', '--unset', 'user.name');
    repo.git('config', '--unset', 'user.email');
    git = new Git(repo.path, repo.env);
    assert.equal(repo.git('log', '-1', '--format=%an %cn', await commitOn(base, 'x')), 'Telos Telos');
  });

  it('lists dirty files by their whole names and leaves the index alone', async () => {
    repo.add({ 'a b.txt': '1', 'ü\n.txt': '2', 'README.md': 'changed' });
    const index = repo.git('ls-files', '--debug');
    assert.deepEqual((await dirtyFiles(git)).sort(), ['README.md', 'a b.txt', 'ü\n.txt']);
    assert.equal(repo.git('ls-files', '--debug'), index);
  });

  it('says what failed, in what folder', async () => {
    await assert.rejects(
      git.run(['merge-base', 'HEAD', 'nonsense']),
      /git merge-base failed in .*bakery: .*nonsense/,
    );
    await assert.rejects(new Git(join(repo.path, 'gone'), repo.env).version(), /no longer exists/);
    await assert.rejects(new Git(repo.path, { PATH: '/nowhere' }).version(), /Install git 2\.38 or later/);
    assert.equal(await git.tip('--help'), undefined);
  });

  it('takes names as they are, whatever they mean to a shell', async () => {
    const dir = join(repo.path, 'it\'s $(touch x); \\ `touch y`\n"&');
    mkdirSync(dir);
    const inside = new Git(dir, repo.env);
    const name = 'a \'b\' $HOME "c"\n|d';
    const { stdout, stderr, code } = await inside.run(['rev-parse', '--show-prefix', name], { allow: [128] });
    assert.equal(stdout, `${basename(dir)}/\n${name}\n`);
    assert.match(stderr, /fatal: ambiguous argument 'a 'b' \$HOME "c"/);
    assert.equal(code, 128);
    assert.deepEqual(readdirSync(dir), []);
    assert.equal(await inside.read(['rev-parse', '--is-inside-work-tree']), 'true');
  });

  it('tells a branch that a plan has made from one that a person made after a run in which nothing passed', async () => {
    const branch = 'telos/x';
    const base = repo.git('rev-parse', 'HEAD').trim();
    const line = {
      seq: 1,
      ts: '',
      type: 'runner_started',
      base,
      branch,
      slots: 1,
      limits: {},
      pid: 1,
    } as const;
    const other = { ...line, branch: 'telos/other' };
    const story: JournalLine = {
      seq: 2,
      ts: '',
      type: 'story_passed',
      story: 'US-001',
      commit: 'c',
      items: [1],
    };
    const isMade = (...lines: readonly JournalLine[]) => hasMade(git, lines, branch, 'x');
    assert.deepEqual([await isMade(), await isMade(other, story), await isMade(line)], [false, false, true]);
    repo.git('branch', branch);
    assert.deepEqual(
      [await isMade(line), await isMade(line, other, story), await isMade(line, story)],
      [false, false, true],
    );
    const words = 'One\n\nTelos-Plan: x\nTelos-Story: US-001\nTelos-Item: 1\n';
    const commit = repo.git('commit-tree', 'HEAD^{tree}', '-p', 'HEAD', '-m', words).trim();
    repo.git('update-ref', `refs/heads/${branch}`, commit);
    assert.equal(await isMade(line), true);
  });

  it('tells of a repository what hinders a plan, in one sentence each', async () => {
    const said = async (options = {}) =>
      (await problemsOf(repo.path, { env: repo.env, ...options })).map(({ text }) => text);
    assert.deepEqual(await said(), []);
    repo.git('checkout', '-q', '-b', 'telos/x');
    assert.match(
      (await said({ plan: { branch: 'telos/x', isMade: async () => false } })).join(),
      /telos\/x is checked out in .*bakery/,
    );
    repo.git('checkout', '-q', '--detach');
    assert.match((await said()).join(), /No branch is checked out/);
    repo.git('checkout', '-q', 'main');
    for (const name of [
      'journal.jsonl',
      'inbox/a.json',
      'attempts/a.patch',
      'checks/b/c.txt',
      'runner.1.lock',
    ]) {
      repo.commit('state', { [`.telos/plans/x/${name}`]: '{}' });
      assert.match((await said()).join(), new RegExp(`plans/x/${name} is in git`));
      repo.git('rm', '-rqf', '.telos');
    }
    repo.commit('lfs', { '.gitattributes': '*.bin filter=lfs\n', '.gitignore': '.telos\n' });
    const plain = (await said()).join();
    assert.match(plain, /^$|Git LFS, which is not installed/);
    repo.git('update-index', '--add', '--cacheinfo', `160000,${repo.git('rev-parse', 'HEAD')},lib`);
    assert.match((await said()).join(), /has submodules/);
  });

  it('tells of folders that are no repository, have no commits, are bare or shallow, and of an old git', async () => {
    const { path } = repo.folder;
    const said = async (folder: string, env = repo.env) => {
      const problems = await problemsOf(folder, { env });
      return problems.map(({ text, stops }) => `${stops} ${text}`).join('\n');
    };
    assert.match(await said(path), /^true .*is not in a git repository/);
    mkdirSync(join(path, 'empty'));
    repo.git('init', '-q', join(path, 'empty'));
    assert.match(await said(join(path, 'empty')), /^true .*has no commits/);
    repo.git('clone', '-q', '--bare', repo.path, join(path, 'bare'));
    assert.match(await said(join(path, 'bare')), /^true .*is not a work tree/);
    repo.commit('second');
    repo.git('clone', '-q', '--depth', '1', `file://${repo.path}`, join(path, 'shallow'));
    assert.match(await said(join(path, 'shallow')), /^false The clone is shallow/);
    mkdirSync(join(path, 'bin'));
    writeFileSync(join(path, 'bin/git'), '#!/bin/sh\necho git version 2.20.1\n');
    chmodSync(join(path, 'bin/git'), 0o755);
    assert.match(
      await said(repo.path, { ...repo.env, PATH: join(path, 'bin') }),
      /^true This is git 2\.20\.1/,
    );
  });

  it('is the git of the person, not one that lies where agents work', async () => {
    const proof = join(repo.folder.path, 'proof');
    const work = join(repo.folder.path, 'obsidian/telos/garden/bin');
    const before = join(repo.folder.path, 'earlier/bin');
    const lines = `${JSON.stringify({ folder: join(repo.folder.path, 'earlier'), agent: 'garden' })}\n`;
    repo.folder.add({ '.local/share/telos/work-folders.jsonl': lines });
    for (const bin of [join(repo.path, 'bin'), work, before]) {
      mkdirSync(bin, { recursive: true });
      writeFileSync(join(bin, 'git'), `#!/bin/sh\necho "$0" >> '${proof}'\nexec /usr/bin/git "$@"\n`);
      chmodSync(join(bin, 'git'), 0o755);
    }
    const PATH = [join(repo.path, 'bin'), work, before, repo.env['PATH']].join(':');
    const planted = new Git(repo.path, { ...repo.env, PATH });
    await planted.run(['rev-parse', 'HEAD']);
    await planted.run(['hash-object', '--stdin'], { input: 'x' });
    assert.ok(await planted.tip('HEAD'));
    const workTree = join(repo.folder.path, 'elsewhere');
    repo.git('worktree', 'add', '-q', '--detach', workTree);
    const gitDir = join(repo.path, '.git/worktrees/elsewhere');
    const other = planted.at({ gitDir, workTree, index: join(gitDir, 'index') });
    assert.equal(await other.read(['ls-files']), 'README.md');
    await Promise.all([planted.close(), other.close()]);
    const remote = new PlanRemote({
      url: repo.path,
      dir: repo.path,
      env: { ...repo.env, PATH },
      log: () => {},
    });
    assert.ok(await remote.tip('refs/heads/main', new AbortController().signal));
    assert.equal(existsSync(proof), false);
  });

  it('says so where there is no git but one that agents could have put there', async () => {
    const bin = join(repo.path, 'bin');
    mkdirSync(bin);
    writeFileSync(join(bin, 'git'), '#!/bin/sh\necho git version 9.9.9\n');
    chmodSync(join(bin, 'git'), 0o755);
    const [problem] = await problemsOf(repo.path, { env: { ...repo.env, PATH: bin } });
    assert.match(problem?.text ?? '', /git could not be started \(it was not found\)/);
  });
});
