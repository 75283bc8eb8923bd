/** The public servers `everything`, over all three transports, and `filesystem`, in whole runs of a skill. */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { unattended } from '../../src/cli/terminalHuman.ts';
import { loadConfig } from '../../src/engine/config.ts';
import type { Human } from '../../src/engine/core/ports.ts';
import { allowAll, denyAll } from '../../src/engine/human.ts';
import { Telos } from '../../src/engine/telos.ts';
import type { ApprovalRequest, RunEvent, ToolResult } from '../../src/protocol/run.ts';
import { eventually } from '../eventually.ts';
import { calls, done, type ScriptedTurn, says, scriptedProvider } from '../fakes/scriptedProvider.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const program = (name: string): string =>
  fileURLToPath(new URL(`../../node_modules/@modelcontextprotocol/${name}/dist/index.js`, import.meta.url));
const everything = program('server-everything');
const local = { command: process.execPath, args: [everything, 'stdio'] };
const dead = { command: process.execPath, args: ['-e', 'console.error("no licence"); process.exit(1)'] };

describe('a run with public MCP servers', () => {
  let folder: TempFolder;
  let children: ChildProcess[];
  beforeEach(() => {
    folder = tempFolder({ 'skills/helper/skills/work/SKILL.md': '---\nname: work\n---\nWork.' });
    children = [];
  });
  afterEach(async () => {
    await Promise.all(children.map(stopped));
    folder.remove();
  });

  /** Serves `everything` on a free port of this machine and returns its address. */
  async function serve(transport: 'sse' | 'streamableHttp'): Promise<string> {
    const port = await freePort();
    const child = spawn(process.execPath, [everything, transport], {
      env: { PATH: process.env['PATH'], PORT: String(port) },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    children.push(child);
    await new Promise<void>((resolve, reject) => {
      let said = '';
      child.stderr.on('data', chunk => {
        said += chunk;
        if (/port \d+/.test(said)) resolve();
      });
      child.once('exit', () => reject(new Error(said)));
    });
    return `http://127.0.0.1:${port}${transport === 'sse' ? '/sse' : '/mcp'}`;
  }

  async function run(
    mcpServers: object,
    turns: readonly ScriptedTurn[],
    human: Human = allowAll,
    onEvent: (event: RunEvent, control: AbortController) => void = () => undefined,
  ) {
    folder.add({ 'skills/helper/mcp.json': JSON.stringify({ mcpServers }) });
    const skillsDir = join(folder.path, 'skills');
    // Not the folder of the tests: a server below the folder that a run may change is asked about at every start.
    const cwd = join(folder.path, 'elsewhere');
    const env = { PATH: process.env['PATH'], TELOS_PROVIDER: 'scripted' };
    const config = loadConfig({ env, home: folder.path, skillsDir, cwd });
    const provider = scriptedProvider(turns);
    const scripted = { model: async () => 'script', create: async () => provider };
    const control = new AbortController();
    const events: RunEvent[] = [];
    const telos = Telos.open(config, { providers: { scripted } });
    const request = { text: 'go', skill: { agent: 'helper', skill: 'work' } };
    for await (const event of telos.run(request, human, control.signal)) {
      events.push(event);
      onEvent(event, control);
    }
    const end = events.at(-1);
    assert.ok(end?.type === 'run_end');
    const results = events
      .flatMap(event => (event.type === 'tool_end' ? [event] : []))
      .sort((a, b) => Number(a.callId) - Number(b.callId))
      .map(({ result }) => result);
    // Where the agent works is the first line of each.
    const [, ...notices] = events.flatMap(event => (event.type === 'notice' ? [event.message] : []));
    return { end, results, notices, provider, events };
  }

  const ends: ScriptedTurn = [says('done'), done()];

  it('names the dead server and goes on with the live one', async () => {
    const { end, results, notices, provider } = await run({ dead, live: local }, [
      [calls('1', 'echo', { message: 'hi' }), done('tool_use')],
      ends,
    ]);
    assert.equal(end.outcome, 'completed');
    assert.deepEqual(
      results.map(({ content }) => content),
      ['Echo: hi'],
    );
    assert.equal(notices.length, 1);
    assert.match(notices[0] ?? '', /'dead' is not available in this run: .*no licence/);
    const tools = provider.requests[0]?.tools ?? [];
    assert.deepEqual(tools.slice(0, 5), [
      'read_file',
      'write_file',
      'list_directory',
      'run_command',
      'fetch_url',
    ]);
    assert.ok(tools.includes('get-sum'));
  });

  const ways: [string, () => Promise<object>][] = [
    ['stdio', async () => local],
    ['sse', async () => ({ type: 'sse', url: await serve('sse') })],
    ['streamable http', async () => ({ url: await serve('streamableHttp') })],
    ['sse that nobody has called so', async () => ({ url: await serve('sse') })],
  ];
  for (const [way, entry] of ways) {
    it(`has text, images, structure, resources, progress and errors over ${way}`, async () => {
      const { end, results, events } = await run({ everything: await entry() }, [
        [
          calls('1', 'get-sum', { a: 2, b: 3 }),
          calls('2', 'get-tiny-image', {}),
          calls('3', 'get-structured-content', { location: 'Chicago' }),
          calls('4', 'get-resource-reference', { resourceType: 'Text', resourceId: 1 }),
          calls('5', 'get-resource-links', { count: 2 }),
          calls('6', 'trigger-long-running-operation', { duration: 0.1, steps: 2 }),
          calls('7', 'get-sum', { a: 'two', b: 1 }),
          done('tool_use'),
        ],
        ends,
      ]);
      assert.equal(end.outcome, 'completed');
      const [sum, image, structured, resource, links, long, wrong] = results as [
        ...[ToolResult, ToolResult, ToolResult, ToolResult, ToolResult, ToolResult, ToolResult],
      ];
      assert.match(sum.content, /is 5\./);
      assert.match(image.images?.[0]?.source.data ?? '', /^iVBORw0KGgo/);
      assert.match(structured.content, /"humidity":\s*82/);
      assert.match(resource.content, /\[resource demo:\/\/resource\/dynamic\/text\/1\]\n/);
      assert.equal(links.content.match(/^\[resource /gm)?.length, 2);
      assert.match(long.content, /completed/);
      assert.ok(wrong.isError);
      assert.match(wrong.content, /-32602|expected number/);
      const far = events.find(event => event.type === 'tool_progress');
      assert.deepEqual(far, {
        type: 'tool_progress',
        callId: '6',
        name: 'trigger-long-running-operation',
        message: '1 of 2',
        share: 0.5,
      });
    });

    it(`is cancelled in the middle of a call over ${way}`, async () => {
      const { end, results } = await run(
        { everything: await entry() },
        [[calls('1', 'trigger-long-running-operation', { duration: 30, steps: 300 }), done('tool_use')]],
        allowAll,
        (event, control) => {
          if (event.type === 'tool_progress') control.abort();
        },
      );
      assert.equal(end.outcome, 'cancelled');
      assert.match(results[0]?.content ?? '', /cancelled/);
      assert.ok(end.durationMs < 10_000);
    });
  }

  it('asks about a tool once when the answer is for the run, and shows what it would do', async () => {
    const asked: ApprovalRequest[] = [];
    const human: Human = {
      ...denyAll,
      approve: async request => {
        asked.push(request);
        return { allow: true, scope: request.tool === 'echo' ? 'run' : 'once' };
      },
    };
    const turn: ScriptedTurn = [
      calls('1', 'echo', { message: 'a' }),
      calls('2', 'echo', { message: 'b' }),
      calls('3', 'get-sum', { a: 1, b: 1 }),
      calls('4', 'get-sum', { a: 1, b: 1 }),
      done('tool_use'),
    ];
    const { results } = await run({ everything: local }, [turn, ends], human);
    assert.deepEqual(
      asked.map(({ tool, rule }) => [tool, rule]),
      [
        ['mcp_servers', 'card.new'],
        ['echo', 'mcp.first-use'],
        ['get-sum', 'mcp.first-use'],
        ['get-sum', 'mcp.first-use'],
      ],
    );
    assert.ok(asked[0]?.card?.servers[0]?.place.includes('server-everything'));
    assert.equal(asked[1]?.subject, 'everything: echo {\n  "message": "a"\n}');
    assert.ok(results.every(({ isError }) => !isError));
  });

  it('has the model answer what a server asks it, after a yes', async () => {
    const asked: ApprovalRequest[] = [];
    const person: Human = {
      approve: async request => {
        asked.push(request);
        return { allow: true, scope: 'once' };
      },
      ask: async () => [],
    };
    const { results, provider } = await run(
      { everything: local },
      [
        [calls('1', 'trigger-sampling-request', { prompt: 'Name a bean.', maxTokens: 20 }), done('tool_use')],
        [says('Runner bean.'), done()],
        ends,
      ],
      person,
    );
    assert.match(results[0]?.content ?? '', /Runner bean\./);
    assert.deepEqual(provider.requests[1]?.tools, []);
    const question = asked.find(({ rule }) => rule === 'mcp.sampling');
    assert.match(question?.subject ?? '', /^\[system\]\n[\s\S]*\[user\]\n[\s\S]*Name a bean\./);
  });

  it('does nothing that nobody has agreed to', async () => {
    const turns = [[calls('1', 'echo', { message: 'a' }), done('tool_use')], ends];
    const { results, notices } = await run({ everything: local }, turns, unattended);
    assert.match(notices[0] ?? '', /continues without its MCP servers.*telos trust helper/);
    assert.match(
      results[0]?.content ?? '',
      /^The MCP servers of this agent are not connected\. Denied: .*telos trust helper/,
    );
    const connected: Human = {
      ...denyAll,
      approve: (request, signal) =>
        request.tool === 'mcp_servers'
          ? Promise.resolve({ allow: true, scope: 'once' })
          : denyAll.approve(request, signal),
    };
    const asked = await run({ everything: local }, turns, connected);
    assert.match(asked.results[0]?.content ?? '', /^Denied: .*mcp\.first-use/);
  });

  it('tells a server that it starts the working folder and no other, and one at an address none', async () => {
    const files = { command: process.execPath, args: [program('server-filesystem')] };
    const work = join(folder.path, 'obsidian/telos/helper');
    folder.add({ 'obsidian/telos/helper/note.txt': 'from the agent', 'other.txt': 'not theirs' });
    // The server takes the folder in beside its first calls.
    const results = await eventually(async () => {
      const { results } = await run({ files }, [
        [
          calls('1', 'list_allowed_directories', {}),
          calls('2', 'files__read_file', { path: join(work, 'note.txt') }),
          calls('3', 'read_text_file', { path: join(folder.path, 'other.txt') }),
          done('tool_use'),
        ],
        ends,
      ]);
      assert.deepEqual(results[0]?.content.split('\n').slice(1), [work]);
      return results;
    });
    assert.equal(results[1]?.content, 'from the agent');
    assert.match(results[2]?.content ?? '', /outside allowed directories/);
    const remote = await run({ far: { url: await serve('streamableHttp') } }, [
      [calls('1', 'get-roots-list', {}), done('tool_use')],
      ends,
    ]);
    assert.match(remote.results[0]?.content ?? '', /Unknown tool: get-roots-list/);
  });

  it('prefers its own file tools to those of the filesystem server', async () => {
    const shared = join(folder.path, 'shared');
    folder.add({ 'shared/note.txt': 'from the server', 'obsidian/telos/helper/note.txt': 'from the agent' });
    const files = { command: process.execPath, args: [program('server-filesystem'), shared] };
    const { results } = await run({ files }, [
      [
        calls('1', 'read_file', { path: 'note.txt' }),
        calls('2', 'files__read_file', { path: join(shared, 'note.txt') }),
        calls('3', 'create_directory', { path: join(shared, 'new') }),
        calls('4', 'list_allowed_directories', {}),
        calls('5', 'files__read_file', { path: join(folder.path, 'skills/helper/mcp.json') }),
        done('tool_use'),
      ],
      ends,
    ]);
    assert.equal(results[0]?.content, 'from the agent');
    assert.equal(results[1]?.content, 'from the server');
    assert.ok(existsSync(join(shared, 'new')));
    assert.match(results[3]?.content ?? '', /shared/);
    assert.ok(results[4]?.isError);
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  assert.ok(address && typeof address === 'object');
  return address.port;
}

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
