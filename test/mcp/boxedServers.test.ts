/** A server whose entry says "sandbox": true runs in a real box, or not at all. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findBox } from '../../src/engine/box/findBox.ts';
import { serverBoxes } from '../../src/engine/box/serverBox.ts';
import { readMcpConfig, setSandbox, switchServer } from '../../src/engine/mcp/config.ts';
import { connectServers, type McpReach } from '../../src/engine/mcp/servers.ts';
import { listen } from '../fakes/loopback.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import { skipBecause } from '../skipBecause.ts';

/** Answers the one tool with what it could read, write and reach. */
const program = `
import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
const tried = async act => { try { return String(await act()); } catch (error) { return 'no: ' + (error.code ?? error.cause?.code ?? error.message); } };
const call = async ({ secret, outside, work, port }) => [
  await tried(() => readFileSync(secret, 'utf8')),
  await tried(() => (writeFileSync(outside, 'x'), 'written')),
  await tried(() => (writeFileSync(work, 'x'), 'written')),
  await tried(() => fetch('http://127.0.0.1:' + port).then(answer => answer.status)),
].join('; ');
const answers = {
  initialize: () => ({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'tries', version: '1' } }),
  'tools/list': () => ({ tools: [{ name: 'try', inputSchema: { type: 'object' } }] }),
  'tools/call': async ({ arguments: args }) => ({ content: [{ type: 'text', text: await call(args) }] }),
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result: await answers[method]?.(params) ?? {} }) + '\\n');
}
`;

describe('an MCP server that is to run in a box', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({
      'pack/server.mjs': program,
      'home/private.txt': 'SECRET',
      'work/.keep': '',
    });
    for (const name of ['data', 'config']) mkdirSync(join(folder.path, name));
  });
  afterEach(() => folder.remove());

  const at = (path: string): string => join(folder.path, path);
  const env = { PATH: process.env['PATH'] ?? '' };
  const config = () => ({ env, home: at('home'), dataDir: at('data'), configDir: at('config') });
  const entry = (more: object): void =>
    folder.add({
      'pack/mcp.json': JSON.stringify({
        mcpServers: { one: { command: 'node', args: ['server.mjs'], ...more } },
      }),
    });

  async function tried(more: object, reach: McpReach): Promise<string> {
    entry(more);
    const agent = { name: 'pack', packDir: at('pack'), mcpConfig: at('pack/mcp.json') };
    const { signal } = new AbortController();
    const servers = await connectServers(config(), agent, [], { ...env, HOME: at('home') }, signal, reach);
    const listener = await listen(async (_request, response) => void response.end('reached'));
    try {
      if (servers.problems.length > 0) return JSON.stringify(servers.problems);
      const input = {
        secret: at('home/private.txt'),
        outside: at('outside.txt'),
        work: at('work/made.txt'),
        port: listener.address.replace(/^.*:/, '').replace(/\/.*$/, ''),
      };
      const folders = {
        workingDir: at('work'),
        packDir: at('pack'),
        skillDir: at('pack'),
        commandDir: at('pack'),
      };
      const [tool] = servers.merged().tools;
      return (await tool!.execute(input, { ...folders, env, signal })).content;
    } finally {
      await servers.close();
      await listener.close();
    }
  }

  const reach = (): McpReach => ({
    openBox: serverBoxes(config(), 'pack', {
      workingDir: at('work'),
      packDir: at('pack'),
      skillDir: at('pack'),
      commandDir: at('pack'),
    }),
  });

  it('sees and changes what a command in the box does, and reaches nothing', async function () {
    const said = await tried({ sandbox: true }, reach());
    const { works } = await findBox({ env });
    if (!works) {
      assert.match(said, /runs in a sandbox \(\\"sandbox\\": true\), and none works here/);
      return skipBecause(this, 'no sandbox works here');
    }
    assert.match(said, /^no: ENOENT; (?:no: EROFS|written); written; no: ECONNREFUSED$/);
    assert.equal(readFileSync(at('work/made.txt'), 'utf8'), 'x');
    assert.equal(existsSync(at('outside.txt')), false);
  });

  it('has the rights of the person without that word', async () => {
    assert.equal(await tried({}, reach()), 'SECRET; written; written; 200');
  });

  it('is not started where nothing opens a box, or none works', async () => {
    assert.match(await tried({ sandbox: true }, {}), /runs in a sandbox.*there is none here/);
    const none = { ...config(), env: { PATH: at('home') } };
    const folders = {
      workingDir: at('work'),
      packDir: at('pack'),
      skillDir: at('pack'),
      commandDir: at('pack'),
    };
    const openBox = serverBoxes(none, 'pack', folders);
    assert.match(await tried({ sandbox: true }, { openBox }), /none works here: /);
    assert.equal(existsSync(at('work/made.txt')), false);
    assert.match(
      await tried({ sandbox: 'yes' }, reach()),
      /"sandbox\\" must be true or false|must be true or false/,
    );
  });

  it('is switched in its file, whose comments and form stay', async () => {
    const file = at('pack/mcp.json');
    const text =
      '{\n\t// mine\n\t"mcpServers": {\n\t\t"one": { "command": "node" },\n\t\t"far": { "url": "https://example.org" }\n\t}\n}\n';
    folder.add({ 'pack/mcp.json': text });
    const isBoxed = (): boolean => {
      const server = readMcpConfig(file).servers.get('one');
      return server?.type === 'stdio' && server.sandbox === true;
    };
    assert.equal(await setSandbox(file, 'one', true), true);
    assert.equal(isBoxed(), true);
    assert.match(readFileSync(file, 'utf8'), /^\{\n\t\/\/ mine\n/);
    assert.equal(await setSandbox(file, 'one', false), true);
    assert.equal(isBoxed(), false);
    assert.doesNotMatch(readFileSync(file, 'utf8'), /sandbox/);
    assert.equal(await setSandbox(file, 'far', true), false);
    assert.equal(await setSandbox(file, 'none', true), false);
  });

  it('is switched off and on in its file, also one that is reached by its address', async () => {
    const file = at('pack/mcp.json');
    const text = '{\n  // mine\n  "mcpServers": { "far": { "url": "https://example.org" } }\n}\n';
    folder.add({ 'pack/mcp.json': text });
    assert.equal(await switchServer(file, 'far', false), true);
    assert.equal(readMcpConfig(file).servers.size, 0);
    assert.match(readFileSync(file, 'utf8'), /^\{\n {2}\/\/ mine\n[\s\S]*"disabled": true/);
    assert.equal(await switchServer(file, 'far', true), true);
    assert.equal(readMcpConfig(file).servers.size, 1);
    assert.equal(await switchServer(file, 'none', false), false);
  });
});
