/** The doctor sees what is set up as a run would, says what is broken, and starts nothing that was not accepted. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageText } from '../../src/cli/terminalText.ts';
import { loadConfig } from '../../src/engine/config.ts';
import { boxesOf } from '../../src/engine/policy/serverPrograms.ts';
import { rememberWorkFolder } from '../../src/engine/skills/workFolders.ts';
import { Telos } from '../../src/engine/telos.ts';
import { describeReport, isBroken } from '../../src/protocol/doctorReport.ts';
import { listen } from '../fakes/loopback.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const mcpServer = fileURLToPath(new URL('../fakes/mcpServer.ts', import.meta.url));

describe('Telos.doctor', () => {
  const { signal } = new AbortController();
  let folder: TempFolder;
  let models: string[];
  const ends: Record<string, object> = {};
  let server: Awaited<ReturnType<typeof listen>>;

  before(async () => {
    server = await listen(async (_request, response) => {
      response.end(JSON.stringify({ data: models.map(id => ({ id, ...ends[id] })) }));
    });
  });
  beforeEach(() => {
    models = ['claude-haiku-5-5-20261001'];
    folder = tempFolder({
      'skills/kairos/skills/kickoff/SKILL.md': '---\ndescription: Morning\n---\nB',
    });
  });
  afterEach(() => folder.remove());
  after(() => server.close());

  function open(env: Record<string, string> = {}): Telos {
    const set = {
      PATH: process.env['PATH'] ?? '',
      TELOS_SKILLS_DIR: join(folder.path, 'skills'),
      ANTHROPIC_API_KEY: 'secret-key-0123456789',
      ANTHROPIC_BASE_URL: server.address,
      TELOS_SANDBOX: 'off',
    };
    return Telos.open(loadConfig({ env: { ...set, ...env }, home: folder.path, cwd: folder.path }));
  }

  it('finds nothing in a sound house, and never shows a key', async () => {
    folder.add({ '.config/telos/.env': 'TELOS_MAX_COST=5\n' });
    chmodSync(join(folder.path, '.config/telos/.env'), 0o600);
    const report = await open().doctor(signal);
    assert.deepEqual(report.findings, []);
    assert.equal(isBroken(report), false);
    const text = describeReport(report, messageText).join('\n');
    assert.doesNotMatch(text, /secret-key/);
    assert.match(text, /ANTHROPIC_API_KEY +\(set\) +environment\n/);
    assert.match(text, /OPENAI_API_KEY +\(not set\)/);
    assert.match(text, /maxCost +5 +\/.*\.env\n/);
    assert.match(text, /routingMode +auto +default\n/);
    assert.match(text, /defaults +current +default\n/);
    assert.match(
      text,
      /anthropic, model claude-haiku-5-5, at http.*\n.*ANTHROPIC_API_KEY is set\.\n {2}It answered in \d+ ms and offers 1 model\./,
    );
    assert.match(text, /Everything works\.$/);
  });

  it('says when the model in use ends, as its provider says or as is known, and not years before', async () => {
    const said = async (model: string, listed?: string) => {
      models = [model];
      ends[model] = { retires_at: listed ?? null };
      const { findings } = await open({ TELOS_MODEL: model }).doctor(signal);
      return findings.map(({ severity, message }) => `${severity} ${message}`).join('\n');
    };
    const known = 'warning The model claude-sonnet-4-5 answers no more from 2026-11-30 on.';
    assert.equal(await said('claude-sonnet-4-5'), known);
    const soon = new Date(Date.now() + 30 * 86_400_000).toISOString();
    assert.equal(
      await said('claude-next', soon),
      `warning The model claude-next answers no more from ${soon.slice(0, 10)} on.`,
    );
    assert.equal(await said('claude-far', new Date(Date.now() + 400 * 86_400_000).toISOString()), '');
    assert.equal(await said('claude-haiku-5-5'), '');
  });

  it('names every file of settings that cannot be read: rules, without which nothing runs, the bot, hooks and servers', async () => {
    folder.add({
      '.config/telos/policy.toml': '[[allow]]\nagent = "me"\ntool = "run_command"\n[[deny]]\ntool = read\n',
      '.config/telos/config.toml': '[discord]\nowners = [\n',
      '.config/telos/hooks.toml': '[[hook]\n',
      'skills/kairos/mcp.json': '{ broken',
    });
    const report = await open().doctor(signal);
    const said = report.findings.map(({ severity, message }) => `${severity} ${message}`).join('\n');
    assert.match(said, /error .*policy\.toml, line 5: .*Until it is corrected, nothing runs\./);
    assert.match(said, /error .*config\.toml:\d+: .*could not be read.*The bot does not start with it\./);
    assert.match(said, /error hooks\.toml could not be read: /);
    assert.match(said, /error .*mcp\.json:1:3 is not JSON from there on, so its MCP servers are missing\./);
    assert.equal(isBroken(report), true);
  });

  it('says where commands run, and what mends a box that does not work', async () => {
    const off = await open().doctor(signal);
    assert.match(
      describeReport(off, messageText).join('\n'),
      /Commands:\n {2}run without a sandbox, as the setting says/,
    );
    const telos = open({ TELOS_SANDBOX: 'auto' });
    const { state } = await telos.box();
    const here = await telos.doctor(signal);
    assert.equal(here.findings.length, state?.works ? 0 : 1);
    if (state?.works)
      assert.match(describeReport(here, messageText).join('\n'), /run in a sandbox \(\w+\)\n/);
    mkdirSync(join(folder.path, 'empty'));
    const PATH = join(folder.path, 'empty');
    const without = await open({ TELOS_SANDBOX: 'auto', PATH }).doctor(signal);
    assert.deepEqual([without.findings[0]?.severity, isBroken(without)], ['warning', false]);
    assert.match(without.findings[0]?.message ?? '', /no sandbox for commands works here\. .+/);
    const required = await open({ TELOS_SANDBOX: 'required', PATH }).doctor(signal);
    assert.equal(isBroken(required), true);
    assert.match(
      required.findings[0]?.message ?? '',
      /Commands cannot run: a sandbox is required \(telos\.sandbox\)/,
    );
    const text = describeReport(required, messageText).join('\n');
    const { box } = required;
    const mend = box.state && !box.state.works ? box.state.mend : undefined;
    if (mend !== undefined) assert.ok(text.includes(`To fix it:\n    ${mend.split('\n')[0]}`), text);
    const unknown = await open({ TELOS_SANDBOX: 'on' }).doctor(signal);
    assert.match(
      unknown.findings.map(({ message }) => message).join(),
      /'on' is unknown, so required is used/,
    );
  });

  it('says what is broken: a file, a folder, a setting, the provider', async () => {
    folder.add({
      'skills/kairos/skills/bad/SKILL.md': '---\ndescription: [\n---\n',
      'skills/kairos/agent.toml': 'name = "kairos\n',
      data: 'a file where a folder should be',
    });
    const report = await open({ TELOS_PROVIDER: 'nope', TELOS_DATA_DIR: 'data', TELOS_MAX_COST: 'x' }).doctor(
      signal,
    );
    const errors = report.findings.flatMap(({ severity, message }) =>
      severity === 'error' ? [message] : [],
    );
    const said = errors.join('\n');
    assert.match(said, /data is not a folder/);
    assert.match(said, /TELOS_MAX_COST is 'x'/);
    assert.match(said, /The provider 'nope' is unknown\./);
    assert.match(said, /agent\.toml:1: /);
    assert.equal(isBroken(report), true);
    assert.equal(report.provider, undefined);
    assert.match(describeReport(report, messageText).at(-1) ?? '', /^\d+ problems to fix\.$/);
  });

  it('says which model to load, and which name may be wrong', async () => {
    const ollama = { TELOS_PROVIDER: 'ollama', OLLAMA_BASE_URL: `${server.address}/v1` };
    const missing = await open(ollama).doctor(signal);
    assert.match(missing.findings[0]?.message ?? '', /ollama pull llama3\.1/);
    models = ['llama3.1:latest'];
    assert.deepEqual((await open(ollama).doctor(signal)).findings, []);
    const other = await open({ TELOS_MODEL: 'claude-nope' }).doctor(signal);
    assert.deepEqual(
      other.findings.map(({ severity }) => severity),
      ['warning'],
    );
  });

  it('shakes hands with the MCP servers of an accepted agent, and names the dead one', async () => {
    const servers = {
      alive: { command: process.execPath, args: [mcpServer] },
      dead: { command: process.execPath, args: [mcpServer, 'dies'] },
    };
    folder.add({ 'skills/kairos/mcp.json': JSON.stringify({ mcpServers: servers }) });
    const telos = open();
    await telos.acceptCard(await telos.agentCard('kairos'));
    const report = await telos.doctor(signal);
    const states = report.servers.map(({ server: name, outcome }) => [name, outcome.state]);
    assert.deepEqual(states, [
      ['alive', 'ok'],
      ['dead', 'failed'],
    ]);
    assert.match(
      describeReport(report, messageText).join('\n'),
      /kairos +alive +fake 1\.2\.3: 6 tools in \d+ ms/,
    );
    assert.match(
      report.findings[0]?.message ?? '',
      /'dead' of kairos does not work: .*cannot find the database/s,
    );
    assert.equal(report.findings.length, 1);
  });

  it('does not say that an accepted agent has no servers, if none of those that it names can start', async () => {
    folder.add({ 'skills/kairos/mcp.json': JSON.stringify({ mcpServers: { beds: { port: 80 } } }) });
    const telos = open();
    await telos.acceptCard(await telos.agentCard('kairos'));
    const report = await telos.doctor(signal);
    const text = describeReport(report, messageText).join('\n');
    assert.doesNotMatch(text, /MCP servers: none/);
    assert.match(text, /'?beds'?/);
    assert.equal(isBroken(report), true);
  });

  it('starts no server of an agent that nobody has accepted', async () => {
    const file = join(folder.path, 'started');
    const servers = { one: { command: process.execPath, args: [mcpServer, 'none', file] } };
    folder.add({ 'skills/kairos/mcp.json': JSON.stringify({ mcpServers: servers }) });
    const report = await open().doctor(signal);
    assert.equal(existsSync(file), false);
    assert.match(
      describeReport(report, messageText).join('\n'),
      /not tried: the agent is not reviewed yet\. Review it with: telos trust kairos/,
    );
    assert.match(
      describeReport(report, messageText).at(-1) ?? '',
      /No errors\. MCP servers that were not tried: all of kairos\.$/,
    );
    assert.equal(isBroken(report), false);
  });

  for (const [what, look] of [
    ['the box itself', (telos: Telos) => telos.box()],
    [
      'a server of the sandbox',
      async (telos: Telos) => {
        const [agent] = await telos.agents();
        await boxesOf(telos.config, agent!)('one', []);
      },
    ],
  ] as const)
    it(`takes no bwrap that lies where another agent has worked, for ${what}`, async () => {
      const work = tempFolder();
      try {
        const started = join(work.path, 'started');
        work.add({ 'bin/bwrap': `#!/bin/sh\necho started >> '${started}'\n` });
        chmodSync(join(work.path, 'bin/bwrap'), 0o755);
        const PATH = [join(work.path, 'bin'), process.env['PATH']].join(delimiter);
        const telos = open({ TELOS_SANDBOX: 'auto', PATH });
        rememberWorkFolder(telos.config, work.path, 'other');
        await look(telos);
        assert.equal(existsSync(started), false);
        // Where no agent has worked, it is the first of the PATH.
        await look(open({ TELOS_SANDBOX: 'auto', PATH, TELOS_DATA_DIR: join(work.path, 'data') }));
        assert.equal(existsSync(started), true);
      } finally {
        work.remove();
      }
    });

  it('names the variables that the servers of an agent lack before it is accepted', async () => {
    const env = { A: `\${NOTES_KEY}`, B: `\${NOTES_HOST}` };
    const servers = { notes: { command: process.execPath, args: [mcpServer], env } };
    folder.add({ 'skills/kairos/mcp.json': JSON.stringify({ mcpServers: servers }) });
    const { findings } = await open({ NOTES_HOST: '' }).doctor(signal);
    assert.deepEqual(
      findings.map(({ severity, message }) => ({ severity, message })),
      [
        {
          severity: 'warning',
          message:
            "The MCP server 'notes' of kairos will not start: NOTES_KEY is not set, NOTES_HOST is empty. Set it in the environment or in Telos's .env file.",
        },
      ],
    );
  });

  it('starts no server whose program a run can have written', async () => {
    const file = join(folder.path, 'started');
    const script = join(folder.path, 'obsidian/telos/kairos/server.mjs');
    folder.add({
      'obsidian/telos/kairos/server.mjs': `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(file)}, '');`,
      'skills/kairos/mcp.json': JSON.stringify({
        mcpServers: { one: { command: process.execPath, args: [script] } },
      }),
    });
    const telos = open();
    await telos.acceptCard(await telos.agentCard('kairos'));
    const report = await telos.doctor(signal);
    assert.equal(existsSync(file), false);
    assert.match(
      describeReport(report, messageText).join('\n'),
      /not tried: .*server\.mjs, which is in a location that runs can write to/,
    );
  });
});
