/**
 * Carries out one client scenario of the protocol's conformance suite: a whole run of an agent, or its connection alone, with the server at
 * the address that the suite hands over. The suite starts this file and judges what arrives at its server.
 */
import { join } from 'node:path';
import { loadConfig } from '../../src/engine/config.ts';
import type { Human } from '../../src/engine/core/ports.ts';
import type { SignInPort } from '../../src/engine/human.ts';
import { connectServer } from '../../src/engine/mcp/client.ts';
import type { McpConnection } from '../../src/engine/mcp/connection.ts';
import { usualLimits } from '../../src/engine/mcp/servers.ts';
import { Telos } from '../../src/engine/telos.ts';
import type { FormField } from '../../src/protocol/form.ts';
import type { JsonObject } from '../../src/protocol/run.ts';
import { calls, done, says, scriptedProvider } from '../fakes/scriptedProvider.ts';
import { tempFolder } from '../fakes/tempFolder.ts';

const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? '';
interface Context {
  client_id?: string;
  client_secret?: string;
  toolCalls?: { name: string; arguments: JsonObject }[];
}
const context = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as Context;
const url = process.argv.at(-1)!;

/** The address that the suite takes for a client id metadata document. */
const clientDocument = 'https://conformance-test.local/client-metadata.json';

/** The calls of the model in the run, where they are not the one of `test-tool`. */
const wanted: Readonly<Record<string, readonly (readonly [tool: string, input: JsonObject])[]>> = {
  initialize: [['list_directory', { path: '.' }]],
  tools_call: [['add_numbers', { a: 5, b: 3 }]],
  'elicitation-sep1034-client-defaults': [['test_client_elicitation_defaults', {}]],
  'sse-retry': [['test_reconnection', {}]],
  'sep-2322-client-request-state': [
    ['test_mrtr_echo_state', {}],
    ['test_mrtr_unrelated', {}],
    ['test_mrtr_no_state', {}],
    ['test_mrtr_no_result_type', {}],
  ],
  'http-custom-headers': (context.toolCalls ?? []).map(call => [call.name, call.arguments]),
  'http-invalid-tool-headers': [
    ['invalid_empty_header', { value: 'x' }],
    ['invalid_duplicate_same_case', { value: 'x' }],
    ['valid_tool', { region: 'north' }],
  ],
  'json-schema-ref-no-deref': [['list_directory', { path: '.' }]],
};
const turns = wanted[scenario] ?? [['test-tool', {}]];

/** Scenarios about what a run does not do by itself: they use the connection of a run. */
const steps: Readonly<Record<string, (server: McpConnection, signal: AbortSignal) => Promise<unknown>>> = {
  'sep-2640-client-no-prefetch': ({ skills }, signal) => skills.list(signal),
  'sep-2640-client-verify-digest': loadSkill,
  'sep-2640-client-verify-size': loadSkill,
  'sep-2640-client-verify-frontmatter': loadSkill,
  async 'http-standard-headers'(server, signal) {
    await server.call('test_headers', {}, signal);
    const { resources } = await server.ask('resources/list', {}, signal);
    await server.ask('resources/read', { uri: firstOf(resources)['uri'] }, signal);
    const { prompts } = await server.ask('prompts/list', {}, signal);
    await server.ask('prompts/get', { name: firstOf(prompts)['name'] }, signal);
  },
  async 'json-schema-2020-12-preservation'(server, signal) {
    const focal = server.tools.find(({ name }) => name === 'json_schema_2020_12_tool');
    await server.call('json_schema_echo', { schema: focal!.inputSchema }, signal);
  },
};
/** Loads the skill that the suite serves. */
async function loadSkill({ skills }: McpConnection, signal: AbortSignal): Promise<void> {
  const [skill] = await skills.list(signal);
  await skills.files(skill!, signal);
}
const firstOf = (listed: unknown): JsonObject => (listed as JsonObject[])[0]!;

const clientId = context.client_id;
const clientSecret = context.client_secret;
const oauth = clientId && {
  oauth: { clientId, ...(clientSecret && { clientSecret: `\${CLIENT_SECRET}` }) },
};

const folder = tempFolder({
  'skills/suite/agent.toml': 'working_dir = "."\n',
  'skills/suite/mcp.json': JSON.stringify({
    mcpServers: { suite: { type: 'streamable-http', url, ...oauth } },
  }),
  'skills/suite/skills/try/SKILL.md': '---\nname: try\ndescription: Tries the server\n---\nTry it.\n',
  'work/.keep': '',
});

const secrets = new Map<string, string>();
const signIn: SignInPort = {
  redirectUrl: async () => 'http://localhost:3000/callback',
  clientDocument: async () => clientDocument,
  // The suite's page answers with a redirect at once, as a browser that is signed in gets it.
  async visit(page) {
    const answer = await fetch(page, { redirect: 'manual' });
    return new URL(answer.headers.get('location') ?? '').searchParams;
  },
  read: async name => secrets.get(name),
  async write(name, value) {
    if (value === undefined) secrets.delete(name);
    else secrets.set(name, value);
  },
};

/** Returns a form as it comes back from a person who only presses the button. */
const untouched = (fields: readonly FormField[]) =>
  Object.fromEntries(fields.flatMap(({ name, initial }) => (initial === undefined ? [] : [[name, initial]])));

const human: Human = {
  approve: async ({ form }) => ({ allow: true, scope: 'once', ...(form && { content: untouched(form) }) }),
  ask: async questions => questions.map(() => ''),
};

async function run(): Promise<void> {
  const config = loadConfig({
    env: {
      PATH: process.env['PATH'],
      ...(clientSecret && { CLIENT_SECRET: clientSecret }),
      TELOS_PROVIDER: 'scripted',
      TELOS_SKILLS_DIR: join(folder.path, 'skills'),
      TELOS_DATA_DIR: join(folder.path, 'data'),
      TELOS_CONFIG_DIR: join(folder.path, 'config'),
    },
    home: join(folder.path, 'home'),
    cwd: join(folder.path, 'work'),
  });
  const model = scriptedProvider([
    ...turns.map(([tool, input], at) => [calls(`${at}`, tool, input), done('tool_use')]),
    [says('Done.'), done()],
  ]);
  const telos = Telos.open(config, {
    providers: { scripted: { model: async () => 'script', create: async () => model } },
    signIn,
  });
  await telos.acceptCard(await telos.agentCard('suite'));
  const request = { text: 'try it', skill: { agent: 'suite', skill: 'try' } };
  for await (const event of telos.run(request, human, new AbortController().signal))
    if (event.type === 'notice' || event.type === 'tool_end' || event.type === 'run_end')
      console.log(JSON.stringify(event));
}

async function connect(step: (typeof steps)[string]): Promise<void> {
  const { signal } = new AbortController();
  const surroundings = { env: {}, cwd: folder.path, redact: (text: string) => text };
  const entry = { type: 'streamable-http' as const, url, headers: {} };
  const server = await connectServer('suite', entry, surroundings, usualLimits, signal);
  await step(server, signal).finally(() => server.close());
}

try {
  const step = steps[scenario];
  await (step ? connect(step) : run());
} finally {
  folder.remove();
}
