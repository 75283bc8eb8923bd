/** Real processes and real sockets, with servers that fail in every way; how the public ones do is in publicServers.test.ts. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { McpLimits } from '../../src/engine/mcp/callClock.ts';
import {
  connectServers,
  describeServers,
  type McpServers,
  usualLimits,
} from '../../src/engine/mcp/servers.ts';
import { builtinTools } from '../../src/engine/tools/builtin.ts';
import type { ToolContext } from '../../src/engine/tools/tool.ts';
import type { ToolResult } from '../../src/protocol/run.ts';
import { spoken } from '../../src/protocol/text.ts';
import { until } from '../eventually.ts';
import { listen, type ReceivedRequest, sendJson } from '../fakes/loopback.ts';
import { startSdkServer } from '../fakes/mcpSdkServer.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const fake = fileURLToPath(new URL('../fakes/mcpServer.ts', import.meta.url));
const patient: McpLimits = { connectMs: 8000, callMs: 8000, longestCallMs: 60_000 };

describe('MCP servers', () => {
  let folder: TempFolder;
  let open: McpServers[];
  beforeEach(() => {
    folder = tempFolder({ 'pack/sub/.keep': '' });
    open = [];
  });
  afterEach(async () => {
    await Promise.all(open.map(servers => servers.close()));
    folder.remove();
  });

  const server = (fault = 'none', more: object = {}) => ({
    command: process.execPath,
    args: [fake, fault, record()],
    ...more,
  });
  const record = (): string => join(folder.path, 'record.jsonl');
  const recorded = (): { method?: string; pids?: number[] }[] =>
    existsSync(record())
      ? readFileSync(record(), 'utf8')
          .trim()
          .split('\n')
          .map(line => JSON.parse(line))
      : [];
  const pids = (): number[] => recorded().flatMap(line => line.pids ?? []);
  const agentWith = (mcpServers: object) => {
    folder.add({ 'pack/mcp.json': JSON.stringify({ mcpServers }) });
    return {
      name: 'pack',
      mcpConfig: join(folder.path, 'pack/mcp.json'),
      packDir: join(folder.path, 'pack'),
    };
  };
  const config = { env: { GREETING: 'hello', SECRET: 's3cret' }, home: '/nowhere', dataDir: '/nowhere' };
  const environment = { PATH: process.env['PATH'] ?? '' };

  async function connect(
    mcpServers: object,
    limits: McpLimits = patient,
    signal = new AbortController().signal,
    canAsk = false,
  ): Promise<McpServers> {
    const agent = agentWith(mcpServers);
    const reach = { limits, canAsk };
    const servers = await connectServers(config, agent, builtinTools, environment, signal, reach);
    open.push(servers);
    return servers;
  }

  function call(
    servers: McpServers,
    name: string,
    input = {},
    more: Partial<ToolContext> = {},
  ): Promise<ToolResult> {
    const tool = servers.merged().tools.find(candidate => candidate.definition.name === name);
    assert.ok(tool, `there is no tool ${name}`);
    return tool.execute(input, { signal: new AbortController().signal, ...more } as ToolContext);
  }
  const said = ({ problems }: Pick<McpServers, 'problems'>): string[] => problems.map(one => spoken([one]));
  const namesOf = (servers: McpServers): string[] =>
    servers
      .merged()
      .tools.slice(builtinTools.length)
      .map(tool => tool.definition.name);

  it('gives the tools of those that live, and says of each other what is wrong with it', async () => {
    const servers = await connect({
      alive: server(),
      dies: server('dies'),
      absent: { command: 'no-such-program-anywhere' },
      lost: server('none', { cwd: 'nowhere' }),
      unset: server('none', { env: { A: `\${MISSING}` } }),
      broken: {},
    });
    assert.deepEqual(namesOf(servers), ['say', 'environment', 'never', 'count', 'die', 'grow']);
    assert.equal((await call(servers, 'say', { text: 'hi' })).content, 'hi');
    const problems = said(servers).join('\n');
    assert.equal(servers.problems.length, 5);
    assert.match(problems, /'broken' is ignored/);
    assert.match(problems, /'dies' .*exited before it answered: cannot find the database\. It is/);
    assert.match(problems, /'absent' .*the program 'no-such-program-anywhere' was not found/);
    assert.match(problems, /'lost' .*folder .*nowhere/);
    assert.match(problems, /'unset' .*MISSING is not set/);
    for (const problem of said(servers)) assert.match(problem, /mcp\.json/);
  });

  it('waits no longer for a silent one than it may', async () => {
    const { problems } = await connect({ silent: server('silent') }, { ...patient, connectMs: 200 });
    assert.match(said({ problems }).join(), /'silent' .*did not answer within 0\.2 s/);
  });

  it('starts a server in its folder, with a bare environment and what its entry adds', async () => {
    const servers = await connect({ a: server('none', { cwd: 'sub', env: { MINE: `\${GREETING}` } }) });
    const seen = JSON.parse((await call(servers, 'environment')).content);
    assert.equal(seen['MINE'], 'hello');
    assert.equal(seen['SECRET'], undefined);
    assert.equal(seen['GREETING'], undefined);
  });

  it('reads all pages of a list, and skips what is no tool', async () => {
    const servers = await connect({ odd: server('odd') });
    assert.equal(namesOf(servers).length, 7);
    assert.equal(namesOf(servers).at(-1), 'bare');
  });

  it('says that it takes no more of a crowd of tools', async () => {
    const servers = await connect({ a: server('crowded') });
    assert.equal(namesOf(servers).length, 500);
    assert.match(said(servers).join(), /'a' has more than 500 tools/);
  });

  it('cuts a result that goes too deep, and leaves out a tool whose schema does', async () => {
    const servers = await connect({ a: server('deep') });
    assert.deepEqual(namesOf(servers), ['abyss']);
    assert.match(
      said(servers).join(),
      /^well of the MCP server 'a' is left out: its schema nests lists and objects more than 100/,
    );
    const result = await call(servers, 'abyss');
    assert.match(result.content, /^so far\n\n\{.*left out: nested too deeply/s);
    assert.equal(result.isError, false);
    assert.equal(servers.merged().tools.length, builtinTools.length + 1);
  });

  it('asks for the tools again, but not once for each time that it is told to', async () => {
    const servers = await connect({ a: server('flutters') });
    await call(servers, 'flutter');
    await call(servers, 'grow');
    await until(() => namesOf(servers).includes('grown'));
    const lists = recorded().filter(({ method }) => method === 'tools/list').length;
    assert.ok(lists < 100, `${lists} lists were asked for`);
  });

  it('asks ever more seldom for the tools of a server that reports a change with each list', async () => {
    const begin = performance.now();
    await connect({ a: server('storms') });
    await until(() => recorded().filter(({ method }) => method === 'tools/list').length >= 5);
    // The list of the start, one at once, and three after a quarter, half and a whole second.
    const took = performance.now() - begin;
    assert.ok(took > 1700, `five lists in ${Math.round(took)} ms`);
  });

  it('sees that a server has other tools now', async () => {
    const servers = await connect({ a: server() });
    await call(servers, 'grow');
    await until(() => namesOf(servers).includes('grown'));
    assert.deepEqual(servers.merged().facts.get('grown')?.server, 'a');
  });

  it('tells how far a call has come', async () => {
    const servers = await connect({ a: server() });
    const steps: (string | number | undefined)[][] = [];
    await call(servers, 'count', {}, { onProgress: (...step) => steps.push(step) });
    assert.deepEqual(steps, [
      ['counting (1 of 3)', 1 / 3],
      ['counting (2 of 3)', 2 / 3],
      ['counting (3 of 3)', 1],
    ]);
  });

  it('makes what a server refuses a result', async () => {
    const servers = await connect({ a: server() });
    const tool = servers.merged().tools.at(-1);
    assert.ok(tool);
    const { content, isError } = await call(servers, 'say', {});
    assert.deepEqual([content, isError], ['undefined', false]);
    const odd = await connect({ odd: server('odd') });
    const refused = await call(odd, 'bare');
    assert.ok(refused.isError);
    assert.match(refused.content, /bare of the MCP server 'odd' failed: .*no tool bare/);
  });

  it('gives up a call in time, and tells the server', async () => {
    const servers = await connect({ a: server() }, { ...patient, callMs: 100 });
    const { content, isError } = await call(servers, 'never');
    assert.ok(isError);
    assert.match(content, /did not answer within 0\.1 s/);
    await until(() => recorded().some(({ method }) => method === 'notifications/cancelled'));
  });

  it('waits longer for a call that tells how far it is', async () => {
    const limits = { ...patient, callMs: 60_000, longestCallMs: 600_000 };
    const servers = await connect({ a: server('slow') }, limits);
    // The clock of this process is moved by hand; the server's goes on as it does.
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const onProgress = (): void => mock.timers.tick(40_000);
      const { content, isError } = await call(servers, 'slow', { steps: 4, every: 20 }, { onProgress });
      assert.deepEqual([content, isError], ['done', false]);
    } finally {
      mock.timers.reset();
    }
  });

  it('gives up a call that comes on for ever, and tells the server', async () => {
    const servers = await connect({ a: server('slow') }, { ...patient, longestCallMs: 200 });
    const { content, isError } = await call(servers, 'slow', { steps: 1e9, every: 20 });
    assert.ok(isError);
    assert.match(content, /did not finish within 0\.2 s; the call was cancelled/);
    await until(() => recorded().some(({ method }) => method === 'notifications/cancelled'));
  });

  it('cuts each call at 5 minutes, also one that comes on', async () => {
    const servers = await connect({ a: server('slow') }, usualLimits);
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const onProgress = (): void => mock.timers.tick(40_000);
      const { content, isError } = await call(servers, 'slow', { steps: 30, every: 20 }, { onProgress });
      assert.ok(isError);
      assert.match(content, /did not finish within 300 s; the call was cancelled/);
    } finally {
      mock.timers.reset();
    }
  });

  it('reads a server that begins with a byte order mark, and has the tools of pages that repeat once', async () => {
    assert.deepEqual(
      namesOf(await connect({ a: server('marked') })),
      namesOf(await connect({ a: server() })),
    );
    const repeated = await connect({ a: server('repeats') });
    assert.deepEqual(namesOf(repeated), ['say', 'environment', 'never', 'count', 'die', 'grow']);
    assert.deepEqual(said(repeated), []);
  });

  it('gives a server the time that its entry names', async () => {
    const servers = await connect({ a: server('none', { timeout: 1100 }) }, usualLimits);
    const { content, isError } = await call(servers, 'never');
    assert.ok(isError);
    assert.match(content, /nothing .*1\.1 s; the call was cancelled|within 1\.1 s/);
    const silent = await connect({ b: server('silent', { timeout: 1.5 }) }, usualLimits);
    assert.match(said(silent).join(), /it did not answer within 1\.5 s/);
    assert.match(said(await connect({ c: server('none', { timeout: 'soon' }) })).join(), /"timeout" must be/);
  });

  it('cancels a call with the run, and no other', async () => {
    const servers = await connect({ a: server() });
    const control = new AbortController();
    await call(servers, 'say', { text: 'before' }, { signal: control.signal });
    const pending = call(servers, 'never', {}, { signal: control.signal });
    await until(() => recorded().filter(({ method }) => method === 'tools/call').length === 2);
    control.abort(new Error('stop'));
    const cancelled = () => recorded().filter(({ method }) => method === 'notifications/cancelled');
    // Well before the call would have been given up anyway.
    await Promise.all([assert.rejects(pending, /stop/), until(() => cancelled().length > 0)]);
    await call(servers, 'say', { text: 'after' });
    assert.equal(cancelled().length, 1);
  });

  it('says that a server has ended, and what it said last', async () => {
    const servers = await connect({ a: server() });
    const ended = /^The MCP server 'a' has ended; last output: out of memory\. (.*)$/;
    const died = await call(servers, 'die');
    assert.ok(died.isError);
    assert.match(ended.exec(died.content)?.[1] ?? '', /next call .* starts it again/);
    assert.deepEqual(await call(servers, 'say', { text: 'x' }), { content: 'x', isError: false });
    for (const name of ['die', 'say']) {
      const { content, isError } = await call(servers, name, { text: 'x' });
      assert.ok(isError);
      assert.match(ended.exec(content)?.[1] ?? '', /unavailable for the rest of this run/);
    }
    assert.equal(pids().length, 2);
  });

  it('calls nothing that came back as another tool', async () => {
    const servers = await connect({ a: server('changes') });
    await call(servers, 'die');
    const { content, isError } = await call(servers, 'say', { text: 'x' });
    assert.ok(isError);
    assert.match(content, /say has changed\. Nothing was called/);
    assert.equal((await call(servers, 'say', { text: 'x' })).content, 'x');
  });

  it('passes over what a server writes that is no message, and says so', async () => {
    const servers = await connect({ a: server('chatty') });
    assert.match(said(servers).join(), /'a' wrote output that is not a message .*npm WARN/);
    assert.equal((await call(servers, 'say', { text: 'hi' })).content, 'hi');
  });

  it('ends a server that will not go, with all that it has started', async () => {
    const servers = await connect({ a: server('clings') });
    assert.deepEqual(pids().map(isAlive), [true, true, true]);
    await servers.close();
    assert.deepEqual(pids().map(isAlive), [false, false, false]);
  });

  it('leaves nothing running when the run is cancelled while they connect', async () => {
    const control = new AbortController();
    const connecting = connect({ a: server('stubborn'), b: server() }, patient, control.signal);
    await until(() => recorded().filter(({ method }) => method === 'initialize').length === 2);
    control.abort(new Error('stop'));
    await assert.rejects(connecting, /stop/);
    assert.deepEqual(pids().filter(isAlive), []);
  });

  it('describes each server', async () => {
    const { signal } = new AbortController();
    const agent = agentWith({ a: server(), b: { url: 'http://127.0.0.1:1/mcp?key=x' } });
    const { servers } = await describeServers(config, agent, environment, signal, { limits: patient });
    const [a, b] = servers;
    assert.deepEqual(a?.outcome, {
      name: 'fake',
      version: '1.2.3',
      tools: ['say', 'environment', 'never', 'count', 'die', 'grow'],
    });
    assert.ok(a.milliseconds > 0);
    assert.deepEqual([b?.server, b?.place], ['b', 'http://127.0.0.1:1/mcp']);
    assert.ok(b && 'error' in b.outcome);
  });

  describe('that are remote', () => {
    /** Sends everything on to `target`, and keeps what it was asked. */
    async function redirecting(target: string) {
      const requests: ReceivedRequest[] = [];
      const { address, close } = await listen(async (request, response) => {
        requests.push(request);
        response.writeHead(307, { location: target });
        response.end();
      });
      return { address, close, requests };
    }

    it('never take headers to another place', async () => {
      const requests: ReceivedRequest[] = [];
      const elsewhere = await listen(async (request, response) => {
        requests.push(request);
        sendJson(response, 200, {});
      });
      const near = await redirecting(`${elsewhere.address}/mcp`);
      try {
        const headers = { 'x-token': `\${SECRET}` };
        const { problems } = await connect({
          http: { url: near.address, headers },
          sse: { type: 'sse', url: near.address, headers },
        });
        assert.equal(problems.length, 2);
        for (const problem of said({ problems })) assert.match(problem, /Redirect to .*not followed/);
        assert.deepEqual([...new Set(near.requests.map(request => request.headers['x-token']))], ['s3cret']);
        assert.deepEqual(requests, []);
      } finally {
        await Promise.all([near.close(), elsewhere.close()]);
      }
    });

    it('say that they want a sign-in', async () => {
      const { address, close } = await listen(async (_request, response) => sendJson(response, 401, {}));
      try {
        const { problems } = await connect({ http: { url: address }, sse: { type: 'sse', url: address } });
        assert.equal(problems.length, 2);
        for (const problem of said({ problems }))
          assert.match(problem, /requires a sign-in at http:.* \(HTTP 401\)/);
      } finally {
        await close();
      }
    });

    it('have what they ask answered during the call that it belongs to', async () => {
      const asking = await startSdkServer();
      try {
        const servers = await connect({ http: { url: asking.url } }, patient, undefined, true);
        const asked: string[] = [];
        const pair = (text: string) =>
          call(
            servers,
            'pair',
            { text },
            {
              askServer: async wish => {
                asked.push(`${text} is asked ${(wish.params as { message: string }).message}`);
                return { action: 'cancel' };
              },
            },
          );
        const answers = await Promise.all([pair('one'), pair('two')]);
        assert.deepEqual(asked, ['one is asked one', 'two is asked two']);
        assert.deepEqual(
          answers.map(({ content }) => content),
          ['one: cancel', 'two: cancel'],
        );
      } finally {
        await asking.close();
      }
    });

    it('say what is refused over both ways, in the middle of a run as well', async () => {
      const guarded = await startSdkServer();
      try {
        const servers = await connect({ http: { url: guarded.url } });
        guarded.refuseWith(403);
        const { content } = await call(servers, 'shout', { text: 'x' });
        assert.match(content, /failed: it refused this at http:.* \(HTTP 403\)/);
      } finally {
        await guarded.close();
      }
    });

    for (const status of [404, 400]) {
      it(`begin a new session when the old one is forgotten (${status}), and make the call in it`, async () => {
        const forgetful = await startSdkServer(status);
        try {
          const servers = await connect({ http: { url: forgetful.url } });
          assert.equal((await call(servers, 'shout', { text: 'before' })).content, 'BEFORE');
          await forgetful.forget();
          const after = await call(servers, 'shout', { text: 'after' });
          assert.deepEqual([after.content, after.isError], ['AFTER', false]);
          assert.equal(forgetful.sessions(), 2);
          assert.equal(forgetful.shouted(), 2);
        } finally {
          await forgetful.close();
        }
      });
    }

    it('say why they cannot be reached', async () => {
      const { address, close } = await listen(async () => undefined);
      await close();
      const { problems } = await connect({ http: { url: address }, sse: { type: 'sse', url: address } });
      assert.equal(problems.length, 2);
      for (const problem of said({ problems })) assert.match(problem, /ECONNREFUSED/);
    });
  });
});

/** A process that has ended and waits to be collected does not live. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    const stat = process.platform === 'linux' ? readFileSync(`/proc/${pid}/stat`, 'utf8') : '';
    return !/\) Z /.test(stat);
  } catch {
    return false;
  }
}
