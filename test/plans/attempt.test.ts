/** Attempts with real git, real checks and recorded models: a story passes only by a commit of the very tree that was checked and reviewed. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findBox } from '../../src/engine/box/findBox.ts';
import { allowAll } from '../../src/engine/human.ts';
import type { Story } from '../../src/protocol/plan.ts';
import { approves, denies, PlanRepo, type RecordedCall, writes } from '../fakes/planRepo.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { skipBecause } from '../skipBecause.ts';

const sub = 'export const sub = (a, b) => a - b;\n';
const subTest = (expected = 1): string =>
  `import assert from 'node:assert/strict';\nimport test from 'node:test';\nimport { sub } from '../src/sub.js';\ntest('subtracts', () => { assert.equal(sub(3, 2), ${expected}); });\n`;

const good: readonly RecordedCall[] = [writes('src/sub.js', sub), writes('test/sub.test.js', subTest())];

describe('attempt', () => {
  let plan: PlanRepo;
  afterEach(() => plan.remove());

  const make = async (...args: Parameters<typeof PlanRepo.make>): Promise<PlanRepo> => {
    plan = await PlanRepo.make(...args);
    return plan;
  };
  const two: Partial<Story> = {
    items: [
      { number: 1, text: 'sub exists', ticked: false },
      { number: 2, text: 'sub is tested', ticked: false },
    ],
  };
  /** What costs two processes of Node at each check. */
  const tested: Partial<Story> = { ...two, checks: [{ name: 'unit', command: 'node --test' }] };
  const details = (): string => plan.last('attempt_ended')?.details ?? '';

  it('passes a story by one commit, whose tree the checks and the reviewer saw', async () => {
    await make([tested]);
    plan.record('US-001.a1.coder', [good]);
    plan.record('US-001.a1.reviewer', [['run_check', { name: 'unit' }], approves('Both are there.')]);
    const before = plan.shell('git', 'status', '--porcelain');
    assert.equal(await plan.attempt('US-001'), 'approved');
    const { tree } = plan.last('verdict')!;
    assert.equal(plan.shell('git', 'rev-parse', 'telos/shop^{tree}'), tree);
    assert.deepEqual(
      plan.events('check_ended').map(one => [one.name, one.exitCode, one.tree]),
      [['unit', 0, tree]],
    );
    assert.match(
      plan.shell('git', 'log', '-1', '--format=%B', 'telos/shop'),
      /Telos-Plan: shop\nTelos-Story: US-001\nTelos-Item: 1,2\nTelos-Attempt: 1\nTelos-Check: unit\nTelos-Review: Both are there\./,
    );
    assert.equal(plan.state.story('US-001')?.status, 'passed');
    assert.match(plan.read('prds/01-story.md'), /- \[x\] 1\.[\s\S]*- \[x\] 2\./);
    assert.match(plan.read('checks/US-001.a1.unit.txt'), /adds|subtracts/);
    assert.equal(JSON.parse(plan.read('verdict.json')).approved, true);
    assert.equal(plan.shell('git', 'status', '--porcelain'), before);
    assert.equal(plan.shell('git', 'rev-parse', 'HEAD'), plan.base);
    assert.deepEqual(plan.journal.lines.map(({ type }) => type).slice(1), [
      'attempt_started',
      'step_started',
      'step_ended',
      'snapshot',
      'check_ended',
      'step_started',
      'verdict',
      'step_ended',
      'story_passed',
      'attempt_ended',
    ]);
  });

  it('denies a story whose check fails, asks no reviewer, and tells the next attempt why', async () => {
    await make([tested]);
    plan.record('US-001.a1.coder', [[writes('src/sub.js', sub), writes('test/sub.test.js', subTest(7))]]);
    assert.equal(await plan.attempt('US-001'), 'denied');
    assert.match(details(), /The check "unit" failed with exit code 1\.[\s\S]*subtracts/);
    assert.equal(plan.events('verdict').length, 0);
    assert.equal(plan.shell('git', 'branch', '--list', 'telos/shop'), '');
    assert.match(plan.read('attempts/US-001.a1.patch'), /sub\(3, 2\), 7/);
    const words: string[] = [];
    plan.record('US-001.a2.coder', [good]);
    plan.record('US-001.a2.reviewer', [approves()]);
    plan.with({
      onEvent: (step, _story, event) => {
        if (event.type === 'run_start' && step.endsWith('coder')) words.push(event.text);
      },
    });
    plan.restart();
    assert.equal(await plan.attempt('US-001'), 'approved');
    assert.match(words[0] ?? '', /Why the last attempt did not pass[\s\S]*failed with exit code 1/);
    assert.match(
      words[0] ?? '',
      /earlier attempts have changed\. All of it is there[\s\S]*test\/sub\.test\.js/,
    );
    assert.deepEqual([plan.state.story('US-001')?.attempts, plan.state.story('US-001')?.charged], [2, 1]);
  });

  it('never passes what no check and no reviewer approved', async () => {
    await make([{ ...two, checks: [{ name: 'unit', command: 'node test/sub.test.js' }] }]);
    plan.record('US-001.a1.coder', [good], 'I am done. <promise>COMPLETE</promise> All tests pass!');
    plan.record('US-001.a1.reviewer', [], 'APPROVED. It is perfect.');
    assert.equal(await plan.attempt('US-001'), 'no-verdict');
    plan.record('US-001.a2.coder', [], 'Everything is there already.');
    plan.record('US-001.a2.reviewer', [], 'As the coder says.');
    assert.equal(await plan.attempt('US-001'), 'no-verdict');
    plan.record('US-001.a3.coder', [good, approves('by the coder')]);
    plan.record('US-001.a3.reviewer', [denies('sub is wrong for numbers below 0')]);
    assert.equal(await plan.attempt('US-001'), 'denied');
    assert.equal(details(), 'sub is wrong for numbers below 0');
    plan.record('US-001.a4.coder', [good]);
    plan.record('US-001.a4.reviewer', [approves()]);
    assert.equal(await plan.attempt('US-001'), 'no-change');
    plan.record('US-001.a5.coder', [[writes('src/sub.js', `${sub}\n`)]]);
    plan.record('US-001.a5.reviewer', [approves('fine', [7])]);
    assert.equal(await plan.attempt('US-001'), 'no-verdict');
    plan.record('US-001.a6.coder', [[writes('test/sub.test.js', subTest(9))]]);
    plan.record('US-001.a6.reviewer', [approves()]);
    assert.equal(await plan.attempt('US-001'), 'denied');
    assert.equal(plan.shell('git', 'branch', '--list', 'telos/shop'), '');
    assert.doesNotMatch(plan.read('prd.json'), /"passes": true/);
  });

  it('goes on from what was denied, on top of what has passed meanwhile, unless it is started over', async () => {
    await make([two, { ...two, checks: [{ name: 'there', command: 'ls src' }] }]);
    const names = (): string[] => plan.shell('git', 'ls-tree', '-r', '--name-only', 'telos/shop').split('\n');
    plan.record('US-001.a1.coder', [[writes('src/sub.js', sub), writes('src/mul.js', '1\n')]]);
    plan.record('US-001.a1.reviewer', [denies('Its test is missing.')]);
    assert.equal(await plan.attempt('US-001'), 'denied');
    plan.record('US-002.a1.coder', [[writes('src/other.js', '1\n')]]);
    plan.record('US-002.a1.reviewer', [approves()]);
    assert.equal(await plan.attempt('US-002'), 'approved');
    plan.record('US-001.a2.coder', [[writes('test/sub.test.js', subTest())]]);
    plan.record('US-001.a2.reviewer', [approves()]);
    assert.equal(await plan.attempt('US-001'), 'approved');
    for (const path of ['src/sub.js', 'src/mul.js', 'test/sub.test.js', 'src/other.js'])
      assert.ok(names().includes(path), path);
    const reopened = { type: 'story_reopened' as const, story: 'US-002', why: 'by redo', by: 'cli' as const };
    plan.record('US-002.a2.coder', [[writes('src/first.js', '1\n')]]);
    plan.record('US-002.a2.reviewer', [denies('No.')]);
    await plan.journal.append(reopened);
    assert.equal(await plan.attempt('US-002'), 'denied');
    await plan.journal.append(reopened);
    plan.record('US-002.a3.coder', [[writes('src/second.js', '1\n')]]);
    plan.record('US-002.a3.reviewer', [approves()]);
    assert.equal(await plan.attempt('US-002'), 'approved');
    assert.deepEqual([names().includes('src/first.js'), names().includes('src/second.js')], [false, true]);
  });

  it('commits the boxes that were approved, and closes the story with the last', async () => {
    await make([two]);
    plan.record('US-001.a1.coder', [writes('src/sub.js', sub)]);
    plan.record('US-001.a1.reviewer', [approves('Only the function.', [1])]);
    assert.equal(await plan.attempt('US-001'), 'approved-partial');
    assert.match(plan.read('prds/01-story.md'), /- \[x\] 1\.[\s\S]*- \[ \] 2\./);
    assert.equal(plan.state.story('US-001')?.status, 'ready');
    plan.record('US-001.a2.coder', [writes('test/sub.test.js', subTest())]);
    plan.record('US-001.a2.reviewer', [approves('Now tested.', [1, 2])]);
    assert.equal(await plan.attempt('US-001'), 'approved');
    const trailers =
      '--format=%(trailers:key=Telos-Story,valueonly)%(trailers:key=Telos-Part,valueonly)%(trailers:key=Telos-Item,valueonly)';
    assert.equal(
      plan.shell('git', 'log', trailers, `${plan.base}..telos/shop`).replace(/\s+/g, ' '),
      'US-001 2 US-001 1',
    );
  });

  it('denies what makes the checks weaker, and runs no script that was changed', async () => {
    await make([{ ...two, checks: [{ name: 'unit', command: 'npm test' }] }]);
    const script = JSON.stringify({ name: 'shop', type: 'module', scripts: { test: 'touch ran-it; true' } });
    plan.record('US-001.a1.coder', [[...good, writes('package.json', script)]]);
    plan.human({
      approve: async ({ rule }) =>
        rule === 'workflow.tamper' ? { allow: false, reason: 'no' } : { allow: true, scope: 'once' },
      ask: async () => [],
    });
    assert.equal(await plan.attempt('US-001'), 'denied');
    assert.match(details(), /package\.json: The script "test" is now "touch ran-it; true"/);
    assert.equal(plan.events('check_ended').length, 0);
    assert.equal(plan.last('tamper')?.decision, 'denied');
    const weak = readFileSync(join(plan.repo, 'test/add.test.js'), 'utf8').replace(
      "test('adds'",
      "test.skip('adds'",
    );
    const restored = writes('package.json', script.replace('touch ran-it; true', 'node --test'));
    plan.record('US-001.a2.coder', [[restored, writes('test/add.test.js', weak)]]);
    assert.equal(await plan.attempt('US-001'), 'denied');
    assert.match(details(), /test\/add\.test\.js: It leaves tests out now/);
    assert.equal(plan.events('check_ended').length, 1);
    assert.equal(plan.events('verdict').length, 0);
  });

  it('lets a criterion or the person allow a change of what checks the work', async () => {
    const items = [{ number: 1, text: 'Remove test/add.test.js, as add is gone', ticked: false }];
    await make([
      { items, checks: [{ name: 'ok', command: 'ls src' }] },
      { checks: [{ name: 'ok', command: 'ls src' }] },
    ]);
    const removes: RecordedCall = ['run_command', { command: 'rm test/add.test.js' }];
    plan.human({ ...allowAll, isAway: false });
    plan.record('US-001.a1.coder', [removes]);
    plan.record('US-001.a1.reviewer', [approves()]);
    assert.equal(await plan.attempt('US-001'), 'approved');
    assert.equal(plan.last('tamper')?.decision, 'justified');
    const asked: string[] = [];
    plan.human({
      approve: async ({ rule, subject }) => {
        asked.push(`${rule} ${subject}`);
        return { allow: true, scope: 'once' };
      },
      ask: async () => [],
    });
    plan.record('US-002.a1.coder', [
      writes('test/other.test.js', "import test from 'node:test';\ntest.only('a', () => {});\n"),
    ]);
    plan.record('US-002.a1.reviewer', [approves()]);
    assert.equal(await plan.attempt('US-002'), 'approved');
    assert.equal(plan.last('tamper')?.decision, 'allowed_by_person');
    assert.match(asked.join('\n'), /workflow\.tamper test\/other\.test\.js: It leaves tests out now/);
  });

  it('runs checks on the tree alone, without files that git ignores', async () => {
    const check = { name: 'built', command: 'test -f out/built.txt' };
    await make([{ checks: [check] }]);
    plan.record('US-001.a1.coder', [
      [writes('out/built.txt', 'by hand'), writes('src/x.js', 'export const x = 1;\n')],
    ]);
    assert.equal(await plan.attempt('US-001'), 'denied');
    assert.match(details(), /The check "built" failed/);
  });

  it('wants a check that is to be red to fail without the work', async () => {
    const red = { name: 'sub', command: 'node test/sub.test.js', red: true };
    await make([{ checks: [red] }, { checks: [{ name: 'ok', command: 'true', red: true }] }]);
    plan.record('US-001.a1.coder', [good]);
    plan.record('US-001.a1.reviewer', [approves()]);
    assert.equal(await plan.attempt('US-001'), 'approved');
    plan.record('US-002.a1.coder', [writes('src/x.js', 'export const x = 1;\n')]);
    assert.equal(await plan.attempt('US-002'), 'denied');
    assert.match(details(), /"ok" passes without this work too/);
  });

  it('writes no file of the plan and no commit for a coder that tries', async () => {
    await make([two]);
    const prd = join(plan.folder.dir, 'prds/01-story.md');
    const before = plan.shell('git', 'rev-parse', 'HEAD');
    plan.human({ ...allowAll, isAway: false });
    plan.record('US-001.a1.coder', [
      [
        ...good,
        writes(prd, '- [x] 1. done'),
        writes('.telos/plans/shop/prd.json', '{"passes":true}'),
        ['run_command', { command: `sed -i 's/\\[ \\]/[x]/' ${prd}` }],
        ['run_command', { command: `sh -c "echo x > '${prd}'"` }],
        ['run_command', { command: 'git commit -qam mine' }],
        ['run_command', { command: `git -C ${plan.repo} reset --hard` }],
        ['run_command', { command: `GIT_DIR=${plan.repo}/.git git commit --allow-empty -m x` }],
        ['run_command', { command: `rm -rf ${plan.repo}/src` }],
        ['run_command', { command: 'mkdir .telos && touch .telos/x' }],
        ['approve', { summary: 'x' }],
        ['summarize', {}],
      ],
    ]);
    plan.record('US-001.a1.reviewer', [
      [writes('src/reviewer.js', 'x'), ['run_command', { command: 'touch reviewer.txt' }]],
      denies('not yet'),
    ]);
    const prdText = readFileSync(prd, 'utf8');
    assert.equal(await plan.attempt('US-001'), 'denied');
    assert.equal(readFileSync(prd, 'utf8'), prdText);
    assert.equal(plan.shell('git', 'rev-parse', 'HEAD'), before);
    assert.ok(existsSync(join(plan.repo, 'src/add.js')));
    const { commit } = plan.last('snapshot')!;
    const files = plan.shell('git', 'diff', '--name-only', plan.base, commit).split('\n');
    assert.deepEqual(files, ['src/sub.js', 'test/sub.test.js']);
  });

  it('checks once more on what others have put on the branch meanwhile', async () => {
    // Each is green by itself, and both are red together.
    const checks = [{ name: 'apart', command: 'ls src/sub.js src/none.js | grep -c . | grep -qx 1' }];
    await make([{ checks }, { checks }]);
    plan.record('US-001.a1.coder', [good]);
    plan.record('US-001.a1.reviewer', [approves()]);
    plan.record('US-002.a1.coder', [writes('src/none.js', 'export const none = true;\n')]);
    plan.record('US-002.a1.reviewer', [approves()]);
    const results = await Promise.all([
      plan.attempts.run(
        { story: plan.state.story('US-001')!, attempt: 1, slot: 0 },
        new AbortController().signal,
      ),
      plan.attempts.run(
        { story: plan.state.story('US-002')!, attempt: 1, slot: 1 },
        new AbortController().signal,
      ),
    ]);
    assert.equal(results.length, 2);
    await plan.project();
    assert.deepEqual(
      plan
        .events('attempt_ended')
        .map(({ status }) => status)
        .sort(),
      ['approved', 'denied'],
    );
    assert.match(
      plan.events('attempt_ended').find(({ status }) => status === 'denied')?.details ?? '',
      /together with what has passed meanwhile/,
    );
    assert.equal(plan.shell('git', 'rev-list', '--count', `${plan.base}..telos/shop`), '1');
  });

  it('has a conflict brought together in the same attempt, and passes what comes of it', async () => {
    const checks = [{ name: 'ok', command: "grep -q '^export const add' src/add.js" }];
    await make([{ checks }, { checks }]);
    plan.record('US-001.a1.coder', [writes('src/add.js', 'export const add = (a, b) => b + a;\n')]);
    plan.record('US-001.a1.reviewer', [approves()]);
    plan.record('US-002.a1.coder', [
      writes('src/add.js', 'export const add = (...all) => all[0] + all[1];\n'),
    ]);
    plan.record('US-002.a1.reviewer', [approves()]);
    const seen: string[] = [];
    plan.with({
      onEvent: (step, _story, event) => {
        if (event.type === 'run_start') seen.push(`${step}: ${event.text}`);
        if (event.type === 'tool_end' && step.endsWith('conflict')) seen.push(event.result.content);
      },
    });
    const resolved = [
      [['read_file', { path: 'src/add.js' }]],
      [writes('src/add.js', 'export const add = (...all) => all[1] + all[0];\n')],
    ] as const;
    for (const id of ['US-001', 'US-002']) plan.record(`${id}.a1.conflict`, resolved as never);
    await Promise.all(
      ['US-001', 'US-002'].map((id, slot) =>
        plan.attempts.run({ story: plan.state.story(id)!, attempt: 1, slot }, new AbortController().signal),
      ),
    );
    await plan.project();
    assert.deepEqual(
      plan
        .events('attempt_ended')
        .map(({ status }) => status)
        .sort(),
      ['approved', 'approved', 'conflict'],
    );
    assert.match(plan.onBranch('src/add.js') ?? '', /all\[1\] \+ all\[0\]/);
    assert.match(seen.join('\n'), /<<<<<<<[\s\S]*=======[\s\S]*>>>>>>>/);
    assert.deepEqual(
      plan.state.stories.map(({ status }) => status),
      ['passed', 'passed'],
    );
    assert.equal(plan.events('verdict').length, 3);
    assert.equal(plan.shell('git', 'fsck', '--no-dangling'), '');
  });

  it('denies a conflict whose marks are left', async () => {
    const checks = [{ name: 'ok', command: 'true' }];
    await make([{ checks }]);
    plan.record('US-001.a1.coder', [writes('src/add.js', 'export const add = 1;\n')]);
    plan.record('US-001.a1.reviewer', [approves()]);
    plan.record('US-001.a1.conflict', [writes('other.txt', 'nothing')]);
    plan.with({
      onEvent: (step, _story, event) => {
        if (step !== 'US-001.a1.reviewer' || event.type !== 'run_start') return;
        // Somebody else moves the branch.
        const blob = plan.shell('sh', '-c', 'echo "export const add = 2;" | git hash-object -w --stdin');
        const index = join(plan.root.path, 'index');
        plan.shell(
          'sh',
          '-c',
          `export GIT_INDEX_FILE=${index}; git read-tree ${plan.base} && git update-index --cacheinfo 100644,${blob},src/add.js && git update-ref refs/heads/telos/shop $(git commit-tree $(git write-tree) -p ${plan.base} -m other)`,
        );
      },
    });
    assert.equal(await plan.attempt('US-001'), 'denied');
    assert.match(details(), /Marks of the conflict are still in src\/add\.js/);
    assert.equal(plan.state.story('US-001')?.isAlone, true);
  });

  it('keeps the work of a step that is stopped, and charges nothing', async () => {
    await make([two]);
    plan.record('US-001.a1.coder', [
      [writes('src/half.js', 'half'), ['run_command', { command: 'node -e 0; sleep 60' }]],
    ]);
    plan.human({ ...allowAll, isAway: false });
    const control = new AbortController();
    plan.with({
      onEvent: (_step, _story, event) => {
        if (event.type === 'tool_start' && event.call.name === 'run_command')
          setTimeout(() => control.abort(), 300);
      },
    });
    plan.restart();
    assert.equal(await plan.attempt('US-001', {}, control.signal), 'interrupted');
    assert.match(plan.read('attempts/US-001.a1.patch'), /\+half/);
    assert.equal(plan.state.story('US-001')?.charged, 0);
    assert.equal(plan.state.story('US-001')?.status, 'ready');
  });

  it('goes on from what a runner before had come to, and asks for nothing twice', async () => {
    await make([two]);
    plan.record('US-001.a1.coder', [good]);
    plan.record('US-001.a1.reviewer', [approves('Fine.')]);
    // The runner dies before its next line, at each line in turn.
    const append = plan.journal.append.bind(plan.journal);
    const asked: string[] = [];
    plan.with({ onEvent: (step, _story, event) => void (event.type === 'run_start' && asked.push(step)) });
    for (const stop of ['snapshot', 'check_ended', 'verdict', 'story_passed'] as const) {
      const dying = {
        lines: plan.journal.lines,
        append: async (event: Parameters<typeof append>[0]) => {
          if (event.type === stop || dead) throw new Error('killed');
          return append(event);
        },
      };
      let dead = false;
      const journal = new Proxy(dying, {
        get: (target, name) =>
          name === 'lines'
            ? plan.journal.lines
            : async (event: Parameters<typeof append>[0]) => {
                try {
                  return await target.append(event);
                } catch (error) {
                  dead = true;
                  throw error;
                }
              },
      });
      plan.with({ journal });
      plan.restart();
      await assert.rejects(plan.attempt('US-001'), /killed/, stop);
    }
    plan.with({ journal: plan.journal });
    plan.restart();
    assert.equal(await plan.attempt('US-001'), 'approved');
    assert.equal(asked.filter(step => step.endsWith('coder')).length, 1);
    assert.ok(asked.filter(step => step.endsWith('reviewer')).length <= 2);
    const ids = plan.shell(
      'git',
      'log',
      '--format=%(trailers:key=Telos-Story,valueonly)',
      `${plan.base}..telos/shop`,
    );
    assert.deepEqual(ids.split('\n').filter(Boolean), ['US-001']);
  });

  it('writes what was learned behind the story, in the same move of the branch', async () => {
    await make([{}, {}], {}, { 'AGENTS.md': '# Ours\n\nUse tabs.\n' });
    plan.record('US-001.a1.coder', [[...good, ['learn', { note: 'Tests run with npm test.' }]]]);
    plan.record('US-001.a1.reviewer', [approves()]);
    assert.equal(await plan.attempt('US-001'), 'approved');
    assert.equal(
      plan.onBranch('AGENTS.md'),
      '# Ours\n\nUse tabs.\n\n## Learned while building\n\n- Tests run with npm test.',
    );
    assert.equal(
      plan
        .shell('git', 'log', '-1', '--format=%(trailers:key=Telos-Learnings,valueonly)', 'telos/shop')
        .trim(),
      'US-001',
    );
    assert.equal(plan.shell('git', 'rev-parse', 'telos/shop~1^{tree}'), plan.last('verdict')?.tree);
    plan.record('US-002.a1.coder', [
      [writes('src/x.js', 'export const x = 1;\n'), ['learn', { note: 'tests run with NPM test' }]],
    ]);
    plan.record('US-002.a1.reviewer', [approves()]);
    assert.equal(await plan.attempt('US-002'), 'approved');
    assert.equal(plan.shell('git', 'rev-list', '--count', `${plan.base}..telos/shop`), '3');
  });

  it('lets a question wait if nobody is there, and gives its answer to the next attempt', async () => {
    await make([two]);
    plan.record('US-001.a1.coder', [
      [...good, ['ask_person', { question: 'Which currency?', choices: ['EUR', 'USD'] }]],
    ]);
    assert.equal(await plan.attempt('US-001'), 'interrupted');
    assert.equal(plan.state.story('US-001')?.status, 'needs_you');
    const [question] = plan.state.questions;
    assert.deepEqual(
      [question?.text, question?.story, question?.choices],
      ['Which currency?', 'US-001', ['EUR', 'USD']],
    );
    await plan.journal.append({ type: 'question_answered', id: question!.id, text: 'EUR', by: 'cli' });
    await plan.journal.append({
      type: 'steered',
      command: { kind: 'tell', text: 'Keep it small.' },
      by: 'cli',
    });
    const words: string[] = [];
    plan.with({
      onEvent: (step, _story, event) =>
        void (event.type === 'run_start' && step.endsWith('coder') && words.push(event.text)),
    });
    plan.restart();
    plan.record('US-001.a2.coder', [good]);
    plan.record('US-001.a2.reviewer', [approves()]);
    assert.equal(await plan.attempt('US-001'), 'approved');
    assert.match(words[0] ?? '', /The person says[\s\S]*Which currency\? EUR[\s\S]*Keep it small\./);
  });

  it('runs the commands of a coder in the box, and keeps nothing that others would obey', async function () {
    await make([{ checks: [{ name: 'ok', command: 'test -f made.txt' }] }]);
    const [outside, planted] = [join(plan.root.path, 'outside'), '.vscode/tasks.json'];
    const tries = [
      'echo made > made.txt',
      `mkdir -p .vscode && echo '{}' > ${planted}`,
      `node -e "try { fs.writeFileSync('${outside}', '') } catch {}"`,
      // What describes a build is a worker's to change; what packages run is not.
      "node -e \"fs.appendFileSync('package.json', '\\n')\"",
      'mkdir -p node_modules/.bin && echo x > node_modules/.bin/tool',
    ];
    plan.record('US-001.a1.coder', [
      tries.map((command): RecordedCall => ['run_command', { command: `${command}; exit 0` }]),
    ]);
    plan.record('US-001.a1.reviewer', [approves()]);
    const told: string[] = [];
    plan.with({ onEvent: (_step, _story, event) => void told.push(JSON.stringify(event)) });
    const { env } = plan.config;
    if (!(await findBox({ env })).works) {
      assert.equal(await plan.attempt('US-001'), 'interrupted');
      assert.match(plan.state.questions[0]?.text ?? '', /^May US-001 use run_command for this\?/);
      return skipBecause(this, 'no sandbox works here');
    }
    const asked: string[] = [];
    plan.human({
      ...allowAll,
      approve: async ({ tool, subject }) => {
        asked.push(`${tool} ${subject}`);
        return { allow: false, reason: 'No.' };
      },
    });
    assert.equal(await plan.attempt('US-001'), 'approved');
    assert.equal(existsSync(outside), false);
    const { commit } = plan.last('snapshot')!;
    const files = plan.shell('git', 'diff', '--name-only', plan.base, commit).split('\n');
    assert.deepEqual(files, ['made.txt', 'package.json']);
    assert.match(told.join('\n'), /What the command did to \.vscode.*? was not kept/);
    assert.match(told.join('\n'), /What the command did to node_modules.*? was not kept/);
    assert.deepEqual(asked, [`keep_changes ${planted}`, 'keep_changes node_modules/.bin/tool']);
  });

  it('lets an approval wait if nobody is there, and uses the answer once it is given', async () => {
    await make([{ checks: [{ name: 'ok', command: 'test -f made.txt' }] }]);
    const build: RecordedCall = [
      'run_command',
      { command: 'node -e "0" && echo made > made.txt', outside_box: true, why: 'It is a test.' },
    ];
    plan.record('US-001.a1.coder', [build]);
    assert.equal(await plan.attempt('US-001'), 'interrupted');
    const [question] = plan.state.questions;
    assert.match(
      question?.text ?? '',
      /May US-001 use run_command for this\? node -e "0" && echo made > made\.txt/,
    );
    await plan.journal.append({ type: 'question_answered', id: question!.id, text: 'yes', by: 'cli' });
    plan.record('US-001.a2.coder', [build]);
    plan.record('US-001.a2.reviewer', [approves()]);
    assert.equal(await plan.attempt('US-001'), 'approved');
  });

  it('asks the person when the same denial comes back', async () => {
    await make([two]);
    for (const attempt of [1, 2, 3]) {
      plan.record(`US-001.a${attempt}.coder`, [[...good, writes('src/more.js', `// ${attempt}\n`)]]);
      plan.record(`US-001.a${attempt}.reviewer`, [denies('The name is wrong.')]);
      assert.equal(await plan.attempt('US-001'), 'denied');
    }
    assert.match(plan.state.questions[0]?.text ?? '', /denied 3 times for the same reason/);
    assert.equal(plan.state.story('US-001')?.status, 'needs_you');
  });

  it('ends the plan for what no further attempt makes better', async () => {
    await make([two]);
    await assert.rejects(plan.attempt('US-001'), /US-001\.a1\.coder\.jsonl could not be read/);
    assert.equal(plan.last('attempt_ended')?.status, 'interrupted');
    assert.equal(plan.state.story('US-001')?.charged, 0);
  });

  it('makes a slot ready before the work, and again when a lock file changed', async () => {
    await make(
      [{ checks: [{ name: 'ok', command: 'test -f ready/log.txt && cat ready/log.txt' }] }],
      {
        setup: ['mkdir -p ready && echo ready >> ready/log.txt'],
        slot: { copy: [], link: [], keep: ['ready'], ports: 10 },
      },
      { '.gitignore': 'ready/\n', 'package-lock.json': '{}' },
    );
    plan.record('US-001.a1.coder', [writes('src/x.js', 'export const x = 1;\n')]);
    plan.record('US-001.a1.reviewer', [denies('no')]);
    assert.equal(await plan.attempt('US-001'), 'denied');
    assert.equal(plan.last('check_ended')?.output, 'ready');
    plan.human({ ...allowAll, isAway: false });
    plan.record('US-001.a2.coder', [writes('package-lock.json', '{"a":1}')]);
    plan.record('US-001.a2.reviewer', [denies('no')]);
    assert.equal(await plan.attempt('US-001'), 'denied');
    assert.equal(plan.last('check_ended')?.output, 'ready\nready');
    const failing = await PlanRepo.make([{}], { setup: ['echo broken; exit 4'] });
    try {
      await assert.rejects(
        failing.attempt('US-001'),
        /exit code 4 while the worktree was set up[\s\S]*broken/,
      );
    } finally {
      await failing.remove();
    }
  });

  it('runs no setup that a coder has changed, and no scripts of packages that its work brings', async () => {
    const marks = tempFolder();
    const shows =
      'echo "set up, ignoring: $npm_config_ignore_scripts $YARN_IGNORE_SCRIPTS $YARN_ENABLE_SCRIPTS"';
    await make(
      Array(6).fill({ checks: [{ name: 'ok', command: 'cat out/setup.txt' }] }),
      {
        setup: [
          `sh setup.sh; mkdir -p out; ${shows} > out/setup.txt`,
          'cd tools && sh more.sh',
          'npm ci --offline',
        ],
        slot: { copy: [], link: [], keep: ['out'], ports: 10 },
      },
      {
        'package-lock.json': '{"name":"shop","lockfileVersion":3,"packages":{}}',
        'setup.sh': '. ./tools/part.sh\n',
        'tools/part.sh': ':\n',
        'tools/more.sh': ':\n',
        'package.json': '{"name":"shop","type":"module"}',
      },
    );
    plan.human({ ...allowAll, isAway: true });
    const lock = writes('package-lock.json', '{"name":"shop","lockfileVersion":3,"packages":{}} ');
    const mark = `touch ${marks.path}/ran`;
    const scripts = { postinstall: mark };
    let count = 0;
    for (const [path, content, why] of [
      ['setup.sh', mark, /setup\.sh: The setup runs or obeys it, and it was changed/],
      ['tools/part.sh', mark, /tools\/part\.sh: The setup runs or obeys it/],
      ['tools/more.sh', mark, /tools\/more\.sh: The setup runs or obeys it/],
      ['.npmrc', 'ignore-scripts=false\n', /\.npmrc: The setup runs or obeys it, and it was added/],
      [
        'package.json',
        JSON.stringify({ name: 'shop', type: 'module', scripts }),
        /package\.json: .*"postinstall".*; there was none/,
      ],
    ] as const) {
      const story = `US-00${++count}`;
      plan.record(`${story}.a1.coder`, [[writes(path, content), lock]]);
      assert.equal(await plan.attempt(story), 'denied', path);
      assert.match(details(), why);
      assert.equal(plan.last('tamper')?.decision, 'denied');
      assert.deepEqual(readdirSync(marks.path), [], path);
    }
    assert.equal(plan.events('check_ended').length, 0);
    plan.record('US-006.a1.coder', [lock]);
    plan.record('US-006.a1.reviewer', [denies('no')]);
    assert.equal(await plan.attempt('US-006'), 'denied');
    assert.equal(plan.last('check_ended')?.output, 'set up, ignoring: true true false');
    marks.remove();
  });

  it('installs anew in place of packages that a check has run among, and keeps what else a slot keeps', async () => {
    const plants = 'mkdir -p app/node_modules; echo planted > app/node_modules/tool; echo x >> ready/log.txt';
    await make(
      [{ checks: [{ name: 'ok', command: `cat ready/log.txt; ${plants}` }] }],
      {
        setup: ['mkdir -p ready; cat app/node_modules/tool >> ready/log.txt; echo set up >> ready/log.txt'],
        slot: { copy: [], link: [], keep: ['ready', 'node_modules'], ports: 10 },
      },
      { '.gitignore': 'ready/\nnode_modules/\n', 'package-lock.json': '{}' },
    );
    plan.human({ ...allowAll, isAway: false });
    plan.record('US-001.a1.coder', [writes('src/x.js', 'export const x = 1;\n')]);
    plan.record('US-001.a1.reviewer', [denies('no')]);
    await plan.attempt('US-001');
    plan.record('US-001.a2.coder', [writes('package-lock.json', '{"a":1}')]);
    plan.record('US-001.a2.reviewer', [denies('no')]);
    await plan.attempt('US-001');
    assert.equal(plan.last('check_ended')?.output, 'set up\nx\nset up');
  });

  it('leaves a person’s files alone when their branch of the plan is checked out', async () => {
    await make([two]);
    plan.record('US-001.a1.coder', [good]);
    plan.record('US-001.a1.reviewer', [approves()]);
    plan.shell('git', 'checkout', '-qb', 'telos/shop');
    writeFileSync(join(plan.repo, 'mine.txt'), 'mine');
    await assert.rejects(plan.attempt('US-001'), /is checked out in .*Switch to another branch there/);
    assert.equal(plan.shell('git', 'rev-parse', 'telos/shop'), plan.base);
    assert.ok(readdirSync(plan.repo).includes('mine.txt'));
  });
});
