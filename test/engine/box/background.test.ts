/** Commands that go on behind a run: what they print, their end, and what they may change, in the box where one works. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { loadConfig } from '../../../src/engine/config.ts';
import type { Human } from '../../../src/engine/core/ports.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { Telos } from '../../../src/engine/telos.ts';
import type { ApprovalRequest, JsonObject, RunEvent } from '../../../src/protocol/run.ts';
import { until } from '../../eventually.ts';
import { calls, done, says, scriptedProvider } from '../../fakes/scriptedProvider.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';
import { skipBecause } from '../../skipBecause.ts';

type Call = [name: string, input: JsonObject];

/** Of no other file: a conversation keeps its commands as long as the process lives. */
const conversation = 'in the background';

describe('a command in the background', function () {
  this.timeout(40_000);
  let folder: TempFolder;
  let telos: Telos;
  let turns: Call[];
  let asked: ApprovalRequest[];
  const at = (path: string): string => join(realpathSync(folder.path), path);
  const work = (path: string): string => at(`root/garden/${path}`);

  beforeEach(() => {
    folder = tempFolder({
      'skills/garden/agent.toml': 'name = "garden"\n',
      'skills/garden/skills/sow/SKILL.md': '---\nname: sow\ndescription: Sows\n---\nSow.',
      'root/garden/plan.md': 'peas\n',
    });
    mkdirSync(at('home'), { recursive: true });
    asked = [];
    const config = loadConfig({
      env: {
        PATH: process.env['PATH'],
        TELOS_SKILLS_DIR: at('skills'),
        TELOS_DATA_DIR: at('data'),
        TELOS_CONFIG_DIR: at('config'),
        TELOS_WORKING_ROOT: at('root'),
        TELOS_PROVIDER: 'scripted',
      },
      home: at('home'),
      cwd: at('home'),
    });
    const create = async () =>
      scriptedProvider([
        ...turns.map(([name, input], index) => [calls(`${index}`, name, input), done('tool_use')]),
        [says('done'), done()],
      ]);
    telos = Telos.open(config, { providers: { scripted: { model: async () => 's', create } } });
  });
  afterEach(async () => {
    await telos.closeCommands();
    folder.remove();
  });

  /** Runs the calls one after the other, and returns what each resulted in. `during` is called with each event. */
  async function run(
    script: Call[],
    {
      during,
      conversationId = conversation,
      yes = true,
    }: { during?: (event: RunEvent) => void; conversationId?: string; yes?: boolean } = {},
  ): Promise<{ results: string[]; runId: string; events: RunEvent[] }> {
    turns = script.map(([name, input]) => [
      name,
      name === 'run_command' ? { cwd: at('root/garden'), ...input } : input,
    ]);
    const human: Human = {
      ...denyAll,
      approve: async request => {
        asked.push(request);
        return request.tool === 'keep_changes' || !yes
          ? { allow: false, reason: 'no' }
          : { allow: true, scope: 'once' };
      },
    };
    const events: RunEvent[] = [];
    const request = {
      text: 'the beds',
      skill: { agent: 'garden', skill: 'sow' },
      ...(conversationId && { conversationId }),
    };
    for await (const event of telos.run(request, human, new AbortController().signal)) {
      events.push(event);
      during?.(event);
    }
    const results = events.flatMap(event => (event.type === 'tool_end' ? [event.result.content] : []));
    const start = events[0];
    return { results, events, runId: start?.type === 'run_start' ? start.runId : '' };
  }

  /** Where there is none, every command is asked about, and nothing is taken back. */
  async function hasNoBox(): Promise<boolean> {
    const state = (await telos.box()).state;
    if (!state?.works) assert.ok(state?.why);
    return !state?.works;
  }

  const server =
    'echo ready; while ! test -e quit; do sleep 0.05; done; echo bye; echo left > made.txt; exit 3';

  it('goes on over several runs, is read and listed, and says how it ended', async () => {
    const first = await run([['run_command', { command: server, background: true }]]);
    assert.match(
      first.results[0] ?? '',
      /^The command runs in the background as cmd-1\.\n\nready\n\n\[cmd-1 is running/,
    );
    const commands = telos.commandsOf(conversation);
    assert.deepEqual(
      commands.list().map(({ id, command }) => [id, command]),
      [['cmd-1', server]],
    );
    assert.equal(readdirSync(at('data/background')).length, 1);
    let heard = 0;
    commands.listen(() => heard++);
    const second = await run(
      [
        ['read_output', { id: 'cmd-1' }],
        ['read_output', { id: 'cmd-1', wait_s: 20 }],
        ['read_output', { id: 'cmd-7' }],
      ],
      {
        during: event => {
          if (event.type === 'tool_end' && event.callId === '0')
            setTimeout(() => writeFileSync(work('quit'), ''), 100);
        },
      },
    );
    assert.match(second.results[0] ?? '', /^\(no new output\)\n\n\[cmd-1 is running/);
    assert.match(second.results[1] ?? '', /^bye\n/);
    assert.match(second.results[2] ?? '', /There is no background command cmd-7\. The commands are cmd-1\./);
    await until(() => commands.list().length === 0);
    assert.ok(heard > 0);
    assert.deepEqual(readdirSync(at('data/background')), []);
    const third = await run([['read_output', { id: 'cmd-1' }]]);
    assert.match(third.results[0] ?? '', /\[cmd-1: ended with exit code 3\]/);
    assert.equal(existsSync(work('made.txt')), true);
    await assert.rejects(
      telos.changes.undo(first.runId),
      /No changes are stored/,
      'the person works there too',
    );
  });

  it('is ended by the model with all that it started, and with its conversation', async () => {
    const line = 'echo $$ > pid; (sleep 300; touch late) & sleep 300';
    const { results } = await run([
      ['run_command', { command: line, background: true }],
      ['stop_command', { id: 'cmd-1' }],
      ['run_command', { command: 'echo second; sleep 300', background: true }],
    ]);
    assert.match(results[1] ?? '', /\[cmd-1: was stopped\]/);
    assert.deepEqual(
      telos
        .commandsOf(conversation)
        .list()
        .map(({ id }) => id),
      ['cmd-2'],
    );
    assert.deepEqual(await telos.endCommands(conversation), ['echo second; sleep 300']);
    assert.deepEqual(telos.commandsOf(conversation).list(), []);
    assert.deepEqual(readdirSync(at('data/background')), []);
  });

  it('ends with a run that belongs to no conversation', async () => {
    const wait = 'touch begun; while :; do sleep 0.05; touch beat; done';
    const { runId, results } = await run(
      [
        ['run_command', { command: wait, background: true }],
        ['read_output', { id: 'cmd-1' }],
      ],
      { conversationId: '' },
    );
    assert.match(results[0] ?? '', /^The command runs in the background as cmd-1/);
    assert.match(results[1] ?? '', /cmd-1 is running/);
    assert.ok(existsSync(work('begun')));
    assert.deepEqual(telos.commandsOf(runId).list(), []);
    rmSync(work('beat'), { force: true });
    await delay(300);
    assert.equal(existsSync(work('beat')), false);
  });

  it('says that a command has failed, at once or when it is read, and starts no more than eight', async () => {
    const { results } = await run([
      ['run_command', { command: 'echo oh no; exit 7', background: true }],
      ['read_output', { id: 'cmd-1', wait_s: 20 }],
      ['read_output', { id: 'cmd-1', wait_s: 20 }],
      ...Array.from({ length: 9 }, (): Call => ['run_command', { command: 'sleep 300', background: true }]),
    ]);
    // A busy machine may not have started it when the call is answered.
    assert.match(results.slice(0, 3).join('\n'), /oh no[\s\S]*exit code:? 7/);
    assert.match(results.at(-1) ?? '', /8 commands run in the background already \(cmd-.*\)\. Stop one/);
  });

  it('is sent to the background by the person while it runs, without its time limit', async () => {
    const { results } = await run(
      [
        ['run_command', { command: 'echo begun; sleep 4; echo late > late.txt', timeout_s: 2 }],
        ['run_command', { command: 'test ! -e late.txt' }],
        ['read_output', { id: 'cmd-1', wait_s: 20 }],
      ],
      {
        during: event => {
          if (event.type === 'tool_output') assert.equal(telos.commandsOf(conversation).move('0'), true);
        },
      },
    );
    assert.match(
      results[0] ?? '',
      /^The command was sent to the background by the user, where it goes on as cmd-1\.\n\nbegun/,
    );
    assert.match(results[2] ?? '', /\[cmd-1: ended with exit code 0\]/);
    assert.equal(
      readFileSync(work('late.txt'), 'utf8'),
      'late\n',
      'what it wrote is in its place at its end',
    );
    assert.equal(telos.commandsOf(conversation).move('2'), false);
  });

  it('is a server that later commands of its conversation reach, and nothing else does', async function () {
    if (await hasNoBox()) return skipBecause(this, 'no sandbox works here');
    const script = `require('http').createServer((q, r) => r.end('grown here'))
      .listen(0, '127.0.0.1', function () { require('fs').writeFileSync('port', String(this.address().port)); console.log('up') })`;
    writeFileSync(work('server.cjs'), script);
    const visit = 'curl -sS --max-time 5 http://127.0.0.1:$(cat port)/';
    const { results } = await run([
      ['run_command', { command: 'node server.cjs', background: true }],
      // A layer shows a file that comes meanwhile only if nothing in it has looked for that before.
      ['read_output', { id: 'cmd-1', wait_s: 20 }],
      ['run_command', { command: visit }],
    ]);
    assert.equal(results[2], 'grown here');
    const own = await run([['run_command', { command: visit }]]);
    assert.equal(own.results[0], 'grown here');
    const other = await run([['run_command', { command: visit }]], { conversationId: 'two' });
    assert.match(other.results[0] ?? '', /Failed to connect|refused/i);
    const port = Number(readFileSync(work('port'), 'utf8'));
    const [error] = await once(connect(port, '127.0.0.1'), 'error');
    assert.equal(error.code, 'ECONNREFUSED');
    const after = await run([
      ['stop_command', { id: 'cmd-1' }],
      ['run_command', { command: visit }],
    ]);
    assert.match(after.results[1] ?? '', /Failed to connect|refused/i);
  });

  it('is asked about before it starts, since it works in the folder itself, and says at its end what others obey', async function () {
    if (await hasNoBox()) return skipBecause(this, 'no sandbox works here');
    const planter = 'mkdir -p .vscode; echo "{}" > .vscode/tasks.json; echo up; sleep 300';
    const refused = await run([['run_command', { command: planter, background: true }]], { yes: false });
    assert.match(refused.results[0] ?? '', /no/);
    assert.equal(existsSync(work('.vscode')), false);
    assert.match(asked[0]?.reason ?? '', /changes your folder directly until you stop it/);
    const { results } = await run([
      ['run_command', { command: planter, background: true }],
      ['run_command', { command: 'mkdir -p .github; echo other > .github/ci.yml; echo 1 > plain.txt' }],
      ['stop_command', { id: 'cmd-1' }],
      ['read_output', { id: 'cmd-1' }],
    ]);
    assert.equal(
      asked.filter(({ tool }) => tool === 'keep_changes').length,
      1,
      'only about the other command',
    );
    assert.match(results[1] ?? '', /\.github\/ci\.yml was not kept/);
    assert.equal(readFileSync(work('plain.txt'), 'utf8'), '1\n');
    assert.match(results[3] ?? '', /files that others run or obey came into the folder: \.vscode/);
  });

  it('is named at the next start if the program ended first', async () => {
    mkdirSync(at('data/background'), { recursive: true });
    writeFileSync(at('data/background/4194305-x.txt'), 'npm run dev');
    const notices = async () =>
      (await run([])).events.flatMap(event =>
        event.type === 'notice' && event.level === 'info' ? [event.message] : [],
      );
    assert.match((await notices()).join(), /Stopped when Telos closed: npm run dev\./);
    assert.doesNotMatch((await notices()).join(), /npm run dev/);
  });
});
