/** `telos mcp-serve`, as other programs use it: by the SDK's own clients of both revisions. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { Client as NewClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport as NewStdio } from '@modelcontextprotocol/client/stdio';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { eventually } from '../eventually.ts';
import { type AnthropicTurn, startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { type CliHome, cliHome, program } from './cliProcess.ts';

const plant =
  '---\nname: plant\ndescription: Plants leeks and other vegetables in a bed\n---\nTHE PLANT TEXT\n';

interface Answer extends Record<string, unknown> {
  action: 'accept' | 'decline';
  content?: Record<string, string>;
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into what came back as it is
type Any = any;
type Called = { content: { text?: string }[]; structuredContent?: Any; isError?: boolean };

describe('telos mcp-serve', function () {
  this.timeout(60_000);
  let home: CliHome;
  let server: FakeServer;
  let turn: (body: string) => AnthropicTurn;
  /** What the clients were asked, and how they answer. */
  let asked: { message: string; requestedSchema: Any }[];
  let answer: (message: string) => Answer;
  const open: { close(): Promise<void> }[] = [];

  beforeEach(async () => {
    home = cliHome({
      'skills/garden/skills/plant/SKILL.md': plant,
      'skills/garden/skills/plant/beds.md': 'THE BEDS\n',
      'skills/garden/skills/plant/.env': 'TOKEN=hidden-value-123\n',
    });
    [asked, turn, answer] = [[], () => ({ text: ['Planted.'] }), () => ({ action: 'decline' })];
    server = await startAnthropicServer({ turns: request => turn(JSON.stringify(request.body.messages)) });
  });
  afterEach(async () => {
    for (const client of open.splice(0)) await client.close();
    await server.close();
    home.remove();
  });

  const started = () => ({
    command: process.execPath,
    args: [program(), 'mcp-serve'],
    cwd: home.workDir,
    env: { ...home.env, ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: 'test-key-0123456789' },
  });

  async function oldClient(canAsk = true): Promise<Client> {
    const client = new Client(
      { name: 'old', version: '1' },
      { capabilities: canAsk ? { elicitation: {} } : {} },
    );
    if (canAsk)
      client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
        asked.push(params as never);
        return answer(params.message);
      });
    await client.connect(new StdioClientTransport({ ...started(), stderr: 'ignore' }));
    open.push(client);
    return client;
  }

  async function newClient(): Promise<NewClient> {
    const client = new NewClient(
      { name: 'new', version: '1' },
      { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
    );
    client.setRequestHandler('elicitation/create', async ({ params }): Promise<Any> => {
      asked.push(params as never);
      return answer(params.message);
    });
    await client.connect(new NewStdio({ ...started(), stderr: 'ignore' }));
    open.push(client);
    return client;
  }

  const call = async (client: Client | NewClient, name: string, args: object = {}): Promise<Called> =>
    (await client.callTool({ name, arguments: args as never })) as Called;

  const kinds = [
    ['of 2025', () => oldClient()],
    ['of 2026', () => newClient()],
  ] as const;
  for (const [era, client] of kinds) {
    it(`lists and routes for a client ${era}`, async () => {
      const opened = await client();
      const { tools } = await opened.listTools();
      assert.deepEqual(
        tools.map(({ name }) => name),
        ['list_skills', 'route', 'run_skill'],
      );
      const { structuredContent } = await call(opened, 'list_skills');
      assert.deepEqual(structuredContent.skills, [
        { skill: 'garden:plant', description: 'Plants leeks and other vegetables in a bed' },
      ]);
      const routed = await call(opened, 'route', { request: '/plant leeks' });
      assert.equal(routed.structuredContent.skill, 'garden:plant');
    });

    it(`runs a skill that asks, and ends with files and cost, for a client ${era}`, async () => {
      writeFileSync(join(home.workDir, 'old.md'), 'old\n');
      const calls = [
        { name: 'run_command', input: { command: 'rm -rf ~/precious' } },
        { name: 'write_file', input: { path: 'bed.md', content: 'leeks\n' } },
      ];
      turn = body => {
        const done = body.match(/"type":"tool_result"/g)?.length ?? 0;
        const next = calls[done];
        return next ? { toolCalls: [next] } : { text: ['Planted.'] };
      };
      answer = message => ({
        action: 'accept',
        content: { answer: message.includes('precious') ? 'no' : 'once' },
      });
      const opened = await client();
      const { structuredContent, isError } = await call(opened, 'run_skill', {
        request: 'plant leeks',
        skill: 'garden:plant',
      });
      assert.ok(!isError);
      assert.match(JSON.stringify(server.requests[0]?.body), /THE PLANT TEXT/);
      assert.match(asked[0]?.message ?? '', /rm -rf ~\/precious/);
      const offered = asked[0]?.requestedSchema.properties.answer.oneOf.map((one: Any) => one.const);
      assert.ok(!offered.includes('always'), `${offered}`);
      assert.match(JSON.stringify(server.requests.at(-1)?.body), /The user denied this/);
      assert.equal(structuredContent.answer, 'Planted.');
      assert.equal(typeof structuredContent.cost, 'number');
      assert.deepEqual(structuredContent.files, [join(home.workDir, 'bed.md')]);
      assert.equal(readFileSync(join(home.workDir, 'bed.md'), 'utf8'), 'leeks\n');
    });
  }

  it('lets a yes count once, for the exact command', async () => {
    const command = 'rm -rf ~/precious';
    home.folder.add({ 'precious/one': 'x' });
    turn = body =>
      body.includes('tool_result')
        ? { text: ['Gone.'] }
        : { toolCalls: [{ name: 'run_command', input: { command } }] };
    answer = () => ({ action: 'accept', content: { answer: 'once' } });
    const { structuredContent } = await call(await oldClient(), 'run_skill', {
      request: 'tidy',
      skill: 'plant',
    });
    assert.equal(asked.length, 1);
    assert.equal(structuredContent.outcome, 'completed');
  });

  it('gives a client without forms nothing that asks, and one that lies no more', async () => {
    const command = 'rm -rf ~/precious';
    home.folder.add({ 'precious/one': 'x' });
    turn = body =>
      body.includes('tool_result')
        ? { text: ['Left.'] }
        : { toolCalls: [{ name: 'run_command', input: { command } }] };
    await call(await oldClient(false), 'run_skill', { request: 'tidy', skill: 'plant' });
    answer = () => ({ action: 'accept', content: { answer: 'always' } });
    await call(await oldClient(), 'run_skill', { request: 'tidy', skill: 'plant' });
    assert.ok(existsSync(join(home.folder.path, 'precious/one')));
  });

  it('gives a client that says yes to everything no more than the rules of the user', async () => {
    home.folder.add({
      'precious/one': 'x',
      'config/policy.toml': '[[deny]]\ntool = "run_command"\n\n[[deny]]\ntool = "write_file"\n',
    });
    const wanted = [
      { name: 'run_command', input: { command: 'rm -rf ~/precious' } },
      { name: 'write_file', input: { path: 'bed.md', content: 'leeks' } },
      { name: 'read_file', input: { path: join(home.folder.path, 'config/.env') } },
    ];
    home.folder.add({ 'config/.env': 'OTHER_API_KEY=the-key-of-the-user\n' });
    turn = body => {
      const done = body.match(/"type":"tool_result"/g)?.length ?? 0;
      return done < wanted.length ? { toolCalls: [wanted[done]!] } : { text: ['Nothing was done.'] };
    };
    answer = () => ({ action: 'accept', content: { answer: 'always' } });
    const lies = { mode: 'bypass', cwd: '/', permissions: 'all', maxCost: 1_000_000 };
    const asks = { request: 'tidy', skill: 'plant', ...lies };
    const { structuredContent } = await call(await oldClient(), 'run_skill', asks);
    assert.equal(structuredContent.outcome, 'completed');
    assert.deepEqual(structuredContent.files, []);
    assert.ok(existsSync(join(home.folder.path, 'precious/one')));
    assert.ok(!existsSync(join(home.workDir, 'bed.md')));
    assert.doesNotMatch(JSON.stringify(server.requests.map(({ body }) => body)), /the-key-of-the-user/);
    assert.ok(asked.every(({ message }) => !/precious|bed\.md/.test(message)));
  });

  it('stops at the limit of cost that the user has set', async () => {
    const env = { ...started().env, TELOS_MAX_COST: '0.000001' };
    const client = new Client({ name: 'spender', version: '1' }, { capabilities: {} });
    await client.connect(new StdioClientTransport({ ...started(), env, stderr: 'ignore' }));
    open.push(client);
    turn = () => ({ toolCalls: [{ name: 'list_directory', input: { path: '.' } }] });
    const { structuredContent, isError } = await call(client, 'run_skill', {
      request: 'plant leeks',
      skill: 'plant',
    });
    assert.ok(isError);
    assert.notEqual(structuredContent.outcome, 'completed');
    assert.ok(server.requests.length <= 2, `${server.requests.length}`);
  });

  const yes = (): Answer => ({ action: 'accept', content: { answer: 'once' } });
  const sleeping = (seconds: string): boolean =>
    spawnSync('pgrep', ['-f', `sleep ${seconds.slice(0, -1)}[${seconds.at(-1)}]`]).status === 0;

  for (const [era, client] of kinds)
    it(`leaves no process when a client ${era} goes away in the middle of a command`, async () => {
      const seconds = era === 'of 2025' ? '8765.4321' : '8765.4322';
      turn = () => ({ toolCalls: [{ name: 'run_command', input: { command: `sleep ${seconds}` } }] });
      answer = yes;
      const opened = await client();
      const running = call(opened, 'run_skill', { request: 'plant leeks', skill: 'plant' }).catch(
        () => 'gone',
      );
      await eventually(() => assert.ok(sleeping(seconds)));
      await opened.close();
      assert.equal(await running, 'gone');
      await eventually(() => assert.ok(!sleeping(seconds)));
      await eventually(async () => {
        const { stdout } = await home.run(['runs', '--json']);
        assert.match(stdout, /"cancelled"/);
      });
    });

  it('ends by itself when a client goes away while a question is open, and nothing is run', async () => {
    home.folder.add({ 'precious/one': 'x' });
    turn = () => ({ toolCalls: [{ name: 'run_command', input: { command: 'rm -rf ~/precious' } }] });
    const { command, args, cwd, env } = started();
    const child = spawn(command, args, { cwd, env, stdio: ['pipe', 'pipe', 'ignore'] });
    let said = '';
    child.stdout.setEncoding('utf8').on('data', text => {
      said += text;
    });
    const send = (message: object): void =>
      void child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    const about = { capabilities: { elicitation: {} }, clientInfo: { name: 'raw', version: '1' } };
    send({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', ...about } });
    send({ method: 'notifications/initialized' });
    const asks = { name: 'run_skill', arguments: { request: 'tidy', skill: 'plant' } };
    send({ id: 2, method: 'tools/call', params: asks });
    await eventually(() => assert.match(said, /"elicitation\/create"/));
    const closed = once(child, 'close');
    child.stdin.end();
    assert.deepEqual(await closed, [0, null]);
    assert.ok(existsSync(join(home.folder.path, 'precious/one')));
  });

  it('over HTTP stops the run of a client that takes its call back, and goes on for others', async () => {
    const port = await freePort();
    const env = { ...started().env, TELOS_MCP_TOKEN: 'the-token-of-this-test' };
    const serving = home.start(['mcp-serve', '--http', `${port}`], { env });
    await serving.says('Ready at');
    const connect = async (): Promise<NewClient> => {
      const client = new NewClient(
        { name: 'far', version: '1' },
        { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
      );
      client.setRequestHandler('elicitation/create', async (): Promise<Any> => yes());
      const headers = { authorization: 'Bearer the-token-of-this-test' };
      const address = new URL(`http://127.0.0.1:${port}/mcp`);
      await client.connect(new StreamableHTTPClientTransport(address, { requestInit: { headers } }));
      open.push(client);
      return client;
    };
    const seconds = '8765.4323';
    turn = () => ({ toolCalls: [{ name: 'run_command', input: { command: `sleep ${seconds}` } }] });
    const stop = new AbortController();
    const asks = { name: 'run_skill', arguments: { request: 'plant leeks', skill: 'plant' } };
    const [one, other] = await Promise.all([connect(), connect()]);
    const running = one.callTool(asks, { signal: stop.signal }).catch(() => 'gone');
    await eventually(() => assert.ok(sleeping(seconds)));
    stop.abort();
    assert.equal(await running, 'gone');
    await eventually(() => assert.ok(!sleeping(seconds)));
    turn = () => ({ text: ['Planted.'] });
    assert.equal(((await other.callTool(asks)).structuredContent as Any).answer, 'Planted.');
    serving.stop();
    assert.equal((await serving.result).code, 0);
  });

  it('says that a run failed, that no skill fits, and that a skill is unknown', async () => {
    const client = await oldClient();
    const none = await call(client, 'run_skill', { request: 'compose a symphony' });
    assert.ok(none.isError);
    assert.equal(none.structuredContent.outcome, 'no_match');
    const unknown = await call(client, 'run_skill', { request: 'x', skill: 'nobody:nothing' });
    assert.match(unknown.content[0]?.text ?? '', /There is no skill nobody:nothing/);
    turn = () => ({ text: [] });
    const empty = await call(client, 'run_skill', { request: 'plant leeks', skill: 'plant' });
    assert.ok(empty.isError);
  });

  it('serves over HTTP to who has the token, and to no page', async () => {
    const port = await freePort();
    const env = { ...started().env, TELOS_MCP_TOKEN: 'the-token-of-this-test' };
    const serving = home.start(['mcp-serve', '--http', `${port}`], { env });
    await serving.says('Ready at');
    const address = `http://127.0.0.1:${port}/mcp`;
    const authorization = 'Bearer the-token-of-this-test';
    const client = new NewClient(
      { name: 'far', version: '1' },
      { versionNegotiation: { mode: { pin: '2026-07-28' } } },
    );
    const transport = new StreamableHTTPClientTransport(new URL(address), {
      requestInit: { headers: { authorization } },
    });
    await client.connect(transport);
    const { structuredContent } = await call(client, 'run_skill', { request: 'plant leeks', skill: 'plant' });
    assert.equal(structuredContent.answer, 'Planted.');
    await client.close();
    const post = async (headers: Record<string, string>): Promise<number> =>
      (await fetch(address, { method: 'POST', headers, body: '{}' })).status;
    assert.equal(await post({}), 401);
    assert.equal(await post({ authorization: 'Bearer the-token-of-this-tesT' }), 401);
    assert.equal(await post({ authorization, origin: 'https://evil.example' }), 403);
    serving.stop();
    assert.equal((await serving.result).code, 0);
  });

  it('serves the skills themselves, but no secret file', async () => {
    const client = await newClient();
    const { skills } = (await client.request(
      { method: 'skills/list', params: {} } as never,
      anything,
    )) as Any;
    assert.deepEqual(
      skills.map(({ uri }: { uri: string }) => uri),
      ['skill://garden/plant/SKILL.md'],
    );
    const names = skills[0].resources.map(({ uri }: { uri: string }) => uri);
    assert.deepEqual(names.sort(), ['skill://garden/plant/SKILL.md', 'skill://garden/plant/beds.md']);
    const { contents } = await client.readResource({ uri: 'skill://garden/plant/beds.md' });
    assert.deepEqual(contents, [{ uri: 'skill://garden/plant/beds.md', text: 'THE BEDS\n' }]);
    await assert.rejects(client.readResource({ uri: 'skill://garden/plant/.env' }));
    await assert.rejects(client.readResource({ uri: 'skill://garden/plant/..%2f..%2f..%2fconfig/.env' }));
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise(resolve => server.close(resolve));
  return port;
}

/** Takes any result. */
const anything = {
  '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) },
} as never;
