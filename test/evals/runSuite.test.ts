import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Provider } from '../../src/engine/core/ports.ts';
import { digestsOf } from '../../src/engine/providers/requestDigest.ts';
import { discoverAgents } from '../../src/engine/skills/discover.ts';
import { Telos } from '../../src/engine/telos.ts';
import { readEvals } from '../../src/evals/evalFile.ts';
import { asInstalled } from '../../src/evals/evalWorld.ts';
import { type EvalResult, hasPassed } from '../../src/evals/runEval.ts';
import { liveSuite, replaySuite, type SkillEvals } from '../../src/evals/runSuite.ts';
import { localSlots } from '../../src/evals/slots.ts';
import { calls, done, says } from '../fakes/scriptedProvider.ts';
import { type Machine, openMachine } from '../harness/machine.ts';

/** Reads the file of the request and writes it to another. It does the same in each run. */
const model: Provider = {
  name: 'scripted',
  model: 'script',
  async *streamCompletion({ messages }) {
    const turn = messages.filter(({ role }) => role === 'assistant').length;
    if (turn === 0) yield calls('r', 'read_file', { path: 'notes.md' });
    if (turn === 1) yield calls('w', 'write_file', { path: 'out.md', content: 'the same' });
    if (turn === 2) yield says('Done.');
    yield done(turn === 2 ? 'end_turn' : 'tool_use');
  },
};

const skillDir = 'skills/notes';
const files: Readonly<Record<string, string>> = {
  [`${skillDir}/SKILL.md`]: '---\nname: notes\ndescription: Copies notes\n---\nCopy what you are given.\n',
  [`${skillDir}/scripts/help.py`]: 'print("help")\n',
  [`${skillDir}/reference.md`]: 'Nothing reads this.\n',
  [`${skillDir}/evals/files/notes.md`]: 'Buy milk and eggs\n',
};
const prompt = 'Copy notes.md to out.md, please';

const evalsText = (count: number, words = prompt): string =>
  JSON.stringify({
    evals: Array.from({ length: count }, (_, index) => ({
      id: index + 1,
      prompt: words,
      files: ['evals/files/notes.md'],
      checks: [{ file: 'out.md', contains: 'the same' }],
    })),
  });

async function all<One>(values: AsyncIterable<One>): Promise<One[]> {
  const found: One[] = [];
  for await (const value of values) found.push(value);
  return found;
}

describe('evals from recordings', function () {
  this.timeout(60_000);
  let machine: Machine;
  const { signal } = new AbortController();
  beforeEach(() => {
    machine = openMachine({ files });
  });
  afterEach(() => machine.remove());

  function suite(): SkillEvals[] {
    const [agent] = discoverAgents(machine.loadConfig());
    const skill = agent?.skills[0];
    assert.ok(agent && skill);
    return [{ one: { agent, skill }, evals: readEvals(skill.dir) ?? [] }];
  }
  const slots = () => localSlots({ config: machine.loadConfig(), open: Telos.open.bind(Telos) });

  async function record(count: number): Promise<EvalResult[]> {
    machine.put(`${skillDir}/evals/evals.json`, evalsText(count));
    const options = {
      models: [{ provider: model, priceOf: () => 'unknown' as const }],
      judge: undefined,
      runs: 1,
      withBaseline: false,
      maxCost: undefined,
      keeps: true,
    };
    return all(liveSuite(suite(), options, slots(), signal));
  }
  const replay = (suites = suite()): Promise<EvalResult[]> => all(replaySuite(suites, slots(), signal));

  it('passes twenty of them in a few seconds', async () => {
    assert.ok((await record(20)).every(hasPassed));
    const start = process.cpuUsage();
    const results = await replay();
    const { user, system } = process.cpuUsage(start);
    // What others do on this machine does not count.
    const seconds = (user + system) / 1_000_000;
    assert.equal(results.filter(hasPassed).length, 20);
    assert.ok(seconds < 5, `${seconds} s`);
  });

  it('lets none pass after any of 200 changes of one byte in the skill, a file or the request', async () => {
    await record(1);
    assert.ok((await replay()).every(hasPassed));
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 48271) % 2147483647;
      return seed % below;
    };
    const names = Object.keys(files);
    let passed = 0;
    for (let edits = 0; edits < 200; ) {
      const name = names[random(names.length + 1)];
      const before = name === undefined ? prompt : (files[name] ?? '');
      const at = random(before.length);
      const other = String.fromCharCode(33 + random(90));
      const after = before.slice(0, at) + other + before.slice(at + 1);
      if (after === before) continue;
      edits++;
      const path = name ?? `${skillDir}/evals/evals.json`;
      machine.put(path, name === undefined ? evalsText(1, after) : after);
      const results = await replay();
      passed += results.filter(hasPassed).length;
      for (const { status } of results) assert.equal(status, 'stale', `${path}: ${after}`);
      machine.put(path, name === undefined ? evalsText(1) : before);
    }
    assert.equal(passed, 0);
    assert.ok((await replay()).every(hasPassed), 'everything is as it was');
  });

  it('runs the others where one names a file that its author left out, and says which', async () => {
    const [whole] = JSON.parse(evalsText(1)).evals;
    const evals = [whole, { ...whole, id: 2, files: ['evals/files/film.mp4'] }];
    machine.put(`${skillDir}/evals/evals.json`, JSON.stringify({ evals }));
    const options = {
      models: [{ provider: model, priceOf: () => 0 }],
      judge: undefined,
      runs: 1,
      withBaseline: false,
      maxCost: undefined,
      keeps: false,
    };
    const [first, second] = await all(liveSuite(suite(), options, slots(), signal));
    assert.ok(first && hasPassed(first));
    assert.equal(second?.status, 'unfinished');
    assert.match(second.error?.message ?? '', /^evals\/files\/film\.mp4 is not in the skill's folder\./);
  });

  it('plays in another place and under another name, as a checkout does elsewhere', async () => {
    await record(1);
    const recordings = join(machine.root, skillDir, 'evals/recordings');
    const name = '1.with_skill.script.1.jsonl';
    const copies = {
      ...files,
      [`${skillDir}/evals/evals.json`]: evalsText(1),
      [`${skillDir}/evals/recordings/${name}`]: readFileSync(join(recordings, name), 'utf8'),
    };
    for (const [path, content] of Object.entries(copies)) {
      const place = join(machine.root, 'elsewhere', path.replace(skillDir, 'my-pack/skills/notes'));
      mkdirSync(dirname(place), { recursive: true });
      writeFileSync(place, content);
    }
    const folder = join(machine.root, 'elsewhere');
    const [agent] = discoverAgents(machine.loadConfig({ TELOS_SKILLS_DIR: folder }));
    const skill = agent?.skills[0];
    assert.ok(agent && skill);
    assert.notEqual(skill.dir, suite()[0]?.one.skill.dir);
    const one = { agent, skill };
    const evals = readEvals(skill.dir) ?? [];
    for (const each of [one, asInstalled({ agent: { ...agent, name: 'folder' }, skill })])
      assert.ok((await replay([{ one: each, evals }])).every(hasPassed), each.agent.name);
  });

  it('reads the files of others, folders of inputs included, and passes nothing that expects nothing', async () => {
    machine.put(`${skillDir}/evals/fixtures/one/deep/a.txt`, 'a');
    const content = {
      evals: [
        {
          eval_name: 'folder',
          prompt: 'a',
          files: ['evals/fixtures/one', 'reference.md', 'my-notes/evals/fixtures/one/deep/a.txt'],
          assertions: ['b'],
        },
        { prompt: 'c', expected_output: 'What it shall be' },
        { prompt: 'd', scorers: [] },
      ],
    };
    machine.put(`${skillDir}/evals/evals.json`, JSON.stringify(content));
    const [{ evals } = { evals: [] }] = suite();
    assert.deepEqual(
      evals.map(({ id, name, files: inputs, expectations }) => [
        id,
        name,
        inputs.map(({ path }) => path),
        expectations,
      ]),
      [
        [1, 'folder', ['one/deep/a.txt', 'reference.md', 'one/deep/a.txt'], ['b']],
        [2, undefined, [], ['What it shall be']],
        [3, undefined, [], []],
      ],
    );
    const options = {
      models: [{ provider: model, priceOf: () => 0 }],
      judge: undefined,
      runs: 1,
      withBaseline: false,
      maxCost: undefined,
      keeps: false,
    };
    const results = await all(liveSuite(suite(), options, slots(), signal));
    assert.deepEqual(results.map(hasPassed), [false, false, false]);
  });

  it('hides its answers from the run that they judge, whichever tool looks for them', async () => {
    const answer = 'forty-two plums';
    machine.put(
      `${skillDir}/evals/evals.json`,
      JSON.stringify({ evals: [{ id: 1, prompt, checks: [{ answer: { contains: answer } }] }] }),
    );
    const [one] = suite();
    const dir = one?.one.skill.dir ?? '';
    const looks: readonly [string, Record<string, string>][] = [
      ['read_file', { path: join(dir, 'evals/evals.json') }],
      ['read_file', { path: 'evals/evals.json' }],
      ['read_file', { path: join(dir, 'scripts/../EVALS/evals.json') }],
      ['list_directory', { path: join(dir, 'evals') }],
      ['search_files', { path: dir, pattern: 'plums' }],
      ['glob', { path: dir, pattern: '**/*.json' }],
      ['run_command', { command: `cat ${join(dir, 'evals/evals.json')}` }],
      ['run_command', { command: `grep -r plums ${dir}` }],
    ];
    const seen: string[] = [];
    const peeks: Provider = {
      name: 'scripted',
      model: 'peeks',
      async *streamCompletion({ messages }) {
        const turn = messages.filter(({ role }) => role === 'assistant').length;
        seen.push(JSON.stringify(messages.at(-1)));
        const [tool, input] = looks[turn] ?? [];
        if (tool && input) yield calls(`c${turn}`, tool, input);
        else yield says('Done.');
        yield done(tool ? 'tool_use' : 'end_turn');
      },
    };
    const options = {
      models: [{ provider: peeks, priceOf: () => 0 }],
      judge: undefined,
      runs: 1,
      withBaseline: false,
      maxCost: undefined,
      keeps: false,
    };
    // In a box, where one works here, commands are not asked about.
    for (const TELOS_SANDBOX of ['off', 'auto']) {
      seen.length = 0;
      const inBox = localSlots({
        config: machine.loadConfig({ TELOS_SANDBOX }),
        open: Telos.open.bind(Telos),
      });
      const [result] = await all(liveSuite(suite(), options, inBox, signal));
      assert.equal(seen.length, looks.length + 1, 'each look was made');
      assert.deepEqual(
        seen.filter(text => text.includes(answer) || text.includes('evals/files')),
        [],
      );
      assert.deepEqual(
        result?.denials.flatMap(({ tool, rule }) => (tool === 'run_command' ? [] : [tool, rule])),
        [...Array(3).fill(['read_file', 'floor.evals']), 'list_directory', 'floor.evals'].flat(),
      );
      assert.ok(!hasPassed(result));
    }
  });

  it('digests what a model is sent part by part, without what differs in each run', () => {
    const tool = { name: 'read_file', description: 'Reads', inputSchema: {} };
    const request = (id: string, time: string, work: string) => ({
      system: `Files are in ${work}.`,
      tools: [tool],
      maxTokens: 10,
      messages: [
        { role: 'user' as const, content: `Skill\n\nCurrent date/time: ${time}\n\nUser request: go` },
        {
          role: 'assistant' as const,
          content: [{ type: 'tool_use' as const, id, name: 'read_file', input: {} }],
        },
        {
          role: 'user' as const,
          content: [{ type: 'tool_result' as const, tool_use_id: id, content: `${work}/a`, is_error: false }],
        },
      ],
    });
    const digest = (given: ReturnType<typeof request>, work: string, model = 'M') =>
      digestsOf(given, model, { work });
    const first = digest(request('x', 'today', '/a/one'), '/a/one');
    assert.deepEqual(digest(request('y', 'tomorrow', '/b/two'), '/b/two'), first);
    const changed = (given: object, model?: string): string[] => {
      const { parts } = digest({ ...request('x', 'today', '/a/one'), ...given }, '/a/one', model);
      return Object.entries(parts).flatMap(([name, value]) =>
        value === first.parts[name as keyof typeof parts] ? [] : [name],
      );
    };
    assert.deepEqual(changed({ system: 'x' }), ['instructions']);
    assert.deepEqual(changed({ tools: [{ ...tool, description: 'Read' }] }), ['tools']);
    assert.deepEqual(changed({ maxTokens: 11 }), ['limits']);
    assert.deepEqual(changed({}, 'N'), ['limits']);
    const [, ...later] = request('x', 'today', '/a/one').messages;
    assert.deepEqual(changed({ messages: [{ role: 'user', content: 'Skull' }, ...later] }), ['request']);
    assert.deepEqual(changed({ messages: request('x', 'today', '/a/one').messages.slice(0, 2) }), [
      'results',
    ]);
  });
});
