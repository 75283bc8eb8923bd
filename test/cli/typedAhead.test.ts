/** The built command line on a real terminal, which `script` opens: what was typed before a question does not answer it. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../eventually.ts';
import { type FakeServer, startAnthropicServer } from '../fakes/anthropicServer.ts';
import { type CliHome, cliHome, program } from './cliProcess.ts';

describe('telos on a terminal', () => {
  let home: CliHome;
  let server: FakeServer;
  let running: ChildProcess | undefined;

  beforeEach(async () => {
    home = cliHome({ 'skills/one/skills/go/SKILL.md': '---\nname: go\ndescription: d\n---\nGo.\n' });
    const ran = join(home.folder.path, 'ran');
    const command = { name: 'run_command', input: { command: `touch ${ran}` } };
    server = await startAnthropicServer({ turns: [{ toolCalls: [command] }, { text: ['Done'] }] });
  });
  afterEach(async () => {
    running?.kill('SIGKILL');
    await server.close();
    home.remove();
  });
  const hasRun = (): boolean => existsSync(join(home.folder.path, 'ran'));

  /** Types `before` at once, and `answer` behind the question, again and again, as it may come too early. Resolves with what was shown. */
  async function typing(
    args: string[],
    question: RegExp,
    before: string,
    answer: string | (() => string),
  ): Promise<string> {
    const line = [process.execPath, program(), ...args].map(word => `'${word}'`).join(' ');
    const key = {
      ANTHROPIC_API_KEY: 'sk-ant-test-0123456789',
      ANTHROPIC_BASE_URL: server.url,
      TELOS_ROUTING_MODE: 'local',
    };
    const child = spawn('script', ['-qfec', line, '/dev/null'], {
      cwd: home.workDir,
      env: { ...home.env, ...key, TERM: 'xterm', SHELL: '/bin/sh' },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    running = child;
    let shown = '';
    let isOver = false;
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      shown += text;
    });
    child.once('close', () => {
      isOver = true;
    });
    child.stdin.on('error', () => undefined);
    child.stdin.write(before);
    await until(() => isOver || question.test(shown), `it never asked: ${shown}`);
    const typingAnswer = setInterval(
      () => child.stdin.write(typeof answer === 'string' ? answer : answer()),
      500,
    );
    await until(() => isOver, `it never ended: ${shown}`);
    clearInterval(typingAnswer);
    return shown;
  }

  const before = ['y\n', 'y\ny\nalways\nyes\ny\n', 'y', 'always', '\x04', 'r\n'];

  for (const typed of before) {
    it(`asks whatever was typed before: ${JSON.stringify(typed)}`, async () => {
      await typing(['run', 'one:go', 'go'], /Allow\?/, typed, '\n');
      assert.equal(hasRun(), false);
    });
  }

  it('takes no end of a line for an answer that was typed before the question', async () => {
    const answers = ['y\n', 'n\n'];
    const shown = await typing(['run', 'one:go', 'go'], /Allow\?/, 'sorr', () => answers.shift() ?? 'n\n');
    assert.equal(hasRun(), false);
    assert.match(shown, /typed before the question/);
  });

  it('takes an answer that is typed behind the question', async () => {
    await typing(['run', 'one:go', 'go'], /Allow\?/, 'n\n', 'y\n');
    assert.ok(hasRun());
  });

  it('accepts a card by a word alone', async () => {
    assert.match(await typing(['trust', 'one'], /Approve it\?/, 'yes\n', 'y\n'), /Nothing was approved/);
    assert.match(await typing(['trust', 'one'], /Approve it\?/, '', 'yes\n'), /Approved\./);
  });

  it('deletes nothing for what was typed before', async () => {
    const shown = await typing(['uninstall', 'one'], /Uninstall it\?/, 'y\n', 'n\n');
    assert.match(shown, /Nothing was changed/);
    assert.ok(existsSync(join(home.skillsDir, 'one')));
  });

  it('runs the likely skill that one key chooses, and none for another key', async () => {
    home.folder.add({
      'skills/home/skills/mow/SKILL.md': '---\ndescription: Mows the lawn of the garden\n---\nB',
      'skills/home/skills/lamp/SKILL.md': '---\ndescription: Switches lamps in the garden\n---\nB',
    });
    const said = ['the', 'lawn'];
    const none = await typing(said, /Run which\?/, '1\n', 'q');
    assert.match(none, /Did you mean one of these\?\s+1\. mow \(home\): best match for your words: lawn/);
    assert.equal(server.requests.length, 0);
    let keys = 0;
    await typing(said, /Run which\?/, '', () => (keys++ === 0 ? 'a' : '\n'));
    assert.match(String(JSON.stringify(server.requests[0]?.body.system)), /You are Telos/);
    server.requests.length = 0;
    await typing(said, /Run which\?/, '', '\n');
    assert.match(String(JSON.stringify(server.requests[0]?.body.system)), /the skill .{1,3}mow/);
  });
});
