/** Hostile MCP servers: what they send is bounded, poses as nothing else, and ends neither the run nor the other calls. */
import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { connectServer } from '../../src/engine/mcp/client.ts';
import type { McpConnection } from '../../src/engine/mcp/connection.ts';
import { gateName, mcpSubject, mergeTools } from '../../src/engine/mcp/tools.ts';

import { ToolSearch } from '../../src/engine/run/toolSearch.ts';
import { builtinTools } from '../../src/engine/tools/builtin.ts';
import { tempFolder } from '../fakes/tempFolder.ts';

const fake = fileURLToPath(new URL('../fakes/hostileServer.ts', import.meta.url));
const limits = { connectMs: 60_000, callMs: 20_000, longestCallMs: 30_000 };
const { signal } = new AbortController();

describe('a hostile MCP server', () => {
  const folder = tempFolder({});
  let open: McpConnection[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map(one => one.close()));
    open = [];
  });
  after(() => folder.remove());

  async function connect(fault: string): Promise<McpConnection> {
    const server = { type: 'stdio' as const, command: process.execPath, args: [fake, fault], env: {} };
    const env = { PATH: process.env['PATH'] ?? '' };
    const surroundings = { env, cwd: folder.path, redact: (text: string) => text };
    const connection = await connectServer('hostile', server, surroundings, limits, signal);
    open.push(connection);
    return connection;
  }

  it('that lists without an end is left after the tools that a run takes', async () => {
    const { tools, hasMoreTools } = await connect('endless');
    deepEqual([tools.length, hasMoreTools], [500, true]);
  });

  it('whose tools have names of others takes none of them, and no sign that a terminal obeys', async () => {
    const connection = await connect('names');
    const search = new ToolSearch(undefined, () => false);
    const own = [...builtinTools, ...search.tools];
    const { tools, facts } = mergeTools(own, [connection]);
    deepEqual(tools.slice(0, own.length), own);
    const names = tools.map(({ definition }) => definition.name);
    equal(new Set(names).size, names.length);
    ok(!names.includes(gateName));
    for (const name of facts.keys()) match(name, /^[A-Za-z0-9_-]{1,64}$/);
    ok(own.every(({ definition }) => !facts.has(definition.name)));
    for (const one of facts.values()) {
      ok(!/[\u0000-\u0009\u000b-\u001f\u202a-\u202e]/.test(mcpSubject(one, {})), mcpSubject(one, {}));
    }
    equal(({} as { polluted?: unknown }).polluted, undefined);
  });

  it('that babbles, answers twice and answers what nobody asked is heard once', async () => {
    const connection = await connect('babble');
    const { content, isError } = await connection.call('call_me', {}, signal);
    deepEqual([/called call_me$/.test(content), isError], [true, false]);
    match((await connection.call('call_me', {}, signal)).content, /called call_me$/);
    match(connection.noise ?? '', /JSON/);
  });

  it('whose answer is none of its revision is said to fail, with the reason', async () => {
    const { content, isError } = await (await connect('wrong')).call('call_me', {}, signal);
    equal(isError, true);
    match(content, /^call_me of the MCP server 'hostile' failed: Invalid result/);
  });

  it('whose answer is larger than a message may be fails with that call', async () => {
    const connection = await connect('huge');
    const { content, isError } = await connection.call('call_me', {}, signal);
    equal(isError, true);
    ok(content.length < 1000);
    match(content, /larger than|has ended|did not answer/);
  });
});
