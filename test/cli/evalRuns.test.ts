import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Parser } from 'htmlparser2';
import type { ReceivedRequest } from '../fakes/loopback.ts';
import { type OpenaiTurn, startOpenaiServer } from '../fakes/openaiServer.ts';
import { type CliHome, type CliResult, cliHome } from './cliProcess.ts';

const noNetwork = fileURLToPath(new URL('../fakes/noNetwork.mjs', import.meta.url));
const mcpServer = fileURLToPath(new URL('../fakes/mcpServer.ts', import.meta.url));
const skill = 'skills/notes/SKILL.md';
const evals = 'skills/notes/evals/evals.json';

const resultsIn = ({ body }: ReceivedRequest): number =>
  body.messages.filter(({ role }: { role: string }) => role === 'tool').length;

/** The words of the skill decide what this model writes. */
function model(request: ReceivedRequest): OpenaiTurn {
  const said = JSON.stringify(request.body.messages);
  switch (resultsIn(request)) {
    case 0:
      return { toolCalls: [{ name: 'read_file', input: { path: 'notes.md' } }] };
    case 1: {
      const content = said.includes('begin with the word Summary') ? 'Summary: milk' : 'milk';
      return { toolCalls: [{ name: 'write_file', input: { path: 'out.md', content } }] };
    }
    default:
      return { text: ['Wrote ', 'out.md'] };
  }
}

const checks = [
  { file: 'out.md', matches: '^Summary' },
  { files_changed: ['out.md'] },
  { tool: 'write_file', times: { min: 1, max: 1 } },
];

/** Returns what the call returns. Fails if this process opened a socket meanwhile: no test beside it may run here. */
async function withoutSockets<T>(call: () => Promise<T>): Promise<T> {
  const { connect } = Socket.prototype;
  let opened = 0;
  Socket.prototype.connect = () => {
    opened++;
    throw new Error('a socket was opened');
  };
  try {
    return await call();
  } finally {
    Socket.prototype.connect = connect;
    assert.equal(opened, 0, 'a socket was opened');
  }
}

describe('telos eval with recorded runs', function () {
  this.timeout(60_000);
  let home: CliHome;
  let server: Awaited<ReturnType<typeof startOpenaiServer>> | undefined;
  const at = (path: string): string => join(home.folder.path, path);
  const one = (more: object = {}): string =>
    JSON.stringify({
      skill_name: 'notes',
      evals: [
        {
          id: 1,
          prompt: 'Sum up notes.md',
          expected_output: 'A summary',
          expectations: [],
          files: ['evals/files/notes.md'],
          checks,
          ...more,
        },
      ],
    });

  beforeEach(() => {
    home = cliHome({
      [skill]: '---\nname: notes\ndescription: Sums up notes\n---\nAlways begin with the word Summary.\n',
      'skills/notes/evals/files/notes.md': 'Buy milk\n',
      [evals]: one(),
    });
  });
  afterEach(async () => {
    home.remove();
    await server?.close();
    server = undefined;
  });

  async function record(
    turns: (request: ReceivedRequest) => OpenaiTurn,
    ...more: string[]
  ): Promise<CliResult> {
    server = await startOpenaiServer({ turns });
    const done = await home.run(['eval', '--record', '--runs', '1', '--yes', ...more, 'notes'], {
      env: {
        OPENROUTER_BASE_URL: server.url,
        OPENROUTER_API_KEY: 'sk-test',
        TELOS_PROVIDER: 'openrouter',
        TELOS_MODEL: 'maker/model',
      },
    });
    await server.close();
    return done;
  }

  const replayArgs = (more: readonly string[]) => ['eval', 'notes', '--output', at('results'), ...more];
  /** Plays what was recorded. Fails if a socket is opened meanwhile. */
  const replay = (...more: string[]): Promise<CliResult> => withoutSockets(() => home.run(replayArgs(more)));
  /** Plays what was recorded, in a process that must open no socket. */
  const replayProcess = (...more: string[]): Promise<CliResult> =>
    home.runProcess(replayArgs(more), { env: { NODE_OPTIONS: `--import=${noNetwork}` } });

  const benchmark = (folder = at('results/notes.notes')) => {
    const content = JSON.parse(readFileSync(join(folder, 'benchmark.json'), 'utf8'));
    delete content.metadata.timestamp;
    return content;
  };

  it('shows what the skill is worth, and plays it again without a model or a network', async () => {
    const made = await record(model, '--runs', '2', '--output', at('made'));
    assert.equal(made.code, 0, made.stdout + made.stderr);
    assert.match(made.stdout, /maker\/model +2\/2 +100% +\(34 to 100%\) +0\/2 +0% .* \+100 +1\/1/);
    assert.match(made.stdout, /says nothing \(passes in both\): "check .*files_changed/);
    assert.equal(server?.requests.length, 12);
    const again = await replayProcess();
    assert.equal(again.code, 0, again.stdout + again.stderr);
    assert.match(again.stdout, /maker\/model +2\/2 +100%/);
    assert.deepEqual(benchmark(), benchmark(at('made/notes.notes')));
    assert.deepEqual(benchmark().run_summary.delta.pass_rate, '+0.33');
    assert.equal((await replay('--ci')).stdout, 'ok notes (notes): 0/0 requests, 2/2 runs\n');
    const left = readdirSync(at('skills/notes/evals/recordings'));
    assert.deepEqual(left.length, 4);
    // An eval that is run less often keeps no run of before.
    await record(model, '--baseline', 'none');
    assert.deepEqual(readdirSync(at('skills/notes/evals/recordings')).length, 3);
  });

  it('has the field names that skill-creator reads', async () => {
    await record(model);
    await replay();
    const { metadata, runs, run_summary } = benchmark();
    assert.deepEqual(metadata.evals_run, [1]);
    assert.deepEqual(
      runs.map(({ configuration, run_number, result }: Record<string, unknown>) => [
        configuration,
        run_number,
        Object.keys(result as object),
      ]),
      ['with_skill', 'without_skill'].map(name => [
        name,
        1,
        ['pass_rate', 'passed', 'failed', 'total', 'time_seconds', 'tokens', 'tool_calls', 'errors'],
      ]),
    );
    assert.deepEqual(Object.keys(run_summary), ['with_skill', 'without_skill', 'delta']);
    assert.deepEqual(Object.keys(run_summary.with_skill.pass_rate), ['mean', 'stddev', 'min', 'max']);
    const run = at('results/notes.notes/eval-1/with_skill/run-1');
    const grading = JSON.parse(readFileSync(join(run, 'grading.json'), 'utf8'));
    assert.deepEqual(grading.summary, { pass_rate: 1, passed: 3, failed: 0, total: 3 });
    assert.deepEqual(Object.keys(grading.expectations[0]), ['text', 'passed', 'evidence']);
    assert.equal(JSON.parse(readFileSync(join(run, 'timing.json'), 'utf8')).total_tokens, 195);
    // Its viewer looks for the request beside the runs, and shows what they have written.
    const beside = JSON.parse(readFileSync(join(run, '..', 'eval_metadata.json'), 'utf8'));
    assert.deepEqual([beside.eval_id, beside.prompt], [1, 'Sum up notes.md']);
    assert.equal(readFileSync(join(run, 'outputs', 'out.md'), 'utf8'), 'Summary: milk');
  });

  it('says what changed since a recording was made, and lets nothing stale pass', async () => {
    assert.equal((await replay()).code, 3);
    await record(model);
    const says = async (what: RegExp): Promise<void> => {
      const { code, stdout } = await replay();
      assert.deepEqual([code, what.test(stdout)], [3, true], stdout);
      assert.match(stdout, /telos eval --record notes/);
    };
    const text = readFileSync(at(skill), 'utf8');
    writeFileSync(at(skill), text.replace('Summary', 'Summery'));
    await says(/line 1: eval 1 is stale: the skill's files changed/);
    writeFileSync(at(skill), text.replaceAll('\n', '\r\n'));
    assert.equal((await replay()).code, 0, 'line ends of a checkout');
    writeFileSync(at(skill), text);
    appendFileSync(at('skills/notes/evals/files/notes.md'), '!');
    await says(/the eval's request or files changed/);
    writeFileSync(at('skills/notes/evals/files/notes.md'), 'Buy milk\n');
    writeFileSync(at(evals), one({ prompt: 'Sum up notes.md!' }));
    await says(/the eval's request or files changed/);
    writeFileSync(at(evals), one());
    assert.equal((await replay()).code, 0);
    const folder = at('skills/notes/evals/recordings');
    const [file = ''] = readdirSync(folder);
    const recorded = readFileSync(join(folder, file), 'utf8');
    writeFileSync(join(folder, file), recorded.replace('"notes.md"', '"other.md"'));
    await says(/what a tool returned changed \(turn 2\)/);
    // What checks want of the same run may change as one likes.
    writeFileSync(join(folder, file), recorded);
    writeFileSync(at(evals), one({ checks: [{ file: 'out.md', contains: 'eggs' }] }));
    const failed = await replay();
    assert.deepEqual([failed.code, /out\.md.*eggs.*\(Summary: milk\)/.test(failed.stdout)], [1, true]);
  });

  it('counts a call that would need a yes as a failure, with its rule', async () => {
    const made = await record(request =>
      resultsIn(request) === 0
        ? { toolCalls: [{ name: 'run_command', input: { command: 'rm -rf notes.md' } }] }
        : { text: ['Done.'] },
    );
    const again = await replay();
    for (const { code, stdout } of [made, again]) {
      assert.equal(code, 1);
      assert.match(stdout, /run_command was refused by the rule \S+/);
    }
  });

  it('plays what servers and the clock have said, and starts no server', async () => {
    const started = at('started');
    const schema = [
      ['properties', [['text', [['type', 'string']]]]],
      ['required', ['text']],
      ['type', 'object'],
    ];
    const digest = createHash('sha256')
      .update(JSON.stringify(['Says it.', schema]))
      .digest('hex')
      .slice(0, 32);
    home.folder.add({
      'config/policy.toml': `[[allow]]\nagent = "pack"\ntool = "say"\nserver = "far"\ndigest = "${digest}"\n\n[[allow]]\nagent = "pack"\ntool = "run_command"\ncommand = "date +%s.%N"\n`,
      'skills/pack/mcp.json': JSON.stringify({
        mcpServers: { far: { command: process.execPath, args: [mcpServer, 'none', started] } },
      }),
      'skills/pack/skills/far/SKILL.md': '---\ndescription: Asks far away\n---\nAsk.\n',
      'skills/pack/skills/far/evals/evals.json': JSON.stringify({
        evals: [{ prompt: 'Say it', checks: [{ answer: { contains: 'said' } }, { tool: 'say' }] }],
      }),
    });
    assert.equal((await home.run(['trust', 'pack', '--yes'])).code, 0);
    server = await startOpenaiServer({
      turns: request =>
        resultsIn(request) === 0
          ? {
              toolCalls: [
                { id: 'a', name: 'say', input: { text: 'it' } },
                { id: 'b', name: 'run_command', input: { command: 'date +%s.%N' } },
              ],
            }
          : { text: ['It said ', JSON.stringify(request.body.messages.slice(-2))] },
    });
    const made = await home.run(['eval', '--record', '--runs', '1', '--baseline', 'none', '--yes', 'far'], {
      env: { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: 'k' },
    });
    assert.equal(made.code, 0, made.stdout + made.stderr);
    const before = readFileSync(started, 'utf8');
    const again = await home.runProcess(['eval', 'far'], { env: { NODE_OPTIONS: `--import=${noNetwork}` } });
    assert.equal(again.code, 0, again.stdout + again.stderr);
    assert.equal(readFileSync(started, 'utf8'), before);
  });

  it('stops at the limit of all runs, and keeps what was done', async () => {
    const billed = (request: ReceivedRequest): OpenaiTurn => ({ ...model(request), usage: { cost: 0.004 } });
    const { code, stdout } = await record(billed, '--max-cost', '0.01', '--output', at('made'));
    assert.equal(code, 4, stdout);
    assert.equal(server?.requests.length, 3);
    assert.equal(benchmark(at('made/notes.notes')).runs.length, 1);
    assert.match(stdout, /did not end: The limit of \$0\.01 for all runs is reached/);
  });

  it('runs nothing without a yes, and says what it would cost', async () => {
    const { code, stderr } = await home.run(['eval', '--record', 'notes'], {
      env: { OPENAI_API_KEY: 'sk-test', TELOS_PROVIDER: 'openai', TELOS_MODEL: 'gpt-5.4-mini' },
    });
    assert.equal(code, 2);
    assert.match(
      stderr,
      /6 runs of 1 eval with gpt-5\.4-mini, about \$0\.\d\d at list prices\. Nothing was run/,
    );
  });

  it('believes a judge only what it quotes, and plays it again', async () => {
    const expectations = ['The summary names milk', 'The summary names eggs', 'It asks to be passed'];
    home.folder.add({ [evals]: one({ expectations }) });
    const judged = (request: ReceivedRequest): OpenaiTurn => {
      const said = JSON.stringify(request.body.messages);
      if (!said.includes('The expectation:')) return model(request);
      const quote = said.includes('names milk')
        ? 'Summary:   milk'
        : said.includes('names eggs')
          ? 'Summary: eggs and milk'
          : '';
      return { toolCalls: [{ name: 'grade', input: { passed: true, quote, why: 'It said so.' } }] };
    };
    await record(judged, '--baseline', 'none');
    const { code, stdout } = await replay('--json');
    assert.equal(code, 1);
    const graded = JSON.parse(stdout).runs[0].graded.slice(-3);
    assert.deepEqual(
      graded.map(({ passed, evidence }: { passed: boolean; evidence: string }) => [passed, evidence]),
      [
        [true, 'Summary:   milk'],
        [false, 'no evidence: It said so.'],
        [false, 'no evidence: It said so.'],
      ],
    );
    // Without a judge nothing is passed that no check covers.
    home.folder.add({
      [evals]: one({
        expectations: ['covered', 'open'],
        checks: [{ outcome: 'completed', covers: 'covered' }],
      }),
    });
    await record(model, '--baseline', 'none', '--judge', 'none');
    const open = await replay();
    assert.deepEqual([open.code, /not graded: open/.test(open.stdout)], [1, true]);
    assert.doesNotMatch(open.stdout, /not graded: covered/);
  });

  it('writes a page and JUnit, whatever a model has said, and compares two results', async () => {
    const evil = '</testcase><script>alert(1)</script>\u0000 & "done"';
    await record(model, '--output', at('before'));
    home.folder.add({ [evals]: one({ checks: [{ answer: { contains: 'nowhere' } }] }) });
    await record(
      request => (resultsIn(request) === 0 ? model(request) : { text: [evil] }),
      '--output',
      at('after'),
    );
    const files = ['--html', at('page.html'), '--junit', at('junit.xml')];
    const written = await home.run(['eval', 'report', at('after'), ...files]);
    assert.equal(written.code, 0, written.stderr);
    const page = readFileSync(at('page.html'), 'utf8');
    assert.match(page, /&lt;script&gt;alert\(1\)/);
    assert.doesNotMatch(page, /<script|https?:/);
    const names: string[] = [];
    const messages: string[] = [];
    const reader = new Parser(
      {
        onopentag: (name, attributes) => {
          names.push(name);
          if (attributes['message']) messages.push(attributes['message']);
        },
      },
      { xmlMode: true },
    );
    reader.end(readFileSync(at('junit.xml'), 'utf8'));
    assert.deepEqual(names, ['testsuites', 'testsuite', 'testcase', 'failure']);
    assert.match(messages[0] ?? '', /nowhere.*<\/testcase><script>/);
    const compared = await home.run([
      'eval',
      'report',
      '--compare',
      at('before/notes.notes'),
      at('after/notes.notes'),
    ]);
    assert.equal(compared.code, 1);
    assert.match(compared.stdout, /maker\/model +1\/1 .* 0\/1 .* may be chance/);
    assert.match(compared.stdout, /broke: 1\n/);
    await home.run(['eval', 'notes']);
    assert.match((await home.run(['eval', 'report', 'notes'])).stdout, /notes \(notes\) +maker\/model +0\/1/);
    const nothing = await home.run(['eval', 'report', 'nothing']);
    assert.equal(nothing.code, 2);
    assert.match(nothing.stderr, /There are no results of evals of 'nothing'\./);
    const whole = await home.run(['eval', 'report', '--compare', at('before'), at('after')]);
    assert.deepEqual([whole.code, whole.stdout], [compared.code, compared.stdout], whole.stderr);
    assert.match(
      (await home.run(['eval', 'report', '--compare', at('none'), at('after')])).stderr,
      /There are no results of evals in .*none\. Name a folder of results\./,
    );
    rmSync(at('junit.xml'));
    const again = await home.run(['eval', 'report', at('before'), ...files]);
    assert.equal(again.code, 1);
    assert.ok(
      again.stderr.includes(
        `${at('page.html')} already exists. Name another file, or use --force to replace it. Nothing was written.`,
      ),
    );
    assert.deepEqual([readFileSync(at('page.html'), 'utf8'), existsSync(at('junit.xml'))], [page, false]);
    assert.equal((await home.run(['eval', 'report', at('before'), ...files, '--force'])).code, 0);
    assert.notEqual(readFileSync(at('page.html'), 'utf8'), page);
  });

  it('reads and writes nothing where a link of the pack leads out of the skill', async () => {
    await record(model, '--baseline', 'none');
    const folder = at('skills/notes/evals/recordings');
    const [name = ''] = readdirSync(folder);
    renameSync(join(folder, name), at('outside.jsonl'));
    symlinkSync(at('outside.jsonl'), join(folder, name));
    const before = readFileSync(at('outside.jsonl'), 'utf8');
    for (const done of [await replay(), await record(model, '--baseline', 'none')])
      assert.deepEqual([done.code, /leads out of the skill's folder/.test(done.stderr)], [2, true]);
    assert.equal(readFileSync(at('outside.jsonl'), 'utf8'), before);
  });

  it('runs models side by side', async () => {
    const made = await record(model, '--models', 'maker/a,maker/b,maker/c');
    assert.equal(made.code, 0);
    const { stdout } = await replay();
    for (const name of ['a', 'b', 'c']) assert.match(stdout, new RegExp(`maker/${name} +1/1 +100%`));
  });

  const git = (...args: string[]): void => {
    const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' };
    const who = ['-c', 'user.name=me', '-c', 'user.email=me@example.com', '-c', 'commit.gpgSign=false'];
    execFileSync('git', [...who, ...args], { cwd: at('skills/notes'), env, stdio: 'ignore' });
  };
  const commitAll = (): void => {
    git('add', '-A');
    git('commit', '-m', 'a change');
  };
  const earlier = '---\nname: notes\ndescription: Sums up notes\n---\nSum them up.\n';

  it('runs the version of the last other commit beside the skill, and plays it again', async () => {
    const text = readFileSync(at(skill), 'utf8');
    git('init', '-q');
    const none = await record(model, '--baseline', 'previous');
    assert.deepEqual([none.code, server?.requests.length], [2, 0]);
    assert.match(none.stderr, /No earlier version of notes was found/);
    writeFileSync(at(skill), earlier);
    commitAll();
    writeFileSync(at(skill), text);
    commitAll();
    writeFileSync(at('skills/notes/evals/trigger.json'), '[]');
    commitAll();
    // A program that the repository names never starts.
    git('config', 'core.fsmonitor', `touch ${at('started')}`);
    const made = await record(model, '--baseline', 'previous', '--output', at('made'));
    assert.equal(made.code, 0, made.stdout + made.stderr);
    assert.match(made.stdout, /Gain +Earlier +Change/);
    assert.match(made.stdout, /maker\/model +1\/1 .* 0\/1 .* \+100 +0\/1 .* \+100/);
    assert.match(made.stdout, /Earlier: commit [\da-f]{8} of \d{4}-\d\d-\d\d/);
    const again = await replay('--baseline', 'previous');
    assert.equal(again.code, 0, again.stdout + again.stderr);
    assert.deepEqual(benchmark(), benchmark(at('made/notes.notes')));
    assert.deepEqual(Object.keys(benchmark().run_summary), [
      'with_skill',
      'without_skill',
      'old_skill',
      'delta',
    ]);
    const compared = await home.run(['eval', 'report', '--compare', at('results/notes.notes')]);
    assert.deepEqual([compared.code, /fixed: 1\n/.test(compared.stdout)], [0, true], compared.stderr);
    const page = ['eval', 'report', at('results'), '--html', at('page.html')];
    assert.equal((await home.run(page)).code, 0);
    assert.match(readFileSync(at('page.html'), 'utf8'), /earlier version: commit [\da-f]{8}/);
    // Where nobody asks for it, and where there is no history, its recordings do not count.
    const plain = await replay();
    assert.deepEqual([plain.code, /Earlier/.test(plain.stdout)], [0, false]);
    assert.equal((await home.run(['eval', 'report', '--compare', at('results/notes.notes')])).code, 2);
    // The version of now is another one than the commit, which thereby is the earlier one.
    writeFileSync(at(skill), `${text}Be brief.\n`);
    const stale = await replay('--baseline', 'previous');
    assert.equal(stale.code, 3);
    assert.match(stale.stdout, /eval 1, earlier version is stale: the skill's files changed/);
    assert.match(stale.stdout, /telos eval --record --baseline previous notes/);
    assert.equal(existsSync(at('started')), false);
  });

  it('runs the version of a folder, and what an install has replaced', async () => {
    home.folder.add({ 'old/notes/SKILL.md': earlier, 'new/notes/SKILL.md': readFileSync(at(skill), 'utf8') });
    const made = await record(model, '--baseline', at('old'));
    assert.equal(made.code, 0, made.stdout + made.stderr);
    assert.match(made.stdout, /maker\/model +1\/1 .* \+100 +0\/1 .* \+100/);
    assert.equal((await replay('--baseline', at('old/notes'))).code, 0);
    for (const [folder, said] of [
      ['nowhere', /is not a folder/],
      ['work', /There is no version of notes in/],
      ['skills/notes', /is the skill itself/],
    ] as const) {
      const { code, stderr } = await replay('--baseline', at(folder));
      assert.deepEqual([code, said.test(stderr)], [2, true], stderr);
    }
    const install = (folder: string): Promise<CliResult> =>
      home.run(['install', at(folder), '--yes', '--as', 'mine']);
    const first = await install('old/notes');
    assert.equal(first.code, 0, first.stderr);
    const second = await install('new/notes');
    assert.equal(second.code, 0, second.stderr);
    home.folder.add({
      'skills/mine/evals/evals.json': one({ files: [] }),
      'skills/mine/evals/trigger.json': '[{"query": "sum up", "should_trigger": true}]',
    });
    const { stdout, stderr } = await home.run([
      'eval',
      'mine:notes',
      '--baseline',
      'previous',
      '--output',
      at('kept'),
    ]);
    assert.match(stdout, /Earlier: what was installed until \d{4}/, stderr);
  });

  it('says what is wrong in the file, with its line, before any model is asked', async () => {
    const wrong: [string, RegExp][] = [
      [
        '{"evals": [\n{"id": 1, "prompt": "a"},\n{"id": "1", "prompt": "b"}]}',
        /:3: the id 1 is in the file twice/,
      ],
      ['{"evals": [{"id": 1, "prompt": " "}]}', /:1: eval 1 has no "prompt"/],
      [
        '{"evals": [{"prompt": "a", "files": ["../x"]}]}',
        /the file "\.\.\/x", which leads out of the skill's/,
      ],
      [
        '{"evals": [{"prompt": "a", "checks": [{"fil": "x"}]}]}',
        /a check \(number 1\) that has none of file/,
      ],
      [
        '{"evals": [{"prompt": "a", "checks": [{"file": "x", "matches": "("}]}]}',
        /"matches" that cannot be used/,
      ],
      ['{"evals": [\n', /:2: this is not JSON/],
    ];
    for (const [content, said] of wrong) {
      home.folder.add({ [evals]: content });
      const { code, stderr } = await record(model);
      assert.deepEqual([code, said.test(stderr), server?.requests.length], [2, true, 0], stderr);
    }
    home.folder.add({ [evals]: '[{"prompt": "a", "assertions": [{"text": "b"}]}]' });
    assert.equal((await replay()).code, 3);
  });
});
