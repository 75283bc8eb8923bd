/** Plugins as the world publishes them: commands run when they are named, agents are roles for the plugin's own skills. */
import { deepEqual, doesNotMatch, equal, match } from 'node:assert/strict';
import { join } from 'node:path';
import { type AnthropicTurn, startAnthropicServer } from '../fakes/anthropicServer.ts';
import { type CliHome, cliHome } from './cliProcess.ts';

const manifest = (more: object = {}): string =>
  JSON.stringify({ name: 'harbour', description: 'D', ...more });
const plugin = {
  'harbour/.claude-plugin/plugin.json': manifest(),
  'harbour/commands/ship.md':
    '---\ndescription: Ships a crate\nargument-hint: "[crate]"\nallowed-tools: Bash(git log:*)\n---\nSHIP $ARGUMENTS\n',
  'harbour/commands/dock/moor.md': 'Moors a boat at the quay, and says where.\n',
  'harbour/commands/README.md': '# About the commands\n',
  'harbour/agents/pilot.md':
    '---\nname: pilot\ndescription: Reads the charts\ntools: Read, Grep\nmodel: inherit\n---\nPILOT TEXT\n',
};

describe('a plugin with commands and agents', function () {
  this.timeout(30_000);
  let home: CliHome;
  beforeEach(() => {
    home = cliHome();
    home.folder.add(Object.fromEntries(Object.entries(plugin).map(([path, text]) => [`from/${path}`, text])));
  });
  afterEach(() => home.remove());
  const source = (): string => join(home.folder.path, 'from/harbour');
  const install = async (): Promise<void> => {
    const { code, stdout, stderr } = await home.run(['install', source(), '--yes']);
    equal(code, 0, stdout + stderr);
  };
  const idsOf = async (): Promise<string[]> => {
    const { stdout } = await home.run(['list-skills', '--json']);
    return (JSON.parse(stdout) as { skill: string }[]).map(({ skill }) => skill);
  };
  /** Runs a request against a model that answers with these turns. Returns what the model was sent. */
  const ask = async (turns: AnthropicTurn[], ...words: string[]) => {
    const server = await startAnthropicServer({ turns });
    try {
      const env = { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: 'test-key-0123456789' };
      const { code, stdout, stderr } = await home.run(words, { env });
      const bodies = server.requests.map(({ body }) => body as { tools: { name: string }[] });
      return { code, said: stdout + stderr, bodies };
    } finally {
      await server.close();
    }
  };

  it('is installed without a SKILL.md, and each of its parts is listed, checked and among its permissions', async () => {
    await install();
    deepEqual(await idsOf(), ['moor', 'pilot', 'ship']);
    const { stdout } = await home.run(['list-skills']);
    match(stdout, /ship .*Ships a crate/);
    match(stdout, /moor .*Moors a boat at the quay/);
    const lint = await home.run(['lint']);
    deepEqual([lint.code, /moor|pilot|ship/.test(lint.stdout)], [0, false], lint.stdout);
    const card = JSON.parse((await home.run(['trust', 'harbour', '--json'])).stdout);
    deepEqual(card.commands, ['git log *']);
    match((await home.run(['agents'])).stdout, /harbour .* 3 .*Works in: this folder/);
  });

  it('runs a command by its name with the words behind it, and never by what it is about', async () => {
    await install();
    const { bodies } = await ask([{ text: ['Shipped.'] }], '/ship two crates');
    match(JSON.stringify(bodies[0]), /SHIP two crates/);
    doesNotMatch(JSON.stringify(bodies[0]), /README|About the commands/);
    const routed = await home.run(['route', 'moors a boat at the quay']);
    deepEqual([routed.code, routed.stdout.includes('Routes to')], [1, false], routed.stdout);
  });

  it('hands a step to a role, which has its own text and no tools but its own', async () => {
    await install();
    const { bodies, said } = await ask(
      [
        { toolCalls: [{ name: 'use_skill', input: { skill: 'harbour:pilot', request: 'Read the chart.' } }] },
        { text: ['Rocks ahead.'] },
        { text: ['Done.'] },
      ],
      '/ship a crate',
    );
    match(JSON.stringify(bodies[0]), /- harbour:pilot: Reads the charts/);
    match(JSON.stringify(bodies[1]), /PILOT TEXT/);
    const names = bodies[1]?.tools.map(({ name }) => name) ?? [];
    deepEqual(
      names.filter(name => /file|command|url|glob|directory|use_skill/.test(name)),
      ['read_file', 'search_files'],
    );
    match(JSON.stringify(bodies[2]), /Rocks ahead/);
    doesNotMatch(said, /Denied/);
  });

  it('keeps its roles for its own skills', async () => {
    const sail = '---\ndescription: Sails\n---\nSail.\n';
    home.folder.add({
      'skills/other/skills/sail/SKILL.md': sail,
      'skills/other/skills/row/SKILL.md': sail,
    });
    await install();
    const { bodies } = await ask(
      [
        { toolCalls: [{ name: 'use_skill', input: { skill: 'harbour:pilot', request: 'Go.' } }] },
        { text: ['Done.'] },
      ],
      '/sail',
    );
    doesNotMatch(JSON.stringify(bodies[0]), /harbour:pilot/);
    match(JSON.stringify(bodies[1]), /There is no skill harbour:pilot that a run may use/);
  });

  it('has what its manifest names and nothing else, and says what the manifest names in vain', async () => {
    home.folder.add({
      'from/harbour/.claude-plugin/plugin.json': manifest({
        skills: ['./good/pack', './gone', '../../outside'],
        commands: './commands/ship.md',
        agents: [],
      }),
      'from/harbour/good/pack/SKILL.md': '---\ndescription: Packs\n---\nPack.\n',
      'from/harbour/skills/draft/SKILL.md': '---\ndescription: A draft\n---\nDraft.\n',
      'from/outside/SKILL.md': '---\ndescription: Outside\n---\nOut.\n',
    });
    await install();
    deepEqual(await idsOf(), ['pack', 'pilot', 'ship']);
    const { stderr } = await home.run(['agents']);
    match(stderr, /'\.\/gone' is named by the plugin and is not in it/);
    match(stderr, /'\.\.\/\.\.\/outside' is named by the plugin and is not in it/);
  });

  it('says in one sentence each what its manifest names in vain, leads out of it to, or is not JSON', async () => {
    const manifestOf = (text: string): void =>
      home.folder.add({ 'skills/harbour/.claude-plugin/plugin.json': text });
    home.folder.add({ 'skills/harbour/skills/pack/SKILL.md': '---\ndescription: Packs\n---\nPack.\n' });
    const said = async (): Promise<string[]> =>
      (await home.run(['lint'])).stdout.split('\n').filter(line => line.includes('plugin.json'));
    const many = Array.from({ length: 1000 }, (_, at) => `./skills/s${at}`);
    const cases: readonly [string, RegExp[]][] = [
      [
        manifest({ skills: ['./skills/pack', ...many] }),
        [/s0' is/, /s1' is/, /s2' is/, /s3' is/, /s4 and 995 more' is named by the plugin and is not in it/],
      ],
      [
        manifest({ commands: '../../../etc', agents: ['/etc/passwd'] }),
        [/'\.\.\/\.\.\/\.\.\/etc' is named/, /'\/etc\/passwd' is named/],
      ],
      [
        '{"name": "harbour", "skills": [',
        [/plugin\.json' is not JSON, so the parts that it names are not known\. Correct the manifest/],
      ],
      [manifest({ skills: 7, commands: { a: 1 }, agents: null }), []],
      [manifest({ skills: ['./loop'] }), [/'\.\/loop' is named/]],
    ];
    for (const [text, words] of cases) {
      manifestOf(text);
      const lines = await said();
      equal(lines.length, words.length, lines.join('\n'));
      for (const [at, word] of words.entries()) match(lines[at] ?? '', word);
      deepEqual((await idsOf()).includes('pack'), !text.includes('./loop'));
    }
  });

  it('runs a command that is called like one of the command line, with quotes and lines in its words', async () => {
    home.folder.add({ 'from/harbour/commands/install.md': 'INSTALL <$1> <$2> <$3>\n' });
    await install();
    const { bodies } = await ask([{ text: ['Done.'] }], '/install "two words" \'it is\' \n"a \\"b\\""');
    match(JSON.stringify(bodies[0]), /INSTALL <two words> <it is> <a \\"b\\">/);
    equal((await home.run(['install', '--help'])).code, 0);
  });

  it('ends a role that hands the step to itself, in a sentence', async () => {
    home.folder.add({
      'from/harbour/agents/echo.md': '---\nname: echo\ndescription: Repeats\n---\nECHO TEXT\n',
    });
    await install();
    const again = { toolCalls: [{ name: 'use_skill', input: { skill: 'harbour:echo', request: 'Again.' } }] };
    const turns = [
      ...Array.from({ length: 4 }, () => again),
      ...Array.from({ length: 4 }, () => ({ text: ['Over.'] })),
    ];
    const { bodies } = await ask(turns, '/ship a crate');
    match(JSON.stringify(bodies), /Skills use skills at most 3 deep|Unknown tool: use_skill/);
  });

  it('is not the end of the search if its manifest leads nowhere', async () => {
    home.folder.add({
      'from/tools/.claude-plugin/plugin.json': manifest(),
      'from/tools/.claude/skills/caulk/SKILL.md': '---\ndescription: Caulks\n---\nCaulk.\n',
      'from/empty/.claude-plugin/plugin.json': manifest(),
      'from/empty/hooks/hooks.json': '{}',
    });
    const tools = await home.run(['install', join(home.folder.path, 'from/tools'), '--yes']);
    equal(tools.code, 0, tools.stderr);
    deepEqual(await idsOf(), ['caulk']);
    const empty = await home.run(['install', join(home.folder.path, 'from/empty'), '--yes']);
    match(
      empty.stderr,
      /no skills, commands, agents, MCP servers or hooks that could run, only hooks\/hooks\.json/,
    );
    equal(empty.code, 1);
  });

  it('runs with its servers where it has nothing else', async () => {
    const servers = JSON.stringify({ mcpServers: { tide: { command: 'node', args: ['tide.mjs'] } } });
    home.folder.add({
      'from/tides/.claude-plugin/plugin.json':
        '{"name": "tides", "description": "Knows the tides of all harbours"}',
      'from/tides/.mcp.json': servers,
      'from/tides/tide.mjs': '',
    });
    const installed = await home.run(['install', join(home.folder.path, 'from/tides'), '--yes']);
    equal(installed.code, 0, installed.stderr);
    match((await home.run(['list-skills'])).stdout, /tides .*Knows the tides of all harbours/);
    match((await home.run(['trust', 'tides'])).stdout, /tide/);
    const { bodies } = await ask([{ text: ['High at noon.'] }], '/tides when is it high?');
    match(JSON.stringify(bodies[0]), /tools of the MCP servers.*when is it high/);
  });

  it('is the same after an export and another install', async () => {
    await install();
    const out = join(home.workDir, 'out');
    const exported = await home.run(['export', 'harbour', '--to', out]);
    equal(exported.code, 0, exported.stderr);
    const other = cliHome();
    try {
      const again = await other.run(['install', join(out, 'harbour'), '--yes']);
      equal(again.code, 0, again.stderr);
      const listed = async ({ run }: CliHome) =>
        (JSON.parse((await run(['list-skills', '--json'])).stdout) as Record<string, string>[]).map(
          ({ skill, description, synopsis }) => [skill, description, synopsis],
        );
      deepEqual(await listed(other), await listed(home));
    } finally {
      other.remove();
    }
    const skills = await home.run([
      'export',
      'harbour',
      '--to',
      join(home.workDir, 'skills'),
      '--as',
      'skills',
    ]);
    match(skills.stdout + skills.stderr, /only a plugin has them: moor, pilot, ship/);
  });
});
