/** When a person is asked about the MCP servers of a run: at the first call that needs one, and not before. */
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../src/engine/config.ts';
import type { Human } from '../../src/engine/core/ports.ts';
import { Telos } from '../../src/engine/telos.ts';
import type { ApprovalDecision, ApprovalRequest, JsonObject, RunEvent } from '../../src/protocol/run.ts';
import { calls, done, type ScriptedProvider, says, scriptedProvider } from '../fakes/scriptedProvider.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const program = fileURLToPath(new URL('../fakes/mcpServer.ts', import.meta.url));

describe('the question about MCP servers', () => {
  let folder: TempFolder;
  let record: string;
  beforeEach(() => {
    folder = tempFolder({
      'skills/garden/skills/sow/SKILL.md': '---\nname: sow\ndescription: Sows\n---\nSow.',
      'root/garden/plan.md': 'peas\n',
    });
    record = join(folder.path, 'record');
    const notes = { command: process.execPath, args: [program, 'none', record] };
    folder.add({ 'skills/garden/mcp.json': JSON.stringify({ mcpServers: { notes } }) });
  });
  afterEach(() => folder.remove());

  function open(provider: ScriptedProvider): Telos {
    const config = loadConfig({
      env: {
        PATH: process.env['PATH'],
        TELOS_SKILLS_DIR: join(folder.path, 'skills'),
        TELOS_DATA_DIR: join(folder.path, 'data'),
        TELOS_CONFIG_DIR: join(folder.path, 'config'),
        TELOS_WORKING_ROOT: join(folder.path, 'root'),
        TELOS_PROVIDER: 'scripted',
        // A script that ran in the box would ask nothing, and so show no card.
        TELOS_SANDBOX: 'off',
      },
      home: join(folder.path, 'home'),
      cwd: join(folder.path, 'home'),
    });
    return Telos.open(config, {
      providers: { scripted: { model: async () => 's', create: async () => provider } },
    });
  }

  const yes: ApprovalDecision = { allow: true, scope: 'once' };

  /** Runs the calls in one turn each, with a person who reads the questions. */
  async function run(
    wanted: readonly (readonly [tool: string, input: JsonObject])[],
    answer: (request: ApprovalRequest) => Promise<ApprovalDecision> = async () => yes,
    see: (event: RunEvent) => void = () => undefined,
  ) {
    const turns = wanted.map(([tool, input], index) => [calls(`${index}`, tool, input), done('tool_use')]);
    const provider = scriptedProvider([...turns, [says('Sown.'), done()]]);
    const asked: string[] = [];
    const human: Human = {
      approve: async request => {
        asked.push(request.tool);
        return answer(request);
      },
      ask: async questions => questions.map(() => ''),
    };
    const events: RunEvent[] = [];
    const request = { text: 'the beds', skill: { agent: 'garden', skill: 'sow' } };
    for await (const event of open(provider).run(request, human, AbortSignal.timeout(55_000))) {
      events.push(event);
      see(event);
    }
    const results = events.flatMap(event => (event.type === 'tool_end' ? [event.result] : []));
    const offered = provider.requests.map(({ tools }) => tools.slice(12));
    const end = events.at(-1);
    assert.equal(end?.type === 'run_end' && end.outcome, 'completed');
    return { asked, results, offered, events };
  }

  it('is not put to a person whose run needs none of them', async () => {
    const { asked, offered } = await run([['read_file', { path: 'plan.md' }]]);
    assert.deepEqual(asked, []);
    assert.deepEqual(offered[0], ['connect_mcp_servers']);
    assert.ok(!existsSync(record), 'a server was started');
  });

  it('comes with the first call of a tool of theirs, before the question about the tool', async () => {
    const { asked, results, offered, events } = await run([
      ['read_file', { path: 'plan.md' }],
      ['say', { text: 'peas' }],
      ['count', {}],
    ]);
    assert.deepEqual(asked, ['mcp_servers', 'say', 'count']);
    assert.ok(results.every(({ isError }) => !isError));
    assert.match(results[1]?.content ?? '', /peas/);
    const order = events.flatMap(event =>
      event.type === 'tool_start'
        ? [event.call.name]
        : event.type === 'approval_request'
          ? [event.request.tool]
          : [],
    );
    assert.deepEqual(order, ['read_file', 'mcp_servers', 'say', 'say', 'count', 'count']);
    assert.ok(offered[2]?.includes('say') && !offered[2].includes('connect_mcp_servers'));
  });

  it('comes when the model wants to see their tools, which are offered from then on', async () => {
    const { asked, results, offered } = await run([
      ['connect_mcp_servers', {}],
      ['say', { text: 'peas' }],
    ]);
    assert.deepEqual(asked, ['mcp_servers', 'say']);
    assert.match(results[0]?.content ?? '', /^Connected\. New tools: say, environment,/);
    assert.ok(offered[1]?.includes('say') && !offered[1].includes('connect_mcp_servers'));
  });

  it('is put once, and a no counts until the run ends', async () => {
    const { asked, results, events } = await run(
      [
        ['say', { text: 'peas' }],
        ['count', {}],
        ['connect_mcp_servers', {}],
      ],
      async () => ({ allow: false, reason: 'You denied this.' }),
    );
    assert.deepEqual(asked, ['mcp_servers']);
    for (const { isError, content } of results)
      assert.match(`${isError} ${content}`, /^true The MCP servers .* not connected\. .*You denied this/);
    const notices = events.flatMap(event => (event.type === 'notice' ? [event.message] : []));
    assert.equal(notices.filter(text => /continues without its MCP servers/.test(text)).length, 1);
    assert.ok(!existsSync(record), 'a server was started');
  });

  it('is spared to a person who has accepted the card, before the run or in it', async () => {
    folder.add({ 'skills/garden/skills/sow/scripts/go.sh': 'echo sown\n' });
    const script = join(folder.path, 'skills/garden/skills/sow/scripts/go.sh');
    const accepted = await run(
      [
        ['run_command', { command: `sh ${script}` }],
        ['say', { text: 'peas' }],
      ],
      async ({ card }) => ({ allow: true, scope: card ? 'always' : 'once' }),
    );
    assert.deepEqual(accepted.asked, ['run_command', 'say']);
    const again = await run([['say', { text: 'peas' }]]);
    assert.deepEqual(again.asked, ['say']);
    assert.ok(again.offered[0]?.includes('say') && !again.offered[0].includes('connect_mcp_servers'));
  });

  it('names a server that is still starting, and the model waits for it when it needs it', async () => {
    folder.add({ 'skills/garden/skills/sow/scripts/go.sh': 'echo sown\n' });
    const late = { command: process.execPath, args: [program, 'late', record], timeout: 40 };
    folder.add({ 'skills/garden/mcp.json': JSON.stringify({ mcpServers: { notes: late } }) });
    const script = join(folder.path, 'skills/garden/skills/sow/scripts/go.sh');
    const always = async ({ card }: ApprovalRequest): Promise<ApprovalDecision> => ({
      allow: true,
      scope: card ? 'always' : 'once',
    });
    await run([['run_command', { command: `sh ${script}` }]], always);
    const { results, offered, events } = await run(
      [
        ['read_file', { path: 'plan.md' }],
        ['connect_mcp_servers', {}],
        ['say', { text: 'peas' }],
      ],
      undefined,
      event => {
        if (event.type === 'tool_end') writeFileSync(`${record}.go`, '');
      },
    );
    const notices = events.flatMap(event => (event.type === 'notice' ? [event.message] : []));
    assert.deepEqual(
      notices.filter(text => /starting/.test(text)),
      ['Still starting: notes. Their tools are added as soon as they are there.'],
    );
    assert.deepEqual(offered[0], ['connect_mcp_servers']);
    assert.match(results[1]?.content ?? '', /^Connected\. New tools: say,/);
    assert.match(results[2]?.content ?? '', /peas/);
  });
});
