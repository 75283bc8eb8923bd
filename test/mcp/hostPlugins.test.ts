/** MCP servers of plugins that were made for other hosts: wherever they are named, they start behind the card, or are named with the reason. */
import { deepEqual, equal, match, notEqual, ok } from 'node:assert/strict';
import { readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { addServers } from '../../src/engine/mcp/addServer.ts';
import { hiddenIn, missingVariables, readMcpConfig, setSandbox } from '../../src/engine/mcp/config.ts';
import { connectServers } from '../../src/engine/mcp/servers.ts';
import { cardOf } from '../../src/engine/policy/agentCard.ts';
import { readAgentFiles } from '../../src/engine/policy/agentFiles.ts';
import { FileDigests } from '../../src/engine/policy/agentReader.ts';
import { ownMcpConfig } from '../../src/engine/skills/discover.ts';
import type { ToolContext } from '../../src/engine/tools/tool.ts';
import { describeCard } from '../../src/protocol/agentCard.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const fake = fileURLToPath(new URL('../fakes/mcpServer.ts', import.meta.url));
const root$ = '$'.concat('{CLAUDE_PLUGIN_ROOT}');
const json = JSON.stringify;
const one = { one: { command: 'node', args: ['x.js'] } };
const two = { two: { type: 'http', url: 'https://mcp.example.org/two' } };

describe('a plugin for other hosts', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({ 'p/skills/s/SKILL.md': '---\nname: s\ndescription: D\n---\nB\n' });
  });
  afterEach(() => folder.remove());

  const packDir = (): string => join(folder.path, 'p');
  const add = (files: Record<string, unknown>): void =>
    folder.add(
      Object.fromEntries(
        Object.entries(files).map(([name, text]) => [
          `p/${name}`,
          typeof text === 'string' ? text : json(text),
        ]),
      ),
    );
  const agent = () => ({
    name: 'p',
    packDir: packDir(),
    workingDir: join(folder.path, 'work'),
    source: 'user' as const,
    skills: [],
    ...ownMcpConfig(packDir()),
  });
  const card = async () => {
    const { mcpConfig, ...rest } = agent();
    const own = { ...rest, ...(mcpConfig !== undefined && { mcpConfig }) };
    const files = await readAgentFiles(own, new FileDigests());
    const facts = await cardOf(own, files);
    const whole = { ...facts, agent: 'p', folder: '', origin: '', state: 'new' as const, changes: [] };
    const lines = describeCard({ ...whole, workingDir: '', digest: files.digest });
    const from = lines.findIndex(line => line.startsWith('MCP servers'));
    return { digest: files.digest, lines: lines.slice(from, -1), variables: facts.variables };
  };

  const layouts: Record<string, [files: Record<string, unknown>, names: string[]]> = {
    'a .mcp.json': [{ '.mcp.json': { mcpServers: one } }, ['one']],
    'a .mcp.json without mcpServers': [{ '.mcp.json': { ...one, ...two } }, ['one', 'two']],
    'a manifest, in place': [{ '.claude-plugin/plugin.json': { name: 'p', mcpServers: one } }, ['one']],
    'a manifest at the top': [
      { 'plugin.json': { name: 'p', mcpServers: { ...one, ...two } } },
      ['one', 'two'],
    ],
    'a manifest of another host': [{ '.github/plugin/plugin.json': { mcpServers: two } }, ['two']],
    'a path': [
      { '.claude-plugin/plugin.json': { mcpServers: './config/servers.json' }, 'config/servers.json': one },
      ['one'],
    ],
    'a path from the root': [
      {
        '.claude-plugin/plugin.json': { mcpServers: `${root$}/servers.json` },
        'servers.json': { mcpServers: one },
      },
      ['one'],
    ],
    'the path of its .mcp.json': [
      { '.claude-plugin/plugin.json': { mcpServers: './.mcp.json' }, '.mcp.json': { mcpServers: one } },
      ['one'],
    ],
    'a list': [
      { 'plugin.json': { mcpServers: ['./a.json', two] }, 'a.json': { mcpServers: one } },
      ['one', 'two'],
    ],
    'a manifest and a .mcp.json': [
      { '.claude-plugin/plugin.json': { mcpServers: one }, '.mcp.json': { mcpServers: { ...two, ...one } } },
      ['one', 'two'],
    ],
  };
  for (const [name, [files, names]] of Object.entries(layouts))
    it(`has the servers of ${name}, on its card`, async () => {
      add(files);
      const { mcpConfig } = ownMcpConfig(packDir());
      const { servers, problems } = readMcpConfig(mcpConfig ?? '');
      deepEqual([[...servers.keys()].sort(), problems], [names, []]);
      const { lines } = await card();
      deepEqual(
        lines.slice(1).map(line => line.trim().split(':')[0]),
        [...servers.keys()],
      );
    });

  const unusable: Record<string, [files: Record<string, unknown>, says: RegExp]> = {
    'a broken .mcp.json': [{ '.mcp.json': '{"mcpServers": {' }, /\.mcp\.json is not JSON/],
    'a .mcp.json that is a list': [{ '.mcp.json': '[]' }, /\.mcp\.json has no server in "mcpServers"/],
    'a broken manifest': [
      { '.claude-plugin/plugin.json': '{"mcpServers": {"a": {"command": "x"},}' },
      /plugin\.json is not JSON/,
    ],
    'a path that is not there': [
      { 'plugin.json': { mcpServers: './no.json' } },
      /no\.json, which is not there/,
    ],
    'a path that leads out': [
      { 'plugin.json': { mcpServers: '../out.json' } },
      /out\.json, which leads out of the plugin/,
    ],
    'a bundle': [
      { 'plugin.json': { mcpServers: './a.mcpb' }, 'a.mcpb': 'PK' },
      /a\.mcpb, which is not JSON\. They are not started/,
    ],
    'a number': [{ 'plugin.json': { mcpServers: 3 } }, /neither servers nor a path/],
    'an unknown type': [
      { '.mcp.json': { a: { type: 'ws', url: 'wss://x.example.org' } } },
      /'a'.*its type is "ws"/,
    ],
    'a default': [
      { '.mcp.json': { a: { command: 'x', args: ['$'.concat('{PORT:-1}')] } } },
      /'a'.*a default/,
    ],
    'a program for headers': [
      { '.mcp.json': { a: { type: 'http', url: 'https://x.example.org', headersHelper: './h.sh' } } },
      /'a'.*"headersHelper"/,
    ],
    'one that is switched off': [
      { '.mcp.json': { mcpServers: { a: { command: 'x', disabled: true } } } },
      /'a'.*switched off/,
    ],
    'two of one name': [
      { 'plugin.json': { mcpServers: one }, '.mcp.json': { mcpServers: { one: { command: 'other' } } } },
      /\.mcp\.json: the MCP server 'one' is ignored: another file of the plugin has that name/,
    ],
  };
  for (const [name, [files, says]] of Object.entries(unusable))
    it(`never has "none" for ${name}, but the reason`, async () => {
      add(files);
      const { lines } = await card();
      equal(lines[0], 'MCP servers:');
      const told = lines.find(line => line.includes('not started: '));
      match(told ?? '', says);
      ok(!told?.includes(folder.path), told);
    });

  it('is "none" without any, and keeps the servers of its own mcp.json', async () => {
    deepEqual((await card()).lines, ['MCP servers: none']);
    add({ '.claude-plugin/plugin.json': { name: 'p' } });
    deepEqual((await card()).lines, ['MCP servers: none']);
    add({ 'mcp.json': { mcpServers: two }, '.mcp.json': { mcpServers: one } });
    deepEqual((await card()).lines, ['MCP servers:', '  two: https://mcp.example.org/two']);
  });

  it('starts a program in its folder, which is filled in wherever it is named, and is no variable of the person', async () => {
    folder.add({ 'p/servers/mcp.ts': `import(${json(fake)});\n` });
    const entry = {
      command: 'node',
      args: [`${root$}/servers/mcp.ts`],
      env: { FROM: `${root$}/data`, KEY: '$'.concat('{MY_KEY}') },
    };
    add({ '.claude-plugin/plugin.json': { mcpServers: { own: entry } } });
    const { mcpConfig = '' } = agent();
    deepEqual((await card()).variables, ['MY_KEY']);
    const written = readMcpConfig(mcpConfig).servers.get('own');
    ok(written);
    equal(missingVariables(written, { MY_KEY: 'k' }), undefined);
    const config = { env: { MY_KEY: 's3cret' }, home: '/nowhere', dataDir: join(folder.path, 'data') };
    const base = { PATH: `${dirname(process.execPath)}:/usr/bin:/bin` };
    const { signal } = new AbortController();
    const servers = await connectServers(
      config,
      { name: 'p', packDir: packDir(), mcpConfig },
      [],
      base,
      signal,
    );
    try {
      deepEqual(servers.problems, []);
      const tool = servers.merged().tools.find(({ definition }) => definition.name === 'environment');
      const result = await tool?.execute({}, { signal } as ToolContext);
      match(result?.content ?? '', new RegExp(`"FROM":"${packDir()}/data"`));
    } finally {
      await servers.close();
    }
  });

  it('has a card that is bound to each of its files, whose secrets are hidden', async () => {
    add({
      '.claude-plugin/plugin.json': { mcpServers: './servers.json' },
      'servers.json': { a: { command: 'x', env: { API_KEY: 'sk-live-1234567890abcdef' } } },
    });
    const { mcpConfig = '' } = agent();
    ok(hiddenIn(mcpConfig, {}).includes('sk-live-1234567890abcdef'));
    const { digest } = await card();
    add({ 'servers.json': { a: { command: 'y' } } });
    notEqual((await card()).digest, digest);
  });

  it('is not changed: nothing is added to its files, and no box is written into them', async () => {
    add({ '.mcp.json': one });
    const { mcpConfig = '' } = agent();
    const text = readFileSync(mcpConfig, 'utf8');
    await addServers(mcpConfig, [{ name: 'more', entry: { command: 'z' } }]).then(
      () => ok(false, 'it was added'),
      error => match(String(error.message), /belongs to a plugin and is not changed/),
    );
    equal(await setSandbox(mcpConfig, 'one', true), false);
    equal(readFileSync(mcpConfig, 'utf8'), text);
  });

  it('is not followed over a link out of its folder', async () => {
    folder.add({ 'out.json': json(one) });
    symlinkSync(join(folder.path, 'out.json'), join(packDir(), 'in.json'));
    add({ 'plugin.json': { mcpServers: './in.json' } });
    match((await card()).lines.join('\n'), /in\.json, which leads out of the plugin/);
  });
});
