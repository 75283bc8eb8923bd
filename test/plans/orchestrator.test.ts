/** The long work in a folder without Git, with whole runs of the engine and a model that is written here. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { findBox } from '../../src/engine/box/findBox.ts';
import { loadConfig } from '../../src/engine/config.ts';
import { TelosError } from '../../src/engine/core/errors.ts';
import type { Human } from '../../src/engine/core/ports.ts';
import { allowAll } from '../../src/engine/human.ts';
import { findProgram } from '../../src/engine/tools/programPath.ts';
import { Orchestrator, type OrchestratorOptions } from '../../src/plans/orchestrator.ts';
import { calls, done, type ScriptedTurn, says } from '../fakes/scriptedProvider.ts';
import { type AskedModel, scriptedTelos } from '../fakes/scriptedTelos.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

type Answer = (asked: AskedModel) => ScriptedTurn | Promise<ScriptedTurn>;

const isReviewer = ({ tools }: AskedModel): boolean => tools.includes('approve');
const isCoder = ({ tools }: AskedModel): boolean => tools.includes('write_file');

describe('orchestrator', () => {
  let folder: TempFolder;
  let project: string;
  beforeEach(() => {
    folder = tempFolder({ 'project/.keep': '' });
    project = join(folder.path, 'project');
  });
  afterEach(() => folder.remove());

  const read = (name: string): string => readFileSync(join(project, name), 'utf8');
  const open = (
    answer: Answer,
    options: Partial<OrchestratorOptions> = {},
    more: Record<string, string> = {},
  ) => {
    const env = { PATH: process.env['PATH'] ?? '', OLLAMA_BASE_URL: 'http://127.0.0.1:9/v1', ...more };
    const config = loadConfig({ env, home: folder.path, cwd: project });
    const { telos, asked } = scriptedTelos(config, answer);
    return { asked, orchestrator: new Orchestrator({ projectDir: project, ...options }, async () => telos) };
  };
  const write = (path: string, content: string): ScriptedTurn => [
    calls('w', 'write_file', { path, content }),
    done('tool_use'),
  ];
  const approve = (items?: number[]): ScriptedTurn => [
    calls('v', 'approve', { summary: 'It is there.', ...(items && { items }) }),
    done('tool_use'),
  ];
  const deny = (reason: string): ScriptedTurn => [calls('v', 'deny', { reason }), done('tool_use')];
  const end: ScriptedTurn = [says('That is all.'), done()];

  it('asks, plans, splits, builds and reviews, with the files where the specification has them', async () => {
    const { orchestrator, asked } = open(({ tools, turn, words }) => {
      if (turn > 0) return end;
      if (tools.includes('submit_round'))
        return [
          calls(
            'q',
            'submit_round',
            words.includes('A: four')
              ? { ready: true, questions: [] }
              : { ready: false, questions: ['How many?'] },
          ),
        ];
      if (tools.includes('submit_plan')) return [calls('p', 'submit_plan', { text: '# Plan\nTwo pages.\n' })];
      if (tools.includes('submit_story'))
        return [
          calls('a', 'submit_story', {
            title: 'Home page',
            criteria: ['a.txt is there', 'b.txt is there'],
            checks: [],
          }),
          calls('b', 'submit_story', {
            title: 'Menu & prices!',
            criteria: ['c.txt is there'],
            checks: [],
            depends_on: ['US-001'],
          }),
        ];
      if (isReviewer({ tools } as AskedModel))
        return approve(words.includes('the work on the story US-001') ? [1, 2] : undefined);
      return write(words.includes('Build the story US-001') ? 'a.txt' : 'c.txt', 'made');
    });
    const interview = orchestrator.interview();
    const first = await interview.processRound({ transcript: 'North Star: pages' });
    assert.deepEqual(first, { ready: false, questions: ['How many?'] });
    const second = await interview.processRound({ transcript: 'North Star: pages\nQ: How many?\nA: four' });
    assert.deepEqual(second, { ready: true, questions: [] });
    const result = await orchestrator.planAndExecute(interview.getContext());
    assert.equal(read('plan.md'), '# Plan\nTwo pages.\n');
    assert.deepEqual(readdirSync(join(project, 'prds')).sort(), ['01-home-page.md', '02-menu-prices.md']);
    assert.match(read('prds/01-home-page.md'), /- \[x\] 1\. a\.txt is there\n- \[x\] 2\. b\.txt/);
    assert.deepEqual([result.success, result.iterations, result.error], [true, 2, null]);
    assert.deepEqual(
      result.iterationResults.map(({ status }) => status),
      ['approved-partial', 'approved'],
    );
    assert.equal(read('c.txt'), 'made');
    assert.equal(JSON.parse(read('verdict.json')).approved, true);
    assert.match(
      read('progress.txt'),
      /^# Progress Log\n\n## Iteration 1 — \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\n- Status: approved-partial\n/,
    );
    // Who builds and who reviews gets no answers about the project; who plans does.
    for (const one of asked) {
      assert.equal(
        one.tools.includes('answerQuestion'),
        !isCoder(one) && !isReviewer(one),
        one.system.slice(-80),
      );
      assert.equal(one.tools.includes('deny'), isReviewer(one));
      if (isReviewer(one))
        assert.ok(!one.words.includes('That is all.'), 'the reviewer reads what the coder says');
    }
  });

  const withStories = (answer: Answer, options: Partial<OrchestratorOptions> = {}, env = {}) => {
    folder.add({ 'project/prds/01-a.md': '# A\n- [ ] one\n- [ ] two\n' });
    return open(answer, options, env);
  };

  it('lets no step write the files of the plan', async () => {
    const { orchestrator, asked } = withStories(
      one => {
        if (isReviewer(one)) return deny('no');
        const paths = [
          'prds/01-a.md',
          'verdict.json',
          'plan.md',
          'progress.txt',
          'AGENTS.md',
          '.telos/roles/coder.md',
        ];
        if (one.turn === 0)
          return [
            ...paths.map((path, at) => calls(`w${at}`, 'write_file', { path, content: '- [x] one' })),
            done('tool_use'),
          ];
        return one.turn === 1
          ? [calls('c', 'run_command', { command: 'cp /dev/null verdict.json' }), done('tool_use')]
          : end;
      },
      { maxIterations: 1, human: allowAll },
    );
    await orchestrator.execute();
    assert.match(read('prds/01-a.md'), /- \[ \] one/);
    assert.match(read('AGENTS.md'), /^# Notes for agents/);
    assert.ok(!existsSync(join(project, '.telos')));
    assert.ok(!existsSync(join(project, 'plan.md')));
    const refused = asked.find(one => isCoder(one) && one.turn === 1)?.last ?? '';
    assert.equal(refused.match(/files of a plan/g)?.length, 6, refused);
  });

  it('denies by a check that fails before any reviewer is asked, and only with the person’s yes', async () => {
    const check =
      '---\ncheck:\n  - {name: unit, command: "echo broken-by-test; exit 3"}\n---\n# A\n- [ ] one\n';
    folder.add({ 'project/prds/01-a.md': check });
    const answer: Answer = one => (isReviewer(one) ? approve() : end);
    const questions: string[] = [];
    const human: Human = {
      ...allowAll,
      async approve(request) {
        questions.push(request.subject);
        return { allow: true, scope: 'once' };
      },
    };
    const first = open(answer, { maxIterations: 2, human });
    const result = await first.orchestrator.execute();
    assert.deepEqual(
      result.iterationResults.map(({ status }) => status),
      ['denied', 'denied'],
    );
    assert.match(
      result.iterationResults[0]?.details ?? '',
      /"unit" failed with exit code 3[\s\S]*broken-by-test/,
    );
    assert.equal(first.asked.some(isReviewer), false);
    assert.match(first.asked.findLast(isCoder)?.words ?? '', /broken-by-test/);
    assert.deepEqual(questions, ['echo broken-by-test; exit 3']);
    const second = open(answer, { maxIterations: 2 });
    for (const iterations of [1, 0]) {
      const unasked = await second.orchestrator.execute();
      assert.deepEqual(
        [unasked.success, unasked.iterations, unasked.checksNotRun],
        [false, iterations, ['US-001: unit']],
        'without a yes nothing is run, and a tick says nothing of it later',
      );
      assert.match(
        unasked.error ?? '',
        /^Not run, as no one allowed their commands: the checks US-001: unit/,
      );
    }
    assert.match(
      second.asked.find(isReviewer)?.words ?? '',
      /unit \(`[^`]*`\): not run, as no one allowed it/,
    );
  });

  it('is done only if every check passes at the end, also that of a story that was done before', async () => {
    const checked = (command: string, box: string): string =>
      `---\ncheck:\n  - {name: unit, command: "${command}"}\n---\n# A\n- [${box}] one\n`;
    folder.add({
      'project/a.txt': '',
      'project/prds/01-a.md': checked('test -e a.txt', 'x'),
      'project/prds/02-b.md': checked('test -e b.txt', ' '),
    });
    let work = 0;
    const { orchestrator } = open(
      one => {
        if (isReviewer(one)) return one.turn === 0 ? approve() : end;
        if (one.turn > 0) return end;
        if (++work === 1)
          return [
            calls('r', 'run_command', { command: 'rm a.txt' }),
            calls('w', 'write_file', { path: 'b.txt', content: 'b' }),
            done('tool_use'),
          ];
        return work === 2 ? end : write('a.txt', 'again');
      },
      { human: allowAll, maxIterations: 3 },
    );
    const result = await orchestrator.execute();
    assert.deepEqual(
      result.iterationResults.map(({ status }) => status),
      ['approved', 'denied', 'approved'],
    );
    assert.deepEqual([result.success, read('a.txt')], [true, 'again']);
    folder.add({ 'project/prds/01-a.md': checked('exit 4', 'x') });
    const broken = await open(() => end, { human: allowAll, maxIterations: 1 }).orchestrator.execute();
    assert.equal(broken.success, false);
    assert.match(read('prds/01-a.md'), /- \[ \] one/);
  });

  it('shows the reviewer the difference, of file tools and of commands, over all attempts at a criterion', async function () {
    const { works } = await findBox({ env: { PATH: process.env['PATH'] ?? '' } });
    if (!works) return this.skip();
    folder.add({
      'project/old.txt': 'one\ntwo\n',
      'project/gone.txt': 'left\n',
      'project/.env': 'KEY=hunter2\n',
    });
    let verdicts = 0;
    const { orchestrator, asked } = withStories(
      one => {
        if (isReviewer(one)) return one.turn > 0 ? end : ++verdicts === 1 ? deny('more') : approve([1, 2]);
        if (one.turn > 0) return end;
        return verdicts === 0
          ? [
              calls('w', 'write_file', { path: 'old.txt', content: 'one\nTWO\n' }),
              calls('l', 'learn', { note: 'Tests run with make.' }),
              calls('e', 'write_file', { path: '.env', content: 'KEY=swordfish\n' }),
              calls('c', 'run_command', { command: 'rm gone.txt; echo made > made.txt' }),
              done('tool_use'),
            ]
          : write('second.txt', 'later\n');
      },
      { human: allowAll, maxIterations: 2 },
    );
    assert.equal((await orchestrator.execute()).success, true);
    const [first = '', second = ''] = asked
      .filter(one => isReviewer(one) && one.turn === 0)
      .map(one => one.words);
    assert.match(first, /changed: old\.txt\n@@[^\n]*\n one\n-two\n\+TWO\n/);
    assert.match(first, /removed: gone\.txt\n@@[^\n]*\n-left\n/);
    assert.match(first, /new: made\.txt\n@@[^\n]*\n\+made\n/);
    assert.match(first, /changed: \.env\n\(/);
    assert.doesNotMatch(first, /in the folder directly/);
    assert.doesNotMatch(first, /hunter2|swordfish|AGENTS\.md|progress\.txt|prds\//);
    assert.match(second, /new: second\.txt/);
    assert.match(second, /\+TWO\n/, 'what the first attempt changed is there still');
  });

  it('tells the reviewer of commands whose changes are not known', async () => {
    for (const name of ['made.txt', undefined]) {
      const { orchestrator, asked } = withStories(
        one => {
          if (isReviewer(one)) return one.turn > 0 ? end : approve([1, 2]);
          if (one.turn > 0) return end;
          return [
            ...(name === undefined ? [] : [calls('w', 'write_file', { path: name, content: 'x' })]),
            calls('c', 'run_command', { command: 'echo unseen > unseen.txt' }),
            done('tool_use'),
          ];
        },
        { human: allowAll, maxIterations: 1 },
        { TELOS_SANDBOX: 'off' },
      );
      await orchestrator.execute();
      const { words = '' } = asked.find(isReviewer) ?? {};
      assert.match(words, /## The whole difference[\s\S]*Commands also worked in the folder directly\./);
      assert.equal(words.includes('new: made.txt'), name !== undefined);
    }
  });

  it('says that a folder does not exist, and makes none', async () => {
    const missing = join(folder.path, 'projcet');
    assert.throws(() => open(() => end, { projectDir: missing }), /The folder .*projcet does not exist/);
    assert.throws(() => open(() => end, { contextDir: [missing] }), /projcet does not exist/);
    assert.throws(() => open(() => end, { projectDir: join(project, '.keep') }), /is not a folder/);
    const elsewhere = open(() => assert.fail('a model was asked'), { planDir: missing });
    assert.match((await elsewhere.orchestrator.execute()).error ?? '', /There are no stories/);
    assert.equal(existsSync(missing), false);
  });

  describe('where its checks run', () => {
    const script =
      'cat "$HOME/.ssh/id_rsa"; mkdir -p .vscode; echo {} > .vscode/tasks.json; echo made > made.txt\n';
    const checked = '---\ncheck:\n  - {name: unit, command: "sh unit.sh"}\n---\n# A\n- [ ] one\n';
    const answer: Answer = one => {
      if (isReviewer(one))
        return one.turn === 0 ? [calls('r', 'run_check', { name: 'unit' }), done('tool_use')] : approve();
      return isCoder(one) && one.turn === 0 ? write('unit.sh', script) : end;
    };
    const execute = async (env: Record<string, string>) => {
      folder.add({ '.ssh/id_rsa': 'hunter2', 'project/prds/01-a.md': checked });
      const opened = open(answer, { maxIterations: 1, human: allowAll }, env);
      const outputs: string[] = [];
      const result = await opened.orchestrator.execute({
        onEvent: event => {
          if (event.type === 'check_ended') outputs.push(event.check.output);
        },
      });
      const { last = '' } = opened.asked.find(one => isReviewer(one) && one.turn === 1) ?? {};
      return { ...opened, result, output: [...outputs, last].join('\n') };
    };
    const has = (name: string) => existsSync(join(project, name));

    for (const sandbox of ['auto', 'required'])
      it(`runs what a model has written in the sandbox (${sandbox}), and keeps nothing that others obey`, async function () {
        const { works } = await findBox({ env: { PATH: process.env['PATH'] ?? '' } });
        if (!works) return this.skip();
        const { result, output } = await execute({ TELOS_SANDBOX: sandbox });
        assert.doesNotMatch(output, /hunter2/);
        assert.equal(
          output.match(/\.vscode\/tasks\.json was not kept: /g)?.length,
          2,
          'of the loop and of the reviewer',
        );
        assert.deepEqual([has('made.txt'), has('.vscode')], [true, false]);
        assert.equal(result.success, true, result.iterationResults[0]?.details);
      });

    // As a check of the story and as a command of the coder, whose words do not say what the script does.
    for (const [what, place, ticks] of [
      ['ticks a box', '.', "sed -i 's/\\[ \\]/[x]/' prds/*.md; echo ran"],
      [
        'puts other stories in their place',
        'docs/plan',
        "mv docs away; mkdir -p docs/plan/prds; echo '- [x] one' > docs/plan/prds/01-a.md; echo ran",
      ],
    ] as const)
      it(`lets no command of a script that ${what} get at the plan`, async function () {
        const { works } = await findBox({ env: { PATH: process.env['PATH'] ?? '' } });
        if (!works) return this.skip();
        const story = join(place, 'prds/01-a.md');
        folder.add({ [join('project', story)]: checked });
        const { orchestrator, asked } = open(
          one => {
            if (isReviewer(one)) return deny('no');
            if (one.turn === 0) return write('unit.sh', `${ticks}\n`);
            return one.turn === 1
              ? [calls('c', 'run_command', { command: 'sh unit.sh' }), done('tool_use')]
              : end;
          },
          { maxIterations: 2, human: allowAll, planDir: join(project, place) },
        );
        const { success, iterations } = await orchestrator.execute();
        assert.deepEqual([success, iterations, read(story)], [false, 2, checked]);
        assert.match(asked.find(one => isCoder(one) && one.turn === 2)?.last ?? '', /ran/);
      });

    it('takes a plan without stories for no success, and lets no command make boxes for one without any', async function () {
      const { works } = await findBox({ env: { PATH: process.env['PATH'] ?? '' } });
      if (!works) return this.skip();
      const made = "mkdir -p prds; echo '- [x] one' > prds/01-a.md; echo ran";
      const unplanned = await open(() => assert.fail('a model was asked')).orchestrator.execute();
      assert.deepEqual([unplanned.success, unplanned.iterations], [false, 0]);
      assert.match(unplanned.error ?? '', /^There are no stories in /);
      folder.add({ 'project/prds/00-a.md': 'All of it.\n' });
      const { orchestrator, asked } = open(
        one => {
          if (isReviewer(one)) return deny('no');
          if (one.turn === 0) return write('unit.sh', `${made}\n`);
          return one.turn === 1
            ? [calls('c', 'run_command', { command: 'sh unit.sh' }), done('tool_use')]
            : end;
        },
        { maxIterations: 2, human: allowAll },
      );
      assert.equal((await orchestrator.execute()).success, false);
      assert.match(asked.find(one => isCoder(one) && one.turn === 2)?.last ?? '', /ran/);
    });

    it('runs them as the person where none works or none is wanted, and nothing where one is required', async () => {
      const without = { PATH: join(folder.path, 'bin') };
      folder.add({ 'bin/.keep': '' });
      for (const name of ['sh', 'cat', 'mkdir'])
        symlinkSync(
          findProgram(name, { env: { PATH: process.env['PATH'] ?? '' } })!,
          join(without.PATH, name),
        );
      const refused = await execute({ ...without, TELOS_SANDBOX: 'required' });
      assert.match(
        refused.result.error ?? '',
        /^Commands run in a sandbox only \(telos\.sandbox is required\), and none works here: /,
      );
      assert.deepEqual([refused.result.iterations, refused.asked, has('unit.sh')], [1, [], false]);
      for (const env of [without, { TELOS_SANDBOX: 'off' }]) {
        const { result, output } = await execute(env);
        assert.match(output, /hunter2/);
        assert.deepEqual([result.success, has('.vscode/tasks.json')], [true, true]);
      }
    });
  });

  it('tells the coder why it was denied, and after three times to try another way', async () => {
    let round = 0;
    const { orchestrator, asked } = withStories(
      one => {
        if (isReviewer(one)) return one.turn === 0 ? deny(`reason ${++round}`) : end;
        return end;
      },
      { maxIterations: 4 },
    );
    const result = await orchestrator.execute();
    assert.deepEqual(
      [result.success, result.denialStreak, result.error],
      [false, 4, 'Max iterations (4) reached; not everything is done.'],
    );
    const words = asked.filter(isCoder).map(one => one.words);
    assert.match(words[1] ?? '', /reason 1/);
    assert.doesNotMatch(words[2] ?? '', /consecutive/);
    assert.match(words[3] ?? '', /reason 3[\s\S]*3 consecutive denials/);
    assert.match(read('AGENTS.md'), /- reason 1\n- reason 2/);
  });

  it('notes what was learned or says that it does not, and leaves the notes of a person alone', async () => {
    const note: ScriptedTurn = [calls('l', 'learn', { note: 'Tests run with make.' }), done('tool_use')];
    const learns = async (): Promise<string> => {
      const { orchestrator, asked } = withStories(
        one => (isReviewer(one) ? deny('bad') : one.turn === 0 ? note : end),
        { maxIterations: 1 },
      );
      await orchestrator.execute();
      return asked.find(one => isCoder(one) && one.turn === 1)?.last ?? '';
    };
    assert.equal(await learns(), 'Noted in AGENTS.md.');
    assert.match(read('AGENTS.md'), /- Tests run with make\.\n- bad\n/);
    assert.match(await learns(), /says that already/);
    folder.add({ 'project/AGENTS.md': '# Mine\n' });
    assert.match(await learns(), /^Not noted: AGENTS\.md is the person's/);
    assert.equal(read('AGENTS.md'), '# Mine\n');
  });

  it('ends at once where the next attempt would fail alike, and goes on where it may not', async () => {
    const refused = withStories(() => [new TelosError('auth', 'The key was refused.')]);
    const ended = await refused.orchestrator.execute();
    assert.deepEqual([ended.iterations, ended.success, ended.error], [1, false, 'The key was refused.']);
    const limited = withStories(() => [new TelosError('rate_limit', 'No more requests.')]);
    assert.equal((await limited.orchestrator.execute()).iterations, 1);
    const broken = withStories(() => [new TelosError('provider', 'It has an internal error (500).')], {
      maxIterations: 3,
    });
    const { iterationResults } = await broken.orchestrator.execute();
    assert.deepEqual(
      iterationResults.map(({ status }) => status),
      ['error', 'error', 'error'],
    );
  });

  it('takes an attempt for timed out that never ends, and stops when it is told to', async () => {
    const hangs: Answer = () => new Promise(() => undefined);
    const slow = withStories(hangs, { maxIterations: 2, timeout: 0.05 });
    const { iterationResults } = await slow.orchestrator.execute();
    assert.deepEqual(
      iterationResults.map(({ status }) => status),
      ['timeout', 'timeout'],
    );
    const stop = new AbortController();
    const stopped = withStories(hangs, { signal: stop.signal });
    setTimeout(() => stop.abort(new Error('told to stop')), 100);
    await assert.rejects(stopped.orchestrator.execute(), /told to stop/);
  });

  it('is done at once where everything is ticked, and takes a marker only where there are no boxes', async () => {
    folder.add({ 'project/prds/01-a.md': '# A\n- [x] one\n' });
    const ticked = open(() => assert.fail('a model was asked'));
    assert.deepEqual(await ticked.orchestrator.execute(), {
      success: true,
      iterations: 0,
      finalVerdict: null,
      error: null,
      iterationResults: [],
      denialStreak: 0,
      checksNotRun: [],
    });
    folder.add({ 'project/prds/01-a.md': '# A\nprose\n' });
    const marked = open(one =>
      isReviewer(one) ? approve() : [says('Done <promise>COMPLETE</promise>'), done()],
    );
    assert.equal((await marked.orchestrator.execute()).success, true);
    folder.add({ 'project/prds/01-a.md': '# A\n- [ ] one\n- [ ] two\n' });
    let verdicts = 0;
    const both = open(
      one => {
        if (isReviewer(one)) return one.turn === 0 && ++verdicts === 1 ? approve() : end;
        return [says('<promise>COMPLETE</promise>'), done()];
      },
      { maxIterations: 2 },
    );
    const result = await both.orchestrator.execute();
    assert.deepEqual(
      result.iterationResults.map(({ status }) => status),
      ['approved-partial', 'no-verdict'],
    );
  });

  it('says what is missing, and writes no half plan', async () => {
    const { orchestrator } = open(() => [says('  '), done()]);
    await assert.rejects(orchestrator.generatePrds(), /plan\.md/);
    await assert.rejects(orchestrator.generatePlan('T'), /The planner stopped/);
    assert.ok(!existsSync(join(project, 'plan.md')));
    folder.add({ 'project/plan.md': '# P' });
    await assert.rejects(open(() => end).orchestrator.generatePrds(), /No PRD files/);
    assert.throws(() => open(() => end, { maxIterations: 0 }), /maxIterations/);
  });

  it('keeps the stories of an earlier split, out of the way', async () => {
    folder.add({ 'project/plan.md': '# P' });
    const story = { title: 'New', criteria: ['x'], checks: [] };
    const { orchestrator } = withStories(({ turn }) =>
      turn === 0 ? [calls('s', 'submit_story', story)] : end,
    );
    await orchestrator.generatePrds();
    assert.deepEqual(readdirSync(join(project, 'prds')).sort(), ['01-new.md', 'earlier-1']);
    assert.match(read('prds/earlier-1/01-a.md'), /- \[ \] one/);
  });
});
