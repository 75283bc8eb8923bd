/** `telos-agent` as scripts use it and as Python does, against a model server in Anthropic's wire format. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findBox } from '../../src/engine/box/findBox.ts';
import { type CliHome, type CliResult, cliHome, program } from '../cli/cliProcess.ts';
import { type AnthropicTurn, type FakeServer, startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { ReceivedRequest } from '../fakes/loopback.ts';

const agent = (): string => join(dirname(program()), 'agent.js');
const examples = fileURLToPath(new URL('../../examples/python/', import.meta.url));
/** Names a program that can reach the network, so that it is asked about. */
const networkCommand = `node -e "require('node:fs').writeFileSync('from-command', '')"`;
const transcript = 'North Star: Build a bakery website\n\nSummary: Three pages.\n';

/** Plays all roles: asks until tech stack is known, plans, splits into two stories, builds and approves. */
function everyRole({ body }: ReceivedRequest): AnthropicTurn {
  const names: string[] = (body.tools ?? []).map((tool: { name: string }) => tool.name);
  const words = JSON.stringify(body.messages[0]);
  const call = (name: string, input: object): AnthropicTurn => ({ toolCalls: [{ name, input }] });
  if (body.messages.length > 1) return { text: ['That is all.'] };
  if (names.includes('submit_round'))
    return words.includes('Whatever you recommend')
      ? call('submit_round', { ready: true, questions: [] })
      : call('submit_round', { ready: false, questions: ['Which tech stack?', 'Online ordering?'] });
  if (names.includes('submit_plan')) return call('submit_plan', { text: '# Bakery\nThree pages.\n' });
  const story = (title: string) => ({ title, criteria: [`${title} is there`], checks: [] });
  if (names.includes('submit_story'))
    return {
      toolCalls: ['Home', 'Menu'].map(title => ({ name: 'submit_story', input: story(title) })),
    };
  if (names.includes('approve')) return call('approve', { summary: 'Seen.' });
  const file = words.includes('Build the story US-001') ? 'home.html' : 'menu.html';
  return call('write_file', { path: file, content: `<h1>${file}</h1>` });
}

describe('telos-agent', function () {
  this.timeout(60_000);
  let home: CliHome;
  let server: FakeServer;
  let answer: (request: ReceivedRequest) => AnthropicTurn;
  let env: Record<string, string>;
  beforeEach(async () => {
    home = cliHome({ 'work/transcript.txt': transcript, 'work/app/.keep': '' });
    answer = everyRole;
    server = await startAnthropicServer({ turns: request => answer(request) });
    env = { ...home.env, ANTHROPIC_API_KEY: 'test-key-0123456789', ANTHROPIC_BASE_URL: server.url };
  });
  afterEach(async () => {
    await server.close();
    home.remove();
  });

  async function run(
    command: string,
    args: readonly string[],
    cwd = home.workDir,
    input = '',
  ): Promise<CliResult> {
    const child = spawn(command, args, { cwd, env });
    const result: CliResult = { code: null, stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', piece => {
      result.stdout += piece;
    });
    child.stderr.setEncoding('utf8').on('data', piece => {
      result.stderr += piece;
    });
    child.stdin.end(input);
    [result.code] = await once(child, 'close');
    return result;
  }
  const telosAgent = (...args: string[]) => run(process.execPath, [agent(), ...args]);
  const read = (path: string): string => readFileSync(join(home.workDir, path), 'utf8');

  it('asks what must be known, and no model when nothing more is to be asked', async () => {
    const given = ['interview', '--project-dir', 'app', '--transcript', 'transcript.txt'];
    const asked = await telosAgent(...given);
    assert.deepEqual([asked.code, asked.stdout], [0, '1. Which tech stack?\n2. Online ordering?\n']);
    const before = server.requests.length;
    const { stdout } = await telosAgent(...given, '--no-more-questions', '--json');
    assert.deepEqual(JSON.parse(stdout), { questions: [], ready: true });
    assert.equal(server.requests.length, before);
    assert.equal(server.requests[0]?.body.model, 'claude-opus-5-5');
  });

  it('plans, splits and builds, command by command', async () => {
    const missing = await telosAgent('generate-prds', '--project-dir', 'app');
    assert.equal(missing.code, 1);
    assert.match(missing.stderr, /no plan\.md/);
    assert.equal(
      (await telosAgent('generate-plan', '--project-dir', 'app', '--transcript', 'transcript.txt')).code,
      0,
    );
    assert.equal(read('app/plan.md'), '# Bakery\nThree pages.\n');
    assert.equal((await telosAgent('generate-prds', '--project-dir', 'app')).code, 0);
    const built = await telosAgent(
      'execute',
      '--project-dir',
      'app',
      '--json',
      '--model',
      'claude-haiku-4-5',
    );
    assert.equal(built.code, 0, built.stderr);
    const { success, iterations } = JSON.parse(built.stdout);
    assert.deepEqual([success, iterations], [true, 2]);
    assert.equal(read('app/menu.html'), '<h1>menu.html</h1>');
    assert.match(read('app/prds/02-menu.md'), /- \[x\] 1\. Menu is there/);
    assert.match(built.stderr, /Attempt 1 of 10: US-001, criterion 1/);
    assert.equal(server.requests.at(-1)?.body.model, 'claude-haiku-4-5');
    const requests = server.requests.length;
    const again = await telosAgent('execute', '--project-dir', 'app');
    assert.deepEqual([again.code, server.requests.length], [0, requests]);
    assert.match(again.stdout, /^Nothing to do: .* No model has reviewed the work in this run\.\n$/);
    const runs = await home.run(['runs', '--json']);
    assert.ok(runs.stdout.includes('"door":"plan"'), 'the steps are runs like others');
    assert.match(runs.stdout, /"title":"[\w-]+ · US-001 · coder"/);
  });

  it('ends with 1 when not all is done, and with 2 for wrong usage', async () => {
    answer = request =>
      everyRole(request).toolCalls?.[0]?.name === 'approve' ? { text: ['Hm.'] } : everyRole(request);
    const failed = await telosAgent(
      'run',
      '--project-dir',
      'app',
      '--transcript',
      'transcript.txt',
      '--max-iterations',
      '1',
    );
    assert.equal(failed.code, 1);
    assert.match(failed.stdout, /Not done after 1 attempts/);
    assert.match(failed.stderr, /no-verdict/);
    for (const args of [
      [],
      ['dance'],
      ['execute'],
      ['run', '--project-dir', 'app', '--max-iterations', '0', '--transcript', 'x'],
    ])
      assert.equal((await telosAgent(...args)).code, 2, args.join(' '));
    const help = await telosAgent('execute', '--project-dir', 'app', '--help');
    assert.equal(help.code, 0);
    assert.match(help.stdout, /--max-iterations[^\n]*default: 10/);
    assert.match(help.stdout, /--model[^\n]*default: "?opus/);
    assert.match(help.stdout, /--timeout[^\n]*default: 900/);
  });

  it('ends with 3 where checks were not run as no one allowed them, and with 1 for a folder or stories that are missing', async () => {
    const prd = '---\ncheck:\n  - {name: unit, command: "exit 0"}\n---\n# Home\n1. [ ] It is there\n';
    home.folder.add({ 'work/app/prds/01-home.md': prd, 'work/bare/.keep': '' });
    const built = await telosAgent('execute', '--project-dir', 'app', '--json');
    const { success, checksNotRun } = JSON.parse(built.stdout);
    assert.deepEqual([built.code, success, checksNotRun], [3, false, ['US-001: unit']], built.stderr);
    const again = await telosAgent('execute', '--project-dir', 'app');
    assert.equal(again.code, 3);
    assert.match(again.stdout, /Not done after 0 attempts\. Not run, as no one allowed/);
    assert.equal((await telosAgent('execute', '--project-dir', 'app', '--yes')).code, 0);
    const bare = await telosAgent('execute', '--project-dir', 'bare');
    assert.deepEqual([bare.code, /There are no stories/.test(bare.stdout)], [1, true]);
    for (const args of [
      ['execute'],
      ['interview', '--transcript', 'transcript.txt', '--no-more-questions'],
    ]) {
      const mistyped = await telosAgent(...args, '--project-dir', 'ap');
      assert.equal(mistyped.code, 1);
      assert.match(mistyped.stderr, /does not exist/);
    }
    assert.equal(existsSync(join(home.workDir, 'ap')), false);
  });

  it('runs a check on what the model wrote in the box where one is required, or not at all', async () => {
    const prd = '---\ncheck:\n  - {name: unit, command: "sh unit.sh"}\n---\n# Home\n- [ ] 1. It is there\n';
    home.folder.add({ '.ssh/id_rsa': 'hunter2', 'work/app/prds/01-home.md': prd });
    answer = request => {
      const turn = everyRole(request);
      if (turn.toolCalls?.[0]?.name !== 'write_file') return turn;
      const content = 'cat "$HOME/.ssh/id_rsa" > seen.txt; echo made > made.txt\n';
      return { toolCalls: [{ name: 'write_file', input: { path: 'unit.sh', content } }] };
    };
    env = { ...env, TELOS_SANDBOX: 'required' };
    const { code, stdout } = await telosAgent('execute', '--project-dir', 'app', '--yes');
    const isMade = existsSync(join(home.workDir, 'app/made.txt'));
    if ((await findBox({ env: home.env })).works) {
      assert.deepEqual([code, isMade, read('app/seen.txt')], [0, true, '']);
      return;
    }
    assert.deepEqual([code, isMade], [1, false]);
    assert.match(stdout, /Commands run in a sandbox only \(telos\.sandbox is required\)/);
  });

  it('serves other programs in lines, and asks them before a command', async () => {
    let commands = 0;
    answer = request => {
      const turn = everyRole(request);
      const isCoder = turn.toolCalls?.[0]?.name === 'write_file';
      return isCoder && ++commands
        ? { toolCalls: [{ name: 'run_command', input: { command: networkCommand } }] }
        : turn;
    };
    const child = spawn(process.execPath, [agent(), 'serve'], { cwd: home.workDir, env });
    let rest = '';
    const waiting: ((message: Record<string, unknown>) => void)[] = [];
    const arrived: Record<string, unknown>[] = [];
    child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      const lines = `${rest}${piece}`.split('\n');
      rest = lines.pop() ?? '';
      for (const message of lines.map(line => JSON.parse(line))) {
        const next = waiting.shift();
        if (next) next(message);
        else arrived.push(message);
      }
    });
    const receive = async (): Promise<Record<string, unknown>> =>
      arrived.shift() ?? new Promise(resolve => waiting.push(resolve));
    const send = (message: object): void =>
      void child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    const asked: unknown[] = [];
    async function call(id: number, method: string, params: object = {}): Promise<Record<string, unknown>> {
      send({ id, method, params });
      for (;;) {
        const message = await receive();
        if (message['id'] === id) return message;
        asked.push(message['params']);
        send({ id: message['id'], result: true });
      }
    }
    try {
      assert.deepEqual((await call(1, 'execute'))['error'], {
        code: -32002,
        message: 'Call initialize first, with project_dir.',
      });
      assert.equal(((await call(2, 'initialize'))['error'] as { code: number }).code, -32602);
      await call(3, 'initialize', { project_dir: 'app', approve: 'ask', max_iterations: 3 });
      assert.equal(
        ((await call(4, 'process_round', { transcript }))['error'] as { code: number }).code,
        -32602,
      );
      await call(5, 'interview');
      const round = (await call(6, 'process_round', { transcript }))['result'] as { questions: string[] };
      assert.equal(round.questions.length, 2);
      const { result } = await call(7, 'plan_and_execute', { context: transcript });
      const { success, iteration_results } = result as { success: boolean; iteration_results: unknown[] };
      assert.deepEqual([success, iteration_results.length], [true, 2]);
      assert.equal((asked[0] as { subject: string }).subject, networkCommand);
      assert.ok(existsSync(join(home.workDir, 'app/from-command')));
      assert.equal(commands, 2);
      assert.equal(((await call(8, '__proto__'))['error'] as { code: number }).code, -32601);
    } finally {
      child.stdin.end();
      await once(child, 'close');
    }
    assert.equal(child.exitCode, 0);
  });

  describe('from Python', () => {
    beforeEach(() => {
      env = { ...env, TELOS_AGENT: `${process.execPath} ${agent()}` };
      cpSync(examples, join(home.workDir, 'python'), { recursive: true });
    });
    const python = (code: string) => run('python3', ['-c', code], join(home.workDir, 'python'));

    it('runs the example of the specification as it is written', async () => {
      mkdirSync(join(home.workDir, 'python/myproject'));
      const { code, stderr } = await run('python3', ['bakery.py'], join(home.workDir, 'python'));
      assert.equal(code, 0, stderr);
      const made = (path: string): string => read(`python/myproject/${path}`);
      assert.equal(made('plan.md'), '# Bakery\nThree pages.\n');
      assert.match(made('prds/01-home.md'), /- \[x\] 1\. Home is there/);
      assert.equal(made('home.html'), '<h1>home.html</h1>');
    });

    it('has the results that the specification names, and raises what went wrong', async () => {
      mkdirSync(join(home.workDir, 'python/other'));
      const { code, stdout, stderr } = await python(`
from telos_agent import TelosOrchestrator, TelosError
try:
    TelosOrchestrator(project_dir="./ohter")
except TelosError as error:
    print("raised", "does not exist" in str(error))
with TelosOrchestrator(project_dir="./other", max_iterations=5, on_event=lambda event: print("event", event["type"]) if event["type"] == "iteration_end" else None) as orchestrator:
    runner = orchestrator.interview()
    print(runner.process_round(transcript="T").questions)
    print(runner.process_round("T", no_more_questions=True).ready, runner.get_context())
    try:
        orchestrator.generate_prds()
    except TelosError as error:
        print("raised", "plan.md" in str(error))
    result = orchestrator.plan_and_execute(runner.get_context())
    print(result.success, result.iterations, result.error, result.denial_streak, result.final_verdict["summary"], len(result.iteration_results))
`);
      assert.equal(code, 0, stderr);
      assert.deepEqual(stdout.trim().split('\n'), [
        'raised True',
        "['Which tech stack?', 'Online ordering?']",
        'True T',
        'raised True',
        'event iteration_end',
        'event iteration_end',
        'True 2 None 0 Seen. 2',
      ]);
    });
  });
});
