import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { SkillEndRecord } from '../../src/engine/records/logFile.ts';
import type { RunEvent } from '../../src/protocol/run.ts';
import { gate, until } from '../eventually.ts';
import {
  type AnthropicServerOptions,
  type FakeServer,
  startAnthropicServer,
} from '../fakes/anthropicServer.ts';
import { startOpenaiServer } from '../fakes/openaiServer.ts';
import { type CliHome, cliHome, installedNodes, packageVersion, program } from './cliProcess.ts';

const skills = {
  'skills/kairos/agent.toml': 'name = "kairos"\ndescription = "plans"\nworking_dir = "."\n',
  'skills/kairos/skills/kickoff/SKILL.md': '---\ndescription: Morning plan\n---\nWrite the plan to today.md.',
  'skills/kairos/skills/shutdown/SKILL.md': '---\ndescription: Evening\n---\nSum up.',
  'skills/gmail/skills/check-email/SKILL.md': '---\ndescription: Reads mail\n---\nRead.',
};

const writePlan = { name: 'write_file', input: { path: 'today.md', content: '# Today\n' } };

describe('telos', function () {
  this.timeout(30_000);
  let home: CliHome;
  let server: FakeServer | undefined;

  beforeEach(() => {
    home = cliHome({ ...skills, 'elsewhere/.keep': '' });
  });
  afterEach(async () => {
    await server?.close();
    server = undefined;
    home.remove();
  });

  async function serving(
    turns: AnthropicServerOptions['turns'],
    options: Partial<AnthropicServerOptions> = {},
  ): Promise<Record<string, string>> {
    server = await startAnthropicServer({ turns, ...options });
    return { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: 'test-key-0123456789' };
  }

  for (const { version, path } of installedNodes()) {
    it(`runs a skill under Node ${version}: words as they come, tools, file and log`, async () => {
      const said = gate();
      const env = await serving([
        {
          text: ['I ', 'plan ', 'it. '],
          toolCalls: [writePlan],
          hold: { behind: 'plan ', until: said.opened },
        },
        { text: ['All ', 'done'] },
      ]);
      const cli = home.start(['run', 'daily', 'kickoff'], { env, node: path });
      await cli.says('I plan');
      said.open();
      const { code, stdout, stderr } = await cli.result;
      assert.match(
        stderr,
        /^kickoff \(kairos\): named in your request\nWorks in: this folder\n→ Writing today\.md\nDone in [\d.]+ s · 130 tokens · under \$0\.0001 · 1 file: today\.md\n$/,
      );
      assert.equal(stdout, 'I plan it. \n\nAll done\n');
      assert.equal(code, 0);
      assert.equal(readFileSync(join(home.workDir, 'today.md'), 'utf8'), '# Today\n');
      const log = await home.log();
      assert.deepEqual(
        log.map(record => record.event),
        ['skill_start', 'tool_call', 'skill_end'],
      );
      const end = log.at(-1) as SkillEndRecord;
      assert.deepEqual([end.outcome, end.rounds, end.tool_calls, end.error], ['completed', 2, 1, null]);
      assert.deepEqual(end.messages.at(-1)?.content, [{ type: 'text', text: 'All done' }]);
      const first = server?.requests[0]?.body.messages[0];
      assert.match(JSON.stringify(first), /User request: run daily kickoff/);
    });
  }

  it('prints nothing but events with --json, from run_start to run_end', async () => {
    const env = await serving([{ text: ['a\u202e', 'b'], toolCalls: [writePlan] }, { text: ['c'] }]);
    const { code, stdout, stderr } = await home.run(['--json', 'kickoff'], { env });
    const events = stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line) as RunEvent);
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(events[0]?.type, 'run_start');
    assert.equal(events.at(-1)?.type, 'run_end');
    const text = events.flatMap(event => (event.type === 'text' ? [event.text] : [])).join('');
    assert.equal(text, 'a\u202ebc');
    assert.match(stdout, /\\u202e/);
    assert.ok(events.some(event => event.type === 'tool_end' && event.name === 'write_file'));
  });

  it('shows results, tokens and the end with --verbose, and only on stderr', async () => {
    const env = await serving([
      { toolCalls: [{ name: 'list_directory', input: { path: '.' } }] },
      { text: ['ok'] },
    ]);
    const { stdout, stderr } = await home.run(['--verbose', 'kickoff'], { env });
    assert.equal(stdout, 'ok\n');
    assert.match(stderr, /→ Listing \.\n {2}.*\.keep/);
    assert.match(stderr, /step 1: 25 tokens in, 40 out/);
    assert.match(stderr, /Done in .* · 2 steps · 1 tool call · 130 tokens/);
  });

  it('asks no model again once the budget is reached, and says how to raise it', async () => {
    const env = await serving([{ toolCalls: [writePlan] }, { text: ['never'] }]);
    const { code, stdout, stderr } = await home.run(['--max-tokens', '60', 'kickoff'], { env });
    assert.deepEqual([code, stdout, server?.requests.length], [1, '', 1]);
    assert.match(
      stderr,
      /The budget of this run is used up: 65 of 60 tokens\. Raise or remove the limit \(--max-tokens\)/,
    );
    const log = await home.log();
    assert.equal((log.at(-1) as SkillEndRecord).outcome, 'budget');
    const day = await home.run(['kickoff'], { env: { ...env, TELOS_MAX_TOKENS_PER_DAY: '65' } });
    assert.match(day.stderr, /The budget of the day is used up: 65 of 65 tokens/);
    assert.equal((await home.run(['--max-cost', 'five', 'kickoff'], { env })).code, 2);
    assert.equal(server?.requests.length, 1);
  });

  it('asks no model whose price is not known where a cost is limited, and says how to go on', async () => {
    const chat = await startOpenaiServer({ turns: [{ text: ['never'] }] });
    server = chat;
    const env = {
      OPENAI_BASE_URL: chat.url,
      OPENAI_API_KEY: 'test-key-0123456789',
      TELOS_PROVIDER: 'openai',
      TELOS_MODEL: 'my-own-model',
    };
    const said =
      /The price of my-own-model \(openai\) is not known, so the limit of cost cannot be kept: (.+?)\. /;
    const limits: [string[], Record<string, string>, string][] = [
      [['--max-cost', '5'], {}, '--max-cost'],
      [[], { TELOS_MAX_COST: '5' }, 'TELOS_MAX_COST'],
      [[], { TELOS_MAX_COST_PER_DAY: '5' }, 'TELOS_MAX_COST_PER_DAY'],
    ];
    for (const [flags, more, place] of limits)
      for (const request of ['kickoff', 'what is the plan for the week']) {
        const { code, stdout, stderr } = await home.run([...flags, request], { env: { ...env, ...more } });
        assert.deepEqual([code, stdout, said.exec(stderr)?.[1]], [1, '', place], stderr);
      }
    assert.equal(chat.requests.length, 0);
    const ends = (await home.log()).filter(
      (record): record is SkillEndRecord => record.event === 'skill_end',
    );
    assert.deepEqual(
      ends.map(({ outcome }) => outcome),
      ['budget', 'no_match', 'budget', 'no_match', 'budget', 'no_match'],
    );
    const { code, stdout } = await home.run(['--max-tokens', '5000', 'kickoff'], { env });
    assert.deepEqual([code, stdout], [0, 'never\n']);
  });

  it('says that a run has failed whose model has given no answer, on the command line, in the log and in runs', async () => {
    for (const [turn, said] of [
      [{}, /returned an empty answer/],
      [{ thinking: [{ thinking: 'hm', signature: 's' }] }, /only thought, and gave no answer/],
      [{ stopReason: 'refusal' }, /declined to continue/],
      [{ text: ['<tool_call>{"name":"launch","arguments":{}}</tool_call>'] }, /--enable-auto-tool-choice/],
    ] as const) {
      const env = await serving([{ toolCalls: [writePlan] }, turn as object]);
      const { code, stderr } = await home.run(['--yes', 'kickoff'], { env });
      assert.deepEqual([code, server?.requests.length], [1, 3], stderr);
      assert.match(stderr, said);
      assert.match(stderr, /It was asked twice, so this run has no answer\./);
      assert.match(stderr, /Failed after/);
      const end = (await home.log()).at(-1) as SkillEndRecord;
      assert.equal(end.outcome, 'failed');
      assert.match(end.error ?? '', said);
      assert.match((await home.run(['runs'], { env })).stdout, /failed/);
      await server?.close();
      // What is sent goes on after it.
      const again = await serving([{ text: ['here'] }]);
      assert.equal((await home.run(['--continue', 'and now?'], { env: again })).stdout, 'here\n');
      await server?.close();
      server = undefined;
    }
  });

  it('runs a skill as its author and the person have set it: model, effort, limits and mode', async () => {
    const author =
      'model = "claude-sonnet-5"\neffort = "low"\n[skills.kickoff]\neffort = "high"\nmode = "plan"\n';
    writeFileSync(join(home.skillsDir, 'kairos/agent.toml'), `name = "kairos"\n${author}`);
    const config = { TELOS_CONFIG_DIR: mkdtempSync(join(home.folder.path, 'config-')) };
    const agentsToml = join(config.TELOS_CONFIG_DIR, 'agents.toml');
    const env = { ...(await serving([{ text: ['ok'] }])), ...config };
    const bodyOf = async (...args: string[]) => {
      const { code, stderr } = await home.run([...args, 'kickoff'], { env });
      assert.equal(code, 0, stderr);
      const { model, output_config, tools } = server?.requests.at(-1)?.body ?? {};
      const names: string[] = (tools ?? []).map(({ name }: { name: string }) => name);
      return { stderr, seen: [model, output_config?.effort, names.includes('write_file')] };
    };
    const first = await bodyOf();
    assert.deepEqual(first.seen, ['claude-sonnet-5', 'high', false]);
    assert.match(first.stderr, /The skill kickoff is set to plan: it only reads\./);
    assert.deepEqual((await bodyOf('--model', 'claude-opus-5', '--effort', 'max')).seen.slice(0, 2), [
      'claude-opus-5',
      'max',
    ]);
    const own =
      '[agents.kairos.skills.kickoff]\nmodel = "claude-opus-5-5"\nmode = "default"\nmax_tokens = 1\n';
    writeFileSync(agentsToml, own);
    assert.deepEqual((await bodyOf()).seen, ['claude-opus-5-5', 'high', true]);
    const read = [{ name: 'read_file', input: { path: 'x' } }];
    await server?.close();
    const again = { ...(await serving([{ toolCalls: read }, { text: ['never'] }])), ...config };
    const { code, stderr } = await home.run(['kickoff'], { env: again });
    assert.equal(code, 1);
    assert.match(stderr, /used up: 65 of 1 tokens\. Raise or remove the limit \(.*agents\.toml\)/);
    writeFileSync(join(home.skillsDir, 'kairos/agent.toml'), 'model = "gpt-5.4"\n');
    writeFileSync(agentsToml, '');
    const foreign = await home.run(['kickoff'], { env: again });
    assert.match(
      foreign.stderr,
      /kickoff asks for gpt-5\.4, which is not a model of anthropic, so claude-haiku-5-5 runs it/,
    );
    assert.equal(server?.requests.at(-1)?.body.model, 'claude-haiku-5-5');
    writeFileSync(join(home.skillsDir, 'kairos/agent.toml'), 'model = "openai:gpt-5.4"\neffort = "much"\n');
    writeFileSync(agentsToml, '');
    const odd = await home.run(['kickoff'], { env: again });
    assert.match(odd.stderr, /model is "openai:gpt-5\.4" in the settings of the skill, so it is not used/);
    assert.match(odd.stderr, /effort is "much" in the settings of the skill, so it is not used/);
    assert.equal(server?.requests.at(-1)?.body.model, 'claude-haiku-5-5');
  });

  it('lets no escape sequence of a model or a tool reach the terminal', async () => {
    const env = await serving([
      { text: ['\x1b]0;owned\x07'], toolCalls: [{ name: 'read_file', input: { path: 'no\x1b[2Jfile' } }] },
      { text: ['\x9b2J\u202e end'] },
    ]);
    const { stdout, stderr } = await home.run(['kickoff'], { env });
    assert.doesNotMatch(stdout + stderr, /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]/);
    assert.equal(stdout, '\\x1b]0;owned\\x07\n\n\\x9b2J\\u202e end\n');
    assert.match(stderr, /→ Reading no\\x1b\[2Jfile/);
  });

  it('keeps text and tool lines apart where both go to one pipe', async () => {
    const env = await serving([{ text: ['I look.'], toolCalls: [writePlan] }, { text: ['All done'] }]);
    const line = `'${process.execPath}' '${program()}' kickoff 2>&1 | cat`;
    const child = spawn('sh', ['-c', line], { cwd: home.workDir, env: { ...home.env, ...env } });
    let both = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      both += text;
    });
    await once(child, 'close');
    assert.match(
      both,
      /^kickoff \(kairos\): .*\nWorks in: this folder\nI look\.\n→ Writing today\.md\nAll done\nDone in .*\n$/,
    );
  });

  it('finds an agent and a provider in any case', async () => {
    const { code, stdout } = await home.run(['--agent', 'KAIROS', '--dry-run', 'kickoff']);
    assert.deepEqual([code, /^Would run kickoff \(kairos\)/.test(stdout)], [0, true], stdout);
    const env = { ...(await serving([{ text: ['ok'] }])), TELOS_PROVIDER: 'Anthropic' };
    assert.equal((await home.run(['--agent', 'Gmail', 'check-email'], { env })).stdout, 'ok\n');
  });

  it('says which folder of its own cannot be used, and what sets another one', async () => {
    const file = join(home.folder.path, 'elsewhere/.keep');
    for (const words of [['runs'], ['undo', '--list'], ['uninstall', 'kairos', '--yes']]) {
      const { code, stderr } = await home.run(words, { env: { TELOS_DATA_DIR: file } });
      assert.equal(code, 1);
      assert.match(
        stderr,
        /^telos: .*\.keep\S* .*not a folder\. Telos keeps its data in .*; TELOS_DATA_DIR sets another folder\.\n$/,
      );
    }
    const settings = await home.run(['init'], { env: { TELOS_CONFIG_DIR: file } });
    assert.match(settings.stderr, /\.keep is not a folder\..* TELOS_CONFIG_DIR sets another folder\./);
    const env = { ...(await serving([{ text: ['ok'] }])), TELOS_DATA_DIR: file };
    const run = await home.run(['kickoff'], { env });
    assert.deepEqual([run.code, run.stdout], [0, 'ok\n']);
    assert.match(run.stderr, /This run is not saved, or only in part\. .* not a folder\./);
    assert.doesNotMatch(run.stderr, /ENOTDIR|EEXIST/);
  });

  it('says that nothing matches, and what there is, with exit 1', async () => {
    for (const args of [['get me a pizza'], ['--dry-run', 'get', 'me', 'a', 'pizza']]) {
      const { code, stdout, stderr } = await home.run(args);
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, /^No matching skill found for: 'get me a pizza'\nAvailable skills:\n/);
      for (const name of ['kickoff (kairos)', 'shutdown (kairos)', 'check-email (gmail)']) {
        assert.ok(stderr.includes(name), name);
      }
    }
  });

  it('answers without a skill in a pipe where --answer or the setting says so', async () => {
    const answer = { text: ['I cook none.'] };
    const served = await serving([answer, answer]);
    const always = { TELOS_ANSWER_WITHOUT_SKILL: 'always' };
    for (const [args, more] of [
      [['--answer', 'get me a pizza'], {}],
      [['get me a pizza'], always],
    ] as const) {
      const env = { ...served, ...more };
      const { code, stdout, stderr } = await home.run([...args], { env });
      assert.deepEqual([code, stdout], [0, 'I cook none.\n'], stderr);
      assert.match(stderr, /^no skill\nDone in /);
    }
    const dry = await home.run(['--dry-run', '--answer', 'get me a pizza']);
    assert.deepEqual([dry.code, dry.stdout], [0, 'Would run no skill\n']);
    const wrong = await home.run(['get me a pizza'], { env: { TELOS_ANSWER_WITHOUT_SKILL: 'never' } });
    assert.match(wrong.stderr, /is 'never', which is unknown, so ask is used\. Write ask or always\./);
    assert.equal(wrong.code, 1);
  });

  it('says with --dry-run what would run, and runs nothing', async () => {
    const env = await serving([{ text: ['never'] }]);
    const { code, stdout } = await home.run(['--agent', 'gmail', '--dry-run', 'check-email'], { env });
    assert.deepEqual([code, stdout], [0, 'Would run check-email (gmail): named in your request\n']);
    const json = await home.run(['--json', '--dry-run', 'kickoff'], { env });
    assert.deepEqual(JSON.parse(json.stdout).skill, 'kickoff');
    assert.equal(server?.requests.length, 0);
    assert.ok(!existsSync(join(home.dataDir, 'logs')));
  });

  it('names the agents there are when asked for another', async () => {
    for (const args of [
      ['--agent', 'nope', 'kickoff'],
      ['--agent', 'nope', '--dry-run', 'kickoff'],
      ['list-skills', '--agent', 'nope'],
    ]) {
      const { code, stdout, stderr } = await home.run(args);
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, /Agent 'nope' not found.*gmail, kairos/);
    }
  });

  it('passes on the reason of the provider for a wrong key, and what to do', async () => {
    const message = 'invalid x-api-key';
    const env = await serving([
      { status: 401, errorBody: { type: 'error', error: { type: 'authentication_error', message } } },
    ]);
    const { code, stdout, stderr } = await home.run(['kickoff'], { env });
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /invalid x-api-key/);
    assert.match(stderr, /ANTHROPIC_API_KEY/);
    assert.doesNotMatch(stderr, /test-key-0123456789/);
    assert.equal(server?.requests.length, 1);
    assert.equal(((await home.log()).at(-1) as SkillEndRecord).outcome, 'failed');
  });

  it('fails when the stream is cut, and the log has what had arrived', async () => {
    const env = await serving([
      { text: ['first '], toolCalls: [writePlan] },
      {
        text: ['half a ', 'sentence'],
        withoutStop: true,
        streamError: { type: 'api_error', message: 'gone' },
      },
    ]);
    const { code, stdout, stderr } = await home.run(['kickoff'], { env });
    assert.equal(code, 1);
    assert.match(stdout, /^first \n\nhalf a sentence\n$/);
    assert.notEqual(stderr.trim().split('\n').at(-1), '→ Writing today.md');
    const end = (await home.log()).at(-1) as SkillEndRecord;
    assert.equal(end.outcome, 'failed');
    assert.ok(end.error);
    assert.match(JSON.stringify(end.messages), /half a sentence/);
  });

  it('ends cleanly on Ctrl-C: exit 130, the request dropped, a log record that says so', async () => {
    const env = await serving([{ text: ['working'], stallAfterStartMs: 20_000 }]);
    const cli = home.start(['kickoff'], { env });
    await cli.says('kickoff (kairos)');
    await until(() => server?.requests.length === 1);
    cli.child.kill('SIGINT');
    const { code, stderr } = await cli.result;
    assert.equal(code, 130);
    assert.match(stderr, /Cancelled/);
    await until(() => server?.requests[0]?.aborted === true);
    const end = (await home.log()).at(-1) as SkillEndRecord;
    assert.deepEqual([end.event, end.outcome], ['skill_end', 'cancelled']);
  });

  it('denies what must be asked when nobody can be, names the rule, and goes on', async () => {
    const command = { name: 'run_command', input: { command: 'touch made-by-command' } };
    const env = await serving([{ toolCalls: [command] }, { text: ['so be it'] }]);
    const { code, stdout, stderr } = await home.run(['kickoff'], { env });
    assert.deepEqual([code, stdout], [0, 'so be it\n']);
    assert.match(stderr, /✗ Running touch made-by-command: .*--yes/);
    assert.ok(!existsSync(join(home.workDir, 'made-by-command')));
  });

  it('allows it with --yes', async () => {
    const command = { name: 'run_command', input: { command: 'touch made-by-command' } };
    const env = await serving([{ toolCalls: [command] }, { text: ['made'] }]);
    const { code, stderr } = await home.run(['--yes', 'kickoff'], { env });
    assert.equal(code, 0);
    assert.match(
      stderr,
      /^kickoff \(kairos\): named in your request\nWorks in: this folder\n→ Running touch made-by-command\nDone in [^\n]*\n$/,
    );
    assert.ok(existsSync(join(home.workDir, 'made-by-command')));
  });

  it('shows what a command prints while it runs, with --verbose, and once', async () => {
    const line =
      "printf '\\033[32mfirst\\033[0m\\n'; while ! test -e go; do sleep 0.05; done; echo last; exit 3";
    const env = await serving([
      { toolCalls: [{ name: 'run_command', input: { command: line, cwd: home.workDir } }] },
      { text: ['done'] },
    ]);
    const cli = home.start(['--yes', '--verbose', 'kickoff'], { env });
    await cli.says('  first\n');
    writeFileSync(join(home.workDir, 'go'), '');
    const { code, stderr } = await cli.result;
    assert.equal(code, 0, stderr);
    assert.match(stderr, /\n {2}first\n {2}last\n {2}\[exit code: 3\]\n/);
    assert.equal(stderr.match(/^ {2}first$/gm)?.length, 1);
    const [kept = ''] = readdirSync(join(home.dataDir, 'runs'));
    const run = readFileSync(join(home.dataDir, 'runs', kept), 'utf8');
    assert.match(run, /"content":"\S*first/);
    assert.doesNotMatch(run, /tool_output/);
  });

  it('records a run and plays it back offline with the same file at its end, and nowhere else', async () => {
    const env = await serving([{ text: ['Writing. '], toolCalls: [writePlan] }, { text: ['Done.'] }]);
    const live = await home.run(['--record', 'run.jsonl', 'kickoff'], { env });
    assert.equal(live.code, 0, live.stderr);
    await server?.close();
    rmSync(join(home.workDir, 'today.md'));
    const again = await home.run(['--replay', 'run.jsonl', 'kickoff']);
    assert.deepEqual([again.code, again.stdout], [0, live.stdout]);
    assert.match(again.stderr, /recording of claude-haiku-5-5/);
    assert.equal(readFileSync(join(home.workDir, 'today.md'), 'utf8'), '# Today\n');
    const elsewhere = await home.run(['--cwd', '../elsewhere', '--replay', 'run.jsonl', 'kickoff']);
    assert.equal(elsewhere.code, 1);
    assert.match(
      elsewhere.stderr,
      /This recording was made in another folder\. Set up a model to run it here\./,
    );
    assert.ok(!existsSync(join(home.folder.path, 'elsewhere/today.md')));
  });

  it('replaces no file with a recording without --force, whatever else it may do, and asks no model then', async () => {
    const env = await serving([{ text: ['Done.'] }]);
    const file = join(home.workDir, 'notes.md');
    writeFileSync(file, 'mine');
    const before = server?.requests.length;
    for (const more of [['kickoff'], ['--yes', 'kickoff'], ['ask', 'what'], ['chat', 'kickoff']]) {
      const { code, stderr } = await home.run(['--record', 'notes.md', ...more], { env });
      assert.equal(code, 1, more.join(' '));
      assert.equal(
        stderr.split('\n').at(-2),
        `${file} already exists. Name another file, or use --force to replace it. Nothing was written.`,
      );
    }
    assert.match(
      (await home.run(['--record', '.', '--force', 'kickoff'], { env })).stderr,
      /is a folder\. Name a file\./,
    );
    assert.deepEqual([server?.requests.length, readFileSync(file, 'utf8')], [before, 'mine']);
    assert.equal((await home.run(['--record', 'notes.md', '--force', 'kickoff'], { env })).code, 0);
    assert.match(readFileSync(file, 'utf8'), /^\{"format":"telos-recording"/);
  });

  it('asks no model where a slash names neither a skill nor an agent', async () => {
    const env = await serving([{ text: ['Done.'] }]);
    const { code, stderr } = await home.run(['/nope x'], { env });
    assert.equal(code, 1);
    assert.match(stderr, /^There is no skill and no agent 'nope'\. .*telos list-skills.*telos -- "\/nope x"/);
    assert.match((await home.run(['/kickof', 'x'], { env })).stderr, /Did you mean \/kickoff\?/);
    assert.equal(server?.requests.length, 0);
    assert.equal((await home.run(['/KICKOFF x'], { env })).code, 0);
  });

  it('is quiet when the reader of stdout goes away, and ends what it began', async () => {
    const env = await serving([{ text: ['one ', 'two '], toolCalls: [writePlan] }, { text: ['three'] }], {
      chunkDelayMs: 30,
    });
    const cli = home.start(['kickoff'], { env });
    await cli.says('one');
    cli.child.stdout?.destroy();
    const { code, stderr } = await cli.result;
    assert.equal(code, 0);
    assert.doesNotMatch(stderr, /EPIPE|Error/);
    assert.ok(existsSync(join(home.workDir, 'today.md')));
  });

  it('lists the agents, as a table and as JSON', async () => {
    const { code, stdout } = await home.run(['agents']);
    assert.equal(code, 0);
    const lines = stdout.split('\n');
    assert.match(lines[0] ?? '', /^Agent +Mode +Skills +Pack Dir +Working Dir$/);
    assert.match(lines[1] ?? '', /^gmail +installed +1 +\/.*gmail +Works in: this folder$/);
    assert.match(lines[2] ?? '', /^kairos +installed +2 +\/.*kairos +Works in: this folder$/);
    const json = JSON.parse((await home.run(['agents', '--json'])).stdout);
    assert.deepEqual(
      json.map((agent: { name: string; skills: number }) => [agent.name, agent.skills]),
      [
        ['gmail', 1],
        ['kairos', 2],
      ],
    );
  });

  it('says that its output could not be written, and fails', () => {
    const readOnly = openSync(join(home.skillsDir, 'kairos/skills/kickoff/SKILL.md'), 'r');
    try {
      const { status, stderr } = spawnSync(process.execPath, [program(), 'agents'], {
        env: home.env,
        cwd: home.workDir,
        stdio: ['ignore', readOnly, 'pipe'],
        encoding: 'utf8',
      });
      assert.equal(status, 1);
      assert.match(stderr, /cannot be written/);
      assert.doesNotMatch(stderr, /defect/);
    } finally {
      closeSync(readOnly);
    }
  });

  it('tells of the first few defects only, errors before the others', async () => {
    const files: Record<string, string | Uint8Array> = {
      'skills/kairos/skills/zz/SKILL.md': new Uint8Array([0]),
    };
    for (let index = 0; index < 9; index++)
      files[`skills/kairos/skills/b${index}/SKILL.md`] = 'No frontmatter';
    home.folder.add(files);
    const lines = (await home.run(['list-skills'])).stderr.trimEnd().split('\n');
    assert.equal(lines.length, 6);
    assert.match(lines[0] ?? '', /zz\/SKILL\.md:1: The file is not UTF-8/);
    assert.match(lines[5] ?? '', /5 more problems; telos lint/);
  });

  it('lists the skills sorted by name, all or those of one agent, a broken one with its defect', async () => {
    home.folder.add({ 'skills/kairos/skills/broken/SKILL.md': '---\ndescription: [no end\n---\nB' });
    const all = await home.run(['list-skills']);
    const names = all.stdout.split('\n').map(line => line.split(' ')[0]);
    assert.deepEqual(names, ['Skill', 'broken', 'check-email', 'kickoff', 'shutdown', '']);
    assert.match(all.stderr, /broken\/SKILL\.md:\d+: /);
    const one = await home.run(['list-skills', '--agent', 'gmail']);
    assert.equal(one.stdout, 'Skill        Description\ncheck-email  Reads mail\n');
    const json = JSON.parse((await home.run(['--json', 'list-skills', '--agent', 'gmail'])).stdout);
    assert.equal(json[0].skill, 'check-email');
  });

  it('marks the skills that the person has disabled in the editor', async () => {
    const routed = async (): Promise<string> => (await home.run(['route', 'run check-email'])).stdout;
    assert.match(await routed(), /^Would run check-email \(gmail\)/);
    const disabled = '[{"agent": "gmail", "skill": "check-email"}]';
    home.folder.add({ 'data/skills/disabled.json': disabled });
    const list = await home.run(['list-skills', '--agent', 'gmail']);
    assert.equal(list.stdout, 'Skill        Description\ncheck-email  [disabled] Reads mail\n');
    const [first] = JSON.parse((await home.run(['--json', 'list-skills', '--agent', 'gmail'])).stdout);
    assert.equal(first.disabled, true);
    assert.doesNotMatch(await routed(), /Would run check-email/);
  });

  it('says where skills go when there are none', async () => {
    const empty = cliHome();
    try {
      for (const args of [['agents'], ['list-skills'], ['run it']]) {
        const { code, stdout, stderr } = await empty.run(args);
        assert.deepEqual([code, stdout], [1, '']);
        assert.match(stderr, /telos init/);
        assert.ok(stderr.includes(empty.skillsDir), stderr);
      }
    } finally {
      empty.remove();
    }
  });

  it('prints help and version, and exits 2 on wrong usage', async () => {
    const help = await home.run(['--help']);
    assert.equal(help.code, 0);
    assert.match(help.stdout, /list-skills/);
    assert.equal((await home.run([])).stdout, help.stdout);
    const version = await home.run(['--version']);
    assert.deepEqual([version.code, version.stdout], [0, `${packageVersion()}\n`]);
    for (const args of [
      ['--nonsense', 'x'],
      ['--agent'],
      ['--agent', 'kairos'],
      ['agents', 'of', 'change'],
      ['--cwd', 'nowhere', 'kickoff'],
    ]) {
      const { code, stdout, stderr } = await home.run(args);
      assert.deepEqual([code, stdout], [2, ''], args.join(' '));
      assert.ok(stderr.length > 0);
    }
    assert.match(
      (await home.run(['agents', 'of', 'change'])).stderr,
      /To send this as a request, type: telos -- agents of change\n/,
    );
  });

  it('takes options of its own behind the name of a command too', async () => {
    const asked = await home.run(['ask', 'anything', '--dry-run', '--json', '--verbose']);
    assert.equal(asked.code, 0, asked.stderr);
    assert.deepEqual(JSON.parse(asked.stdout).reason, { rule: 'without_skill' });
    assert.equal((await home.run(['agents', '--cwd', '.'])).code, 0);
    const nowhere = await home.run(['runs', 'show', '--cwd', 'nowhere']);
    assert.deepEqual([nowhere.code, nowhere.stdout], [2, '']);
    assert.match(nowhere.stderr, /the folder .*nowhere does not exist/);
  });

  it('says that the folder is gone that it was called in', () => {
    const script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"';
    const gone = spawnSync('sh', ['-c', script, 'sh', process.execPath, program(), 'agents'], {
      cwd: home.folder.path,
      env: { ...home.env },
      encoding: 'utf8',
    });
    assert.deepEqual([gone.status, gone.stdout], [2, '']);
    assert.match(gone.stderr, /^The current folder no longer exists\./);
  });

  it('does nothing where a dry run is wanted of a command that has none', async () => {
    const { code, stderr } = await home.run(['--dry-run', 'uninstall', 'kairos', '--yes']);
    assert.equal(code, 2);
    assert.match(stderr, /--dry-run/);
    assert.ok(existsSync(join(home.skillsDir, 'kairos')));
    assert.equal((await home.run(['--dry-run', 'route', 'kickoff'])).code, 0);
  });
});
