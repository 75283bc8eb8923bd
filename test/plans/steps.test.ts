/** Steps of a plan with a scripted model: which tools each has, what its answers must look like, and how it ends. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../src/engine/config.ts';
import { denyAll } from '../../src/engine/human.ts';
import { Telos } from '../../src/engine/telos.ts';
import { systemOf } from '../../src/plans/roles.ts';
import { runStep, type StepCall, type StepEnd, stepOfRole } from '../../src/plans/steps.ts';
import { notesIn, toolsOf, verdictIn } from '../../src/plans/stepTools.ts';
import type { StepName } from '../../src/protocol/plan.ts';
import { calls, done, type ScriptedTurn, says, scriptedProvider } from '../fakes/scriptedProvider.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const names: StepName[] = [
  'interview',
  'plan',
  'split',
  'orchestrator',
  'coder',
  'crm',
  'marketing',
  'image-generator',
  'reviewer',
];
const looking = ['glob', 'list_directory', 'read_file', 'run_command', 'search_files'];

describe('steps', () => {
  let folder: TempFolder;
  let provider: ReturnType<typeof scriptedProvider>;
  beforeEach(() => {
    folder = tempFolder({ 'slot/a.txt': 'a', 'home/.k': '' });
  });
  afterEach(() => folder.remove());

  async function step(
    turns: readonly ScriptedTurn[],
    more: Partial<StepCall> = {},
    signal = new AbortController().signal,
    env: Readonly<Record<string, string>> = { TELOS_PROVIDER: 'scripted' },
  ): Promise<{ end: StepEnd; requests: ReturnType<typeof scriptedProvider>['requests'] }> {
    provider = scriptedProvider(turns);
    const config = loadConfig({
      env: {
        PATH: process.env['PATH'],
        TELOS_DATA_DIR: join(folder.path, 'data'),
        TELOS_CONFIG_DIR: join(folder.path, 'config'),
        ...env,
      },
      home: join(folder.path, 'home'),
      cwd: join(folder.path, 'slot'),
    });
    const create = async () => provider;
    const runs = Telos.open(config, { providers: { scripted: { model: async () => 'script', create } } });
    const call: StepCall = {
      key: 'US-001.a1.x',
      name: 'reviewer',
      words: 'Do it.',
      plan: 'bakery',
      workingDir: join(folder.path, 'slot'),
      ...more,
    };
    return { end: await runStep(runs, call, denyAll, signal), requests: provider.requests };
  }

  const only = (name: string, input: Record<string, unknown>): ScriptedTurn[] => [
    [calls('1', name, input), done('tool_use')],
    [says('Done.'), done()],
  ];

  it('gives each role its tools, and no other', () => {
    const own: Record<string, string[]> = {
      interview: ['submit_round'],
      plan: ['reply_comment', 'submit_plan'],
      split: ['submit_checks', 'submit_story'],
      orchestrator: ['delegate'],
      reviewer: ['approve', 'deny', 'run_check'],
    };
    const work = [...looking, 'ask_person', 'edit_file', 'learn', 'write_file'].sort();
    for (const name of names) {
      const ports = { runCheck: async () => ({ name: '', exitCode: 0, ms: 0, output: '' }) };
      const found = toolsOf(name, [], ports)
        .map(tool => tool.definition.name)
        .sort();
      assert.deepEqual(found, own[name] ? [...looking, ...own[name]].sort() : work, name);
    }
    assert.ok(!toolsOf('reviewer', []).some(tool => tool.definition.name === 'run_check'));
  });

  it('keeps the fixed text of every role well below six thousand tokens, with what all share first', () => {
    const texts = names.map(name => {
      const tools = JSON.stringify(toolsOf(name, []).map(tool => tool.definition));
      return { system: systemOf(name), all: systemOf(name) + tools };
    });
    // A token has about four characters.
    for (const { all } of texts) assert.ok(all.length < 4 * 6000, `${all.length}`);
    const start = texts[0]!.system.slice(0, 600);
    assert.ok(texts.every(({ system }) => system.startsWith(start)));
    assert.match(systemOf('coder', 'Use tabs.\n'), /For this project:\n\nUse tabs\.$/);
  });

  it('gives tools for the project’s context to those who plan, never to those who build or review', async () => {
    const summarize = {
      definition: { name: 'summarize', description: 'x', inputSchema: { type: 'object', properties: {} } },
      access: 'read' as const,
      execute: async () => ({ content: 'A bakery.', isError: false }),
    };
    for (const name of names) {
      const { requests } = await step([[says('Done.'), done()]], { name, contextTools: [summarize] });
      const isOffered = requests[0]?.tools.includes('summarize') === true;
      assert.equal(isOffered, ['interview', 'plan', 'split', 'orchestrator'].includes(name), name);
    }
  });

  it('returns the last verdict, the words and the answers', async () => {
    const { end } = await step([
      [calls('1', 'approve', { summary: 'Fine.', items: [1, 2] }), done('tool_use')],
      [calls('2', 'deny', { reason: 'Not fine after all.' }), done('tool_use')],
      [says('I denied it.'), done()],
    ]);
    assert.equal(end.outcome, 'completed');
    assert.equal(end.text, 'I denied it.');
    assert.match(end.runId, /^[\w-]{30,}$/);
    assert.deepEqual(
      end.answers.map(({ tool }) => tool),
      ['approve', 'deny'],
    );
    assert.deepEqual(verdictIn(end.answers), { approved: false, text: 'Not fine after all.', items: [] });
    assert.equal(verdictIn([]), undefined);
    assert.deepEqual(verdictIn([{ tool: 'approve', input: { summary: 's', items: [3] } }]), {
      approved: true,
      text: 's',
      items: [3],
    });
  });

  it('stores the run under the name of the plan, as one of a plan', async () => {
    const { end } = await step(only('approve', { summary: 'Fine.' }));
    const [header = ''] = readFileSync(join(folder.path, 'data/runs', `${end.runId}.jsonl`), 'utf8').split(
      '\n',
    );
    const { door, conversation } = JSON.parse(header);
    assert.deepEqual([door, conversation], ['plan', 'bakery']);
  });

  it('takes no answer that is not in order, and says what is wrong with it', async () => {
    const rows = [
      ['interview', 'submit_round', { ready: false, questions: [] }, /Ask at least one question/],
      ['interview', 'submit_round', { ready: 'yes', questions: ['a'] }, /"ready" must be a boolean/],
      ['interview', 'submit_round', { ready: false, questions: ['a', 2] }, /"questions\[1\]" must be a text/],
      ['plan', 'submit_plan', { text: '  ' }, /The plan is empty/],
      ['plan', 'submit_plan', {}, /"text" is missing/],
      ['split', 'submit_story', { title: 'A', criteria: [], checks: [] }, /"criteria" is empty/],
      [
        'split',
        'submit_story',
        { title: 'A', criteria: ['a'], checks: [{ name: 'unit' }] },
        /"checks\[0\]\.command" is missing/,
      ],
      [
        'split',
        'submit_story',
        { title: 'A', criteria: ['a'], checks: 'npm test' },
        /"checks" must be a list/,
      ],
      [
        'split',
        'submit_story',
        { title: 'A', criteria: ['a'], checks: [{ name: 'u', command: 'x', timeout_s: 'long' }] },
        /timeout_s" must be a number/,
      ],
      ['orchestrator', 'delegate', { role: 'boss', instructions: 'x' }, /must be one of coder, crm/],
      ['reviewer', 'approve', { summary: '' }, /"summary" is empty/],
      ['reviewer', 'approve', { summary: 'x', items: ['1'] }, /"items\[0\]" must be a number/],
      ['reviewer', 'deny', { reason: ' ' }, /"reason" is empty/],
      ['reviewer', 'run_check', { name: 'other' }, /There is no check "other"\. The checks are: unit/],
      ['coder', 'learn', { note: 'x'.repeat(501) }, /maximum is 500/],
      ['coder', 'ask_person', { question: '' }, /"question" is empty/],
    ] as const;
    const ports = {
      roles: ['coder', 'crm'],
      checks: [{ name: 'unit', command: 'npm test' }],
      runCheck: async () => ({ name: 'unit', exitCode: 0, ms: 0, output: '' }),
    };
    for (const [name, tool, input, expected] of rows) {
      const { end, requests } = await step(only(tool, input), { name, ports });
      assert.deepEqual(end.answers, [], `${tool} ${JSON.stringify(input)}`);
      assert.match(JSON.stringify(requests[1]?.messages.at(-1)).replaceAll('\\"', '"'), expected);
    }
  });

  it('keeps only what a story has, of what a model hands in', async () => {
    const story = {
      title: 'A',
      criteria: ['a'],
      checks: [{ name: 'u', command: 'x', red: true }],
      depends_on: null,
      passes: true,
    };
    const { end } = await step(only('submit_story', story), { name: 'split' });
    assert.deepEqual(end.answers, [
      {
        tool: 'submit_story',
        input: { title: 'A', criteria: ['a'], checks: [{ name: 'u', command: 'x', red: true }] },
      },
    ]);
  });

  it('has its answer in what was handed in, when the model says nothing behind it, and none without', async () => {
    const silent: ScriptedTurn = [done()];
    const [approval] = only('approve', { summary: 'Seen.' });
    const { end } = await step([approval!, silent, silent]);
    assert.deepEqual(
      [end.outcome, end.error, verdictIn(end.answers)?.approved],
      ['completed', undefined, true],
    );
    const { end: nothing } = await step([silent, silent]);
    assert.deepEqual([nothing.outcome, nothing.error?.code], ['failed', 'no_answer']);
  });

  it('knows no verdict of a coder', async () => {
    const { end, requests } = await step(only('approve', { summary: 'All good.' }), { name: 'coder' });
    assert.deepEqual(end.answers, []);
    assert.match(JSON.stringify(requests[1]?.messages), /Unknown tool: approve/);
  });

  it('runs a named check again for a reviewer, who runs nothing else', async () => {
    const ran: string[] = [];
    const ports = {
      checks: [{ name: 'unit', command: 'npm test' }],
      runCheck: async ({ command }: { command: string }) => {
        ran.push(command);
        return { name: 'unit', exitCode: 1, ms: 5, output: '1 failing' };
      },
    };
    const turns: ScriptedTurn[] = [
      [
        calls('1', 'run_check', { name: 'unit' }),
        calls('2', 'run_command', { command: 'npm test' }),
        done('tool_use'),
      ],
      [says('Done.'), done()],
    ];
    const { requests } = await step(turns, { ports, commands: ['npm test'] });
    assert.deepEqual(ran, ['npm test']);
    const results = JSON.stringify(requests[1]?.messages.at(-1));
    assert.match(results, /1 failing\\n\\n\[exit code: 1\]|1 failing\\n\\n\[exit code 1\]/);
    assert.match(results, /only looks/);
  });

  it('asks the person, or says that the question waits', async () => {
    const asked: string[] = [];
    const askPerson = async ({ text }: { text: string }) => {
      asked.push(text);
      return 'Use sqlite.';
    };
    const question = { question: 'Which database?', choices: ['sqlite', 'postgres'] };
    const answered = await step(only('ask_person', question), { name: 'coder', ports: { askPerson } });
    assert.deepEqual(asked, ['Which database?']);
    assert.match(JSON.stringify(answered.requests[1]?.messages), /The person answers: Use sqlite\./);
    const parked = await step(only('ask_person', question), {
      name: 'coder',
      ports: { askPerson: async () => undefined },
    });
    assert.match(JSON.stringify(parked.requests[1]?.messages), /The question waits for the person/);
  });

  it('collects what was learned once', () => {
    const learn = (note: string) => ({ tool: 'learn', input: { note } });
    assert.deepEqual(notesIn([learn('a'), learn(' a '), { tool: 'ask_person', input: {} }, learn('b')]), [
      'a',
      'b',
    ]);
  });

  it('ends a step that takes too long, and tells that from one that was stopped', async () => {
    const slow: ScriptedTurn[] = [[calls('1', 'run_command', { command: 'sleep 30' }), done('tool_use')]];
    const more = { name: 'coder' as const, commands: ['sleep 30'] };
    const late = await step(slow, { ...more, timeoutMs: 300 });
    assert.deepEqual([late.end.outcome, late.end.timedOut], ['cancelled', true]);
    const control = new AbortController();
    setTimeout(() => control.abort(), 200);
    const stopped = await step(slow, more, control.signal);
    assert.deepEqual([stopped.end.outcome, stopped.end.timedOut], ['cancelled', false]);
  });

  it('does not count the time that it waits for the person', async () => {
    const wait = (): Promise<void> => new Promise(resolve => setTimeout(resolve, 1_700));
    const turns: ScriptedTurn[] = [
      [calls('1', 'ask_person', { question: 'Which?' }), done('tool_use')],
      [says('Done.'), done()],
    ];
    const askPerson = async () => {
      await wait();
      return 'this one';
    };
    const mail = async () => {
      await wait();
      return [];
    };
    const { end } = await step(turns, { name: 'coder', timeoutMs: 1_500, ports: { askPerson }, mail });
    assert.deepEqual([end.outcome, end.timedOut], ['completed', false]);
  });

  it('ends at its limit of rounds, as nobody is there to ask', async () => {
    const { end, requests } = await step([[calls('1', 'learn', { note: 'x' }), done('tool_use')]], {
      name: 'coder',
      maxRounds: 3,
    });
    assert.equal(end.outcome, 'round_limit');
    assert.equal(requests.length, 3);
  });

  it('tells its run and its model before the model is asked', async () => {
    let asked = -1;
    const { end, requests } = await step([[says('Done.'), done()]], {
      onStart: async ({ runId, model }) => {
        await new Promise(resolve => setTimeout(resolve, 20));
        asked = provider.requests.length;
        assert.equal(model, 'script');
        assert.ok(runId);
      },
    });
    assert.equal(asked, 0);
    assert.equal(requests.length, 1);
    assert.equal(end.outcome, 'completed');
  });

  it('reports what went wrong', async () => {
    const { end } = await step([[new Error('the network is gone')]]);
    assert.equal(end.outcome, 'failed');
    assert.match(end.error?.message ?? '', /the network is gone/);
  });

  it('records under its key, and plays that again', async () => {
    const recordTo = join(folder.path, 'rec');
    const { end: recorded } = await step(only('approve', { summary: 'Fine.' }), { recordTo });
    assert.ok(existsSync(join(recordTo, 'US-001.a1.x.jsonl')));
    const replay = { TELOS_PROVIDER: 'replay', TELOS_REPLAY_FILE: recordTo };
    const played = await step([[new Error('no model is asked')]], {}, undefined, replay);
    assert.deepEqual([played.end.outcome, played.requests], ['completed', []]);
    assert.deepEqual([played.end.answers, played.end.text], [recorded.answers, recorded.text]);
    assert.equal(played.end.answers.length, 1);
    const other = await step([[done()]], { key: 'US-002.a1.x' }, undefined, replay);
    assert.equal(other.end.outcome, 'failed', 'nothing was recorded under this key');
  });

  it('finds the step of a role', () => {
    assert.deepEqual(stepOfRole('marketing'), { name: 'marketing' });
    assert.deepEqual(stepOfRole('writer/blog'), { name: 'coder', skill: { agent: 'writer', skill: 'blog' } });
    assert.deepEqual(stepOfRole('whatever'), { name: 'coder' });
    assert.deepEqual(stepOfRole('reviewer'), { name: 'coder' });
  });
});
