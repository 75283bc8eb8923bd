/** Servers that speak one revision of the protocol only, and those that lie or ask without an end. Each is a process that speaks the wire. */
import { deepEqual, equal, match, rejects } from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { connectServer } from '../../src/engine/mcp/client.ts';
import type { McpConnection } from '../../src/engine/mcp/connection.ts';
import { paramHeaders, paramHeadersOf } from '../../src/engine/mcp/paramHeaders.ts';
import type { ServerAnswer, ServerWish } from '../../src/engine/tools/tool.ts';
import { until } from '../eventually.ts';
import { listen, sendJson } from '../fakes/loopback.ts';
import { tempFolder } from '../fakes/tempFolder.ts';

const fake = fileURLToPath(new URL('../fakes/revisionServer.ts', import.meta.url));
const limits = { connectMs: 60_000, callMs: 30_000, longestCallMs: 60_000 };
const { signal } = new AbortController();

describe('a server of one revision', () => {
  const folder = tempFolder({});
  let open: McpConnection[] = [];
  afterEach(async () => {
    await Promise.all(open.map(one => one.close()));
    open = [];
  });
  after(() => folder.remove());

  async function connect(...args: string[]): Promise<McpConnection> {
    const server = { type: 'stdio' as const, command: process.execPath, args: [fake, ...args], env: {} };
    const surroundings = {
      env: { PATH: process.env['PATH'] ?? '' },
      cwd: folder.path,
      canAsk: true,
      redact: (text: string) => text,
    };
    const connection = await connectServer('strict', server, surroundings, limits, signal);
    open.push(connection);
    return connection;
  }

  const asked: ServerWish[] = [];
  const answer = async (wish: ServerWish): Promise<ServerAnswer> => {
    asked.push(wish);
    return { action: 'accept', content: { name: 'Ada' } };
  };
  const call = (connection: McpConnection, tool: string) =>
    connection.call(tool, {}, signal, undefined, undefined, answer);

  it('of today is asked, not greeted, and asks within the call, whose state comes back as it was', async () => {
    asked.length = 0;
    const connection = await connect('modern');
    deepEqual([connection.name, connection.version], ['strict', '1']);
    const { content, isError } = await call(connection, 'greet');
    deepEqual([content, isError], ['accept Ada kept "as it is"', false]);
    equal(asked.length, 1);
  });

  it('of today says by a subscription that its tools have changed', async () => {
    const connection = await connect('modern');
    await call(connection, 'grow');
    await until(() => connection.tools.some(({ name }) => name === 'grown'));
  });

  it('from before works as ever, also where it exits at a question that it does not know', async () => {
    const connection = await connect('old');
    equal((await call(connection, 'greet')).content, 'hello');
  });

  it('that nobody knows is named with what it speaks', async () => {
    await rejects(connect('future'), /it speaks MCP 2027-03-01 only/);
    await rejects(connect('distant'), /it speaks MCP 2029-01-01 only/);
  });

  it('that asks without an end is left after eleven times', async () => {
    asked.length = 0;
    const { content, isError } = await call(await connect('modern'), 'forever');
    equal(isError, true);
    match(content, /it asked 11 times and then did not answer/);
    equal(asked.length, 11);
  });

  it('that asks fifty things at once asks nobody', async () => {
    asked.length = 0;
    match((await call(await connect('modern'), 'many')).content, /it asks 50 questions at once/);
    deepEqual(asked, []);
  });

  it('that lies about what it has is not believed', async () => {
    await rejects(connect('modern', 'lies'), /Method not found/);
  });
});

describe('an address of an older revision', () => {
  const folder = tempFolder({});
  let server: { address: string; close(): Promise<void> };
  /** Methods in the order of their arrival. */
  let heard: string[];
  afterEach(() => server.close());
  after(() => folder.remove());

  /** Serves one tool to who greets in the older way. `unknown` answers any other method. */
  async function serve(unknown: (response: ServerResponse) => void): Promise<void> {
    heard = [];
    server = await listen(async ({ body, method }, response) => {
      if (method !== 'POST') return void response.writeHead(405).end();
      const { id, method: wanted, params } = body;
      heard.push(wanted);
      const { protocolVersion } = params ?? {};
      const about = {
        protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'old', version: '0' },
      };
      const results: Readonly<Record<string, object>> = {
        initialize: about,
        'tools/list': { tools: [{ name: 'greet', inputSchema: { type: 'object' } }] },
      };
      const result = results[wanted];
      if (wanted === 'notifications/initialized') response.writeHead(202).end();
      else if (result) sendJson(response, 200, { jsonrpc: '2.0', id, result });
      else unknown(response);
    });
  }

  const faults: Readonly<Record<string, (response: ServerResponse) => void>> = {
    'says nothing': () => {},
    'fails with HTTP 500': response => sendJson(response, 500, { error: 'unknown' }),
    'answers with a page': response => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'),
    'hangs up': response => response.destroy(),
  };
  for (const [how, unknown] of Object.entries(faults))
    it(`that ${how} at the question for its revision is greeted in the older way`, async () => {
      await serve(unknown);
      const entry = { type: 'streamable-http' as const, url: `${server.address}/mcp`, headers: {} };
      const surroundings = { env: {}, cwd: folder.path, redact: (text: string) => text };
      const short = { ...limits, connectMs: 3000 };
      const connection = await connectServer('old', entry, surroundings, short, signal);
      deepEqual(
        connection.tools.map(({ name }) => name),
        ['greet'],
      );
      await connection.close();
      deepEqual(heard, ['server/discover', 'initialize', 'notifications/initialized', 'tools/list']);
    });

  it('that says nothing at all is left after its time', async () => {
    server = await listen(async () => {});
    const entry = { type: 'streamable-http' as const, url: `${server.address}/mcp`, headers: {} };
    const surroundings = { env: {}, cwd: folder.path, redact: (text: string) => text };
    const short = { ...limits, connectMs: 600 };
    await rejects(
      connectServer('old', entry, surroundings, short, signal),
      /it did not answer within 0\.6 s/,
    );
  });
});

describe('arguments in headers', () => {
  const schema = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more });
  const header = (name: unknown, type = 'string') => ({ type, 'x-mcp-header': name });

  it('are named and coded as the protocol wants it', () => {
    const wanted = paramHeadersOf(
      schema({ a: header('A'), b: schema({ c: header('C', 'integer') }), d: header('D'), e: header('E') }),
    );
    deepEqual(paramHeaders(wanted ?? [], { a: 'plain', b: { c: 7 }, d: ' ä\r\nX: y' }), {
      'Mcp-Param-A': 'plain',
      'Mcp-Param-C': '7',
      'Mcp-Param-D': `=?base64?${Buffer.from(' ä\r\nX: y').toString('base64')}?=`,
    });
  });

  it('are none of a schema that breaks the rules', () => {
    for (const wrong of [
      schema({ a: header('') }),
      schema({ a: header('A\r\nCookie: x') }),
      schema({ a: header('A'), b: header('a') }),
      schema({ a: header('A', 'number') }),
      schema({ a: { type: 'array', items: header('A') } }),
      schema({}, { 'x-mcp-header': 'A' }),
    ])
      equal(paramHeadersOf(wrong), undefined, JSON.stringify(wrong));
  });
});
