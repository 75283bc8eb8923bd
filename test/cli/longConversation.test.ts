/** What a long conversation meets on a real terminal: a window that is full, a server's questions, and commands that outlive their program. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { until } from '../eventually.ts';
import { type AnthropicTurn, startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { FakeServer, ReceivedRequest } from '../fakes/loopback.ts';
import { type CliHome, cliHome, program } from './cliProcess.ts';
import { openTerminalSession, type TerminalSession } from './screen.ts';

const fakeServer = fileURLToPath(new URL('../fakes/mcpServer.ts', import.meta.url));
const window = 40_000;
const pages = 14;

describe('a long conversation on a terminal', () => {
  let home: CliHome;
  let server: FakeServer;
  let session: TerminalSession | undefined;
  beforeEach(() => {
    home = cliHome({
      'skills/garden/mcp.json': JSON.stringify({
        mcpServers: { beds: { command: process.execPath, args: [fakeServer, 'asks'] } },
      }),
      'skills/garden/skills/go/SKILL.md': '---\nname: go\ndescription: d\n---\nRead all pages.\n',
    });
  });
  afterEach(async () => {
    session?.child.kill('SIGKILL');
    session = undefined;
    await server.close();
    home.remove();
  });

  async function open(
    args: string,
    turns: AnthropicTurn[] | ((request: ReceivedRequest) => AnthropicTurn),
    more: Record<string, string> = {},
  ): Promise<TerminalSession> {
    server = await startAnthropicServer({ turns });
    session = openTerminalSession(`exec '${process.execPath}' '${program()}' ${args}`, {
      cwd: home.workDir,
      env: {
        ...home.env,
        ANTHROPIC_API_KEY: 'sk-ant-test-0123456789',
        ANTHROPIC_BASE_URL: server.url,
        TELOS_ROUTING_MODE: 'local',
        ...more,
      },
    });
    return session;
  }

  describe('with more pages than its model can take', () => {
    const isForSummary = (text: string): boolean => text.includes('Write that summary, for yourself.');
    beforeEach(() => {
      for (let page = 1; page <= pages; page++)
        home.folder.add({ [`work/${page}.txt`]: `begin p${page} ${'rain and wind '.repeat(1_400)}\n` });
    });

    /** Reads one page after the other. `summary` answers the request for one; the server refuses prompts of more than the window. */
    function reader(summary: AnthropicTurn) {
      let page = 0;
      return ({ body }: ReceivedRequest): AnthropicTurn => {
        const text = JSON.stringify(body);
        const tokens = Math.ceil(text.length / 4);
        const message = `prompt is too long: ${tokens} tokens > ${window} maximum`;
        if (tokens > window)
          return {
            status: 400,
            errorBody: { type: 'error', error: { type: 'invalid_request_error', message } },
          };
        const usage = { input_tokens: tokens };
        if (isForSummary(text)) return { ...summary, usage };
        page++;
        if (page > pages) return { text: ['All is read.'], usage };
        return {
          text: [`Page ${page} says: ${'a long thought about it, '.repeat(240)}`],
          toolCalls: [{ name: 'read_file', input: { path: `${page}.txt` } }],
          usage,
        };
      };
    }
    const refused = (): number =>
      server.requests.filter(({ body }) => JSON.stringify(body).length / 4 > window).length;

    it('leaves out old results alone and says so where the model writes no summary', async () => {
      const chat = await open('chat run go', reader({ text: ['  '] }), {
        TELOS_CONTEXT_WINDOW: String(window),
      });
      await chat.shows(/All is read\.\nDone in/);
      assert.match(
        chat.screen.text.replace(/\s+/g, ' '),
        /no longer sent \d+ old tool results.*The model wrote no summary of the conversation\. Only old tool results are left out\./,
      );
      assert.equal(refused(), 0);
    });

    it('compacts and asks once more where the server says that the prompt is too long', async () => {
      const chat = await open('chat run go', reader({ text: ['The pages say RAIN.'] }));
      await chat.shows(/All is read\.\nDone in/);
      assert.match(chat.screen.text, /no longer sent|Compacted/);
      assert.ok(refused() > 0);
      assert.match(JSON.stringify(server.requests.at(-1)?.body.messages), /Read all pages.*Page 14 says/);
    });
  });

  it('sends no thought whose past has changed: in a step, after old results, a compaction, its undoing, and in the next process', async () => {
    home.folder.add({
      'skills/garden/skills/read/SKILL.md': '---\nname: read\ndescription: d\n---\nAs a step.\n',
    });
    for (let page = 1; page <= pages; page++)
      home.folder.add({ [`work/${page}.txt`]: `begin p${page} ${'rain and wind '.repeat(1_400)}\n` });
    let seals = 0;
    let left = pages;
    const answers = ['Step done.', 'First done.', 'Second done.', 'Third done.', 'Fourth done.'];
    const turn = ({ body }: ReceivedRequest): AnthropicTurn => {
      const text = JSON.stringify(body);
      const usage = { input_tokens: Math.ceil(text.length / 4) };
      if (text.includes('Write that summary, for yourself.')) return { text: ['The pages say rain.'], usage };
      const thinking = [{ thinking: 'let me see', signature: `seal-${++seals}` }];
      const call = (name: string, input: object): AnthropicTurn => ({
        thinking,
        toolCalls: [{ name, input }],
        usage,
      });
      if (seals === 1) return call('use_skill', { skill: 'read', request: 'all pages' });
      if (left > 0) return call('read_file', { path: `${left--}.txt` });
      left = answers.length > 4 ? pages : 2;
      return { thinking, text: [answers.shift() ?? ''], usage };
    };
    const more = {
      TELOS_CONTEXT_WINDOW: String(window),
      TELOS_MODEL: 'claude-sonnet-5-5',
      TELOS_MAX_ROUNDS: '60',
    };
    const chat = await open('chat run go', turn, more);
    await chat.shows(/First done\.\nDone in/);
    chat.type('/compact\r');
    await chat.shows(/Compacted: the model is sent/);
    chat.type('go on\r');
    await chat.shows(/Second done\.\nDone in/);
    chat.type('/uncompact\r');
    await chat.shows(/The compaction is undone/);
    chat.type('go on\r');
    await chat.shows(/Third done\.\nDone in/);
    chat.type('\x04');
    assert.equal(await chat.ended(), 0);
    const env = { ANTHROPIC_API_KEY: 'sk-ant-test-0123456789', ANTHROPIC_BASE_URL: server.url, ...more };
    assert.equal((await home.run(['--continue', 'go on'], { env })).stdout, 'Fourth done.\n');
    assert.deepEqual(server.refused, []);
    const sent = server.requests.map(
      ({ body }) => (JSON.stringify(body).match(/"signature":"seal-/g) ?? []).length,
    );
    assert.ok(sent.filter(count => count > 0).length > pages, sent.join(' '));
    assert.ok(JSON.stringify(server.requests).includes('As a step.'));
  });

  it('asks the questions of a server, and refuses its form for a password before anybody is asked', async () => {
    const form = (properties: object) => ({
      message: 'Where should the beds go?',
      requestedSchema: { type: 'object', properties },
    });
    const questions = [
      form({ place: { type: 'string', title: 'Place' }, count: { type: 'integer', minimum: 1, default: 4 } }),
      form({ password: { type: 'string' } }),
    ];
    const chat = await open('chat', [
      { toolCalls: [{ name: 'ask', input: { questions } }] },
      { text: ['Asked.'] },
    ]);
    await chat.shows(/Ctrl-D leaves.*\n[\s\S]*›/);
    chat.type('/garden:go\r');
    await chat.shows(/Start MCP server[\s\S]*Allow\?/);
    await chat.answers('y\n', /Use ask\?[\s\S]*Allow\?/);
    await chat.answers('y\n', /Where should the beds go\?[\s\S]*\?/);
    await chat.answers('y\n', /\? Place/);
    chat.type('South\n');
    await chat.shows(/\? count \(a number; Enter for 4\)/);
    chat.type('0\n');
    await chat.shows(/\? count[\s\S]*> 0\n.*1/);
    chat.type('\n');
    await chat.shows(/Asked\.\nDone in/);
    assert.match(chat.screen.text.replace(/\s+/g, ' '), /'beds' was refused: its field “password”/);
    const sent = JSON.stringify(server.requests.at(-1)?.body.messages);
    assert.match(sent, /South.*4/);
    assert.match(sent, /asks for a password or a key/);
  });

  it('ends what runs in the background with its program, however that ends, and says so at the next start', async () => {
    const started = {
      toolCalls: [
        {
          name: 'run_command',
          input: { command: 'echo $$ > pid; exec sleep 300', background: true, cwd: home.workDir },
        },
      ],
    };
    const chat = await open('chat --yes', [started, { text: ['It runs.'] }, { text: ['Again.'] }]);
    await chat.shows(/Ctrl-D leaves.*\n[\s\S]*›/);
    chat.type('/garden:go\r');
    await chat.shows(/It runs\.\nDone in/);
    const pid = readFileSync(join(home.workDir, 'pid'), 'utf8').trim();
    assert.ok(existsSync(`/proc/${pid}`));
    // `script` is the terminal; the program is its child.
    const [cli] = readFileSync(`/proc/${chat.child.pid}/task/${chat.child.pid}/children`, 'utf8')
      .trim()
      .split(' ');
    process.kill(Number(cli), 'SIGKILL');
    await until(() => !existsSync(`/proc/${pid}`), 'The command goes on.');
    await chat.ended();
    const env = { ANTHROPIC_API_KEY: 'sk-ant-test-0123456789', ANTHROPIC_BASE_URL: server.url };
    const next = await home.run(['--yes', 'run', 'go'], { env });
    assert.match(next.stderr, /Stopped when Telos closed: .*sleep 300/);
    assert.doesNotMatch(
      (await home.run(['--yes', 'run', 'go'], { env })).stderr,
      /Stopped when Telos closed/,
    );
  });
});
