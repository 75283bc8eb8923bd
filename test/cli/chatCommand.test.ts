/** `telos chat` and `--continue`: a conversation on a real terminal, in a pipe, and over several processes. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findBox } from '../../src/engine/box/findBox.ts';
import { until } from '../eventually.ts';
import { type AnthropicTurn, startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { skipBecause } from '../skipBecause.ts';
import { type CliHome, cliHome, program } from './cliProcess.ts';
import { openTerminalSession, type TerminalSession } from './screen.ts';

const fakeServer = fileURLToPath(new URL('../fakes/mcpServer.ts', import.meta.url));

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

  it('shows the to-do list, and asks with numbers', async () => {
    const items = [
      { text: 'look', state: 'done' },
      { text: 'ask\u001b[2J', state: 'doing' },
    ];
    const question = { question: 'Which colour?', choices: ['red', 'green'] };
    await serve([
      { toolCalls: [{ name: 'update_todos', input: { items } }] },
      { toolCalls: [{ name: 'ask_user', input: question }] },
      { toolCalls: [{ name: 'ask_user', input: { question: 'And how many?' } }] },
      { text: ['Thanks.'] },
    ]);
    const chat = open('chat');
    await chat.shows(/Ctrl-D leaves/);
    chat.type('run go\r');
    await chat.shows(/→ To do: 1 of 2 done\n {2}✓ look\n {2}▸ ask\\x1b/);
    await chat.shows(
      /\? Which colour\?\n {2}1\. red\n {2}2\. green\n {2}Answer\? \[1 to 2, your own words, Enter = skip\]/,
    );
    await chat.answers('2\n', /And how many\?/);
    await chat.answers('a dozen\n', /Thanks\./);
    assert.match(sent(2), /The user answers: green/);
    assert.match(sent(3), /The user answers: a dozen/);
  });

  it('lists and ends what runs in the background, and ends the rest when it is left', async () => {
    const start = (command: string) => ({
      toolCalls: [{ name: 'run_command', input: { command, background: true, cwd: home.workDir } }],
    });
    await serve([
      start('echo $$ > one; exec sleep 300'),
      start('echo $$ > two; exec sleep 301'),
      { text: ['Both run.'] },
    ]);
    const chat = open('chat --yes');
    await chat.shows(/Ctrl-D leaves/);
    chat.type('run go\r');
    await chat.shows(/Both run\.\n[\s\S]*2 commands in the background; \/commands lists them\./);
    chat.type('/commands\r');
    await chat.shows(/cmd-1 .*exec sleep 300\n *cmd-2 .*exec sleep 301/);
    chat.type('/commands stop cmd-1\r');
    await chat.shows(/Ended: .*sleep 300/);
    chat.type('/quit\r');
    await chat.shows(/Ended: .*sleep 301/);
    for (const name of ['one', 'two'])
      await until(() => !existsSync(`/proc/${readFileSync(join(home.workDir, name), 'utf8').trim()}`));
  });

  it('sends a running command to the background with a key, and Ctrl-C stops one all the same', async () => {
    const long = (seconds: number) => ({
      toolCalls: [
        {
          name: 'run_command',
          input: { command: `echo $$ > pid; exec sleep ${seconds}`, cwd: home.workDir },
        },
      ],
    });
    await serve([long(300), { text: ['It goes on.'] }, long(301)]);
    const chat = open('chat --yes');
    await chat.shows(/Ctrl-D leaves/);
    chat.type('run go\r');
    await chat.shows(/Ctrl-B moves the command to the background/);
    chat.type('\x1b[B');
    await chat.shows(/Ctrl-B moves/);
    chat.type('\x02');
    await chat.shows(/It goes on\.\n[\s\S]*1 command in the background; \/commands lists them\.\n\n›/);
    assert.match(sent(1), /was sent to the background by the user.*as cmd-1/);
    const pid = readFileSync(join(home.workDir, 'pid'), 'utf8').trim();
    assert.ok(existsSync(`/proc/${pid}`));
    chat.type('/commands\r');
    await chat.shows(/cmd-1 .*exec sleep 300/);
    chat.type('run go again\r');
    await chat.shows(/exec sleep 301\n.* Ctrl-B moves the command/);
    chat.type('\x03');
    await chat.shows(/Stopping; Ctrl-C again[\s\S]*Cancelled after/);
    chat.type('/quit\r');
    await chat.shows(/Ended: .*sleep 300/);
    await until(() => !existsSync(`/proc/${pid}`));
    assert.equal(await chat.ended(), 0);
  });

  it('leaves the keys to a question that comes while a command waits to run', async () => {
    const command = { name: 'run_command', input: { command: 'git push --force; sleep 300' } };
    await serve([{ toolCalls: [command] }, { text: ['Not done.'] }]);
    const chat = open('chat');
    await chat.shows(/Ctrl-D leaves/);
    chat.type('run go\r');
    await chat.shows(/Run this command\?[\s\S]*Allow\?/);
    // Longer than a command must run before the key is read.
    await new Promise(resolve => setTimeout(resolve, 2500));
    await chat.answers('n\n', /Not done\.\n[^›]*Done in/);
    assert.doesNotMatch(chat.screen.text, /Ctrl-B moves/);
  });

  it('goes on with the conversation, shows Markdown and closes each run with its figures', async () => {
    await serve([{ text: ['I **look**.'], toolCalls: [write] }, { text: ['Done.'] }, { text: ['Second.'] }]);
    const chat = open('chat');
    await chat.shows(/Ctrl-D leaves/);
    chat.type('run go\r');
    await chat.shows(
      /I look\.\n→ Writing a\.md\n {4}\+ x\nDone\.\nDone in .* tokens · .*\$.* · 1 file: a\.md\n/,
    );
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

  it('goes back to before a request with the files, commands included, undoes that, and branches off', async function () {
    const box = await findBox({ env: { PATH: process.env['PATH'] ?? '' } });
    if (!box.works) return skipBecause(this, box.why);
    const run = (command: string) => ({
      toolCalls: [{ name: 'run_command', input: { command, cwd: home.workDir } }],
    });
    const turns = [
      ...[{ toolCalls: [write] }, { text: ['First done.'] }],
      run('rm a.md && mkdir -p deep && printf "two\\r" > deep/b.bin && chmod 600 deep/b.bin'),
      { text: ['Second done.'] },
      ...[{ text: ['Third done.'] }, { text: ['Fourth done.'] }, { text: ['Fifth done.'] }],
    ];
    await serve(turns, { TELOS_SANDBOX: 'auto' });
    const chat = open('chat --yes');
    await chat.shows(/Ctrl-D leaves/);
    chat.type('/restore\r');
    await chat.shows(/has no requests yet/);
    chat.type('run go\r');
    await chat.shows(/First done\.\n[^›]*Done in.*\n\n›/);
    chat.type('now the command\r');
    await chat.shows(/Second done\.\n[^›]*Done in.*\n\n›/);
    const [a, b] = [join(home.workDir, 'a.md'), join(home.workDir, 'deep', 'b.bin')];
    assert.deepEqual([existsSync(a), readFileSync(b, 'latin1')], [false, 'two\r']);
    chat.type('/restore 7\r');
    await chat.shows(/no request '7'[\s\S]* 1 {2}run go\n *2 {2}now the command\n.*\/restore NUMBER/);
    chat.type('/restore 2\r');
    await chat.shows(/Changed since:\n {2}D .*a\.md\n {2}A .*b\.bin\n[\s\S]*before request 2\? \[y\/N\]/);
    await chat.answers('n\n', /Nothing was restored\./);
    chat.type('/restore 2\r');
    await chat.shows(/Nothing was restored\.[\s\S]*before request 2\? \[y\/N\]/);
    await chat.answers('y\n', /Restored: 2 files\. 1 request left out\. \/undo undoes that\./);
    assert.deepEqual([readFileSync(a, 'utf8'), existsSync(join(home.workDir, 'deep'))], ['x\n', false]);
    chat.type('/undo\r');
    await chat.shows(/The restore .* changed:\n {2}1 request left out[\s\S]*before the restore\?/);
    await chat.answers('y\n', /Undone: 2 files/);
    assert.deepEqual([existsSync(a), readFileSync(b, 'latin1')], [false, 'two\r']);
    assert.equal(statSync(b).mode & 0o777, 0o600);
    chat.type('what was that?\r');
    await chat.shows(/Third done\.\n[^›]*Done in.*\n\n›/);
    assert.match(sent(4), /run go.*now the command.*Second done\..*what was that\?/);
    chat.type('/branch 2\r');
    await chat.shows(/A new conversation, which knows what was said before request 2\./);
    chat.type('and so?\r');
    await chat.shows(/Fourth done\.\n[^›]*Done in.*\n\n›/);
    assert.match(sent(5), /run go.*First done\..*and so\?/);
    assert.doesNotMatch(sent(5), /now the command/);
    assert.equal(existsSync(b), true, 'a branch leaves the files');
  });

  it('knows in the next process that a conversation was restored', async () => {
    await serve([{ text: ['First done.'] }, { text: ['Second done.'] }, { text: ['Third done.'] }]);
    const chat = open('chat run go');
    await chat.shows(/First done\.\n[^›]*Done in.*\n\n›/);
    chat.type('a wrong way\r');
    await chat.shows(/Second done\.\n[^›]*Done in.*\n\n›/);
    chat.type('/restore 2\r');
    await chat.shows(/No file was changed since\.\nRestore files and conversation to before request 2\?/);
    await chat.answers('y\n', /Restored: 0 files\. 1 request left out/);
    chat.type('/quit\r');
    assert.equal(await chat.ended(), 0);
    assert.equal((await home.run(['--continue', 'again'], { env })).stdout, 'Third done.\n');
    assert.match(sent(2), /run go.*First done\..*again/);
    assert.doesNotMatch(sent(2), /wrong way/);
  });

  it('compacts the conversation with a focus, undoes that, and knows both in the next process', async () => {
    const long = `Found it. ${'All about apples. '.repeat(60)}`;
    await serve([{ text: [long] }, { text: ['Apples are red.'] }, { text: ['Red.'] }, { text: ['Whole.'] }]);
    const chat = open('chat --verbose');
    await chat.shows(/Ctrl-D leaves/);
    chat.type('/compact\r');
    await chat.shows(/There is nothing to compact yet\.\n›/);
    chat.type('run go\r');
    await chat.shows(/context 25 of 1,000,000, 0% \((?:\w+ \d+(?:, )?)+\)\nDone in.*\n\n›/);
    chat.type('/compact the colours\r');
    await chat.shows(
      /Compacted: the model is sent about [\d,]+ tokens in place of [\d,]+\. \/uncompact undoes it\.\n {2}Apples are red\.\n[^›]*Done in.*\n\n›/,
    );
    assert.match(sent(1), /run go.*All about apples.*dwell on: the colours/);
    chat.type('which?\r');
    await chat.shows(/Red\.\n[^›]*Done in.*\n\n›/);
    assert.doesNotMatch(sent(2), /All about apples/);
    assert.match(sent(2), /run go.*Apples are red\..*which\?/);
    chat.type('/uncompact\r');
    await chat.shows(/The compaction is undone: the model is sent the whole conversation again\./);
    chat.type('\x04');
    assert.equal(await chat.ended(), 0);
    assert.equal(server.requests.length, 3);
    assert.equal((await home.run(['--continue', 'again'], { env })).stdout, 'Whole.\n');
    assert.match(sent(3), /run go.*All about apples.*which\?.*again/);
    assert.doesNotMatch(sent(3), /Apples are red\./);
  });

  it('has failed at a compaction whose summary is empty, and says that nothing was changed', async () => {
    await serve([
      { text: [`Found it. ${'All about apples. '.repeat(60)}`] },
      { text: [' '] },
      { text: ['Red.'] },
    ]);
    const chat = open('chat');
    await chat.shows(/Ctrl-D leaves/);
    chat.type('run go\r');
    await chat.shows(/Done in.*\n\n›/);
    chat.type('/compact\r');
    await chat.shows(/wrote no summary of the conversation\. The conversation stays as it is\.\n[^›]*›/);
    chat.type('which?\r');
    await chat.shows(/Red\.\n[^›]*Done in.*\n\n›/);
    assert.match(sent(2), /All about apples.*which\?/);
    chat.type('\x04');
    await chat.ended();
    const runs = JSON.parse(
      `[${(await home.run(['runs', '--json'], { env })).stdout.trim().replaceAll('\n', ',')}]`,
    );
    const outcomes = runs.flat().map((run: { outcome: string }) => run.outcome);
    assert.deepEqual(outcomes.sort(), ['completed', 'completed', 'failed']);
  });

  it('reads the notes of the person with each request, counts them as files, and stops where told', async () => {
    await serve([{ text: ['Yes.'] }]);
    home.folder.add({ 'config/notes.md': `I live in Kiel. ${'Rain. '.repeat(2_000)}` });
    const chat = open('chat --verbose');
    await chat.shows(/Ctrl-D leaves/);
    chat.type('run go\r');
    await chat.shows(/context 26 of 1,000,000, 0% \(.*files \d+[\s\S]*Done in.*\n\n›/);
    chat.type('/context off\r');
    await chat.shows(/notes\.md of your configuration is not read with each request\./);
    chat.type('and more\r');
    await until(() => server.requests.length === 2);
    const systems = server.requests.map(({ body }) => JSON.stringify(body.system));
    assert.match(systems[0] ?? '', /They permit nothing.*I live in Kiel/);
    assert.doesNotMatch(systems[1] ?? '', /Kiel/);
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
    await chat.shows(/› \/mode\n {2}\/model\n {2}\/mode$/);
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

  it('calls a prompt of a server and attaches a resource, by words that Tab completes, and asks for what is missing', async () => {
    home.remove();
    home = cliHome({
      'skills/garden/mcp.json': JSON.stringify({
        mcpServers: { beds: { command: process.execPath, args: [fakeServer, 'offers'] } },
      }),
      'skills/garden/skills/sow/SKILL.md': '---\nname: sow\ndescription: d\n---\nSow.\n',
    });
    await serve([{ text: ['Planned.'] }, { text: ['Read.'] }]);
    const chat = open('chat');
    await chat.shows(/Ctrl-D leaves/);
    chat.type('/beds:plan\r');
    await chat.shows(/beds[\s\S]*Allow\?/);
    await chat.answers('y\n', /\? place\n/);
    // What is typed before the line waits belongs to no question.
    await chat.shows(/\? place\n +Where\n +>/);
    chat.type('South\n');
    await chat.shows(/\? count \(Enter leaves it empty\)\n[^?]*>/);
    chat.type('\n');
    await chat.shows(/Planned\.\nDone in .*\n\n›/);
    assert.match(sent(0), /Plan .* beds at South\./);
    chat.type('look at @beds:beds://so\t');
    await chat.shows(/@beds:beds:\/\/south/);
    chat.type('\r');
    await chat.shows(/south[\s\S]*Allow\?/);
    await chat.answers('y\n', /Read\.\nDone in/);
    assert.match(sent(1), /South bed: beans/);
  });

  it('shows all that a server asks the model before a yes, and hands it the answer', async () => {
    home.remove();
    home = cliHome({
      'skills/garden/mcp.json': JSON.stringify({
        mcpServers: { beds: { command: process.execPath, args: [fakeServer, 'asks'] } },
      }),
      'skills/garden/skills/sow/SKILL.md': '---\nname: sow\ndescription: d\n---\nSow.\n',
    });
    const text = `Which bed?${' and why'.repeat(400)} \u202e<end>`;
    const messages = [{ role: 'user', content: { type: 'text', text } }];
    await serve([
      { toolCalls: [{ name: 'ask', input: { questions: [{ messages, maxTokens: 50 }] } }] },
      { text: ['The south bed.'] },
      { text: ['Asked.'] },
    ]);
    const chat = open('chat');
    await chat.shows(/Ctrl-D leaves/);
    chat.type('/garden:sow\r');
    await chat.shows(/Start MCP server[\s\S]*Allow\?/);
    await chat.answers('y\n', /Use ask\?[\s\S]*Allow\?/);
    await chat.answers('y\n', /\? Let the server ask the model\?[\s\S]*Allow\?/);
    // The terminal breaks its lines anywhere.
    const shown = chat.screen.text.replace(/\s+/g, '').split('?Lettheserveraskthemodel?')[1] ?? '';
    assert.equal(shown.split('andwhy').length, 401);
    assert.match(shown, /<end>.*asksclaude-haiku-5-5thisandgetstheanswer/);
    assert.ok(!chat.screen.text.includes('\u202e'));
    assert.equal(server.requests.length, 1);
    await chat.answers('y\n', /Asked\.\nDone in/);
    const { system, tools } = server.requests[1]!.body;
    assert.deepEqual([system ?? '', tools ?? []], ['', []]);
    assert.match(sent(2), /The south bed\./);
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
    assert.match(all, /\nI write\.\n→ Writing a\.md\n\*\*Done\.\*\*\nDone in .*\n/);
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
    assert.match(first.stderr, /Stopped after 2 steps, before it was done\. Continue with: telos --continue/);
    const second = await home.run(['--continue'], { env });
    assert.deepEqual([second.code, second.stdout], [0, 'Finished.\n']);
    assert.match(second.stderr, /Continuing “run go far”/);
    assert.match(sent(), /run go far.*tool_result/);
    // The model is asked for its next round, as if nothing had stopped it.
    assert.doesNotMatch(sent(), /Go on\./);
    assert.equal(server.requests.at(-1)?.body.messages.length, 5);
    const third = await home.run(['--continue', 'what', 'now?'], { env });
    assert.equal(third.stdout, 'More.\n');
    assert.match(sent(), /Finished\..*what now\?/);
  });

  it('says by the exit code of a chat in a pipe whether a request had no answer', async () => {
    const env = await start([{ text: ['Yes.'] }, { text: [''] }, { text: [''] }, { text: ['Yes.'] }]);
    const piped = (input: string) => home.runProcess(['chat', '--yes'], { env, input });
    const good = await piped('/go on\n');
    assert.deepEqual([good.code, good.stdout], [0, 'Yes.\n']);
    const bad = await piped('/go on\nand on\n');
    assert.equal(bad.code, 1, bad.stderr);
    assert.match(bad.stderr, /returned an empty answer/);
    const unknown = await piped('/nothing\n');
    assert.equal(unknown.code, 1);
  });

  it('does not run a skill whose file cannot be read, as it would do without its instructions', async () => {
    const env = await start([{ text: ['Done.'] }]);
    home.folder.add({ 'skills/one/skills/torn/SKILL.md': '---\nname: torn\ndescription: d\n---\nGo.\0' });
    const { code, stderr, stdout } = await home.run(['/torn', 'go'], { env });
    assert.deepEqual([code, stdout, server.requests.length], [1, '', 0]);
    assert.match(
      stderr,
      /The skill torn was not run, since its file cannot be read\. .*zero byte.*Make the file readable/,
    );
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
