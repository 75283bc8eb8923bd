/** The list of servers: its states, the first error of one that cannot start, tools that are switched off, servers that are added. */
import { deepEqual, equal, fail, match, ok, rejects } from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../src/engine/config.ts';
import type { SignInPort } from '../../src/engine/human.ts';
import { addServers, importableServers } from '../../src/engine/mcp/addServer.ts';
import { firstErrorIn } from '../../src/engine/mcp/link.ts';
import { openPolicyFile } from '../../src/engine/policy/decision.ts';
import { switchTool } from '../../src/engine/policy/policyEdit.ts';
import {
  checkServer,
  listServers,
  signInToServer,
  signOutOfServer,
} from '../../src/engine/run/serverCheck.ts';
import { Telos } from '../../src/engine/telos.ts';
import { spoken } from '../../src/protocol/text.ts';
import { calls, done, type ScriptedTurn, says, scriptedProvider } from '../fakes/scriptedProvider.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const fake = fileURLToPath(new URL('../fakes/mcpServer.ts', import.meta.url));
const signal = new AbortController().signal;

describe('the list of MCP servers', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({
      'skills/garden/agent.toml': 'name = "garden"\n',
      'skills/garden/skills/sow/SKILL.md': '---\nname: sow\ndescription: Sows the beds\n---\nSow.',
    });
  });
  afterEach(() => folder.remove());

  const server = (fault = 'none', more: object = {}) => ({
    command: process.execPath,
    args: [fake, fault],
    ...more,
  });

  /** Opens Telos with these servers, reviewed unless `isNew`. */
  async function open(
    mcpServers: object,
    isNew = false,
    turns: ScriptedTurn[] = [[says('Sown.'), done()]],
  ): Promise<Telos> {
    folder.add({ 'skills/garden/mcp.json': JSON.stringify({ mcpServers }) });
    const config = loadConfig({
      env: {
        PATH: process.env['PATH'],
        TELOS_SKILLS_DIR: join(folder.path, 'skills'),
        TELOS_DATA_DIR: join(folder.path, 'data'),
        TELOS_CONFIG_DIR: join(folder.path, 'config'),
        TELOS_PROVIDER: 'scripted',
        HOUSE_KEY: 'k3y-of-the-house',
      },
      home: join(folder.path, 'home'),
      cwd: join(folder.path, 'work'),
    });
    provider = scriptedProvider(turns);
    const scripted = { model: async () => 'script', create: async () => provider };
    const telos = Telos.open(config, { providers: { scripted } });
    if (!isNew) await telos.acceptCard(await telos.agentCard('garden'));
    return telos;
  }
  let provider: ReturnType<typeof scriptedProvider>;

  it('starts none of an agent that is not reviewed', async () => {
    const parts = await (await open({ a: server() }, true)).serverParts();
    const { servers } = await listServers(parts);
    deepEqual(
      servers.map(one => [one.agent, one.server, one.isAccepted, one.isRemote]),
      [['garden', 'a', false, false]],
    );
    await rejects(checkServer({ agent: 'garden', server: 'a' }, parts, signal), /is reviewed/);
    equal(parts.book.facts('garden', 'a'), undefined);
  });

  it('knows the tools of one that has started, and what one wrote that cannot, without its secrets', async () => {
    const key = `\${HOUSE_KEY}`;
    const script = `console.error('key ' + process.env.KEY); require('./gone.js')`;
    const broken = { command: process.execPath, args: ['-e', script], env: { KEY: key } };
    const parts = await (await open({ a: server(), broken })).serverParts();
    for (const name of ['a', 'broken']) await checkServer({ agent: 'garden', server: name }, parts, signal);
    const facts = parts.book.facts('garden', 'a');
    equal(facts?.state, 'ready');
    ok(facts?.tools.some(({ name }) => name === 'say'));
    const failed = parts.book.facts('garden', 'broken');
    match(
      spoken(failed?.error ? [failed.error] : []),
      /^it exited before it answered: Error: Cannot find module '\.\/gone\.js'$/,
    );
    const log = parts.book.log('garden', 'broken');
    match(log, /^key .*\n[\s\S]*at Module/);
    ok(!log.includes('k3y-of-the-house'), log);
  });

  it('says of each server whether it is signed in and whether it is in the box, and forgets a sign-in', async () => {
    const parts = await (
      await open({
        a: server(),
        kept: server('none', { sandbox: true }),
        web: { url: 'http://127.0.0.1:9/mcp?k=1' },
      })
    ).serverParts();
    const name = 'telos.mcp.garden.http://127.0.0.1:9/mcp';
    const secrets = new Map<string, string | undefined>([[name, '{"client":"c"}']]);
    const signIn: SignInPort = {
      read: async key => secrets.get(key),
      write: async (key, value) => void secrets.set(key, value),
      redirectUrl: async () => fail('nobody signs in'),
      visit: async () => fail('nobody signs in'),
    };
    const listed = async () =>
      (await listServers({ ...parts, signIn })).servers.map(one => [one.server, one.isSignedIn, one.isBoxed]);
    const others = [
      ['a', false, false],
      ['kept', false, true],
    ];
    deepEqual(await listed(), [...others, ['web', false, undefined]]);
    secrets.set(name, '{"access_token":"t"}');
    deepEqual(await listed(), [...others, ['web', true, undefined]]);
    await signOutOfServer({ agent: 'garden', server: 'a' }, { ...parts, signIn });
    equal(secrets.get(name), '{"access_token":"t"}');
    await signOutOfServer({ agent: 'garden', server: 'web' }, { ...parts, signIn });
    deepEqual([...secrets], [[name, undefined]]);
    deepEqual(await listed(), [...others, ['web', false, undefined]]);
    await rejects(
      signOutOfServer({ agent: 'garden', server: 'gone' }, { ...parts, signIn }),
      /no MCP server 'gone'/,
    );
    await rejects(
      signOutOfServer({ agent: 'gone', server: 'a' }, { ...parts, signIn }),
      /gone has no MCP server/,
    );
    const asked = signInToServer(
      { agent: 'garden', server: 'a' },
      parts,
      async () => fail('it wants none'),
      signal,
    );
    equal(await asked, false);
  });

  it('offers a model no tool that is switched off, and runs none that it names all the same', async () => {
    const telos = await open({ a: server() }, false, [
      [calls('1', 'say', { text: 'hi' }), done('tool_use')],
      [says('It was refused.'), done()],
    ]);
    const { config } = await telos.serverParts();
    const { file: rules } = openPolicyFile(config).read();
    const tool = { agent: 'garden', server: 'a', tool: 'say' };
    await switchTool({ file: rules, home: config.home }, tool, false);
    const human = { approve: async () => ({ allow: true, scope: 'once' }) as const, ask: async () => [] };
    const request = { text: 'sow', skill: { agent: 'garden', skill: 'sow' } };
    for await (const event of telos.run(request, human, signal))
      if (event.type === 'tool_end') match(event.result.content, /^Unknown tool: say/);
    const offered = provider.requests[0]?.tools ?? [];
    ok(offered.includes('count'), offered.join());
    ok(!offered.includes('say'), offered.join());
    equal(provider.requests.length, 2);
    await switchTool({ file: rules, home: config.home }, tool, true);
    equal(openPolicyFile(config).read().deny.length, 0);
  });

  it('adds a server beside the others and keeps comments, and changes nothing for one that cannot be used', async () => {
    folder.add({ 'mcp.json': '{\n  // mine\n  "mcpServers": {"a": {"command": "a"}}\n}\n' });
    const path = join(folder.path, 'mcp.json');
    await addServers(path, [{ name: 'b', entry: { url: 'https://b.example/mcp' } }]);
    const text = readFileSync(path, 'utf8');
    match(text, /\/\/ mine/);
    match(text, /"b": \{\s+"url": "https:\/\/b\.example\/mcp"/);
    const refused: [string, object, RegExp][] = [
      ['a', { command: 'x' }, /already/],
      ['c', {}, /needs a "command"/],
      ['../c', { command: 'x' }, /A name has letters/],
      ['__proto__', { command: 'x' }, /A name has letters/],
    ];
    for (const [name, entry, why] of refused)
      await rejects(addServers(path, [{ name, entry: { ...entry } }]), why);
    equal(readFileSync(path, 'utf8'), text);
  });

  it('reads the servers of VS Code, with what it asks for as variables', () => {
    const input = `\${input:api-key}`;
    const inFolder = `\${workspaceFolder}/tool.js`;
    const strange = `\${file}`;
    folder.add({
      '.vscode/mcp.json': JSON.stringify({
        servers: {
          web: { type: 'http', url: 'https://w.example/mcp', headers: { Authorization: `Bearer ${input}` } },
          own: { command: 'node', args: [inFolder], sandboxEnabled: true },
          odd: { command: 'node', args: [strange] },
          filed: { command: 'node', envFile: '.env' },
          empty: {},
        },
      }),
    });
    const { servers, problems } = importableServers(join(folder.path, '.vscode/mcp.json'), folder.path);
    deepEqual(servers, [
      {
        name: 'web',
        entry: {
          type: 'http',
          url: 'https://w.example/mcp',
          headers: { Authorization: `Bearer \${API_KEY}` },
        },
        asks: ['API_KEY'],
      },
      { name: 'own', entry: { command: 'node', args: [join(folder.path, 'tool.js')] }, asks: [] },
    ]);
    equal(problems.length, 3);
  });

  it('says the first line of an error, not the end of its stack', () => {
    const cases: [string, string | undefined][] = [
      [
        "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module 'x'\n    at A (a.js:1:1)\n    at B (b.js:2:2)\n",
        "Error: Cannot find module 'x'",
      ],
      [
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    raise ValueError("x")\nModuleNotFoundError: No module named x\n',
        'ModuleNotFoundError: No module named x',
      ],
      ['\u001b[31mnpm error code E404\u001b[0m\nnpm error 404 Not Found\n', 'npm error code E404'],
      ['Starting…\nListening\n', 'Starting…'],
      ['', undefined],
      ['\n \n', undefined],
    ];
    for (const [text, line] of cases) equal(firstErrorIn(text), line);
    ok((firstErrorIn(`Error: ${'x'.repeat(100_000)}`) ?? '').length <= 300);
  });
});
