/** A run with twelve servers and 400 tools: the size of its requests, and a call of a tool that was found. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../src/engine/config.ts';
import type { CompletionRequest, Human } from '../../src/engine/core/ports.ts';
import { Telos } from '../../src/engine/telos.ts';
import type { RunEvent } from '../../src/protocol/run.ts';
import { manyTools } from '../fakes/manyTools.ts';
import { calls, done, says, scriptedProvider } from '../fakes/scriptedProvider.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const program = fileURLToPath(new URL('../fakes/mcpServer.ts', import.meta.url));
const servers = [...new Set(manyTools().map(({ name }) => name.split('_')[0] ?? ''))];

describe('a run with many servers', function () {
  this.timeout(60_000);
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder({
      'skills/garden/skills/sow/SKILL.md': '---\nname: sow\ndescription: Sows\n---\nSow.',
      'home/.keep': '',
    });
  });
  afterEach(() => folder.remove());

  function serve(names: readonly string[]): void {
    const entries = names.map(name => [name, { command: process.execPath, args: [program, 'many', name] }]);
    folder.add({
      'skills/garden/mcp.json': JSON.stringify({ mcpServers: Object.fromEntries(entries) }),
    });
  }

  /** Runs the calls in one turn each; returns the requests, the results and what was asked. */
  async function run(...wanted: readonly (readonly [tool: string, input: object])[]) {
    const turns = wanted.map(([tool, input], at) => [calls(`${at}`, tool, { ...input }), done('tool_use')]);
    const scripted = scriptedProvider([...turns, [says('Sown.'), done()]]);
    const sent: CompletionRequest[] = [];
    const provider = {
      ...scripted,
      async *streamCompletion(request: CompletionRequest, signal: AbortSignal) {
        sent.push(structuredClone(request));
        yield* scripted.streamCompletion(request, signal);
      },
    };
    const config = loadConfig({
      env: {
        PATH: process.env['PATH'],
        TELOS_SKILLS_DIR: join(folder.path, 'skills'),
        TELOS_DATA_DIR: join(folder.path, 'data'),
        TELOS_CONFIG_DIR: join(folder.path, 'config'),
        TELOS_PROVIDER: 'scripted',
      },
      home: join(folder.path, 'home'),
      cwd: join(folder.path, 'home'),
    });
    const telos = Telos.open(config, {
      providers: { scripted: { model: async () => 's', create: async () => provider } },
    });
    await telos.acceptCard(await telos.agentCard('garden'));
    const asked: string[] = [];
    const human: Human = {
      approve: async ({ tool, subject }) => {
        asked.push(`${tool}: ${subject}`);
        return { allow: true, scope: 'once' };
      },
      ask: async questions => questions.map(() => ''),
    };
    const ends: (RunEvent & { type: 'tool_end' })[] = [];
    const request = { text: 'the beds', skill: { agent: 'garden', skill: 'sow' } };
    for await (const event of telos.run(request, human, AbortSignal.timeout(50_000)))
      if (event.type === 'tool_end') ends.push(event);
    return { sent, ends, asked };
  }

  const sizeOf = ({ system, tools }: CompletionRequest): number => JSON.stringify({ system, tools }).length;

  it('sends requests that are at most 1.3 times those without a server, all with the same tools', async () => {
    serve([]);
    const { sent: without } = await run();
    serve(servers);
    const { sent } = await run(['search_tools', { query: 'send an email' }]);
    assert.equal(servers.length, 12);
    const ratio = sizeOf(sent[0]!) / sizeOf(without[0]!);
    assert.ok(ratio <= 1.3, `${ratio.toFixed(2)} times`);
    assert.deepEqual(sent[1]?.tools, sent[0]?.tools);
    const bare = JSON.stringify(manyTools()).length + sizeOf(without[0]!);
    console.log(
      `      ${ratio.toFixed(2)} times a request without servers; with all tools ${(bare / sizeOf(without[0]!)).toFixed(1)} times`,
    );
  });

  it('asks about the tool itself, and calls it with its own arguments', async () => {
    serve(servers);
    const { ends, asked } = await run(
      ['search_tools', { query: 'send an email' }],
      ['use_tool', { name: 'mail_send_message', input: { to: 'ada@example.com' } }],
      ['use_tool', { name: 'mail_vanish', input: {} }],
    );
    const [found, sent, unknown] = ends;
    assert.match(found?.result.content ?? '', /mail_send_message: Sends an email/);
    assert.equal(sent?.name, 'mail_send_message');
    assert.match(sent?.result.content ?? '', /mail_send_message \{"to":"ada@example\.com"\}/);
    assert.equal(asked.length, 1);
    assert.match(asked[0] ?? '', /^mail_send_message: mail: mail_send_message/);
    assert.equal(unknown?.result.isError, true);
    assert.match(unknown?.result.content ?? '', /There is no tool 'mail_vanish'/);
  });

  it('offers the tools of a small server as they are', async () => {
    serve(['maps']);
    const { sent } = await run();
    const names = sent[0]?.tools.map(({ name }) => name) ?? [];
    assert.ok(names.includes('maps_get_route'));
    assert.ok(!names.includes('search_tools'));
  });
});
