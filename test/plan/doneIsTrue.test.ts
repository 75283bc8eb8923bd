/** "Done" says that the branch has every story and passes every check: what happens to the branch meanwhile, and what a later story breaks. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  agreeable,
  once,
  type PlanWorld,
  passed,
  planWorld,
  type StepModel,
  type StoryText,
  writes,
} from './planWorld.ts';

describe('a plan that says that it is done', function () {
  this.timeout(240_000);
  let world: PlanWorld | undefined;
  afterEach(() => world?.close().then(() => (world = undefined)));

  const open = async (stories: readonly StoryText[], model: StepModel): Promise<PlanWorld> => {
    world = await planWorld(stories, { ...agreeable, ...model });
    return world;
  };
  const makes = (id: string, dependsOn: string[] = []): StoryText => ({
    id,
    title: id,
    dependsOn,
    checks: { [id]: `test -f notes/${id}.txt` },
  });
  const coder = (id: string) => once(writes({ [`notes/${id}.txt`]: `${id}\n` }));
  const storiesOn = (here: PlanWorld, branch: string): string[] =>
    here
      .git('log', '--reverse', '--format=%(trailers:key=Telos-Story,valueonly)', `main..${branch}`)
      .trim()
      .split(/\s+/);

  /** Two stories of which the second undoes the first at its first attempt. */
  const undoing: StepModel = {
    'US-001 coder': once(writes({ 'notes/shared.txt': 'one\n' })),
    'US-002 coder': (turn, attempt) => {
      if (turn > 0) return { text: ['Done.'] };
      return writes({ 'notes/shared.txt': attempt === 1 ? 'two\n' : 'one\ntwo\n' });
    },
  };
  const reopenings = (here: PlanWorld) => here.journal().filter(line => line.type === 'story_reopened');

  it('runs no check again on the files on which it has passed', async () => {
    const command = 'mkdir -p kept && echo x >> kept/own && ls src';
    const here = await open([{ ...makes('US-001'), checks: { own: command } }], {
      'US-001 coder': coder('US-001'),
    });
    here.set({ slot: { keep: ['kept'] } });
    await here.plan('approve', 'site', '--card', '--yes');
    const { code, stderr } = await here.plan('run', 'site', '--unattended');
    assert.equal(code, 0, stderr);
    const [, slot = ''] = /^worktree (\S+slot-1)$/m.exec(here.git('worktree', 'list', '--porcelain')) ?? [];
    // At the base, and on the files of the story, which are those of the branch.
    assert.equal(readFileSync(join(slot, 'kept/own'), 'utf8'), 'x\nx\n');
    assert.deepEqual(passed(here), ['US-001']);
  });

  it('has no story whose own check a later one broke: it is opened again and named', async () => {
    const checking = (id: string, word: string, dependsOn: string[]): StoryText => ({
      ...makes(id, dependsOn),
      checks: { [id]: `grep -q ${word} notes/shared.txt` },
    });
    const here = await open([checking('US-001', 'one', []), checking('US-002', 'two', ['US-001'])], undoing);
    const { code, stderr } = await here.plan('run', 'site', '--unattended');
    assert.equal(code, 0, stderr);
    assert.deepEqual(
      reopenings(here).map(line => line['story']),
      ['US-002'],
    );
    assert.match(
      String(reopenings(here)[0]?.['why']),
      /The check US-001 fails on the whole plan since this story/,
    );
    assert.equal(here.git('show', 'telos/site:notes/shared.txt'), 'one\ntwo\n');
  });

  it('stops where a commit that is no story has broken a check, and says so', async () => {
    const here = await open([makes('US-001')], {
      'US-001 coder': coder('US-001'),
    });
    assert.equal((await here.plan('run', 'site', '--unattended')).code, 0);
    here.git('checkout', '-q', 'telos/site');
    here.git('rm', '-q', 'notes/US-001.txt');
    here.git('commit', '-qm', 'by hand');
    here.git('checkout', '-q', 'main');
    const { code, stderr } = await here.plan('run', 'site', '--unattended');
    assert.notEqual(code, 0, stderr);
    assert.match(stderr, /The check US-001 fails on telos\/site, and no story of the plan broke it/);
  });

  it('stops with a sentence where the branch was renamed meanwhile, and makes no new one', async () => {
    const here = await open([makes('US-001'), makes('US-002', ['US-001']), makes('US-003', ['US-002'])], {
      'US-001 coder': coder('US-001'),
      'US-002 coder': turn => {
        if (turn === 0) here.git('branch', '-m', 'telos/site', 'telos/kept');
        return coder('US-002')(turn, 1, {} as never);
      },
      'US-003 coder': coder('US-003'),
    });
    const { code, stderr } = await here.plan('run', 'site', '--unattended');
    assert.notEqual(code, 0);
    assert.match(stderr, /The branch telos\/site of the plan is gone/);
    assert.match(stderr, /git branch telos\/site [0-9a-f]{40}/);
    assert.equal(here.git('branch', '--list', 'telos/site').trim(), '');
    assert.equal(here.requestsOf('US-003', 'coder').length, 0);
    here.git('branch', '-m', 'telos/kept', 'telos/site');
    const again = await here.plan('run', 'site', '--unattended');
    assert.equal(again.code, 0, again.stderr);
    assert.deepEqual(storiesOn(here, 'telos/site'), ['US-001', 'US-002', 'US-003']);
  });

  it('does again what was reset away while it ran', async () => {
    let isReset = false;
    const here = await open([makes('US-001'), makes('US-002', ['US-001'])], {
      'US-001 coder': coder('US-001'),
      'US-002 coder': turn => {
        if (turn === 0 && !isReset) here.git('update-ref', 'refs/heads/telos/site', 'main');
        isReset = true;
        return coder('US-002')(turn, 1, {} as never);
      },
    });
    const { code, stderr } = await here.plan('run', 'site', '--unattended');
    assert.equal(code, 0, stderr);
    assert.deepEqual(storiesOn(here, 'telos/site').sort(), ['US-001', 'US-002']);
    const [reopened] = here.journal().filter(line => line.type === 'story_reopened');
    assert.match(String(reopened?.['why']), /is not on telos\/site any more/);
  });

  it('is finished only while the branch has all that has passed', async () => {
    const here = await open([makes('US-001'), makes('US-002', ['US-001'])], {
      'US-001 coder': coder('US-001'),
      'US-002 coder': coder('US-002'),
    });
    assert.equal((await here.plan('run', 'site', '--unattended')).code, 0);
    const tip = here.git('rev-parse', 'telos/site').trim();
    const main = here.git('rev-parse', 'main');
    here.git('update-ref', 'refs/heads/telos/site', `${tip}~1`);
    for (const how of ['--merge', '--squash', '--keep']) {
      const { code, stderr } = await here.plan('finish', 'site', how);
      assert.equal(code, 1, how);
      assert.match(stderr, /telos\/site does not have all that has passed: US-002/);
    }
    assert.equal(here.git('rev-parse', 'main'), main);
    // Commits that were made anew count by their trailers.
    here.git(
      'update-ref',
      'refs/heads/telos/site',
      here
        .git(
          'commit-tree',
          `${tip}^{tree}`,
          '-p',
          `${tip}~1`,
          '-m',
          here.git('log', '-1', '--format=%B', tip),
        )
        .trim(),
    );
    assert.equal((await here.plan('finish', 'site', '--merge')).code, 0);
  });

  it('has nothing of what git ignores, where a slot links or copies that', async () => {
    const here = await open([makes('US-001')], { 'US-001 coder': coder('US-001') });
    writeFileSync(join(here.repo, '.gitignore'), 'node_modules\n.env\n.telos\n');
    here.git('add', '.gitignore');
    here.git('commit', '-qm', 'ignore');
    mkdirSync(join(here.repo, 'node_modules'));
    writeFileSync(join(here.repo, 'node_modules/m.js'), 'x');
    writeFileSync(join(here.repo, '.env'), 'K=1\n');
    here.set({ slot: { link: ['node_modules'], copy: ['.env'], keep: [], ports: 10 } });
    await here.plan('approve', 'site', '--card', '--yes');
    const { code, stderr } = await here.plan('run', 'site', '--unattended');
    assert.equal(code, 0, stderr);
    assert.deepEqual(passed(here), ['US-001']);
    assert.doesNotMatch(here.git('ls-tree', '-r', '--name-only', 'telos/site'), /node_modules|\.env/);
  });

  it('ends a watcher with the exit code of the plan', async () => {
    const here = await open([{ ...makes('US-001'), checks: { never: 'false' } }], {
      'US-001 coder': (turn, attempt) =>
        turn === 0 ? writes({ 'a.txt': `${attempt}\n` }) : { text: ['Done.'], delayMs: 300 },
    });
    const runner = here.start('run', 'site', '--unattended');
    await runner.says('US-001');
    const watcher = await here.plan('run', 'site', '--unattended');
    const { code } = await runner.result;
    assert.notEqual(code, 0);
    assert.match(watcher.stderr, /already running/);
    assert.equal(watcher.code, code);
  });
});
