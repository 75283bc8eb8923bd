/** What is written in clear into an mcp.json goes to its server and nowhere else: not into events, log, kept run, export, question or the doctor's report. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../src/engine/config.ts';
import { allowAll } from '../../src/engine/human.ts';
import { RunHistory } from '../../src/engine/records/runHistory.ts';
import { exportedConversation } from '../../src/engine/records/runText.ts';
import { Telos } from '../../src/engine/telos.ts';
import type { ApprovalRequest, RunEvent } from '../../src/protocol/run.ts';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import { type FakeServer, listen, type ReceivedRequest, sendJson } from '../fakes/loopback.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const program = fileURLToPath(new URL('../fakes/mcpServer.ts', import.meta.url));

describe('Secrets of an mcp.json', () => {
  const tokens = {
    env: 'q7Rw2ZkP9xT4mB6v',
    argument: 'opensesame-and-more',
    header: 'Zx81LmQp77VtRw02',
    query: 'kJ4hG8fD2sA6pO1i',
    off: 'n0body-asked-for-this-1',
  };
  let folder: TempFolder;
  let remote: Awaited<ReturnType<typeof listen>>;
  let received: ReceivedRequest[];
  let model: FakeServer;

  beforeEach(async () => {
    received = [];
    remote = await listen(async (request, response) => {
      received.push(request);
      // A server that quotes what it was sent.
      sendJson(response, 400, { error: `bad request: ${request.path} ${request.headers['x-api-key']}` });
    });
    folder = tempFolder({
      'skills/kairos/skills/kickoff/SKILL.md': '---\ndescription: Morning\n---\nB',
      'skills/kairos/mcp.json': JSON.stringify({
        mcpServers: {
          local: {
            command: process.execPath,
            args: [program, 'none', `--api-key=${tokens.argument}`],
            env: { SERVICE_TOKEN: tokens.env, NODE_ENV: 'production' },
          },
          remote: {
            url: `${remote.address}/mcp?access_token=${tokens.query}`,
            headers: { 'X-Api-Key': tokens.header },
          },
          off: { disabled: true, url: 'https://example.com/mcp', headers: { 'x-token': tokens.off } },
        },
      }),
    });
  });
  afterEach(async () => {
    await Promise.all([remote.close(), model?.close()]);
    folder.remove();
  });

  async function open(turns: Parameters<typeof startAnthropicServer>[0]['turns']): Promise<Telos> {
    model = await startAnthropicServer({ turns });
    const env = {
      PATH: process.env['PATH'] ?? '',
      TELOS_SKILLS_DIR: join(folder.path, 'skills'),
      TELOS_DATA_DIR: join(folder.path, 'data'),
      TELOS_CONFIG_DIR: join(folder.path, 'config'),
      ANTHROPIC_API_KEY: 'k-0123456789',
      ANTHROPIC_BASE_URL: model.url,
    };
    return Telos.open(loadConfig({ env, home: folder.path, cwd: folder.path }));
  }

  async function run(telos: Telos, withoutSkill: boolean): Promise<{ events: RunEvent[]; asked: string }> {
    const events: RunEvent[] = [];
    const questions: ApprovalRequest[] = [];
    const human: typeof allowAll = {
      ...allowAll,
      async approve(request, signal) {
        questions.push(request);
        return allowAll.approve(request, signal);
      },
    };
    const request = { text: 'kickoff', ...(withoutSkill ? { withoutSkill: true } : {}) };
    for await (const event of telos.run(request, human, new AbortController().signal)) events.push(event);
    return { events, asked: JSON.stringify(questions) };
  }

  function keptOnDisk(): string {
    const data = join(folder.path, 'data');
    const files = readdirSync(data, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile());
    return files.map(file => readFileSync(join(file.parentPath, file.name), 'utf8')).join('\n');
  }

  function assertNone(text: string, where: string): void {
    for (const [kind, token] of Object.entries(tokens))
      assert.equal(text.includes(token), false, `${where} has that of ${kind}`);
  }

  it('are in nothing that a run leaves', async () => {
    const file = join(folder.path, 'skills/kairos/mcp.json');
    const telos = await open([
      {
        toolCalls: [
          { name: 'environment', input: {} },
          { name: 'read_file', input: { path: file } },
        ],
      },
      { text: ['It says opensesame', '-and-more and production.'] },
    ]);
    const { events, asked } = await run(telos, false);
    const results = events.flatMap(event => (event.type === 'tool_end' ? [event.result] : []));
    assert.deepEqual(
      results.map(({ isError }) => isError),
      [false, false],
    );
    assert.match(results[0]?.content ?? '', /"SERVICE_TOKEN":"\[redacted\]"/);
    assert.match(results[0]?.content ?? '', /"NODE_ENV":"production"/);
    assert.equal(received[0]?.headers['x-api-key'], tokens.header);
    assert.ok(received[0]?.path.includes(tokens.query));
    assertNone(JSON.stringify(events), 'an event');
    assertNone(asked, 'a question');
    assertNone(keptOnDisk(), 'the log or the kept run');
    const history = new RunHistory(join(folder.path, 'data'));
    const [start] = events;
    assert.ok(start?.type === 'run_start');
    const conversation = await history.conversation(start.runId, start.runId);
    for (const format of ['md', 'jsonl'] as const)
      assertNone(await exportedConversation(conversation, format, text => text), `the export as ${format}`);
  });

  it('are taken out of what was kept before they stood in the file', async () => {
    const telos = await open([{ text: [`It was ${tokens.header}.`] }]);
    const file = join(folder.path, 'skills/kairos/mcp.json');
    const written = readFileSync(file, 'utf8');
    folder.add({ 'skills/kairos/mcp.json': '{"mcpServers": {}}' });
    const { events } = await run(telos, false);
    assert.ok(JSON.stringify(events).includes(tokens.header));
    folder.add({ 'skills/kairos/mcp.json': written });
    assertNone((await telos.fullRedactor()).text(keptOnDisk()), 'what is handed on');
  });

  it('are in nothing that a run without a skill leaves, which may read the file', async () => {
    const input = { path: join(folder.path, 'skills/kairos/mcp.json') };
    const telos = await open([{ toolCalls: [{ name: 'read_file', input }] }, { text: ['Read.'] }]);
    const { events } = await run(telos, true);
    const read = events.find(event => event.type === 'tool_end');
    assert.equal(read?.type === 'tool_end' && read.result.isError, false, JSON.stringify(read));
    assertNone(JSON.stringify(events), 'an event');
    assertNone(keptOnDisk(), 'the log or the kept run');
  });

  it('are not in the report of the doctor, whether a server is tried or not', async () => {
    const telos = await open([]);
    assertNone(JSON.stringify(await telos.doctor(new AbortController().signal)), 'the report');
    await telos.acceptCard(await telos.agentCard('kairos'));
    const report = await telos.doctor(new AbortController().signal);
    assert.deepEqual(
      report.servers.map(({ server, outcome }) => [server, outcome.state]),
      [
        ['local', 'ok'],
        ['remote', 'failed'],
      ],
    );
    assertNone(JSON.stringify(report), 'the report');
  });

  it('are not in what is said of a file that is broken', async () => {
    folder.add({
      'skills/kairos/mcp.json': `{"mcpServers": {"a": {"headers": {"x-token": "${tokens.header}" "${tokens.env}"`,
    });
    const { events } = await run(await open([{ text: ['Hello.'] }]), false);
    assert.match(JSON.stringify(events), /mcp\.json:1:\d+ is not JSON/);
    assertNone(JSON.stringify(events), 'an event');
  });
});
