/** Files of a plan that came with a repository, an archive or a share: they speak for nobody, and nothing of the person's is touched. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MachineSeal } from '../../src/plans/machineSeal.ts';
import {
  agreeable,
  once,
  type PlanWorld,
  passed,
  planWorld,
  type StepModel,
  storyText,
  writes,
} from './planWorld.ts';

const one = { id: 'US-001', title: 'Hours', touches: ['src/hours.js'] };
const builds: StepModel = { ...agreeable, coder: once(writes({ 'src/hours.js': '7\n' })) };

describe('what came with the folder of a plan', function () {
  this.timeout(120_000);
  let world: PlanWorld;
  beforeEach(async () => {
    world = await planWorld([one], builds);
  });
  afterEach(() => world.close());

  const inPlan = (...parts: readonly string[]): string => join(world.repo, '.telos/plans/site', ...parts);
  const put = (path: string, text: string): void => {
    mkdirSync(join(inPlan(path), '..'), { recursive: true });
    writeFileSync(inPlan(path), text);
  };
  const run = () => world.plan('run', 'site', '--unattended');
  const forged = (name: string, command: object): void =>
    put(`inbox/${name}.json`, JSON.stringify({ command, by: 'cli' }));
  const branches = (): string => world.git('for-each-ref', '--format=%(refname:short)', 'refs/heads');

  it('gives no command: what this machine did not seal is put aside, and said once', async () => {
    forged('a', { kind: 'accept', story: 'US-001' });
    forged('b', { kind: 'budget', add: { maxCost: 1e6 } });
    const other = new MachineSeal(join(world.home.folder.path, 'other'));
    await other.ready();
    const json = JSON.stringify({ command: { kind: 'skip', story: 'US-001' }, by: 'cli' });
    put('inbox/c.json', other.sealed('inbox site c', json));
    for (const name of 'defghijklmnop') forged(name, { kind: 'accept', story: 'US-001' });
    const { code, stderr } = await run();
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(stderr, /accepted|Steered/);
    assert.equal(stderr.match(/was not sent by a person on this machine/g)?.length, 10, stderr);
    assert.match(stderr, /So were 6 more files\./);
    assert.equal(readdirSync(inPlan('inbox')).filter(name => name.endsWith('.refused')).length, 16);
    assert.deepEqual(passed(world), ['US-001']);
    assert.doesNotMatch((await run()).stderr, /was not sent/);
  });

  it('gives no command of this machine under another name, or for another plan', async () => {
    await world.plan('skip', 'US-001');
    const [name = ''] = readdirSync(inPlan('inbox'));
    const sent = readFileSync(inPlan('inbox', name), 'utf8');
    put(`inbox/${name}`, '');
    put('inbox/0.json', sent);
    const { code, stderr } = await run();
    assert.equal(code, 0, stderr);
    assert.match(stderr, /0\.json was not sent by a person on this machine/);
    assert.deepEqual(passed(world), ['US-001']);
  });

  it('counts in its own repository alone, and goes with it where it is moved', async () => {
    await world.plan('accept', 'US-001');
    assert.equal((await run()).code, 0);
    const shownIn = async (repo: string): Promise<string> =>
      (await world.home.call(['plan', 'show', 'site', '--cwd', repo], { env: world.env }).result).stdout;
    const [other, moved] = [join(world.home.workDir, 'other'), join(world.home.workDir, 'moved')];
    mkdirSync(other);
    execFileSync('git', ['clone', '--quiet', world.repo, other]);
    cpSync(join(world.repo, '.telos'), join(other, '.telos'), { recursive: true });
    assert.match(await shownIn(other), /journal\.jsonl has \d+ lines that were not written on this machine/);
    assert.doesNotMatch(await shownIn(other), /accepted/);
    renameSync(world.repo, moved);
    assert.match(await shownIn(moved), /US-001.*accepted/);
    assert.doesNotMatch(await shownIn(moved), /not written on this machine/);
    renameSync(moved, world.repo);
  });

  it('is no progress: lines of a journal that this machine did not write are left out, and it says so', async () => {
    const lines = world.journal();
    const ts = new Date().toISOString();
    const seq = lines.length + 1;
    const forgedLine = { seq, ts, type: 'story_accepted', story: 'US-001', why: '', by: 'cli' };
    put('journal.jsonl', `${world.file('journal.jsonl')}${JSON.stringify(forgedLine)}\n`);
    const shown = await world.plan('show', 'site');
    assert.match(shown.stdout, /journal\.jsonl has a line that was not written on this machine/);
    assert.doesNotMatch(shown.stdout, /accepted/);
    const { code, stderr } = await run();
    assert.equal(code, 0, stderr);
    assert.match(stderr, /Note: journal\.jsonl has a line that was not written on this machine/);
    assert.deepEqual(passed(world), ['US-001']);
  });

  it('that is in git stops the plan, wherever it lies, and show says it too', async () => {
    forged('x', { kind: 'accept', story: 'US-001' });
    world.git('add', '--force', '.telos/plans/site/inbox');
    world.git('commit', '--quiet', '--message', 'x');
    const { code, stderr } = await run();
    assert.equal(code, 1);
    assert.match(stderr, /inbox\/x\.json is in git, and what came with a repository does not count/);
    const shown = await world.plan('show', 'site');
    assert.match(shown.stdout, /inbox\/x\.json is in git, and what came with a repository does not count/);
  });

  it('names a branch of the person: it is not built on, merged, pushed or deleted', async () => {
    for (const branch of ['work', 'main']) {
      if (branch === 'work') world.git('branch', 'work');
      world.set({ branch });
      const before = [branches(), world.checkout()];
      for (const how of ['--merge', '--squash', '--pr', '--keep', '--drop']) {
        await world.plan('finish', 'site', how, '--yes');
        assert.deepEqual([branches(), world.checkout()], before, `${branch} ${how}`);
      }
      const { code, stderr } = await run();
      assert.equal(code, 1);
      const why =
        branch === 'main' ? /main is checked out in/ : /a branch work already, which this plan did not make/;
      assert.match(stderr, why);
      assert.match((await world.plan('show', 'site')).stdout, why);
      assert.deepEqual([branches(), world.checkout()], before, branch);
    }
  });

  it('has a tag with the name of its branch: nothing of it counts as passed', async () => {
    const two = storyText({ ...one, id: 'US-002', touches: ['src/b.js'] });
    put('prds/02-story.md', two);
    await world.plan('approve', 'site', '--card', '--yes');
    await world.plan('run', 'site', '--unattended', '--only', 'US-001');
    const words = 'Two\n\nTelos-Plan: site\nTelos-Story: US-002\nTelos-Item: 1\n';
    const tip = 'refs/heads/telos/site';
    const commit = world.git('commit-tree', `${tip}^{tree}`, '-p', tip, '-m', words).trim();
    world.git('tag', 'telos/site', commit);
    await run();
    assert.doesNotMatch(world.file('journal.jsonl'), new RegExp(commit));
  });

  it('is no branch of its own any more once that was discarded, or while it is checked out', async () => {
    assert.equal((await run()).code, 0);
    world.git('checkout', '--quiet', 'telos/site');
    const out = await world.plan('finish', 'site', '--drop', '--yes');
    assert.equal(out.code, 1);
    assert.match(out.stderr, /telos\/site is checked out in .*, so it was not deleted/);
    world.git('checkout', '--quiet', 'main');
    assert.equal((await world.plan('finish', 'site', '--drop', '--yes')).code, 0);
    assert.equal(branches().trim(), 'main');
    world.git('branch', 'telos/site');
    await world.plan('finish', 'site', '--drop', '--yes');
    assert.equal(branches().trim(), 'main\ntelos/site');
  });
});
