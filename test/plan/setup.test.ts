import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { agreeable, once, type PlanWorld, passed, planWorld, storyText, writes } from './planWorld.ts';

const packages = {
  '.gitignore': 'node_modules\n.env\n',
  'package.json': '{"name":"bakery","version":"1.0.0","dependencies":{"tool":"file:tool"}}',
  'tool/package.json': '{"name":"tool","version":"1.0.0"}',
  'tool/index.js': '',
  '.env': 'KEY=1\n',
};

describe('how the worktrees of a plan are set up', function () {
  this.timeout(120_000);
  let world: PlanWorld;
  afterEach(() => world.close());

  const add = (files: Readonly<Record<string, string>>): void => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(world.repo, path)), { recursive: true });
      writeFileSync(join(world.repo, path), text);
    }
  };

  it('is found, shown and changed, and a story has its packages without a word of the user', async () => {
    world = await planWorld([], { 'US-001 coder': once(writes({ 'src/a.js': 'a' })), ...agreeable });
    add(packages);
    const lockOnly = ['install', '--package-lock-only', '--offline', '--ignore-scripts'];
    execFileSync('npm', lockOnly, { cwd: world.repo, stdio: 'ignore' });
    world.git('add', '--all');
    world.git('commit', '-qm', 'packages');
    const made = await world.plan('new', 'A tool', '--name', 'site', '--no-more-questions');
    assert.match(
      made.stderr,
      /is set up so:\n {2}Runs: npm ci\n {2}Keeps: node_modules\n {2}Copies: \.env\n/,
    );
    assert.equal((await world.plan('setup')).stdout, 'Runs: npm ci\nKeeps: node_modules\nCopies: .env\n');
    const none = await world.plan('setup', '--clear');
    assert.match(none.stdout, /^Nothing sets up the worktrees/);
    assert.match(none.stderr, /need your approval: telos plan approve site --card/);
    assert.equal((await world.plan('setup', '--clear', 'npm ci')).code, 2);
    const wrong = await world.plan('setup', '--copy', '../secret');
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /not a path below the repository/);
    assert.equal((await world.plan('setup', '--detect')).stdout, (await world.plan('setup')).stdout);
    const set = await world.plan('setup', 'npm ci --offline', '--plan', 'site');
    assert.equal(set.stdout, 'Runs: npm ci --offline\nKeeps: node_modules\nCopies: .env\n');
    const checks = { there: 'test -f node_modules/tool/index.js && test -f .env && test -f src/a.js' };
    add({ '.telos/plans/site/prds/01-story.md': storyText({ id: 'US-001', checks }) });
    const card = await world.plan('approve', 'site', '--card', '--yes');
    assert.match(card.stderr, /npm ci --offline[\s\S]*from story to story:\n {2}node_modules/);
    assert.match(card.stderr, /! \.env: may hold secrets/);
    const { code, stderr } = await world.plan('run', 'site', '--unattended');
    assert.equal(code, 0, stderr);
    assert.deepEqual(passed(world), ['US-001']);
  });

  for (const [what, files, said] of [
    [
      'a lock file that is broken',
      { 'package.json': packages['package.json'], 'package-lock.json': '{broken' },
      /"npm ci" failed with exit code 1 while the worktree was set up\.\n[^\n]*error[\s\S]*telos plan setup --plan site/,
    ],
    [
      'a package manager that is not installed',
      { 'package.json': packages['package.json'], 'bun.lock': '{}' },
      /bun: (?:command )?not found\nInstall bun, or set the worktrees up otherwise: telos plan setup --plan site "\.\.\."/,
    ],
  ] as const)
    it(`says what is wrong and what helps: ${what}`, async () => {
      world = await planWorld([{ id: 'US-001' }], agreeable);
      add(files);
      world.git('add', '--all');
      world.git('commit', '-qm', 'packages');
      await world.plan('setup', '--detect', '--plan', 'site');
      await world.plan('approve', 'site', '--card', '--yes');
      const { code, stderr } = await world.plan('run', 'site', '--unattended');
      assert.equal(code, 1, stderr);
      assert.match(stderr, said);
      assert.doesNotMatch(stderr, /notice/);
      assert.equal(world.requestsOf('US-001', 'coder').length, 0);
    });
});
