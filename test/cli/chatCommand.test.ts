/** `telos chat` and `--continue`: a conversation on a real terminal, in a pipe, and over several processes. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../eventually.ts';
import { type AnthropicTurn, startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { type CliHome, cliHome, program } from './cliProcess.ts';
import { openTerminalSession, type TerminalSession } from './screen.ts';

describe('telos chat', () => {
  let home: CliHome;
  let server: FakeServer;
  let session: TerminalSession | undefined;
  let env: Record<string, string>;

  beforeEach(() => {
    home = cliHome({ 'skills/one/skills/go/SKILL.md': '---\nname: go\ndescription: d\n---\nGo.\n' });
  });
  afterEach(async () => {
    session?.child.kill('SIGKILL');
    session = undefined;
    await server.close();
    home.remove();
  });

  async function serve(turns: AnthropicTurn[], more: Record<string, string> = {}): Promise<void> {
    server = await startAnthropicServer({ turns });
    const key = { ANTHROPIC_API_KEY: 'sk-ant-test-0123456789', ANTHROPIC_BASE_URL: server.url };
    env = { ...home.env, ...key, TELOS_ROUTING_MODE: 'local', ...more };
  }

  function open(args: string): TerminalSession {
    session = openTerminalSession(`exec '${process.execPath}' '${program()}' ${args}`, {
      cwd: home.workDir,
      env,
    });
    return session;
  }

  const sent = (index: number): string => JSON.stringify(server.requests[index]?.body.messages);
  const write = { name: 'write_file', input: { path: 'a.md', content: 'x\n' } };

  it('goes on with the conversation, shows Markdown and closes each run with its figures', async () => {
    await serve([{ text: ['I **look**.'], toolCalls: [write] }, { text: ['Done.'] }, { text: ['Second.'] }]);
    const chat = open('chat');
    await chat.shows(/Ctrl-D leaves/);
    chat.type('run go\r');
    await chat.shows(/I look\.\n→ write_file a\.md\nDone\.\nDone in .* tokens · \$.* · 1 file: a\.md\n/);
    assert.match(chat.raw, /\x1b\[1mlook\x1b\[22m/);
    chat.type('and more\r');
    await chat.shows(/continuing with go \(one\)\nSecond\.\nDone in/);
    assert.match(sent(2), /run go.*Done\..*and more/);
    chat.type('/undo\r');
    await chat.answers('y\n', /Undone: 1 file/);
    assert.equal(existsSync(join(home.workDir, 'a.md')), false);
    chat.type('/new\r');
    await chat.shows(/has forgotten/);
    chat.type('run go again\r');
    await until(() => server.requests.length === 4);
    assert.doesNotMatch(sent(3), /and more/);
    await chat.shows(/again[\s\S]*Done in/);
    chat.type('\x04');
    assert.equal(await chat.ended(), 0);
  });

  it('brings requests back with Up, also those of earlier days, and completes with Tab', async () => {
    await serve([{ text: ['Yes.'] }]);
    assert.equal((await home.run(['run', 'go', 'early'], { env })).code, 0);
    const chat = open('chat');
    await chat.shows(/Ctrl-D leaves/);
    chat.type('\x1b[A');
    await chat.shows(/› run go early/);
    chat.type('\x03');
    await chat.shows(/\^C/);
    chat.type('/mod\t');
    await chat.shows(/› \/mode$/);
    chat.type('\t');
    await chat.shows(/\/model\s+\/mode/);
    chat.type('\x03');
    await chat.shows(/\^C[\s\S]*\^C/);
    chat.type('/go now\r');
    await until(() => server.requests.length === 2);
    assert.match(sent(1), /request: \/go now/);
    chat.type('/quit\r');
    assert.equal(await chat.ended(), 0);
  });

  it('stops a run with Ctrl-C and goes on, and leaves at the second one at the prompt', async () => {
    await serve([{ text: ['Slowly.'], stallMs: 60_000 }, { text: ['Yes.'] }]);
    const chat = open('chat run go');
    await chat.shows(/go \(one\)/);
    chat.type('\x03');
    await chat.shows(/Cancelled after/);
    chat.type('and now\r');
    await chat.shows(/Yes\.\nDone in/);
    chat.type('\x03');
    await chat.shows(/Ctrl-C again leaves/);
    chat.type('\x03');
    assert.equal(await chat.ended(), 0);
  });

  it('asks no model about a slip, and names what was meant', async () => {
    await serve([{ text: ['Yes.'] }]);
    const chat = open('chat');
    await chat.shows(/Ctrl-D leaves/);
    chat.type('/hel\r');
    await chat.shows(/'\/hel' is not a command or a skill\. Did you mean \/help\?/);
    chat.type('/mode plna\r');
    await chat.shows(/no mode 'plna'/);
    assert.equal(server.requests.length, 0);
  });

  it('plans in the mode of that name and writes nothing, and asks about each change in a review', async () => {
    await serve([
      { toolCalls: [write] },
      { text: ['The plan.'] },
      { toolCalls: [write] },
      { text: ['Written.'] },
    ]);
    const chat = open('chat --mode plan run go');
    await chat.shows(/The plan\.\nDone in/);
    assert.equal(existsSync(join(home.workDir, 'a.md')), false);
    await chat.shows(/plan ›/);
    chat.type('/mode review\r');
    await chat.shows(/review ›/);
    chat.type('do it\r');
    await chat.shows(/\? Write a\.md\?[\s\S]*\+x\n[\s\S]*review each change[\s\S]*Allow\?/);
    assert.equal(chat.screen.bells, 1);
    await chat.answers('y\n', /Written\.\nDone in/);
    assert.equal(readFileSync(join(home.workDir, 'a.md'), 'utf8'), 'x\n');
  });

  it('takes each line of a pipe for a request, and keeps text and tool lines apart', async () => {
    await serve([{ text: ['I write.'], toolCalls: [write] }, { text: ['**Done.**'] }, { text: ['Second.'] }]);
    const line = `printf 'run go\\nand more\\n' | '${process.execPath}' '${program()}' chat > all.txt 2>&1`;
    await new Promise(resolve =>
      spawn('/bin/sh', ['-c', line], { cwd: home.workDir, env }).once('close', resolve),
    );
    const all = readFileSync(join(home.workDir, 'all.txt'), 'utf8');
    assert.match(all, /\nI write\.\n→ write_file a\.md\n\*\*Done\.\*\*\nDone in .*\n/);
    assert.match(all, /\nSecond\.\nDone in/);
    assert.match(sent(2), /and more/);
  });
});

describe('telos --continue', () => {
  let home: CliHome;
  let server: FakeServer;
  beforeEach(() => {
    home = cliHome({
      'skills/one/skills/go/SKILL.md': '---\nname: go\ndescription: d\n---\nGo.\n',
      'other/.keep': '',
    });
  });
  afterEach(async () => {
    await server.close();
    home.remove();
  });
  const start = async (turns: AnthropicTurn[]): Promise<Record<string, string>> => {
    server = await startAnthropicServer({ turns });
    return {
      ANTHROPIC_API_KEY: 'sk-ant-test-0123456789',
      ANTHROPIC_BASE_URL: server.url,
      TELOS_ROUTING_MODE: 'local',
    };
  };
  const sent = (): string => JSON.stringify(server.requests.at(-1)?.body.messages);

  it('goes on after the rounds are used up, with all that was said, and again', async () => {
    const look = { toolCalls: [{ name: 'list_directory', input: { path: '.' } }] };
    const env = await start([look, look, { text: ['Finished.'] }, { text: ['More.'] }]);
    const first = await home.run(['--max-rounds', '2', 'run', 'go', 'far'], { env });
    assert.equal(first.code, 1);
    assert.match(
      first.stderr,
      /Stopped after 2 rounds, before it was done\. Continue with: telos --continue/,
    );
    const second = await home.run(['--continue'], { env });
    assert.deepEqual([second.code, second.stdout], [0, 'Finished.\n']);
    assert.match(second.stderr, /Continuing “run go far”/);
    assert.match(sent(), /run go far.*tool_result.*Go on\./);
    const third = await home.run(['--continue', 'what', 'now?'], { env });
    assert.equal(third.stdout, 'More.\n');
    assert.match(sent(), /Finished\..*what now\?/);
  });

  it('knows only conversations of this folder, and says so', async () => {
    const env = await start([{ text: ['Yes.'] }]);
    await home.run(['run', 'go'], { env });
    const other = join(home.folder.path, 'other');
    const { code, stderr } = await home.run(['--cwd', other, '--continue'], { env });
    assert.equal(code, 1);
    assert.match(stderr, /This folder has no conversation to continue/);
    assert.equal(server.requests.length, 1);
  });
});
