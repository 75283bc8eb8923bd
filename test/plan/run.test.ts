/** Runs plans through the command line, as a person at a terminal or a script would, against a model that is scripted by step. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../eventually.ts';
import type { AnthropicTurn } from '../fakes/anthropicServer.ts';
import {
  agreeable,
  approves,
  calls,
  denies,
  nodeTests,
  once,
  type PlanWorld,
  passed,
  planWorld,
  runs,
  type StepModel,
  type StoryText,
  statuses,
  writes,
} from './planWorld.ts';

const passingTest = "import { test } from 'node:test';\ntest('is fine', () => {});\n";
const brokenTest =
  "import { test } from 'node:test';\ntest('is broken', () => { throw new Error('broken'); });\n";

const removal = 'rm test/order.test.js';

describe('telos plan run', function () {
  this.timeout(120_000);
  let world: PlanWorld | undefined;
  afterEach(() => world?.close().then(() => (world = undefined)));

  const open = async (stories: readonly StoryText[], model: StepModel): Promise<PlanWorld> => {
    world = await planWorld(stories, model);
    return world;
  };
  const one: StoryText = { id: 'US-001', title: 'Hours', touches: ['src/hours.js'] };
  const tested: StoryText = { ...one, checks: nodeTests };

  it('passes a story by one commit with its trailers, and leaves the checkout as it is', async () => {
    const here = await open([tested], {
      ...agreeable,
      coder: once(writes({ 'src/hours.js': 'export const open = 7;\n' })),
    });
    writeFileSync(join(here.repo, 'own notes.txt'), 'mine');
    const before = here.checkout();
    const { code, stderr } = await here.plan('run', 'site');
    assert.equal(code, 0, stderr);
    assert.equal(here.checkout(), before);
    assert.deepEqual(passed(here), ['US-001']);
    assert.match(here.file('prds/01-story.md'), /- \[x\] 1\. It is there/);
    const ids = here.git('log', '--format=%(trailers:key=Telos-Story,valueonly)', 'main..telos/site').trim();
    assert.equal(ids, 'US-001');
    assert.equal(here.git('show', 'telos/site:src/hours.js'), 'export const open = 7;\n');
    assert.equal(here.git('show', 'telos/site', '--stat').includes('own notes'), false);
  });

  it('sends no thought of a coder whose past has changed, however much it has read', async () => {
    let page = 0;
    const here = await open([one], {
      ...agreeable,
      coder: (_turn, _attempt, { body }) => {
        page++;
        const usage = { input_tokens: Math.ceil(JSON.stringify(body).length / 4) };
        const thinks = { thinking: [{ thinking: 'let me see', signature: `seal-${page}` }], usage };
        if (page <= 14) return { ...calls('read_file', { path: `pages/${page}.txt` }), ...thinks };
        return { ...(page === 15 ? writes({ 'src/hours.js': '7\n' }) : { text: ['Done.'] }), ...thinks };
      },
    });
    mkdirSync(join(here.repo, 'pages'));
    for (let at = 1; at <= 14; at++)
      writeFileSync(join(here.repo, `pages/${at}.txt`), `begin p${at} ${'rain and wind '.repeat(1_400)}\n`);
    here.git('add', 'pages');
    here.git('commit', '--quiet', '--message', 'Pages');
    const env = {
      ANTHROPIC_API_KEY: 'sk-ant-test-0123456789',
      ANTHROPIC_BASE_URL: here.server.url,
      TELOS_MODEL: 'claude-sonnet-5-5',
      TELOS_CONTEXT_WINDOW: '40000',
    };
    const { code, stderr } = await here.home.run(['plan', 'run', 'site', '--cwd', here.repo], { env });
    assert.equal(code, 0, stderr);
    assert.deepEqual(here.server.refused, []);
    const sent = here.requestsOf('US-001', 'coder').map(({ body }) => JSON.stringify(body.messages));
    const sizes = sent.map(text => text.length);
    assert.ok(sent.some(text => text.includes('"signature":"seal-')));
    assert.ok(
      sizes.some((size, at) => at > 0 && size < sizes[at - 1]!),
      `Nothing was left out: ${sizes}`,
    );
  });

  it('asks for the card before anything runs, and again with what has changed since', async () => {
    const here = await open([one], { ...agreeable, coder: once(writes({ 'src/hours.js': 'x\n' })) });
    const file = join(here.repo, '.telos/plans/site/plan.json');
    const settings = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, JSON.stringify({ ...settings, checks: [{ name: 'lint', command: 'node lint.js' }] }));
    const { code, stderr } = await here.plan('run', 'site');
    assert.equal(code, 3);
    assert.match(stderr, /\+ check lint: node lint\.js/);
    assert.match(stderr, /telos plan approve site --card/);
    assert.equal(here.server.requests.length, 0);
  });

  it('runs nothing before the plan is approved, and says what comes first', async () => {
    const here = await open([], {});
    await here.plan('new', 'A better bakery', '--name', 'site', '--no-more-questions');
    const { code, stderr } = await here.plan('run', 'site');
    assert.equal(code, 3);
    assert.match(stderr, /telos plan approve site/);
    assert.equal(here.server.requests.length, 0);
    assert.equal(here.git('status', '--porcelain', '--', ':!.telos').trim(), '');
  });

  it('does not believe a coder who says that it is done and has changed nothing', async () => {
    const here = await open([one], { ...agreeable, coder: () => ({ text: ['All done!'] }) });
    const { code } = await here.plan('run', 'site');
    assert.equal(code, 3);
    assert.deepEqual(statuses(here), ['no-change', 'no-change']);
    assert.deepEqual(passed(here), []);
  });

  it('denies work whose check fails without asking a reviewer, whatever that would say', async () => {
    const here = await open([tested], {
      ...agreeable,
      coder: (turn, attempt) =>
        turn > 0
          ? { text: ['Done.'] }
          : writes({
              'test/hours.test.js': attempt === 1 ? brokenTest : passingTest,
              'src/hours.js': `${attempt}\n`,
            }),
    });
    const { code, stderr } = await here.plan('run', 'site');
    assert.equal(code, 0, stderr);
    assert.deepEqual(statuses(here), ['denied', 'approved']);
    assert.equal(
      new Set(here.requestsOf('US-001', 'reviewer').map(({ body }) => body.messages.length)).size > 0,
      true,
    );
    const [firstReview] = here
      .journal()
      .filter(({ type, step }) => type === 'step_started' && step === 'reviewer');
    assert.match(String(firstReview?.['key']), /a2\.reviewer/);
    const second = JSON.stringify(
      here
        .requestsOf('US-001', 'coder')
        .map(({ body }) => body.messages[0])
        .at(-1),
    );
    assert.match(second, /broken/);
  });

  for (const [way, turn] of [
    ['empties', writes({ 'test/order.test.js': '// no longer needed\n', 'src/hours.js': '7\n' })],
    ['deletes', runs(removal)],
  ] as const)
    it(`denies work that ${way} a test, by its name`, async () => {
      const here = await open([tested], { ...agreeable, coder: once(turn) });
      const rule = `[[allow]]\nagent = "*"\ntool = "run_command"\ncommand = "${removal}"\n`;
      here.home.folder.add({ 'config/policy.toml': rule });
      await here.plan('run', 'site', '--unattended');
      const found = here.journal().filter(({ type }) => type === 'tamper');
      assert.match(JSON.stringify(found[0]), /order\.test\.js/);
      assert.ok(found.every(({ decision }) => decision === 'denied'));
      assert.deepEqual(passed(here), []);
      assert.deepEqual(here.requestsOf('US-001', 'reviewer'), []);
    });

  it('keeps the files of the plan and the person’s repository from a coder, by tool and by shell', async () => {
    const tries: AnthropicTurn[] = [
      writes({ '.telos/plans/site/prd.json': '{}' }),
      runs('mkdir -p .telos/plans/site && echo "- [x] 1. It is there" > .telos/plans/site/prds/01-story.md'),
      runs('git -C ../../../../../../work/bakery reset --hard'),
      runs('GIT_DIR=/tmp/elsewhere/.git git commit -m x'),
      runs('git commit --allow-empty -m mine'),
    ];
    const here = await open([one], { ...agreeable, coder: turn => tries[turn] ?? { text: ['Done.'] } });
    const before = here.checkout();
    await here.plan('run', 'site');
    assert.equal(here.checkout(), before);
    const answers = JSON.stringify(here.requestsOf('US-001', 'coder').at(-1)?.body.messages);
    const count = (rule: RegExp): number => answers.match(rule)?.length ?? 0;
    assert.ok(count(/workflow\.plan-files/g) >= 2, answers);
    assert.ok(count(/workflow\.git/g) >= 3, answers);
    assert.ok(!here.journal().some(({ type }) => type === 'snapshot'));
    assert.deepEqual(passed(here), []);
    assert.doesNotMatch(here.file('prds/01-story.md'), /\[x\]/);
  });

  it('passes nothing on which a reviewer is silent, and gives a coder no tools of verdicts or of the context', async () => {
    const here = await open([one], {
      coder: turn =>
        [writes({ 'src/hours.js': '7\n' }), approves(), calls('summarize', {})][turn] ?? { text: ['Done.'] },
      reviewer: () => ({ text: ['Looks good to me!'] }),
    });
    const { code } = await here.plan('run', 'site', '--unattended');
    assert.notEqual(code, 0);
    assert.ok(
      statuses(here).every(status => status === 'no-verdict'),
      String(statuses(here)),
    );
    const answers = JSON.stringify(here.requestsOf('US-001', 'coder').at(-1)?.body.messages);
    assert.match(answers, /Unknown tool: approve/);
    assert.match(answers, /Unknown tool: summarize/);
    assert.deepEqual(passed(here), []);
  });

  it('goes on after its runner was killed while a coder worked, and doubles nothing', async () => {
    let isSlow = true;
    const slow: AnthropicTurn = { text: ['Wait.'], stallMs: 60_000 };
    const here = await open([one, { id: 'US-002', touches: ['src/a.js'] }], {
      ...agreeable,
      'US-001 coder': once(writes({ 'src/hours.js': '7\n' })),
      'US-002 coder': turn =>
        isSlow ? slow : turn === 0 ? writes({ 'src/a.js': '1\n' }) : { text: ['Done.'] },
    });
    const before = here.checkout();
    const running = here.start('run', 'site');
    await eventually(() => assert.ok(here.requestsOf('US-002', 'coder').length > 0), 60_000);
    running.child.kill('SIGKILL');
    await running.result;
    isSlow = false;
    const { code, stderr } = await here.plan('run', 'site');
    assert.equal(code, 0, stderr);
    assert.equal(here.checkout(), before);
    const ids = here
      .git('log', '--format=%(trailers:key=Telos-Story,valueonly)', 'main..telos/site')
      .trim()
      .split(/\n+/);
    assert.deepEqual(ids.sort(), ['US-001', 'US-002']);
    assert.equal(
      here.journal().filter(({ type, key }) => type === 'step_started' && key === 'US-001.a1.coder').length,
      1,
    );
  });

  it('begins on a red base only after a yes', async () => {
    const checks = { lint: 'node missing.js' };
    const here = await open(
      [
        { ...one, checks },
        { id: 'US-002', checks },
      ],
      agreeable,
    );
    const { code, stderr } = await here.plan('run', 'site', '--unattended');
    assert.equal(code, 3);
    assert.match(stderr, /lint fails on the base/);
    assert.equal(here.server.requests.length, 0);
  });

  it('opens a story again whose box a person unticks, and keeps the person’s words', async () => {
    const here = await open([one], {
      ...agreeable,
      coder: (turn, attempt) =>
        turn === 0 ? writes({ 'src/hours.js': `${attempt}\n` }) : { text: ['Done.'] },
    });
    await here.plan('run', 'site');
    const file = join(here.repo, '.telos/plans/site/prds/01-story.md');
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replace('- [x] 1. It is there', '- [ ] 1. It is there, and on Sundays too'),
    );
    const { code, stderr } = await here.plan('run', 'site');
    assert.equal(code, 0, stderr);
    assert.ok(here.journal().some(({ type }) => type === 'story_reopened'));
    assert.match(here.file('prds/01-story.md'), /- \[x\] 1\. It is there, and on Sundays too/);
  });

  it('tries a failed story once more with --retry alone, and refuses a story that is not there', async () => {
    let isFixed = false;
    const here = await open([one], {
      coder: (turn, attempt) =>
        turn === 0 ? writes({ 'src/hours.js': `${isFixed} ${attempt}\n` }) : { text: ['Done.'] },
      reviewer: (turn, attempt) =>
        turn > 0 ? { text: ['.'] } : isFixed ? approves() : denies('abcdefg'.slice(0, attempt)),
    });
    const first = await here.plan('run', 'site', '--unattended');
    assert.equal(first.code, 1, first.stderr);
    isFixed = true;
    assert.equal((await here.plan('run', 'site', '--unattended')).code, 1);
    assert.equal((await here.plan('skip', 'US-009')).code, 1);
    const again = await here.plan('run', 'site', '--unattended', '--retry');
    assert.equal(again.code, 0, again.stderr);
    assert.deepEqual(passed(here), ['US-001']);
  });

  it('names the next story at each step as a selection of prd.json does', async () => {
    const ids = ['US-001', 'US-002', 'US-003'];
    const here = await open(
      ids.map((id, at) => ({
        id,
        touches: [`src/${id}.js`],
        ...(at > 0 && { dependsOn: [ids[at - 1] ?? ''] }),
      })),
      {
        ...agreeable,
        ...Object.fromEntries(ids.map(id => [`${id} coder`, once(writes({ [`src/${id}.js`]: '7\n' }))])),
      },
    );
    const byFile = (): string | null =>
      JSON.parse(here.file('prd.json'))
        .userStories.filter(({ passes }: { passes: boolean }) => !passes)
        .sort((a: { priority: number }, b: { priority: number }) => a.priority - b.priority)[0]?.id ?? null;
    const seen: unknown[] = [];
    for (const id of ids) {
      await here.plan('run', 'site', '--only', id);
      seen.push(JSON.parse((await here.plan('next', 'site', '--json')).stdout));
      assert.equal(seen.at(-1), byFile());
    }
    assert.deepEqual(seen, ['US-002', 'US-003', null]);
  });

  it('merges beside files that are not committed, unless the plan changes them too', async () => {
    const here = await open([one], { ...agreeable, coder: once(writes({ 'src/hours.js': '7\n' })) });
    await here.plan('run', 'site');
    mkdirSync(join(here.repo, 'notes'));
    for (const path of ['a.txt', 'b.txt', 'src/hours.js', 'notes/c.txt'])
      writeFileSync(join(here.repo, path), path);
    here.git('add', 'a.txt');
    const refused = await here.plan('finish', 'site', '--merge');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /not committed, and the plan changes them: src\/hours\.js\./);
    rmSync(join(here.repo, 'src/hours.js'));
    const merged = await here.plan('finish', 'site', '--merge');
    assert.equal(merged.code, 0, merged.stderr);
    assert.equal(readFileSync(join(here.repo, 'src/hours.js'), 'utf8'), '7\n');
    assert.equal(here.git('worktree', 'list').trim().split('\n').length, 1);
    assert.match(
      here.git('status', '--porcelain', '--', ':!.telos'),
      /^A {2}a\.txt\n\?\? b\.txt\n\?\? notes\/\n$/,
    );
  });

  it('names the output of a check that fails, the choices of a question, and what shows more', async () => {
    const here = await open(
      [
        { ...one, checks: { there: 'echo looked-for; test -f src/absent.js' } },
        { id: 'US-002', touches: ['src/b.js'] },
      ],
      {
        ...agreeable,
        'US-001 coder': once(writes({ 'src/hours.js': '7\n' })),
        'US-002 coder': once(calls('ask_person', { question: 'Signed?', choices: ['yes', 'no'] })),
      },
    );
    const { code, stderr } = await here.plan('run', 'site', '--unattended');
    assert.equal(code, 3, stderr);
    assert.match(stderr, /Each call of its models, live: telos runs --follow/);
    assert.match(stderr, /Waits for you: Signed\? \(yes \/ no\)\n {2}telos plan answer US-002-/);
    const [, file = ''] = /Its output: (\S+US-001\.a1\.there\.txt)$/m.exec(stderr) ?? [];
    assert.match(readFileSync(file, 'utf8'), /looked-for/);
    const started = here.journal().findLast(({ type }) => type === 'runner_started');
    const put = { type: 'recovered', what: ['Ended a process.'] };
    const more = [put, put, put, started].map((line, at) => ({
      ...line,
      seq: 1000 + at,
      ts: started?.['ts'],
    }));
    await here.rewrite([...here.journal(), ...more]);
    const shown = (await here.plan('show', 'site')).stdout;
    assert.match(shown, /last began:\n {2}Ended a process\. \(3 times\)\n/);
    assert.match(shown, /Signed\? \(yes \/ no\)/);
  });

  it('denies and repairs, with the reviewer’s reason in the next attempt', async () => {
    const here = await open([one], {
      coder: (turn, attempt) =>
        turn === 0 ? writes({ 'src/hours.js': `${attempt}\n` }) : { text: ['Done.'] },
      reviewer: (turn, attempt) =>
        turn > 0 ? { text: ['.'] } : attempt === 1 ? denies('Sundays are missing') : approves(),
    });
    const { code } = await here.plan('run', 'site');
    assert.equal(code, 0);
    assert.match(
      JSON.stringify(here.requestsOf('US-001', 'coder').at(-1)?.body.messages[0]),
      /Sundays are missing/,
    );
    assert.match(here.file('progress.txt'), /denied/);
  });
});
