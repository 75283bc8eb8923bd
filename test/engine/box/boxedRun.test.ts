/** A whole run where a box works: its commands run there unasked, and outside only after a yes. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { loadConfig } from '../../../src/engine/config.ts';
import type { Human, Provider } from '../../../src/engine/core/ports.ts';
import { denyAll } from '../../../src/engine/human.ts';
import { Telos } from '../../../src/engine/telos.ts';
import { findProgram } from '../../../src/engine/tools/programPath.ts';
import { describeWhy } from '../../../src/protocol/describe.ts';
import {
  type ApprovalDecision,
  type ApprovalRequest,
  type JsonObject,
  leaveBox,
  type RunEvent,
} from '../../../src/protocol/run.ts';
import { eventually } from '../../eventually.ts';
import { calls, done, says, scriptedProvider } from '../../fakes/scriptedProvider.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';
import { skipBecause } from '../../skipBecause.ts';
import { localServer } from './ordinaryCommands.ts';

describe('a run with commands', () => {
  let folder: TempFolder;
  let at: (path: string) => string;
  beforeEach(() => {
    folder = tempFolder({
      'skills/garden/agent.toml': 'name = "garden"\n',
      'skills/garden/skills/sow/SKILL.md': '---\nname: sow\ndescription: Sows\n---\nSow.',
      'skills/shed/agent.toml': 'name = "shed"\n',
      'skills/shed/skills/store/SKILL.md': '---\nname: store\ndescription: Stores\n---\nStore.',
      'root/garden/plan.md': 'peas\n',
      'root/shed/list.md': 'rake\n',
      'outside/notes.txt': 'hunter2\n',
    });
    const root = realpathSync(folder.path);
    at = path => join(root, path);
  });
  afterEach(() => folder.remove());

  const yes: ApprovalDecision = { allow: true, scope: 'once' };

  /** Runs the commands in one turn each, in the working folder. */
  async function run(
    inputs: readonly JsonObject[],
    {
      env = {},
      answer = yes,
      conversationId = 'one',
      skill = { agent: 'garden', skill: 'sow' },
    }: {
      env?: Record<string, string>;
      answer?: ApprovalDecision;
      conversationId?: string;
      skill?: { agent: string; skill: string };
    } = {},
  ) {
    const cwd = at(`root/${skill.agent}`);
    const turns = inputs.map((input, index) => [
      input['path'] === undefined
        ? calls(`${index}`, 'run_command', { cwd, ...input })
        : calls(`${index}`, 'read_file', input),
      done('tool_use'),
    ]);
    const script = scriptedProvider([...turns, [says('done'), done()]]);
    let tool = '';
    const provider: Provider = {
      ...script,
      streamCompletion(request, signal) {
        tool = JSON.stringify(request.tools.find(({ name }) => name === 'run_command'));
        return script.streamCompletion(request, signal);
      },
    };
    const config = loadConfig({
      env: {
        PATH: process.env['PATH'],
        TELOS_SKILLS_DIR: at('skills'),
        TELOS_DATA_DIR: at('data'),
        TELOS_CONFIG_DIR: at('config'),
        TELOS_WORKING_ROOT: at('root'),
        TELOS_PROVIDER: 'scripted',
        ...env,
      },
      home: at('home'),
      cwd: at('home'),
    });
    mkdirSync(at('home'), { recursive: true });
    const telos = Telos.open(config, {
      providers: { scripted: { model: async () => 's', create: async () => provider } },
    });
    const asked: ApprovalRequest[] = [];
    const human: Human = {
      ...denyAll,
      approve: async request => {
        asked.push(request);
        return answer;
      },
    };
    const ends: Extract<RunEvent, { type: 'tool_end' }>[] = [];
    const request = { text: 'the beds', skill, conversationId };
    const notices: string[] = [];
    for await (const event of telos.run(request, human, new AbortController().signal)) {
      if (event.type === 'tool_end') ends.push(event);
      if (event.type === 'notice') notices.push(event.message);
    }
    const contents = ends.map(({ result }) => result.content);
    return { asked, ends, contents, notices, tool, state: (await telos.box()).state };
  }

  /** The PATH without bubblewrap, as on a machine that has none. */
  function withoutBox(): string {
    const bin = at('bin');
    mkdirSync(bin, { recursive: true });
    for (const name of ['sh', 'cat', 'touch']) {
      const program = findProgram(name, { env: { PATH: process.env['PATH'] ?? '' } });
      if (program && !existsSync(join(bin, name))) symlinkSync(program, join(bin, name));
    }
    return bin;
  }

  it('runs its first command in the box, without a question, and marks it', async function () {
    const line = `touch made && cat plan.md; cat ${at('outside/notes.txt')}; touch ${at('outside/made')}`;
    const { asked, ends, tool, state } = await run([{ command: line }]);
    if (!state?.works) {
      assert.equal(asked.length, 1, state?.why);
      return skipBecause(this, 'no sandbox works here');
    }
    assert.deepEqual(asked, []);
    assert.deepEqual(ends[0]?.policy, { action: 'allow', rule: 'run.box', boxed: true });
    assert.match(ends[0]?.result.content ?? '', /peas/);
    assert.doesNotMatch(ends[0]?.result.content ?? '', /hunter2/);
    assert.deepEqual([existsSync(at('root/garden/made')), existsSync(at('outside/made'))], [true, false]);
    assert.match(tool, /outside_box/);
    assert.doesNotMatch(tool, /The user is asked first/);
  });

  /** Returns the programs of this process that hold a box. */
  const holders = (): string[] =>
    readdirSync('/proc').filter(pid => {
      try {
        const parent = /^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
        const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        return parent === `${process.pid}` && words.includes('telos: ');
      } catch {
        return false;
      }
    });

  it('leaves no process behind that held its box, also in a conversation that goes on', async function () {
    if (process.platform !== 'linux') return skipBecause(this, 'processes are looked through on Linux');
    const others = new Set(holders());
    const { state } = await run([{ command: 'touch made' }, { command: 'cat made' }]);
    if (!state?.works) return skipBecause(this, 'no sandbox works here');
    await eventually(() =>
      assert.deepEqual(
        holders().filter(pid => !others.has(pid)),
        [],
      ),
    );
  });

  it('keeps what a command writes into its home for later runs of the agent, and says where that is', async function () {
    const first = await run([
      { command: 'mkdir -p ~/.sown ~/.cache/a && echo beans > ~/.sown/tasks.db && echo > ~/.cache/a/b' },
      { command: 'cat ~/.sown/tasks.db; echo beans > ~/.sown/tasks.db' },
    ]);
    if (!first.state?.works) return skipBecause(this, 'no sandbox works here');
    const [written = '', read = ''] = first.contents;
    assert.match(written, /not into the user's home: \.sown\/tasks\.db \(in \//);
    assert.doesNotMatch(written, /cache/);
    assert.equal(read.trim(), 'beans');
    const said = first.notices.filter(notice => notice.includes('tasks.db'));
    assert.equal(said.length, 1, 'a file is named once in a run');
    assert.match(
      said.join('\n'),
      /^In the sandbox's home folder of garden, not in yours: \.sown\/tasks\.db \(in (.*)\)\. To copy it: cp -ri -- \1\/\.sown ~\/$/,
    );
    assert.deepEqual(readdirSync(at('home')), []);
    const later = await run([{ command: 'cat ~/.sown/tasks.db; echo peas >> ~/.sown/tasks.db' }], {
      conversationId: 'two',
    });
    assert.match(later.contents[0] ?? '', /^beans\n/);
    assert.match(later.contents[0] ?? '', /\.sown\/tasks\.db/, 'a changed file is said too');
    const place = /\(in (.*)\)\. To/.exec(said[0] ?? '')?.[1] ?? '';
    assert.equal(readFileSync(join(place, '.sown/tasks.db'), 'utf8'), 'beans\npeas\n');
    const other = await run([{ command: 'cat ~/.sown/tasks.db || echo none' }], {
      skill: { agent: 'shed', skill: 'store' },
    });
    assert.match(other.contents[0] ?? '', /^none$/m);
    assert.doesNotMatch(other.contents[0] ?? '', /home of the sandbox, not/);
  });

  it('reads with its file tools what a command has left in /tmp or in its home, unasked, and no link from there', async function () {
    const { asked, contents, state } = await run(
      [
        {
          command: `echo sums > /tmp/report.txt; echo kept > ~/report.md; ln -s ${at('outside/notes.txt')} /tmp/link`,
        },
        { path: '/tmp/report.txt' },
        { path: '~/report.md' },
        { path: '/tmp/link' },
      ],
      { answer: { allow: false, reason: 'no' } },
    );
    if (!state?.works) return skipBecause(this, 'no sandbox works here');
    const [, temporary = '', home = '', link = ''] = contents;
    assert.match(temporary, /^sums\n/);
    assert.match(temporary, /\/tmp\/report\.txt is the one that commands in the sandbox have/);
    assert.match(home, /^kept\n/);
    assert.doesNotMatch(link, /hunter2/);
    assert.deepEqual(asked, []);
  });

  it('tells the model which files of a command in /tmp are not in the /tmp of the user', async () => {
    const { ends, state } = await run([
      {
        command:
          'mkdir -p /tmp/out; echo sums > /tmp/out/report.txt; echo > "/var/tmp/more"; rm -f /tmp/gone',
      },
      { command: 'cat /tmp/out/report.txt' },
      { command: 'echo > /tmp/gone && rm /tmp/gone; echo x > here.txt' },
    ]);
    if (!state?.works) return;
    const [written = '', read = '', none = ''] = ends.map(({ result }) => result.content);
    assert.match(
      written,
      /^\[Written into the \/tmp of the sandbox, not into the user's: \/tmp\/more, \/tmp\/out\/report\.txt \(in \/.*\)\. Say so/m,
    );
    assert.equal(read.trim(), 'sums');
    assert.doesNotMatch(none, /not into the user's/);
  });

  it('tells the model how to leave the box when a command misses something there', async () => {
    execFileSync('git', ['init', '-q', '--bare', at('outside/remote.git')]);
    mkdirSync(at('home'), { recursive: true });
    writeFileSync(at('home/.gitconfig'), '');
    const commands = [
      { command: `touch ${at('outside/made')}` },
      { command: 'exit 3' },
      { command: `git ls-remote ${at('outside/remote.git')}` },
      { command: `git clone -q ${at('outside/remote.git')} copy` },
      { command: 'git config --global user.name n' },
    ];
    const { ends, state } = await run(commands);
    const [missing = '', plain = '', ...ofGit] = ends.map(({ result }) => result.content);
    if (state?.works)
      for (const each of [missing, ...ofGit])
        assert.match(each, /It ran in a sandbox: .*outside_box and why/);
    assert.doesNotMatch(plain, /box/);
    const required = await run([commands[0]!], { env: { TELOS_SANDBOX: 'required' } });
    if (state?.works) assert.match(required.ends[0]?.result.content ?? '', /No command may leave it/);
    assert.doesNotMatch(required.tool, /outside_box/);
    assert.equal(existsSync(at('outside/made')), !state?.works);
  });

  it('leaves the box only after a yes to what the model wants there', async () => {
    const input = { command: `touch ${at('outside/made')}`, outside_box: true, why: 'It belongs there.' };
    const { asked, ends, state } = await run([input], { answer: { allow: false, reason: 'no' } });
    assert.equal(asked.length, 1);
    if (state?.works) assert.match(describeWhy(asked[0]!), /Runs outside the sandbox.*“It belongs there\.”/);
    assert.equal(existsSync(at('outside/made')), false);
    assert.equal(ends[0]?.policy?.boxed, undefined);
    const after = await run([input]);
    assert.equal(existsSync(at('outside/made')), true);
    assert.deepEqual(after.ends[0]?.policy?.boxed, undefined);
  });

  it('asks once about an install from a granted registry: whether to keep what editors run', async function () {
    const { server, port } = await localServer();
    try {
      const rule = `[[allow]]\nagent = "garden"\ntool = "run_command"\nhost = "localhost:${port}"\n`;
      folder.add({ 'config/policy.toml': rule, 'root/garden/package.json': '{"name":"mine"}' });
      const install = `npm install --no-audit --no-fund --registry http://localhost:${port}/ left-of`;
      const { asked, ends, state } = await run([
        { command: install },
        { command: 'node -p "require(\'left-of\')"' },
      ]);
      if (!state?.works) {
        assert.equal(asked.length, 2);
        return skipBecause(this, 'no sandbox works here');
      }
      assert.deepEqual(
        asked.map(({ tool }) => tool),
        ['keep_changes'],
        ends[0]?.result.content,
      );
      assert.match(ends[1]?.result.content ?? '', /^42/);
    } finally {
      server.close();
    }
  });

  it('asks while the command waits for a host, tells the model what was refused, and asks not about what a rule names', async function () {
    const seen: string[] = [];
    const server = createServer((request, response) => {
      seen.push(request.url ?? '');
      response.end('hello');
    }).listen(0, '127.0.0.1');
    try {
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const rule = `[[allow]]\nagent = "garden"\ntool = "run_command"\nhost = "localhost:${port}"\n`;
      folder.add({ 'config/policy.toml': rule });
      const lines = [
        `curl -sS http://localhost:${port}/a`,
        'cd . && curl -sS https://held.example/?q=1; true',
      ];
      const { asked, ends, state } = await run(
        lines.map(command => ({ command })),
        { answer: { allow: false, reason: 'not there' } },
      );
      if (!state?.works) {
        assert.equal(asked.length, 2, state?.why);
        return skipBecause(this, 'no sandbox works here');
      }
      assert.deepEqual(
        asked.map(({ tool, subject, rule: by, scopes }) => [tool, subject, by, scopes]),
        [['run_command.host', 'held.example:443', 'card.new', ['once', 'run', 'always']]],
      );
      assert.match(
        describeWhy(asked[0]!),
        /^curl wants to reach held\.example:443\. You have not approved garden yet/,
      );
      const [reached = '', refused = ''] = ends.map(({ result }) => result.content);
      assert.equal(reached, 'hello');
      assert.match(refused, /\[The sandbox let nothing through to held\.example:443: Denied: not there\]/);
      assert.deepEqual(seen, ['/a']);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it('asks once in a conversation about a host that was allowed for it, until a file of the agent changes', async () => {
    const wants = [{ command: 'curl -sS https://held.example/; true' }];
    const answer = { allow: true, scope: 'run' } as const;
    const asked = async (conversationId: string): Promise<[string, true | undefined][]> => {
      const { asked, state } = await run(wants, { answer, conversationId });
      if (!state?.works) assert.equal(asked.length, 1, state?.why);
      return state?.works ? asked.map(({ tool, forConversation }) => [tool, forConversation]) : [];
    };
    const question = (await asked('first')).slice(0, 1);
    assert.ok(question.every(one => one[0] === 'run_command.host' && one[1]));
    assert.deepEqual(await asked('first'), []);
    assert.deepEqual(await asked('second'), question);
    folder.add({ 'skills/garden/notes.md': 'Another file.\n' });
    assert.deepEqual(await asked('first'), question);
    assert.deepEqual(await asked('first'), []);
  });

  it('offers to run outside of the box in place of a host, of which the model is told', async function () {
    const wants = 'curl -sS https://held.example/; true';
    const outside = { command: wants, outside_box: true, why: 'You said so.' };
    const { asked, ends, state } = await run([{ command: wants }, outside], { answer: leaveBox });
    const required = await run([{ command: wants }], { env: { TELOS_SANDBOX: 'required' } });
    if (!state?.works) {
      assert.equal(asked.length, 2);
      return skipBecause(this, 'no sandbox works here');
    }
    assert.deepEqual(
      [...asked, ...required.asked].map(({ tool, mayLeave }) => [tool, mayLeave]),
      [
        ['run_command.host', true],
        ['run_command', undefined],
        ['run_command.host', undefined],
      ],
    );
    assert.match(
      ends[0]?.result.content ?? '',
      /held\.example:443: Denied: .*call it again with outside_box/i,
    );
  });

  it('asks about each command, offers no way out and says nothing of a box where none is wanted', async () => {
    const { asked, ends, tool, state } = await run([{ command: 'touch made', outside_box: true }], {
      env: { TELOS_SANDBOX: 'off' },
    });
    assert.equal(state, undefined);
    assert.equal(asked.length, 1);
    assert.doesNotMatch(describeWhy(asked[0]!), /box/);
    assert.doesNotMatch(tool, /box/);
    assert.equal(ends[0]?.policy?.boxed, undefined);
    assert.equal(existsSync(at('root/garden/made')), true);
  });

  it('says with the first question of a conversation why no box works, and not again', async () => {
    const env = { PATH: withoutBox() };
    const commands = [{ command: 'touch a; true' }, { command: 'touch b; true' }];
    const words = async (conversationId: string): Promise<string[]> =>
      (await run(commands, { env, conversationId })).asked.map(request => describeWhy(request));
    const [first = '', second = ''] = await words('asked');
    assert.match(first, /no sandbox for commands works here: .+/);
    assert.doesNotMatch(second, /box/);
    assert.doesNotMatch((await words('asked')).join('\n'), /box/);
    assert.match((await words('asked later'))[0] ?? '', /no sandbox/);
  });

  it('runs nothing where a box is required and none works, and says what to do', async () => {
    const env = { PATH: withoutBox(), TELOS_SANDBOX: 'required' };
    const { asked, ends } = await run([{ command: 'touch made; true' }, { command: 'cat plan.md' }], { env });
    assert.deepEqual(asked, []);
    assert.equal(ends[0]?.policy?.rule, 'run.box-required');
    assert.match(ends[0]?.result.content ?? '', /none works here: /);
    assert.equal(existsSync(at('root/garden/made')), false);
    assert.equal(ends[1]?.policy?.rule, 'run.read-only');
  });
});
