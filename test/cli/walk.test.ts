/**
 * Walks a person's first hour on a real terminal with a fresh home folder, and keeps every screen in `test-results/walk`. Look at them
 * when a sentence of the command line changes.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type AnthropicTurn, startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { type CliHome, cliHome, program } from './cliProcess.ts';
import { openTerminalSession, type TerminalSession } from './screen.ts';

const screens = fileURLToPath(new URL('../../test-results/walk/', import.meta.url));
const key = 'sk-ant-good-0123456789';

const command = (line: string): AnthropicTurn => ({
  toolCalls: [{ name: 'run_command', input: { command: line } }],
});
const write = (path: string, content: string): AnthropicTurn => ({
  text: [`I write \`${path}\`.`],
  toolCalls: [{ name: 'write_file', input: { path, content } }],
});

describe('the first hour on a terminal', function () {
  this.timeout(180_000);
  let home: CliHome;
  let models: Server;
  let model: FakeServer;
  let turns: AnthropicTurn[] = [];
  let session: TerminalSession | undefined;
  let step = 0;
  /** Added to the variables of a fresh machine once a key is set. */
  let more: Record<string, string> = {};

  before(async () => {
    rmSync(screens, { recursive: true, force: true });
    mkdirSync(screens, { recursive: true });
    home = cliHome();
    model = await startAnthropicServer({ turns: () => turns.shift() ?? { text: ['I am done.'] } });
    models = createServer(({ headers }, response) => {
      response.writeHead(headers['x-api-key'] === key ? 200 : 401, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ data: [{ id: 'claude-haiku-5-5' }, { id: 'claude-sonnet-4-6' }] }));
    });
    await new Promise<void>(resolve => models.listen(0, '127.0.0.1', resolve));
  });
  afterEach(() => {
    if (session) keep(`failed-${step}`, session);
    session?.child.kill('SIGKILL');
    session = undefined;
  });
  after(async () => {
    models.closeAllConnections();
    models.close();
    await model.close();
    home.remove();
  });

  /** Writes what a person has seen, without the names of this machine. */
  function keep(name: string, { screen }: TerminalSession): void {
    const text = screen.text.replaceAll(home.folder.path, '~').replaceAll(process.execPath, 'node');
    writeFileSync(join(screens, `${name}.txt`), `${text.trimEnd()}\n`);
  }

  /** Types a line of the shell, does what a person does, and keeps the screen. Resolves with the text and the exit code. */
  async function telos(
    name: string,
    words: string,
    act: (shown: TerminalSession) => Promise<void> = async () => undefined,
  ): Promise<{ text: string; code: number | null }> {
    const { HOME = '', PATH = '', OLLAMA_BASE_URL = '', TELOS_SANDBOX = '' } = home.env;
    const shown = openTerminalSession(
      `echo '$ telos ${words.replaceAll("'", '')}'; exec '${process.execPath}' '${program()}' ${words}`,
      {
        cwd: home.workDir,
        env: { HOME, PATH, OLLAMA_BASE_URL, TELOS_SANDBOX, ...more },
      },
    );
    session = shown;
    await act(shown);
    const code = await shown.ended();
    keep(`${String(++step).padStart(2, '0')}-${name}`, shown);
    session = undefined;
    return { text: shown.screen.text, code };
  }

  /** Types an answer, and types it again only after a while: what comes before a question could be read is dropped. */
  async function reply(shown: TerminalSession, answer: string, pattern: RegExp): Promise<void> {
    const isShown = (): boolean => pattern.test(shown.screen.text);
    while (!isShown()) {
      shown.type(answer);
      for (let waited = 0; waited < 5000 && !isShown(); waited += 100) await wait(100);
    }
    await shown.shows(pattern);
  }

  const inWork = (name: string): string => join(home.workDir, name);

  it('begins with nothing, plays the demo and adds the sample', async () => {
    const nothing = await telos('nothing', '');
    assert.match(nothing.text, /No agents found[\s\S]*telos demo[\s\S]*telos init --sample/);
    const demo = await telos('demo', 'demo');
    assert.equal(demo.code, 0);
    assert.match(demo.text, /Your plan is in today\.md[\s\S]*Done in .* 1 file[\s\S]*telos init --sample/);
    assert.equal((await telos('init', 'init --sample')).code, 0);
    assert.match((await telos('list', 'list-skills')).text, /kickoff +Daily kickoff/);
    const alone = await telos('choose', '', async shown => {
      await shown.shows(/Which agent\?/);
      await reply(shown, '1\n', /Which skill\?/);
      await reply(shown, 'q\n', /Which skill\? .*q\n/);
    });
    assert.equal(alone.code, 0);
  });

  it('says what is missing without a model, refuses a wrong key and keeps a right one', async () => {
    const none = await telos('no-model', "'run daily kickoff'");
    assert.equal(none.code, 1);
    assert.match(none.text, /Set up a model to run it here/);
    const { port } = models.address() as AddressInfo;
    more = { ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}` };
    const wrong = await telos('wrong-key', 'key anthropic', async shown => {
      await shown.shows(/API key for anthropic/);
      shown.type('sk-ant-bad-0123456789\r');
    });
    assert.match(wrong.text, /rejected this key/);
    const right = await telos('right-key', 'key', async shown => {
      await reply(shown, '1\n', /API key for anthropic/);
      shown.type(`${key}\r`);
      await reply(shown, '\n', /saved in/);
    });
    assert.equal(right.code, 0);
    assert.doesNotMatch(wrong.text + right.text, /sk-ant/);
    more = { ANTHROPIC_BASE_URL: model.url, TELOS_ROUTING_MODE: 'local' };
  });

  it('runs the skill that is meant, and offers some where none is sure', async () => {
    turns = [write('today.md', '# Today\n\n- rest\n'), { text: ['The plan is in **today.md**.'] }];
    const run = await telos('run', "'run daily kickoff'");
    assert.equal(run.code, 0);
    assert.match(
      run.text,
      /kickoff \(kairos\): named[\s\S]*→ Writing today\.md\n.*today\.md[\s\S]*Done in .* 1 file: today\.md/,
    );
    assert.match((await telos('dry-run', '--dry-run "look back on my week"')).text, /weekly-summary/);
    const none = await telos('no-match', "'get me a pizza'", async shown => {
      await reply(shown, 'q', /Answer without one\?[^\n]*\n/);
    });
    assert.equal(none.code, 1);
    assert.match(none.text, /No matching skill found/);
    assert.match((await telos('mistyped', 'docter')).text, /Did you mean: telos doctor\?/);
  });

  it('asks before a command: yes, no with a reason, another command, always', async () => {
    const make = (name: string): string => `touch ${name}`;
    for (const [name, answer, expected] of [
      ['yes', 'y\n', /→ Running touch yes/],
      ['no', 'n use a branch\n', /✗ You denied this: use a branch/],
      ['edit', 'e touch other\n', /I am done/],
      ['always', 'always\n', /I am done/],
    ] as const) {
      turns = [command(make(name)), { text: ['I am done.'] }];
      const { text } = await telos(`approve-${name}`, "'run daily kickoff'", async shown => {
        await shown.shows(/Allow\?/);
        await wait(500);
        await reply(shown, answer, /Done in|Allow\?[\s\S]*Allow\?/);
        if (/Allow\?[\s\S]*Allow\?/.test(shown.screen.text)) await reply(shown, 'y\n', /Done in/);
      });
      assert.match(text, expected, name);
    }
    assert.deepEqual(
      ['yes', 'no', 'edit', 'other', 'always'].map(name => existsSync(inWork(name))),
      [...[true, false, false, true, true]],
    );
  });

  it('names danger, and refuses what would destroy the machine unasked', async () => {
    turns = [command('git push --force origin main'), { text: ['I am done.'] }];
    const danger = await telos('danger', "'run daily kickoff'", async shown => {
      await shown.shows(/Allow\?/);
      assert.doesNotMatch(shown.screen.text, /always =/);
      await reply(shown, 'n\n', /Done in/);
    });
    assert.match(danger.text, /! Overwrites the history of main on the server/);
    turns = [command('rm -rf /'), { text: ['I am done.'] }];
    const refused = await telos('refused', "'run daily kickoff'");
    assert.match(refused.text, /It would destroy \//);
    assert.doesNotMatch(refused.text, /Allow\?/);
  });

  it('talks, goes on with --continue, and takes the change back', async () => {
    turns = [write('today.md', '# Other\n'), { text: ['It is **changed**.'] }];
    const chat = await telos('chat', 'chat', async shown => {
      await shown.shows(/Ctrl-D leaves/);
      shown.type('run daily kickoff, shorter\r');
      await shown.shows(/It is changed\.\nDone in/);
      shown.type('/help\r');
      await shown.shows(/\/undo/);
      shown.type('/quit\r');
    });
    assert.equal(chat.code, 0);
    const more = await telos('continue', "--continue 'and shorter still'");
    assert.match(more.text, /Continuing “run daily kickoff, shorter”[\s\S]*continuing with kickoff/);
    const undone = await telos('undo', 'undo', shown => reply(shown, 'y\n', /Undone/));
    assert.equal(undone.code, 0);
    assert.match(readFileSync(inWork('today.md'), 'utf8'), /rest/);
  });

  it('checks the set-up, mends a skill, lists what ran and what it cost', async () => {
    home.folder.add({
      '.skills/mine/skills/note/SKILL.md': '---\ndescription: Writes a note: short\n---\nWrite.\n',
    });
    assert.match((await telos('doctor', 'doctor')).text, /Agents: 2/);
    assert.match((await telos('lint', 'lint')).text, /`--fix` fixes 1/);
    assert.equal((await telos('lint-fix', 'lint --fix')).code, 0);
    assert.match((await telos('runs', 'runs')).text, /run daily kickoff/);
    assert.match((await telos('cost', 'cost')).text, /kickoff/);
    assert.match((await telos('policy', 'policy list')).text, /touch always/);
    const gone = await telos('uninstall', 'uninstall kairos', shown => reply(shown, 'y\n', /Uninstalled/));
    assert.equal(gone.code, 0);
    assert.equal(existsSync(join(home.folder.path, '.skills/kairos')), false);
  });
});
