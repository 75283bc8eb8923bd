/** Plans that people bring along from other tools, and plans of one story, through the command line. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { agreeable, once, type PlanWorld, planWorld, writes } from './planWorld.ts';

const sources: Readonly<Record<string, { path: string; text: string }>> = {
  ralph: {
    path: 'ralph/prd.json',
    text: JSON.stringify({
      project: 'Bakery',
      branchName: 'ralph/bakery',
      description: 'Hours',
      userStories: [
        { id: 'B', title: 'Second', acceptanceCriteria: ['two'], priority: 2, passes: false, notes: '' },
        { id: 'A', title: 'First', acceptanceCriteria: ['one'], priority: 1, passes: true, notes: '' },
      ],
    }),
  },
  'spec-kit': {
    path: 'specs/001-hours/tasks.md',
    text: '# Tasks: Hours\n\n## Phase 1: First\n\n- [x] T001 one\n\n## Phase 2: Second\n\n- [ ] T002 [P] two\n',
  },
  kiro: {
    path: '.kiro/specs/hours/tasks.md',
    text: '# Implementation Plan\n\n- [x] 1. First\n  - [x] 1.1 one\n- [ ] 2. Second\n  - [ ] 2.1 two\n',
  },
};

describe('telos plan adopt and quick', function () {
  this.timeout(120_000);
  let world: PlanWorld;
  afterEach(() => world.close());

  it('takes over a plan in a folder that is not in git yet, and says what is missing', async () => {
    world = await planWorld([], {});
    rmSync(join(world.repo, '.git'), { recursive: true });
    world.home.folder.add({ 'work/bakery/t.md': '# T\n- [ ] one\n' });
    const { code, stderr } = await world.plan('adopt', join(world.repo, 't.md'), '--name', 'site');
    assert.equal(code, 0, stderr);
    assert.match(stderr, /cannot run here yet: .* is not in a git repository/);
  });

  it('takes over stories, order and done-marks of three tools, and leaves their files as they are', async () => {
    world = await planWorld([], {});
    for (const [format, { path, text }] of Object.entries(sources)) {
      world.home.folder.add({ [`work/bakery/${path}`]: text });
      // Kiro tells by the documents beside its tasks.
      if (format === 'kiro')
        world.home.folder.add({ 'work/bakery/.kiro/specs/hours/design.md': '# Design\n' });
      const name = `from-${format}`;
      const { code, stdout, stderr } = await world.plan('adopt', join(world.repo, path), '--name', name);
      assert.equal(code, 0, stderr);
      assert.match(stderr, new RegExp(`from ${format}:`));
      const rows = stdout.trim().split('\n');
      assert.deepEqual(rows, ['US-001 [x] First', 'US-002 [ ] Second']);
      assert.equal(readFileSync(join(world.repo, path), 'utf8'), text);
      const next = await world.plan('next', name, '--json');
      assert.equal(JSON.parse(next.stdout), 'US-002');
    }
    const unknown = await world.plan('adopt', join(world.repo, 'src'));
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /has no tasks that can be read/);
  });

  it('runs a plan that was taken over, and a plan of one story without an interview', async () => {
    world = await planWorld([], {
      ...agreeable,
      coder: (turn, attempt, request) =>
        once(
          writes({
            [JSON.stringify(request.body).includes('footer') ? 'src/footer.js' : 'src/two.js']: '7\n',
          }),
        )(turn, attempt, request),
    });
    const { path, text } = sources['ralph'] ?? { path: '', text: '' };
    world.home.folder.add({ [`work/${path}`]: text });
    await world.plan('adopt', join(world.home.workDir, path), '--name', 'site');
    await world.plan('approve', 'site', '--card', '--yes');
    const taken = await world.plan('run', 'site', '--unattended');
    assert.equal(taken.code, 0, taken.stderr);
    assert.equal(world.git('show', 'telos/site:src/two.js'), '7\n');
    const back = ['adopt', join(world.home.workDir, path), '--name', 'site', '--write-back'];
    const source = () => readFileSync(join(world.home.workDir, path), 'utf8');
    const unasked = await world.plan(...back);
    assert.equal(unasked.code, 1);
    assert.match(unasked.stderr, /\[x\] .*prd\.json: US-002 Second[\s\S]*--yes ticks them/);
    assert.equal(source(), text);
    const written = await world.plan(...back, '--yes');
    assert.equal(written.code, 0, written.stderr);
    assert.equal(source(), text.replace('"passes":false', '"passes":true'));
    assert.match((await world.plan(...back)).stderr, /Nothing was changed/);
    const undone = /telos undo (\S+)/.exec(written.stderr)?.[1] ?? '';
    assert.equal((await world.home.run(['undo', undone, '--yes'])).code, 0);
    assert.equal(source(), text);
    const given = ['show the build number in the footer', '--check', 'node --test', '--name', 'footer'];
    const asked = await world.plan('quick', ...given);
    assert.equal(asked.code, 3);
    assert.match(asked.stderr, /check: node --test/);
    const again = await world.plan('quick', ...given.with(-1, 'footer-2'), '--yes');
    assert.equal(again.code, 0, again.stderr);
    assert.equal(world.git('show', 'telos/footer-2:src/footer.js'), '7\n');
    assert.equal(world.requestsOf('', 'interview').length, 0);
  });
});
