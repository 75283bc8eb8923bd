/** MCP servers: their configuration, and their tools beside the built-in ones. */
import { join } from 'node:path';
import { runCalls } from '../../../src/engine/core/calls.ts';
import { allowAll } from '../../../src/engine/human.ts';
import { interpolate, readMcpConfig, serverOf } from '../../../src/engine/mcp/config.ts';
import { connectServers, type McpServers } from '../../../src/engine/mcp/servers.ts';
import { type McpToolSource, mergeTools } from '../../../src/engine/mcp/tools.ts';
import type { PolicyContext } from '../../../src/engine/policy/decision.ts';
import { callPolicy } from '../../../src/engine/run/callPolicy.ts';
import { Telos } from '../../../src/engine/telos.ts';
import { builtinTools, skillTools } from '../../../src/engine/tools/builtin.ts';
import type { Tool } from '../../../src/engine/tools/tool.ts';
import type { ToolResult } from '../../../src/protocol/run.ts';
import { startAnthropicServer } from '../../fakes/anthropicServer.ts';
import { isRecord, type JsonRecord, strings, texts } from '../caseFile.ts';
import type { CaseWorld } from '../caseWorld.ts';
import type { Observed } from '../expectations.ts';
import type { Operations } from '../operations.ts';
import { bench } from './tools.ts';

export const mcpOperations: Operations = {
  interpolate: async ({ given, when }) => ({
    value: interpolate(String(when['value']), texts(given['env']) as Record<string, string>),
  }),

  async load_mcp({ given }, world) {
    world.write({ 'mcp.json': given['mcp_json'] ?? '' });
    return { servers: Object.fromEntries(readMcpConfig(join(world.tmp, 'mcp.json')).servers) };
  },

  async mcp_transport({ given }) {
    const server = serverOf(given['server']);
    return { transport: typeof server === 'string' ? undefined : server.type };
  },

  async mcp_call({ given, when }, world) {
    if (given['result'] !== undefined) return callOverWire(String(when['name']), given, world);
    const { tools } = mergeTools(builtinTools, [server(strings(given['tools']))]);
    const result = await called(String(when['name']), {}, tools, world);
    return { content: result.content, is_error: result.isError };
  },

  async mcp_connect_all({ given }, world) {
    const servers = await connected(texts(given['servers']), world);
    try {
      const from = new Set([...servers.merged().facts.values()].map(fact => fact.server));
      return { tools_from: [...from].sort(), warning: servers.problems.length > 0 };
    } finally {
      await servers.close();
    }
  },

  /** The name is called with a file to read: what comes back tells who answered. */
  async mcp_merge({ given }, world) {
    world.write({ '@cwd/f.txt': 'from the file' });
    const { tools } = mergeTools(builtinTools, [server([String(given['mcp_tool'])])]);
    const names = tools.map(tool => tool.definition.name);
    const { content } = await called(String(given['builtin']), { path: 'f.txt' }, tools, world);
    return {
      unique_names: new Set(names).size === names.length && names.length === builtinTools.length + 1,
      dispatch: content === 'from the file' ? 'builtin' : content,
    };
  },
};

/** A server over stdio with one tool of its own and one that has a built-in name; `refuses` ends before it has said anything. */
const program = `
import { createInterface } from 'node:readline';
const tool = name => ({ name, description: 'd', inputSchema: { type: 'object', properties: {} } });
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }),
  'tools/list': () => ({ tools: [tool('look_up'), tool('read_file')] }),
  'tools/call': () => JSON.parse(process.argv[2] ?? '{"content":[{"type":"text","text":"from the server"}]}'),
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  const result = answers[method]?.(params) ?? {};
  const said = result.raise === undefined ? { result } : { error: { code: -32603, message: result.raise } };
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, ...said }));
}
`;

/** A whole run of an agent with an mcp.json: which tools its model is offered, and who answers for which name. */
export async function runWithServers(world: CaseWorld): Promise<Observed> {
  world.write({ '@skills/a/skills/s/SKILL.md': '---\ndescription: D\n---\nB', '@tmp/server.mjs': program });
  world.write({ '@skills/a/agent.toml': 'working_dir = "."\n', '@cwd/f.txt': 'from the file' });
  const entry = { command: process.execPath, args: [join(world.tmp, 'server.mjs')] };
  world.write({ '@skills/a/mcp.json': JSON.stringify({ mcpServers: { s: entry } }) });
  const wanted = [
    { id: '1', name: 'read_file', input: { path: 'f.txt' } },
    { id: '2', name: 'look_up', input: {} },
  ];
  const model = await startAnthropicServer({ turns: [{ toolCalls: wanted }, { text: ['done'] }] });
  const answers: string[] = [];
  try {
    const env = { TELOS_PROVIDER: 'anthropic', ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: model.url };
    const telos = Telos.open(world.loadConfig(env));
    const request = { text: '', skill: { agent: 'a', skill: 's' } };
    for await (const event of telos.run(request, allowAll, AbortSignal.timeout(20_000))) {
      if (event.type === 'tool_end') answers.push(event.result.content);
    }
  } finally {
    await model.close();
  }
  const offered: string[] = (model.requests[0]?.body.tools ?? []).map((tool: { name: string }) => tool.name);
  if (offered.length === skillTools.length) throw new Error('the tools of the server are not offered');
  // Besides the five there are those that skills of other runners expect, and those of a conversation.
  const own = ['read_output', 'stop_command', 'update_todos', 'ask_user'];
  const all = [...skillTools.map(tool => tool.definition.name), ...own, 'look_up', 's__read_file'];
  const complete = all.every(name => offered.includes(name)) && offered.length === all.length;
  const right = answers.join() === 'from the file,from the server';
  return {
    tools: complete ? '5 built-in + every MCP tool' : offered,
    dispatch: right ? 'built-in names first, all others to MCP' : answers,
  };
}

/** One call of a real server that answers with these texts, or with an error. */
async function callOverWire(name: string, given: JsonRecord, world: CaseWorld): Promise<Observed> {
  const { texts: lines, isError, raise } = isRecord(given['result']) ? given['result'] : {};
  const content = strings(lines).map(text => ({ type: 'text', text }));
  const answer = raise === undefined ? { content, isError: isError === true } : { raise };
  world.write({ 'server.mjs': program.replace("'look_up'", JSON.stringify(strings(given['tools'])[0])) });
  const entry = { command: process.execPath, args: [join(world.tmp, 'server.mjs'), JSON.stringify(answer)] };
  world.write({ 'mcp.json': JSON.stringify({ mcpServers: { s: entry } }) });
  const servers = await connect(world);
  try {
    const { tools, facts } = servers.merged();
    const result = await called(name, {}, tools, world, tool => facts.get(tool));
    return { content: result.content, is_error: result.isError };
  } finally {
    await servers.close();
  }
}

/** Connects the servers of a case as a run does; the caller closes them. */
function connected(
  servers: Readonly<Record<string, string | undefined>>,
  world: CaseWorld,
): Promise<McpServers> {
  const scripts = Object.entries(servers).map(([name, kind]) => {
    const file = `${name}.mjs`;
    world.write({ [file]: kind === 'connects' ? program : 'process.exit(1);' });
    return [name, { command: process.execPath, args: [join(world.tmp, file)] }];
  });
  world.write({ 'mcp.json': JSON.stringify({ mcpServers: Object.fromEntries(scripts) }) });
  return connect(world);
}

/** Connects those of the case's own mcp.json. */
function connect(world: CaseWorld): Promise<McpServers> {
  const agent = { name: 'pack', mcpConfig: join(world.tmp, 'mcp.json'), packDir: world.tmp };
  const environment = { PATH: process.env['PATH'] ?? '' };
  return connectServers(world.loadConfig(), agent, builtinTools, environment, AbortSignal.timeout(10_000));
}

function server(names: readonly string[]): McpToolSource {
  const listing = (name: string) => ({
    name,
    description: 'd',
    inputSchema: { type: 'object' },
    readOnly: true,
  });
  return {
    server: 's',
    tools: names.map(listing),
    call: async () => ({ content: 'from the server', isError: false }),
  };
}

async function called(
  name: string,
  input: Readonly<Record<string, string>>,
  tools: readonly Tool[],
  world: CaseWorld,
  mcpTool?: PolicyContext['mcpTool'],
): Promise<ToolResult> {
  const usual = bench(world.cwd, world.cwd, world);
  const asked = mcpTool && { policy: { ...usual.policy, mcpTool }, human: allowAll };
  const spec = { ...usual, tools, ...asked };
  for await (const event of runCalls(
    [{ id: '1', name, input }],
    callPolicy(spec),
    spec.messages,
    new AbortController().signal,
  )) {
    if (event.type === 'tool_end') return event.result;
  }
  throw new Error('The call has no result.');
}
