/** `telos acp`, as an editor drives it: every message by the schema of the protocol, over the pipes of a process. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../eventually.ts';
import { type AnthropicTurn, startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { AnswerError, StrictClient } from './acpClient.ts';
import { type CliHome, cliHome, program } from './cliProcess.ts';

const gardenSkill = '---\nname: plant\ndescription: Plants leeks in a bed\n---\nTHE PLANT TEXT\n';

describe('telos acp', function () {
  this.timeout(60_000);
  let home: CliHome;
  let server: FakeServer;
  let client: StrictClient;
  let turn: (body: string, index: number) => AnthropicTurn;

  beforeEach(async () => {
    home = cliHome({ 'skills/garden/skills/plant/SKILL.md': gardenSkill });
    turn = () => ({ text: ['Hello ', 'there.'] });
    server = await startAnthropicServer({
      turns: (request, index) => turn(JSON.stringify(request.body.messages), index),
    });
    client = open();
  });
  afterEach(async () => {
    const { invalid } = client;
    const code = await client.end();
    await server.close();
    home.remove();
    assert.deepEqual(invalid, []);
    assert.equal(code, 0, client.stderr);
  });

  function open(): StrictClient {
    const env = { ...home.env, ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: 'test-key-0123456789' };
    return new StrictClient([process.execPath, program(), 'acp'], { cwd: home.workDir, env });
  }

  async function begin(capabilities: object = {}): Promise<string> {
    await client.request('initialize', { protocolVersion: 1, clientCapabilities: capabilities });
    const { sessionId } = await client.request('session/new', { cwd: home.workDir, mcpServers: [] });
    return sessionId;
  }

  const prompt = (sessionId: string, text: string): Promise<{ stopReason: string }> =>
    client.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] });

  it('says what it can, and offers skills, modes, models and efforts', async () => {
    const hello = await client.request('initialize', { protocolVersion: 1 });
    assert.equal(hello.protocolVersion, 1);
    assert.equal(hello.agentInfo.name, 'telos');
    const opened = await client.request('session/new', { cwd: home.workDir, mcpServers: [] });
    assert.deepEqual(
      opened.modes.availableModes.map((mode: { id: string }) => mode.id),
      ['sandbox', 'default', 'review', 'plan'],
    );
    const [model, effort] = opened.configOptions;
    assert.match(model.currentValue, /^anthropic:claude-/);
    assert.equal(effort.category, 'thought_level');
    await eventually(() => {
      const [{ update } = {}] = client.updates;
      const names = update?.['availableCommands'].map((command: { name: string }) => command.name);
      assert.deepEqual(names, ['compact', 'uncompact', 'undo', 'plant']);
    });
  });

  it('streams an answer, and goes on with the conversation', async () => {
    const session = await begin();
    assert.deepEqual(await prompt(session, 'hello'), { stopReason: 'end_turn' });
    assert.equal(client.said('agent_message_chunk'), 'Hello there.');
    let seen = '';
    turn = body => {
      seen = body;
      return { text: ['Again.'] };
    };
    await prompt(session, 'and again');
    assert.match(seen, /hello.*Hello there\..*and again/);
    const title = client.updates.find(({ update }) => update.sessionUpdate === 'session_info_update');
    assert.equal(title?.update['title'], 'hello');
  });

  it('runs a skill by its command, says why, and shows a change with both texts', async () => {
    writeFileSync(join(home.workDir, 'bed.md'), 'old\n');
    const change = { id: 'c1', name: 'write_file', input: { path: 'bed.md', content: 'leeks\n' } };
    turn = body => (body.includes('tool_result') ? { text: ['Planted.'] } : { toolCalls: [change] });
    const session = await begin();
    assert.deepEqual(await prompt(session, '/plant leeks'), { stopReason: 'end_turn' });
    assert.match(JSON.stringify(server.requests[0]?.body), /THE PLANT TEXT/);
    assert.match(client.said('agent_thought_chunk'), /plant \(garden\): requested as \/plant/);
    const of = (id: string) => client.updates.filter(({ update }) => update['toolCallId'] === id);
    const [start, end] = of('c1').map(({ update }) => update);
    assert.deepEqual(
      [start?.['title'], start?.['kind'], start?.['locations']],
      ['Write bed.md', 'edit', [{ path: join(home.workDir, 'bed.md') }]],
    );
    assert.equal(end?.['status'], 'completed');
    assert.deepEqual(end?.['content'], [
      { type: 'diff', path: join(home.workDir, 'bed.md'), oldText: 'old\n', newText: 'leeks\n' },
    ]);
    await prompt(session, '/undo');
    assert.equal(readFileSync(join(home.workDir, 'bed.md'), 'utf8'), 'old\n');
    assert.match(client.said('agent_message_chunk'), /Undone: 1 file restored\./);
  });

  it('does not say that it undid what was undone elsewhere', async () => {
    const change = { id: 'c1', name: 'write_file', input: { path: 'bed.md', content: 'leeks\n' } };
    turn = body => (body.includes('tool_result') ? { text: ['Planted.'] } : { toolCalls: [change] });
    const session = await begin();
    await prompt(session, '/plant leeks');
    assert.equal((await home.run(['undo', '--yes'])).code, 0);
    await prompt(session, '/undo');
    assert.match(client.said('agent_message_chunk'), /This change is undone already\.$/);
  });

  it('asks before what is dangerous, with the exact command, and takes a no', async () => {
    const remove = { id: 'c1', name: 'run_command', input: { command: 'rm -rf ~/precious' } };
    let told = '';
    turn = body => {
      if (!body.includes('tool_result')) return { toolCalls: [remove] };
      told = body;
      return { text: ['Left alone.'] };
    };
    client.answer = (_method, { options }) => ({
      outcome: {
        outcome: 'selected',
        optionId: options.find(({ kind }: { kind: string }) => kind === 'reject_once').optionId,
      },
    });
    const session = await begin();
    await prompt(session, 'tidy up my home');
    const [asked] = client.asked;
    assert.equal(asked?.['sessionId'], session);
    assert.equal(asked?.['toolCall'].toolCallId, 'c1');
    assert.match(asked?.['toolCall'].content[0].content.text, /rm -rf ~\/precious/);
    assert.ok(asked?.['options'].every(({ optionId }: { optionId: string }) => optionId !== 'always'));
    assert.match(told, /The user denied this/);
    const end = client.updates.findLast(({ update }) => update['toolCallId'] === 'c1');
    assert.equal(end?.update['status'], 'failed');
  });

  it('stops on cancel, also while a question is open, and can go on', async () => {
    const write = { id: 'c1', name: 'run_command', input: { command: 'rm -rf ~/precious' } };
    turn = body => (body.includes('Go on') ? { text: ['Gone on.'] } : { toolCalls: [write] });
    const session = await begin();
    let release = (): void => {};
    client.answer = () =>
      new Promise(resolve => {
        release = () => resolve({ outcome: { outcome: 'cancelled' } });
      });
    const running = prompt(session, 'tidy up');
    await eventually(() => assert.equal(client.asked.length, 1));
    client.notify('session/cancel', { sessionId: session });
    assert.deepEqual(await running, { stopReason: 'cancelled' });
    release();
    assert.deepEqual(await prompt(session, 'Go on please'), { stopReason: 'end_turn' });
    assert.match(client.said('agent_message_chunk'), /Gone on\./);
  });

  it('lists, loads and deletes stored sessions', async () => {
    const session = await begin();
    await prompt(session, 'hello');
    await client.end();
    client = open();
    await client.request('initialize', { protocolVersion: 1 });
    const { sessions } = await client.request('session/list', { cwd: home.workDir });
    assert.deepEqual(
      sessions.map(({ sessionId, cwd, title }: Record<string, string>) => [sessionId, cwd, title]),
      [[session, home.workDir, 'hello']],
    );
    await client.request('session/load', { sessionId: session, cwd: home.workDir, mcpServers: [] });
    assert.equal(client.said('user_message_chunk'), 'hello');
    assert.equal(client.said('agent_message_chunk'), 'Hello there.');
    await client.request('session/delete', { sessionId: session });
    assert.deepEqual(await client.request('session/list', {}), { sessions: [] });
  });

  it('keeps two sessions apart that run side by side', async () => {
    const first = await begin();
    const { sessionId: second } = await client.request('session/new', { cwd: home.workDir, mcpServers: [] });
    turn = body => ({ text: [body.includes('leeks') ? 'Leeks.' : 'Beans.'] });
    await Promise.all([prompt(first, 'leeks please'), prompt(second, 'beans please')]);
    assert.equal(client.said('agent_message_chunk', first), 'Leeks.');
    assert.equal(client.said('agent_message_chunk', second), 'Beans.');
  });

  it('takes files and pictures, asks before a secret one, and refuses sound', async () => {
    writeFileSync(join(home.workDir, 'notes.md'), 'THE NOTES\n');
    writeFileSync(join(home.workDir, '.env'), 'TOKEN=hidden-value-123\n');
    symlinkSync('.env', join(home.workDir, 'plain.md'));
    client.answer = () => ({ outcome: { outcome: 'selected', optionId: 'no' } });
    const session = await begin();
    const link = (name: string) => ({
      type: 'resource_link',
      name,
      uri: `file://${join(home.workDir, name)}`,
    });
    const data = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex').toString('base64');
    await client.request('session/prompt', {
      sessionId: session,
      prompt: [
        { type: 'text', text: 'look at these' },
        link('notes.md'),
        link('.env'),
        link('plain.md'),
        { type: 'resource', resource: { uri: 'untitled:one', text: 'UNSAVED TEXT' } },
        { type: 'image', mimeType: 'image/png', data },
      ],
    });
    const body = JSON.stringify(server.requests[0]?.body);
    for (const part of ['THE NOTES', 'UNSAVED TEXT', data]) assert.ok(body.includes(part), part);
    assert.ok(!body.includes('hidden-value-123'));
    assert.match(client.asked[0]?.['toolCall'].content[0].content.text, /\.env/);
    assert.match(client.asked[1]?.['toolCall'].content[0].content.text, /plain\.md/);
    await assert.rejects(
      client.request('session/prompt', { sessionId: session, prompt: [link('missing.md')] }),
      /missing\.md/,
    );
    const sound = { type: 'audio', mimeType: 'audio/wav', data: 'AAAA' };
    await assert.rejects(
      client.request('session/prompt', { sessionId: session, prompt: [sound] }),
      new AnswerError(-32602, 'Invalid params: Telos takes no sound.'),
    );
  });

  it('answers a client that lies with one sentence', async () => {
    const session = await begin();
    const missing = join(home.workDir, 'missing');
    const refused = (method: string, params: object): Promise<string> =>
      client.request(method, params).then(
        () => 'answered',
        error => error.message,
      );
    assert.match(
      await refused('session/new', { cwd: missing, mcpServers: [] }),
      /not the absolute path of a folder/,
    );
    assert.match(await refused('session/prompt', { sessionId: 'other', prompt: [] }), /not found/i);
    assert.match(
      await refused('session/load', { sessionId: '../../x', cwd: home.workDir, mcpServers: [] }),
      /not found/i,
    );
    assert.match(await refused('session/set_mode', { sessionId: session, modeId: 'yolo' }), /no mode yolo/);
    assert.match(
      await refused('session/set_config_option', {
        sessionId: session,
        configId: 'model',
        value: 'nobody:x',
      }),
      /nobody/,
    );
    client.child.stdin!.write('{"half": \n');
    assert.deepEqual(await prompt(session, 'hello'), { stopReason: 'end_turn' });
    client.invalid.length = 0;
  });

  it('refuses a second prompt while one runs', async () => {
    const session = await begin();
    let go = (): void => {};
    const until = new Promise<void>(resolve => {
      go = resolve;
    });
    turn = () => ({ text: ['Long ', 'work.'], hold: { behind: 'Long ', until } });
    const running = prompt(session, 'work');
    await eventually(() => assert.equal(client.said('agent_message_chunk'), 'Long '));
    await assert.rejects(prompt(session, 'more'), /still works on a prompt/);
    go();
    assert.deepEqual(await running, { stopReason: 'end_turn' });
  });

  it('is cancelled before a command or a model that would go on for hours, and says nothing after it', async () => {
    const sleep = { id: 'c1', name: 'run_command', input: { command: 'sleep 9876.54322' } };
    const isRunning = (): boolean => spawnSync('pgrep', ['-f', 'sleep 9876.5432[2]']).status === 0;
    const never = new Promise<void>(() => {});
    turn = body =>
      body.includes('write a book')
        ? { text: ['Once ', 'upon a time.'], hold: { behind: 'Once ', until: never } }
        : { toolCalls: [sleep] };
    const session = await begin();
    const cancelled = async (text: string, isBusy: () => boolean): Promise<number> => {
      const running = prompt(session, text);
      await eventually(() => assert.ok(isBusy()));
      const since = performance.now();
      client.notify('session/cancel', { sessionId: session });
      assert.deepEqual(await running, { stopReason: 'cancelled' });
      return performance.now() - since;
    };
    const ofCommand = await cancelled('sleep', isRunning);
    await eventually(() => assert.ok(!isRunning()));
    const last = client.updates.findLast(({ update }) => update['toolCallId'] === 'c1');
    assert.equal(last?.update['status'], 'failed');
    const ofModel = await cancelled('write a book', () =>
      client.said('agent_message_chunk').endsWith('Once '),
    );
    const heard = client.updates.length;
    await client.request('session/list', {});
    assert.equal(client.updates.length, heard);
    console.log(`      cancelled in ${ofCommand.toFixed(0)} ms and ${ofModel.toFixed(0)} ms`);
  });

  it('leaves no process when the client dies in the middle of a command', async () => {
    const sleep = { id: 'c1', name: 'run_command', input: { command: 'sleep 9876.54321' } };
    const isRunning = (): boolean => spawnSync('pgrep', ['-f', 'sleep 9876.5432[1]']).status === 0;
    turn = body => (body.includes('tool_result') ? { text: ['Done.'] } : { toolCalls: [sleep] });
    const session = await begin();
    prompt(session, 'sleep').catch(() => {});
    await eventually(() => assert.ok(isRunning()));
    assert.equal(await client.end(), 0);
    assert.ok(!isRunning());
  });
});
