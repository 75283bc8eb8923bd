/** MCP servers of a plugin as a host has to load them: each test is a line of the appendix of the specification of Agent Plugins. */
import { deepEqual, equal, match, ok } from 'node:assert/strict';
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type McpServer, readMcpConfig } from '../../src/engine/mcp/config.ts';
import { pluginFolders } from '../../src/engine/mcp/pluginServers.ts';
import { connectServers, type McpServers } from '../../src/engine/mcp/servers.ts';
import { cardOf } from '../../src/engine/policy/agentCard.ts';
import { readAgentFiles } from '../../src/engine/policy/agentFiles.ts';
import { FileDigests } from '../../src/engine/policy/agentReader.ts';
import { ownMcpConfig } from '../../src/engine/skills/discover.ts';
import { packSkills } from '../../src/engine/skills/packSkills.ts';
import type { ToolContext } from '../../src/engine/tools/tool.ts';
import { spoken } from '../../src/protocol/text.ts';
import { listen } from '../fakes/loopback.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const fake = fileURLToPath(new URL('../fakes/mcpServer.ts', import.meta.url));
const schema = (file: string, version = '1.0.0'): string =>
  `https://agent-plugins.org/schemas/${version}/${file}.schema.json`;
const skill = (name: string): string => `---\nname: ${name}\ndescription: D\n---\nB\n`;
const root$ = '$'.concat('{PLUGIN_ROOT}');
const data$ = '$'.concat('{PLUGIN_DATA}');

const said = ({ problems }: Pick<McpServers, 'problems'>): string => spoken(problems);

describe('a plugin of agent-plugins.org', () => {
  let folder: TempFolder;
  let packDir: string;
  let data: string;
  let open: McpServers[];
  beforeEach(() => {
    folder = tempFolder({
      'pack/plugin.json': JSON.stringify({ $schema: schema('plugin'), name: 'pack' }),
      'pack/skills/s/SKILL.md': skill('s'),
      'pack/sub/.keep': '',
    });
    packDir = realpathSync(join(folder.path, 'pack'));
    data = pluginFolders(packDir, join(folder.path, 'data')).data;
    open = [];
  });
  afterEach(async () => {
    await Promise.all(open.map(servers => servers.close()));
    folder.remove();
  });

  const write = (content: unknown): void =>
    writeFileSync(join(packDir, 'mcp.json'), typeof content === 'string' ? content : JSON.stringify(content));
  const read = (mcpServers: unknown, more: object = {}) => {
    write({ $schema: schema('mcp'), mcpServers, ...more });
    return readMcpConfig(join(packDir, 'mcp.json'));
  };
  /** Returns why an entry is passed over; the one beside it is taken in any case. */
  const refused = (entry: unknown): string => {
    const { servers, problems } = read({ bad: entry, good: { type: 'stdio', command: 'node' } });
    deepEqual([...servers.keys()], ['good'], JSON.stringify(entry));
    equal(problems.length, 1);
    match(problems[0] ?? '', /mcp\.json: the MCP server 'bad' is ignored: /);
    return problems[0] ?? '';
  };
  const own = (more: object = {}) => ({ type: 'stdio', command: 'node', args: [fake], ...more });
  const connect = async (mcpServers: unknown, env: Record<string, string> = {}): Promise<McpServers> => {
    write({ $schema: schema('mcp'), mcpServers });
    const agent = { name: 'pack', mcpConfig: join(packDir, 'mcp.json'), packDir };
    const config = { env: { SECRET: 's3cret' }, home: '/nowhere', dataDir: join(folder.path, 'data') };
    const base = { PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, BASE: 'base', ...env };
    const servers = await connectServers(config, agent, [], base, new AbortController().signal);
    open.push(servers);
    return servers;
  };
  /** Returns what a started server sees: its environment, its folder and its arguments. */
  const seenBy = async (
    entry: unknown,
    env: Record<string, string> = {},
  ): Promise<Record<string, string>> => {
    const servers = await connect({ s: entry }, env);
    deepEqual(servers.problems, []);
    const tool = servers.merged().tools.find(({ definition }) => definition.name === 'environment');
    const result = await tool!.execute({}, { signal: new AbortController().signal } as ToolContext);
    return JSON.parse(result.content);
  };

  it('Reject package paths that resolve outside the plugin root', async () => {
    folder.add({ 'out/SKILL.md': skill('out'), 'out/mcp.json': '{}', 'out/run': '' });
    symlinkSync(join(folder.path, 'out'), join(packDir, 'skills/out'));
    symlinkSync(join(folder.path, 'out/run'), join(packDir, 'run'));
    const { skills, skipped } = packSkills(packDir);
    deepEqual(
      [skills.map(({ id }) => id), skipped.map(({ id, why }) => [id, why])],
      [['s'], [['out', 'leads out of the plugin']]],
    );
    for (const command of ['./run', './../out/run', './..'])
      match(said(await connect({ s: own({ command }) })), /its command leads out of the plugin/);
    rmSync(join(packDir, 'mcp.json'));
    symlinkSync(join(folder.path, 'out/mcp.json'), join(packDir, 'mcp.json'));
    const { problems, servers } = readMcpConfig(join(packDir, 'mcp.json'));
    equal(servers.size, 0);
    match(problems.join(), /is a link that leads out of the plugin|follows no schema/);
  });

  it('Scan the fixed location for each supported component type', () => {
    folder.add({
      'pack/skills/deep/below/SKILL.md': skill('below'),
      'pack/skills/small/skill.md': skill('small'),
      'pack/.mcp.json': JSON.stringify({ mcpServers: { other: { command: 'node' } } }),
      'pack/more/SKILL.md': skill('more'),
    });
    deepEqual(
      packSkills(packDir).skills.map(({ id }) => id),
      ['s'],
    );
    deepEqual([...read({ a: { type: 'stdio', command: 'node' } }).servers.keys()], ['a']);
  });

  it('Ignore missing fixed locations without error', () => {
    rmSync(join(packDir, 'skills'), { recursive: true });
    deepEqual(packSkills(packDir), { skills: [], skipped: [] });
    writeFileSync(join(packDir, 'skills'), 'a file');
    deepEqual(packSkills(packDir), { skills: [], skipped: [] });
    deepEqual(read({}).problems, []);
  });

  it('Select a supported $schema, then validate the closed mcp.json schema and each server variant', () => {
    for (const [content, says] of [
      ['{', /is not JSON/],
      ['{ /* not JSON */ }', /follows no schema/],
      [`{ "$schema": "${schema('mcp')}", "mcpServers": {} /* none */ }`, /has comments/],
      [{ mcpServers: {} }, /follows no schema/],
      [
        { $schema: schema('mcp', '3.0.0'), mcpServers: {} },
        /this Telos knows Agent Plugins 1\.0\.0 and 1\.1\.0/,
      ],
      [
        { $schema: schema('mcp', '1.1.0'), mcpServers: {} },
        /follows Agent Plugins 1\.1\.0, but plugin\.json/,
      ],
      [{ $schema: schema('mcp'), mcpServers: {}, inputs: [] }, /has "inputs", which is not a field/],
      [{ $schema: schema('mcp'), mcpServers: [] }, /has no object "mcpServers"/],
      [{ $schema: schema('mcp') }, /has no object "mcpServers"/],
    ] as const) {
      write(content);
      const { servers, problems } = readMcpConfig(join(packDir, 'mcp.json'));
      equal(servers.size, 0);
      match(problems.join(), says);
    }
    match(refused('node'), /not an object/);
    match(refused({ command: 'node' }), /"type" has to be stdio, sse, streamable-http/);
    match(refused({ type: 'http', url: 'https://a.test' }), /"type" has to be/);
    match(refused({ type: 'constructor' }), /"type" has to be/);
    match(refused({ type: 'stdio', command: 'node', disabled: true }), /"disabled" is not a field/);
    match(refused({ type: 'stdio', command: 'node', url: 'https://a.test' }), /"url" is not a field/);
    match(refused({ type: 'sse', url: 'https://a.test', command: 'node' }), /"command" is not a field/);
    match(
      refused({ type: 'sse', url: 'https://a.test', oauth: { clientId: 'a' } }),
      /"oauth" is not a field/,
    );
    match(refused({ type: 'stdio', command: 'node', args: [1] }), /"args" has to be a list of texts/);
    match(refused({ type: 'stdio', command: 'node', args: ['a\0b'] }), /"args" has to be/);
    match(refused({ type: 'stdio', command: 'node', env: { A: 1 } }), /"env" has to be an object of texts/);
    match(refused({ type: 'stdio', command: 'node', env: { 'A=B': 'x' } }), /no variable can have/);
  });

  it('If supporting MCP, implement at least one of stdio or Streamable HTTP', async () => {
    equal((await connect({ s: own() })).problems.length, 0);
  });

  it('Use each server entry’s declared transport for the initial connection attempt', async () => {
    const methods: string[] = [];
    const { address, close } = await listen(async (request, response) => {
      methods.push(request.method);
      response.writeHead(500).end();
    });
    try {
      await connect({ a: { type: 'streamable-http', url: address } });
      equal(methods[0], 'POST');
      methods.length = 0;
      await connect({ a: { type: 'sse', url: address } });
      equal(methods[0], 'GET');
    } finally {
      await close();
    }
  });

  it('Enforce remote URL and literal-header requirements', async () => {
    const address = (url: unknown, headers?: unknown) => ({ type: 'streamable-http', url, headers });
    for (const url of [
      1,
      'mcp',
      '/mcp',
      'ftp://a.test',
      'http://a.test',
      'http://10.0.0.1',
      'http://localhost.a.test',
    ])
      match(refused(JSON.parse(JSON.stringify(address(url)))), /"url" has to/);
    for (const url of ['https://me@a.test', 'https://me:pw@a.test', 'https://:@a.test'])
      match(refused({ type: 'sse', url }), /user name/);
    for (const url of ['https://a.test/#b', 'https://a.test/#'])
      match(refused({ type: 'sse', url }), /fragment/);
    for (const [headers, says] of [
      [[], /object of texts/],
      [{ A: 1 }, /object of texts/],
      [{ 'X-A': 'a', 'x-a': 'b' }, /one header twice/],
      [{ 'X A': 'a' }, /no header can have/],
      [{ A: 'a\r\nB: c' }, /no header can have/],
      [{ A: ' a' }, /no header can have/],
    ] as const)
      match(refused(address('https://a.test', headers)), says);
    const seen: (string | string[] | undefined)[] = [];
    const { address: here, close } = await listen(async (request, response) => {
      seen.push(request.headers['x-literal']);
      response.writeHead(500).end();
    });
    try {
      await connect({
        a: { type: 'streamable-http', url: here, headers: { 'X-Literal': '$'.concat('{SECRET}') } },
      });
      deepEqual([...new Set(seen)], ['$'.concat('{SECRET}')]);
    } finally {
      await close();
    }
  });

  it('If the client launches plugin subprocesses, provide PLUGIN_ROOT and a dedicated writable PLUGIN_DATA directory', async () => {
    const seen = await seenBy(own());
    deepEqual([seen['PLUGIN_ROOT'], seen['PLUGIN_DATA']], [packDir, data]);
    writeFileSync(join(data, 'kept'), 'x');
    await seenBy(own());
    equal(readFileSync(join(data, 'kept'), 'utf8'), 'x');
    ok(data !== pluginFolders(join(folder.path, 'other/pack'), join(folder.path, 'data')).data);
  });

  it('Resolve MCP server command as a single bare or plugin-relative executable token', async () => {
    for (const command of [
      '',
      'node server.js',
      '../tool',
      'bin/tool',
      '/bin/sh',
      '~/tool',
      '.',
      '..',
      './a\\..\\b',
      1,
    ])
      match(refused({ type: 'stdio', command }), /"command" has to be the name of a program/);
    writeFileSync(join(packDir, 'sub/run me'), `#!/bin/sh\nexec "${process.execPath}" "${fake}"\n`);
    chmodSync(join(packDir, 'sub/run me'), 0o755);
    equal(
      (await seenBy(own({ command: './sub/run me', args: [], cwd: './sub' })))[' cwd'],
      join(packDir, 'sub'),
    );
    // A name in braces is a name, not a folder.
    const literal = `./${root$}`;
    match(said(await connect({ s: own({ command: literal }) })), /was not found/);
  });

  it('Use the plugin root as the default MCP server working directory', async () =>
    equal((await seenBy(own()))[' cwd'], packDir));

  it('Validate explicit cwd forms and post-resolution containment', async () => {
    for (const cwd of ['sub', '/tmp', '~', '..', `x${root$}`, `${root$}x`, '$'.concat('{HOME}'), 1, ''])
      match(refused(own({ cwd })), /"cwd" has to begin with/);
    mkdirSync(join(data, 'in'), { recursive: true });
    for (const [cwd, place] of [
      ['./sub', join(packDir, 'sub')],
      [root$, packDir],
      [`${root$}/sub`, join(packDir, 'sub')],
      [data$, data],
      [`${data$}/in`, join(data, 'in')],
    ] as const)
      equal((await seenBy(own({ cwd })))[' cwd'], place);
    symlinkSync(folder.path, join(packDir, 'up'));
    for (const cwd of ['./..', './up', `${root$}/../..`, `${data$}/..`, `${data$}/../../pack`])
      match(said(await connect({ s: own({ cwd }) })), /runs in leads out of the plugin/);
  });

  it('Overlay configured env entries on a client-selected base environment', async () => {
    const seen = await seenBy(own({ env: { MINE: 'mine', BASE: 'over' } }), { OTHER: 'other' });
    deepEqual(
      [seen['MINE'], seen['BASE'], seen['OTHER'], seen['SECRET']],
      ['mine', 'over', 'other', undefined],
    );
  });

  it('Set client-provided PLUGIN_ROOT and PLUGIN_DATA after applying configured env', async () => {
    for (const name of ['PLUGIN_ROOT', 'PLUGIN_DATA'])
      match(refused(own({ env: { [name]: '/tmp' } })), /cannot set PLUGIN_ROOT or PLUGIN_DATA/);
    equal((await seenBy(own(), { PLUGIN_ROOT: '/tmp' }))['PLUGIN_ROOT'], packDir);
  });

  it('Do not require configured PATH to affect bare-command resolution', async () =>
    match(
      said(await connect({ s: own({ command: 'no-such-program-anywhere' }) })),
      /the program 'no-such-program-anywhere' was not found/,
    ));

  it('Expand only PLUGIN_ROOT and PLUGIN_DATA in MCP server args, env, and cwd fields', async () => {
    const odd = '$'.concat('{SECRET} $HOME ', '$', '{PLUGIN_ROOT:-x} ', '$', '{plugin_root}');
    const seen = await seenBy(
      own({
        args: [fake, 'none', join(folder.path, 'record'), `${root$}/a:${data$}:${root$}`, odd],
        env: { A: `${data$}/b`, B: odd },
      }),
    );
    equal(seen[' args'], [`${packDir}/a:${data}:${packDir}`, odd].join('\n'));
    deepEqual([seen['A'], seen['B']], [`${data}/b`, odd]);
    // A folder whose name is a placeholder is not looked at again.
    const nested = join(folder.path, data$);
    mkdirSync(nested);
    equal(pluginFolders(nested, folder.path).root, realpathSync(nested));
  });

  it('Discover implemented file-based extensions from their top-level namespace directories', () => {
    write({ $schema: schema('mcp'), mcpServers: {} });
    equal(ownMcpConfig(packDir).mcpConfig, join(packDir, 'mcp.json'));
    folder.add({ 'pack/telos.telos/mcp.json': '{"mcpServers": {"a": {"command": "node"}}}' });
    const { mcpConfig = '' } = ownMcpConfig(packDir);
    deepEqual([...readMcpConfig(mcpConfig).servers.keys()], ['a']);
  });

  it('Support at least one core component type', async () => {
    equal((await connect({ s: own() })).merged().tools.length > 0, true);
    equal(packSkills(packDir).skills[0]?.name, 's');
  });

  it('Ignore unsupported component types', () => {
    folder.add({ 'pack/hooks/hooks.json': '{}', 'pack/commands/x.md': 'x', 'pack/com.example.client/a': '' });
    equal(packSkills(packDir).skills.length, 1);
  });

  it('Skip server entries whose declared transport is unsupported without affecting other servers or components', () =>
    match(refused({ type: 'websocket', url: 'wss://a.test' }), /"type" has to be/));

  it('Continue loading when an independent component fails', async () => {
    folder.add({
      'pack/skills/other/SKILL.md': skill('another'),
      'pack/skills/bare/SKILL.md': 'No frontmatter.\n',
      'pack/skills/Large/SKILL.md': skill('Large'),
      'pack/skills/broken/SKILL.md': '---\nname: broken\ndescription: [\n---\n',
      'pack/skills/empty/README.md': '',
    });
    const { skills, skipped } = packSkills(packDir);
    deepEqual(
      skills.map(({ id }) => id),
      ['s'],
    );
    deepEqual(
      skipped.map(({ id }) => id),
      ['Large', 'bare', 'broken', 'other'],
    );
    const { merged, problems } = await connect({ bad: own({ args: [fake, 'dies'] }), good: own() });
    match(said({ problems }), /'bad' is not available/);
    ok(merged().tools.length > 0);
  });

  it('asks for no variable of the person, and its card shows what it starts as it is written', async () => {
    const odd = '$'.concat('{SECRET}');
    const { servers } = read({ s: own({ args: [`${root$}/x.js`, odd], env: { A: odd } }) });
    const [server] = [...servers.values()] as [McpServer];
    equal(server.isOfPlugin, true);
    const agent = {
      ...{
        name: 'pack',
        packDir,
        workingDir: join(folder.path, 'work'),
        source: 'user' as const,
        skills: [],
      },
      mcpConfig: join(packDir, 'mcp.json'),
    };
    const card = await cardOf(agent, await readAgentFiles(agent, new FileDigests()));
    deepEqual(card.variables, []);
    match(card.servers[0]?.place ?? '', /A=.*node .*PLUGIN_ROOT.*x\.js/);
  });
});
