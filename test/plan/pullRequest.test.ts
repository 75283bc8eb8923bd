/** `telos plan finish --pr` with a remote on this disk and a `gh` that notes how it was called. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { agreeable, once, type PlanWorld, planWorld, writes } from './planWorld.ts';

const where = (name: string): string =>
  execFileSync('/bin/sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();

describe('telos plan finish --pr', function () {
  this.timeout(60_000);
  let world: PlanWorld;
  beforeEach(async () => {
    world = await planWorld([{ id: 'US-001', title: 'Hours @everybody', touches: ['src/hours.js'] }], {
      ...agreeable,
      coder: once(writes({ 'src/hours.js': '7\n' })),
    });
    await world.plan('run', 'site');
  });
  afterEach(() => world.close());

  const withRemote = (): string => {
    const remote = join(world.home.folder.path, 'remote.git');
    execFileSync('git', ['init', '--quiet', '--bare', remote]);
    world.git('remote', 'add', 'origin', remote);
    return remote;
  };
  const tipOf = (repo: string): string =>
    execFileSync('git', ['for-each-ref', '--format=%(objectname)', 'refs/heads/telos/site'], {
      cwd: repo,
      encoding: 'utf8',
    }).trim();
  /** Puts a program of that name before all others. */
  const program = (name: string, text: string): void => {
    const path = join(world.home.folder.path, 'bin', name);
    mkdirSync(join(world.home.folder.path, 'bin'), { recursive: true });
    writeFileSync(path, `#!/bin/sh\n${text}\n`);
    chmodSync(path, 0o755);
  };
  const finish = (...more: readonly string[]) => {
    // The gh of this machine is not called.
    const path = join(world.home.folder.path, 'bin');
    mkdirSync(path, { recursive: true });
    for (const name of ['git', 'sh', 'cat'])
      if (!existsSync(join(path, name))) symlinkSync(where(name), join(path, name));
    return world.home.run(['plan', 'finish', 'site', '--pr', ...more, '--cwd', world.repo], {
      env: {
        PATH: `${join(world.repo, 'bin')}:${path}`,
        XDG_CACHE_HOME: join(world.home.folder.path, 'cache'),
      },
    });
  };

  it('publishes nothing without a yes, and says so where there is no remote', async () => {
    const remote = withRemote();
    const { code, stderr } = await finish();
    assert.equal(code, 1);
    assert.match(stderr, /--yes publishes it\. Nothing was changed/);
    assert.equal(tipOf(remote), '');
    world.git('remote', 'remove', 'origin');
    const without = await finish('--yes');
    assert.equal(without.code, 1);
    assert.match(without.stderr, /has no remote[\s\S]*git remote add origin/);
  });

  it('pushes the branch, opens the pull request, and leaves the checkout as it is', async () => {
    const remote = withRemote();
    program(
      'gh',
      `printf '%s\\n' "$@" > '${join(world.home.folder.path, 'gh.txt')}'; echo https://example.com/pull/1`,
    );
    const before = world.git('status', '--porcelain', '--branch');
    const { code, stdout, stderr } = await finish('--yes');
    assert.equal(code, 0, stderr);
    assert.equal(stdout.trim(), 'https://example.com/pull/1');
    assert.equal(tipOf(remote), world.git('rev-parse', 'telos/site').trim());
    const said = readFileSync(join(world.home.folder.path, 'gh.txt'), 'utf8');
    assert.match(said, /^pr\ncreate\n--head=telos\/site\n--base=main\n--title=A better bakery\n/);
    // As code, so that no one is mentioned.
    assert.match(said, /\n {4}[0-9a-f]{7,} .*Hours @everybody/);
    assert.equal(world.git('status', '--porcelain', '--branch'), before);
    assert.equal(world.git('worktree', 'list').trim().split('\n').length, 1);
  });

  it('starts no git or gh that lies in the project', async () => {
    withRemote();
    const bin = join(world.repo, 'bin');
    const proof = join(world.home.folder.path, 'proof');
    mkdirSync(bin);
    for (const name of ['git', 'gh']) {
      writeFileSync(join(bin, name), `#!/bin/sh\necho "$0" >> '${proof}'\nexit 1\n`);
      chmodSync(join(bin, name), 0o755);
    }
    const { code, stderr } = await finish('--yes');
    assert.equal(code, 0, stderr);
    assert.match(stderr, /Pushed telos\/site to origin\. gh is not installed/);
    assert.equal(existsSync(proof), false);
  });

  it('says what is left to do where gh is missing or refuses', async () => {
    const remote = withRemote();
    program('gh', 'echo "error: not signed in" >&2; exit 4');
    const refused = await finish('--yes');
    assert.equal(refused.code, 1);
    assert.match(
      refused.stderr,
      /telos\/site is at origin, but gh did not open a pull request: not signed in\./,
    );
    rmSync(join(world.home.folder.path, 'bin/gh'));
    const missing = await finish('--yes');
    assert.equal(missing.code, 0, missing.stderr);
    assert.match(missing.stderr, /Pushed telos\/site to origin\. gh is not installed/);
    assert.ok(tipOf(remote));
  });
});
