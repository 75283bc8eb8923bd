/** `telos ask`: a request that Telos does without a skill. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { startMakerServer } from '../fakes/makerServer.ts';
import { type CliHome, cliHome, program } from './cliProcess.ts';
import { openTerminalSession } from './screen.ts';

describe('telos ask', function () {
  this.timeout(30_000);
  let home: CliHome;
  beforeEach(() => {
    home = cliHome({});
  });
  afterEach(() => home.remove());

  it('runs without any skill, and logs it', async () => {
    const toolCalls = [{ name: 'run_command', input: { command: 'pwd' } }];
    const server = await startAnthropicServer({ turns: [{ toolCalls }, { text: ['Nothing there.'] }] });
    try {
      const env = { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: 'test-key-0123456789' };
      const { code, stdout, stderr } = await home.run(['ask', 'when', 'is', 'high', 'tide'], { env });
      assert.deepEqual([code, stdout], [0, 'Nothing there.\n']);
      assert.match(stderr, /^no skill\n→ Running pwd\nDone in [^\n]*\n$/);
      const log = await home.log();
      assert.deepEqual(
        log.map(record => record.event),
        ['skill_start', 'tool_call', 'skill_end'],
      );
    } finally {
      await server.close();
    }
  });

  it('reads what the project says of its work, on the way to the current folder, and not with the switch', async () => {
    home.folder.add({
      'work/.git/HEAD': 'ref: refs/heads/main\n',
      'work/AGENTS.md': 'Tests run with vitest.\n',
      'work/shop/CLAUDE.md': 'Prices are in cents.\n',
    });
    const server = await startAnthropicServer({ turns: [{ text: ['Yes.'] }, { text: ['Yes.'] }] });
    try {
      const env = { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: 'test-key-0123456789' };
      const cwd = join(home.workDir, 'shop');
      await home.run(['--cwd', cwd, 'ask', 'how', 'do', 'tests', 'run'], { env });
      await home.run(['--cwd', cwd, '--no-context-files', 'ask', 'how', 'do', 'tests', 'run'], { env });
      const [withThem, without] = server.requests.map(({ body }) => JSON.stringify(body.system));
      assert.match(withThem!, /Tests run with vitest.*Prices are in cents/);
      assert.doesNotMatch(without!, /vitest|cents/);
    } finally {
      await server.close();
    }
  });

  it('takes the skill that the words mean, and shows its steps below the call', async () => {
    home.folder.add({
      'skills/garden/skills/plan/SKILL.md': '---\nname: plan\ndescription: Plans beds\n---\nTHE PLAN TEXT\n',
    });
    const use = { name: 'use_skill', input: { skill: 'garden:plan', request: 'Plan for \u001b[2Jleeks.' } };
    const write = { name: 'write_file', input: { path: 'plan.md', content: 'Leeks\n' } };
    const server = await startAnthropicServer({
      turns: [
        { toolCalls: [use] },
        { toolCalls: [write] },
        { text: ['Leeks it is.'] },
        { text: ['Planned.'] },
      ],
    });
    const env = { ...home.env, ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: 'test-key-0123456789' };
    const session = openTerminalSession(`exec '${process.execPath}' '${program()}' ask who plans beds`, {
      cwd: home.workDir,
      env,
    });
    try {
      await session.shows(
        /→ Using the skill garden:plan\n[\s\S]* {2}plan \(garden\): used as a step\n[\s\S]* {2}→ Writing plan\.md\n[\s\S]*Planned\.\n.*1 file: plan\.md/,
      );
      assert.equal(await session.ended(), 0);
      assert.equal(readFileSync(join(home.workDir, 'plan.md'), 'utf8'), 'Leeks\n');
      assert.match(JSON.stringify(server.requests[0]?.body.system), /- garden:plan: Plans beds/);
      assert.match(JSON.stringify(server.requests[3]?.body.messages), /Leeks it is\./);
      assert.doesNotMatch(session.screen.text, /Leeks it is/);
      const log = await home.log();
      assert.deepEqual(
        log.flatMap(record => ('tool' in record ? [record.tool] : [])),
        ['write_file', 'use_skill'],
      );
    } finally {
      session.child.kill('SIGKILL');
      await server.close();
    }
  });

  describe('with files', () => {
    const pdf = Buffer.from('%PDF-1.7\n\x00\xff');
    const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
    const sent = (type: string, bytes: Buffer): string => `data:${type};base64,${bytes.toString('base64')}`;
    let server: FakeServer;
    let env: Record<string, string>;
    beforeEach(async () => {
      const toolCalls = [{ id: 'c1', name: 'read_file', input: { path: 'pic.png' } }];
      server = await startMakerServer({
        dialect: 'responses',
        turns: [{ thoughts: ['Which one?'], seal: 'sealed', toolCalls }, { text: ['Seen.'] }],
      });
      env = { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: 'test-key-0123456789', TELOS_PROTOCOL: 'native' };
      writeFileSync(join(home.workDir, 'plan.pdf'), pdf);
      writeFileSync(join(home.workDir, 'pic.png'), png);
      writeFileSync(join(home.workDir, 'a.txt'), 'tide at nine');
    });
    afterEach(() => server.close());

    it('hands them over as what they are, shows what a tool reads, and keeps the thoughts between the rounds', async () => {
      const args = [
        'ask',
        '--model',
        'gpt-5.4',
        '--effort',
        'low',
        '--file',
        'plan.pdf',
        '--file',
        'a.txt',
        'what',
        'is',
        'it',
      ];
      const { code, stdout, stderr } = await home.run(args, { env });
      assert.deepEqual([code, stdout], [0, 'Seen.\n'], stderr);
      const [first, second] = server.requests.map(({ body }) => body);
      assert.deepEqual(first.reasoning, { effort: 'low', summary: 'auto' });
      const [words, document] = first.input[0].content;
      assert.match(
        words.text,
        /what is it[\s\S]*a\.txt[\s\S]*tide at nine[\s\S]*Documents, in this order: plan\.pdf\./,
      );
      assert.deepEqual(document, {
        type: 'input_file',
        filename: 'plan.pdf',
        file_data: sent('application/pdf', pdf),
      });
      const [, reasoning, call, result] = second.input;
      assert.deepEqual([reasoning.encrypted_content, call.call_id], ['sealed', 'c1']);
      assert.deepEqual(result.output[1], {
        type: 'input_image',
        image_url: sent('image/png', png),
        detail: 'auto',
      });
    });

    it('says before it asks that a model takes none, or that there is no such file', async () => {
      const { code, stderr } = await home.run(['ask', '--model', 'o3-mini', '--file', 'plan.pdf', 'x'], {
        env,
      });
      assert.equal(code, 1);
      assert.match(
        stderr,
        /o3-mini does not accept PDF files\. Nothing was sent\. Remove plan\.pdf, or choose another model\./,
      );
      const missing = await home.run(['ask', '--file', 'no.pdf', 'x'], { env });
      assert.equal(missing.code, 2);
      assert.match(missing.stderr, /no\.pdf does not exist/);
      assert.equal(server.requests.length, 0);
    });
  });

  describe('with a file of secrets', () => {
    let server: FakeServer;
    beforeEach(async () => {
      server = await startAnthropicServer({ turns: [{ text: ['Seen.'] }] });
      Object.assign(home.env, { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: 'test-key-0123456789' });
      writeFileSync(join(home.workDir, '.env'), 'TOKEN_OF_MINE=abc');
    });
    afterEach(() => server.close());

    it('sends nothing in a pipe without --yes, and names the file', async () => {
      const { code, stderr } = await home.run(['ask', '--file', '.env', 'write a haiku']);
      assert.equal(code, 1);
      assert.match(
        stderr,
        /^\.env was not attached, and nothing was sent\. By its name it holds secrets\..*Name another file, or use --yes, which also allows the run everything else\.$/m,
      );
      assert.equal(server.requests.length, 0);
      assert.equal((await home.run(['ask', '--yes', '--file', '.env', 'write a haiku'])).code, 0);
      assert.match(JSON.stringify(server.requests[0]?.body), /TOKEN_OF_MINE/);
    });

    it('asks on a terminal, and sends it after a yes alone', async () => {
      const line = `exec '${process.execPath}' '${program()}' ask --file .env write a haiku`;
      for (const [answer, sent] of [
        ['n\n', 0],
        ['y\n', 1],
      ] as const) {
        const session = openTerminalSession(line, { cwd: home.workDir, env: home.env });
        try {
          await session.shows(
            /\.env\nBy its name it holds secrets\. The provider[^\n]*\nAttach \.env\? \[y\/N\]/,
          );
          await session.answers(answer, sent ? /Seen\./ : /Nothing was sent\./);
          assert.equal(await session.ended(), sent ? 0 : 1);
        } finally {
          session.child.kill('SIGKILL');
        }
        assert.equal(server.requests.length, sent);
      }
    });
  });

  it('says what would run', async () => {
    const { code, stdout } = await home.run(['--dry-run', 'ask', 'x']);
    assert.deepEqual([code, stdout], [0, 'Would run no skill\n']);
    assert.equal((await home.run(['ask'])).code, 2);
  });
});
