/** The input of `telos chat` on real terminals of several widths: pastes, completion, keys, and what is typed while it works. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../eventually.ts';
import { type AnthropicTurn, startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { type CliHome, cliHome, program } from './cliProcess.ts';
import { openTerminalSession, type TerminalSession } from './screen.ts';

describe('the input of telos chat', () => {
  let home: CliHome;
  let server: FakeServer;
  let session: TerminalSession | undefined;

  beforeEach(() => {
    home = cliHome({
      'skills/one/skills/go/SKILL.md': '---\nname: go\ndescription: d\n---\nGo.\n',
      'work/src/cart.js': 'let a = 1;\n',
    });
  });
  afterEach(async () => {
    session?.child.kill('SIGKILL');
    session = undefined;
    await server.close();
    home.remove();
  });

  async function chat(
    turns: AnthropicTurn[],
    width = 80,
    more: Record<string, string> = {},
    args = 'chat --yes',
  ): Promise<TerminalSession> {
    server = await startAnthropicServer({ turns });
    const key = { ANTHROPIC_API_KEY: 'sk-ant-test-0123456789', ANTHROPIC_BASE_URL: server.url };
    const line = `exec '${process.execPath}' '${program()}' ${args}`;
    const env = { ...home.env, ...key, TELOS_ROUTING_MODE: 'local', ...more };
    session = openTerminalSession(line, { cwd: home.workDir, env, width });
    await session.shows(/›/);
    return session;
  }

  const paste = (text: string): string => `\x1b[200~${text}\x1b[201~`;
  const asked = (index: number): string => {
    const { content } = server.requests[index]?.body.messages.at(-1) ?? {};
    return typeof content === 'string' ? content : content.map(({ text }: { text: string }) => text).join('');
  };
  const sleeping = {
    toolCalls: [{ name: 'run_command', input: { command: 'echo begun > begun; sleep 300' } }],
  };

  for (const width of [30, 40, 80, 200])
    it(`keeps a paste of 200 lines waiting at ${width} columns, and sends it whole`, async () => {
      const shown = await chat([{ text: ['Read.'] }], width);
      const lines = Array.from({ length: 200 }, (_, at) => `line ${at} of the log`).join('\n');
      shown.type(paste(lines));
      await shown.shows(/› \[pasted 200 lines\]/);
      assert.equal(server.requests.length, 0);
      shown.type(' what is wrong?\r');
      await shown.shows(/Read\./);
      assert.ok(asked(0).endsWith(`User request: ${lines} what is wrong?`));
    });

  it('takes a paste of 2 MB', async () => {
    const shown = await chat([{ text: ['Read.'] }], 30);
    const text = 'word and word\n'.repeat(150_000);
    shown.type(paste(text));
    await shown.shows(/\[pasted 150001/);
    shown.type('\r');
    await shown.shows(/Read\./);
    assert.ok(asked(0).length > 2_000_000);
  });

  it('completes files and skills anywhere in a line, and goes on in a new one', async () => {
    const shown = await chat([{ text: ['Fine.'] }]);
    shown.type('look at @sr\t');
    await shown.shows(/› look at @src\/$/);
    shown.type('c\t');
    await shown.shows(/look at @src\/cart\.js/);
    shown.type('and /g\t');
    await shown.shows(/and \/go/);
    shown.type('now\x1b\rplease\r');
    await shown.shows(/Fine\./);
    assert.match(asked(0), /look at @src\/cart\.js and \/go now\nplease$/);
  });

  it('wraps a line that is wider than the screen, and edits in the middle of it', async () => {
    const shown = await chat([{ text: ['Fine.'] }], 30);
    shown.type('one two three four five six seven eight nine');
    await shown.shows(/› one two three four five six\s+seven eight nine$/);
    shown.type(`\x01ZERO \x05 ten\x17TEN\x1b[D\x7f\r`);
    await shown.shows(/Fine\./);
    assert.match(asked(0), /ZERO one two three four five six seven eight nine TN$/);
  });

  it('finds an earlier request with Ctrl-R, and opens the editor of the user with Ctrl-G', async () => {
    const editor = join(home.folder.path, 'editor.sh');
    writeFileSync(editor, '#!/bin/sh\necho "and more" >> "$1"\n', { mode: 0o755 });
    const shown = await chat([{ text: ['First.'] }, { text: ['Second.'] }], 80, { VISUAL: editor });
    shown.type('plant the beans\r');
    await shown.shows(/First\.[\s\S]*Done in[^›]*›/);
    shown.type('\x12bean');
    await shown.shows(/search bean: plant the beans/);
    shown.type('\r');
    await shown.shows(/› plant the beans$/);
    shown.type('\n\x07');
    await shown.shows(/and more/);
    shown.type('\r');
    await shown.shows(/Second\./);
    assert.match(asked(1), /plant the beans\nand more$/);
  });

  it('queues what is typed while it works, shows that it works, and runs it afterwards', async () => {
    const slow = {
      toolCalls: [
        {
          name: 'run_command',
          input: { command: 'echo one; while [ ! -e go-on ]; do sleep 0.1; done; echo end' },
        },
      ],
    };
    const shown = await chat([slow, { text: ['First.'] }, { text: ['Second.'] }]);
    shown.type('wait for it\r');
    await shown.shows(/· \d.*s · [\d,]+ tokens · Esc stops/);
    shown.type('and then this');
    await shown.shows(/^› and then this$/m);
    shown.type('\r');
    await shown.shows(/queued: and then this/);
    writeFileSync(join(home.workDir, 'go-on'), '');
    await shown.shows(/│ one\n +│ end\n[\s\S]*First\.[\s\S]*› and then this\n[\s\S]*Second\./);
    assert.match(asked(2), /and then this$/);
  });

  it('takes a second yes to a question that is over for no request', async () => {
    const command = 'while [ ! -e go-on ]; do sleep 0.1; done';
    const slow = { toolCalls: [{ name: 'run_command', input: { command, cwd: home.workDir } }] };
    const shown = await chat([slow, { text: ['First.'] }, { text: ['Second.'] }], 80, {}, 'chat');
    shown.type('plant\r');
    await shown.shows(/Allow\?/);
    await shown.answers('y\n', /Esc stops/);
    shown.type('\x15y\r');
    await shown.shows(/Esc stops/);
    shown.type('and water\r');
    await shown.shows(/queued: and water/);
    assert.doesNotMatch(shown.screen.text, /queued: y/);
    writeFileSync(join(home.workDir, 'go-on'), '');
    await shown.shows(/Second\./);
    assert.match(asked(2), /and water$/);
  });

  it('stops at Escape, and leaves what was queued to be looked at', async () => {
    const shown = await chat([sleeping, { text: ['Never.'] }]);
    shown.type('wait\r');
    await until(() => existsSync(join(home.workDir, 'begun')));
    shown.type('next one\r');
    await shown.shows(/queued: next one/);
    shown.type('\x1b');
    await shown.shows(/Cancelled after[\s\S]*› next one$/);
    assert.equal(server.requests.length, 1);
  });

  for (const width of [30, 40, 80, 200])
    it(`shows what an edit has changed, and the end of what a command prints, at ${width} columns`, async () => {
      const edit = {
        name: 'edit_file',
        input: { path: 'src/cart.js', old_text: 'a = 1', new_text: 'a = 2' },
      };
      const prints = { name: 'run_command', input: { command: 'seq 1 400' } };
      const shown = await chat([{ toolCalls: [edit] }, { toolCalls: [prints] }, { text: ['Done.'] }], width);
      shown.type('two, please\r');
      await shown.shows(/→ Editing src\/cart\.js\n {4}- a = 1\n {4}\+ a = 2\n/);
      assert.equal(readFileSync(join(home.workDir, 'src/cart.js'), 'utf8'), 'let a = 2;\n');
      await shown.shows(/399\n[ │]+400\n[\s\S]*Done\./);
      assert.doesNotMatch(shown.screen.text, /│ 1\n/, 'the beginning is shown too');
      for (const line of shown.screen.text.split('\n'))
        assert.ok([...line].length <= width, `${line} is wider than ${width}`);
    });

  it('reads a file whose encoding changes in the middle, and edits it without a loss', async () => {
    const file = join(home.workDir, 'src/mixed.txt');
    const mixed = Buffer.concat([
      Buffer.from('price: 3 €\n'),
      Buffer.from([0xe4, 0xf6, 0x0a]),
      Buffer.from('end\n'),
    ]);
    writeFileSync(file, mixed);
    const edit = { name: 'edit_file', input: { path: 'src/mixed.txt', old_text: 'end', new_text: 'fin' } };
    const shown = await chat([{ toolCalls: [edit] }, { text: ['Done.'] }]);
    shown.type('end it\r');
    await shown.shows(/Done\./);
    const now = readFileSync(file);
    assert.ok(!now.includes('\ufffd'), now.toString('utf8'));
    assert.ok(now.includes(mixed.subarray(0, mixed.length - 4)), now.toString('latin1'));
  });
});
