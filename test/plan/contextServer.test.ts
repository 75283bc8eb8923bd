/** The context server as a client of somebody else meets it: the protocol's own SDK over stdio, and a model server on the other side. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { type CliHome, cliHome, packageVersion, program } from '../cli/cliProcess.ts';
import { type AnthropicTurn, type FakeServer, startAnthropicServer } from '../fakes/anthropicServer.ts';

describe('telos context-server', () => {
  let home: CliHome;
  let server: FakeServer;
  let turns: AnthropicTurn[];
  let client: Client;
  let env: Record<string, string>;
  beforeEach(async () => {
    home = cliHome({
      'work/about.md': 'The bakery opens at six.',
      'work/.env': 'PASSWORD=never-to-be-sent',
      'notes/price.md': 'A loaf is four francs.',
    });
    turns = [{ text: ['At six.'] }];
    server = await startAnthropicServer({
      turns: (_request, at) => turns[Math.min(at, turns.length - 1)] ?? {},
    });
    env = { ...home.env, ANTHROPIC_API_KEY: 'test-key-0123456789', ANTHROPIC_BASE_URL: server.url };
    client = new Client({ name: 'test', version: '1' });
    const args = [
      program(),
      'context-server',
      '--project',
      home.workDir,
      '--context',
      join(home.folder.path, 'notes'),
    ];
    const transport = new StdioClientTransport({
      command: process.execPath,
      args,
      env,
      cwd: home.folder.path,
    });
    await client.connect(transport as Transport);
  });
  afterEach(async () => {
    await client.close();
    await server.close();
    home.remove();
  });

  const said = async (name: string, input: Record<string, unknown> = {}) => {
    const { content, isError } = await client.callTool({ name, arguments: input });
    const [first] = content as { type: string; text: string }[];
    return { text: first?.text ?? '', isError: isError === true };
  };

  it('lists two tools, answers from all folders, and sends no secret', async () => {
    assert.equal(client.getServerVersion()?.version, packageVersion());
    const { tools } = await client.listTools();
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['answerQuestion', 'summarize'],
    );
    assert.deepEqual(await said('answerQuestion', { query: 'When does it open?' }), {
      text: 'At six.',
      isError: false,
    });
    const sent = JSON.stringify(server.requests[0]?.body);
    assert.match(sent, /opens at six/);
    assert.match(sent, /four francs/);
    assert.doesNotMatch(sent, /never-to-be-sent/);
    assert.doesNotMatch(sent, /"tools"/);
  });

  it('takes the other name of the question, and cuts a summary to 15 lines', async () => {
    turns = [{ text: ['At six.'] }, { text: [Array.from({ length: 30 }, (_, at) => `- ${at}`).join('\n')] }];
    assert.equal((await said('answer_question', { query: 'When?' })).text, 'At six.');
    assert.equal((await said('summarize')).text.split('\n').length, 15);
  });

  it('tells a failure as text, and goes on', async () => {
    turns = [{ status: 401 }, { text: ['At six.'] }];
    const failed = await said('answerQuestion', { query: 'When?' });
    assert.match(failed.text, /^ERROR: /);
    assert.ok(failed.isError);
    assert.doesNotMatch(failed.text, /test-key-0123456789/);
    await assert.rejects(client.callTool({ name: 'write_file', arguments: {} }), /no tool write_file/);
    assert.equal((await said('answerQuestion', { query: 'When?' })).text, 'At six.');
  });

  it('answers what is not JSON with an error, and ends with its input', async () => {
    const child = spawn(process.execPath, [program(), 'context-server'], { cwd: home.workDir, env });
    let out = '';
    child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      out += piece;
    });
    child.stdin.end(
      'not json\n[]\n{"jsonrpc":"2.0","id":7,"method":"nothing"}\n{"jsonrpc":"2.0","id":8,"method":"ping"}\n',
    );
    const [code] = await once(child, 'close');
    const codes = out
      .trim()
      .split('\n')
      .map(line => JSON.parse(line).error?.code ?? 'fine');
    assert.deepEqual(codes.sort(), [-32600, -32601, -32700, 'fine']);
    assert.equal(code, 0);
  });

  it('refuses a folder that does not exist', async () => {
    const { code, stderr } = await home.run(['context-server', '--project', 'absent']);
    assert.equal(code, 2);
    assert.match(stderr, /absent does not exist/);
  });
});
