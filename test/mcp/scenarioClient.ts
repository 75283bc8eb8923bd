/**
 * Carries out one client scenario of the protocol's conformance suite: a whole run of an agent whose only server is the address that the
 * suite hands over. The suite starts this file and judges what arrives at its server.
 */
import { join } from 'node:path';
import { loadConfig } from '../../src/engine/config.ts';
import type { Human } from '../../src/engine/core/ports.ts';
import type { SignInPort } from '../../src/engine/human.ts';
import { Telos } from '../../src/engine/telos.ts';
import type { FormField } from '../../src/protocol/form.ts';
import { calls, done, says, scriptedProvider } from '../fakes/scriptedProvider.ts';
import { tempFolder } from '../fakes/tempFolder.ts';

const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? '';
const context = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as Record<string, string>;
const url = process.argv.at(-1)!;

/** The address that the suite takes for a client id metadata document. */
const clientDocument = 'https://conformance-test.local/client-metadata.json';

const wanted: Readonly<Record<string, readonly [tool: string, input: object]>> = {
  initialize: ['list_directory', { path: '.' }],
  tools_call: ['add_numbers', { a: 5, b: 3 }],
  'elicitation-sep1034-client-defaults': ['test_client_elicitation_defaults', {}],
  'sse-retry': ['test_reconnection', {}],
};
const [tool, input] = wanted[scenario] ?? ['test-tool', {}];

const clientId = context['client_id'];
const clientSecret = context['client_secret'];
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

try {
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
    [calls('1', tool, { ...input }), done('tool_use')],
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
} finally {
  folder.remove();
}
