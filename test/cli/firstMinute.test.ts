/** The first minute on a machine that has neither a model nor a skill: the sample, and words that are typed by mistake. */
import assert from 'node:assert/strict';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import { type CliHome, cliHome } from './cliProcess.ts';

const sample = fileURLToPath(new URL('../../media/demo/', import.meta.url));

describe('the first minute on a terminal', function () {
  this.timeout(30_000);
  let home: CliHome;

  beforeEach(() => {
    home = cliHome();
  });
  afterEach(() => home.remove());

  const stopped = /This recording was made in another folder\. Set up a model to run it here\./;

  it('plays the sample in a folder of its own, and reads and leaves nothing elsewhere', async () => {
    home.folder.add({
      'work/tasks.md': 'mine',
      'work/notes/a.md': 'mine',
      'config/policy.toml': '[[deny]]\ntool = "write_file"\n',
    });
    const env = { TMPDIR: join(home.folder.path, 'tmp'), TELOS_PROVIDER: 'nonsense' };
    home.folder.add({ 'tmp/.keep': '' });
    const { code, stdout, stderr } = await home.run(['demo'], { env });
    assert.equal(code, 0, stderr);
    assert.match(stdout, /Your plan is in `today\.md`/);
    const plan = /The plan is (.*)\n/.exec(stderr)?.[1] ?? '';
    assert.ok(plan.startsWith(env.TMPDIR), stderr);
    assert.match(readFileSync(plan, 'utf8'), /^# Today/);
    assert.match(stderr, /telos init --sample/);
    assert.deepEqual(readdirSync(home.workDir).sort(), ['.keep', 'notes', 'tasks.md']);
    assert.ok(!existsSync(home.skillsDir));
    assert.ok(!existsSync(home.dataDir));
    rmSync(dirname(dirname(plan)), { recursive: true });
  });

  it('offers the sample in one sentence where there is no agent', async () => {
    for (const words of [['agents'], ['run', 'daily', 'kickoff']]) {
      const { code, stderr } = await home.run(words);
      assert.equal(code, 1);
      assert.match(stderr, /`telos demo` plays a sample.*`telos init --sample` adds it/);
    }
  });

  it('adds the sample, and leaves an agent of its name as it is', async () => {
    const added = await home.run(['init', '--sample']);
    assert.deepEqual([added.code, added.stderr], [0, '']);
    assert.match(added.stdout, /Added agent 'kairos'/);
    const file = 'skills/kairos/skills/kickoff/SKILL.md';
    home.folder.add({ [file]: '---\ndescription: Mine\n---\nB' });
    const again = await home.run(['init', '--sample']);
    assert.deepEqual([again.code, /nothing was changed/.test(again.stdout)], [0, true]);
    assert.match(readFileSync(join(home.folder.path, file), 'utf8'), /Mine/);
  });

  it('plays a recording only in a folder with the same files, and writes in no other', async () => {
    await home.run(['init', '--sample']);
    cpSync(join(sample, 'workspace'), home.workDir, { recursive: true });
    const same = await home.run(['run daily kickoff']);
    assert.equal(same.code, 0, same.stderr);
    const again = await home.run(['run daily kickoff']);
    assert.equal(again.code, 0, again.stderr);
    rmSync(join(home.workDir, 'today.md'));
    home.folder.add({ 'work/notes/tuesday.md': 'other words' });
    const other = await home.run(['run daily kickoff']);
    assert.equal(other.code, 1);
    assert.match(other.stderr, stopped);
    assert.match(other.stderr, /`telos key` sets the key of a provider/);
    assert.doesNotMatch(other.stdout, /Now it is clear/);
    assert.ok(!existsSync(join(home.workDir, 'today.md')));
  });

  it('plays no call that acts before it has read a file that the recording knows', async () => {
    const header = readFileSync(join(sample, 'skills/kairos/skills/kickoff/recording.jsonl'), 'utf8').split(
      '\n',
    )[0];
    const turn = (name: string, input: object, results?: (string | null)[]): string =>
      JSON.stringify({
        ...(results && { results }),
        events: [
          { type: 'tool_call', call: { id: 'c', name, input } },
          { type: 'done', stopReason: 'tool_use' },
        ],
      });
    const end = JSON.stringify({ results: [null], events: [{ type: 'done', stopReason: 'end_turn' }] });
    const write = (results?: (string | null)[]): string =>
      turn('write_file', { path: 'x.md', content: 'x' }, results);
    const skill = 'skills/eve/skills/plant';
    const cases = {
      'writes first': [write(), end],
      'runs a command first': [turn('run_command', { command: 'touch x.md' }), end],
      'reads its own folder alone': [turn('read_file', { path: `../${skill}/SKILL.md` }), write([null]), end],
      'takes anything for the same': [turn('read_file', { path: 'mine.md' }), write([null]), end],
    };
    for (const [name, turns] of Object.entries(cases)) {
      home.folder.add({
        'skills/eve/agent.toml': 'working_dir = "."\n',
        [`${skill}/SKILL.md`]: '---\ndescription: Plants\n---\nB',
        [`${skill}/recording.jsonl`]: [header, ...turns].join('\n'),
        'work/mine.md': 'mine',
      });
      const { code, stderr } = await home.run(['--yes', '/plant']);
      assert.equal(code, 1, name);
      assert.match(stderr, stopped, name);
      assert.ok(!existsSync(join(home.workDir, 'x.md')), name);
    }
    home.folder.add({
      [`${skill}/recording.jsonl`]: [header, turn('glob', { pattern: '*' }), write(), end].join('\n'),
    });
    const untold = await home.run(['--yes', '/plant']);
    assert.match(untold.stderr, /does not say what the tools found\. Record the run again with --record\./);
  });

  it('sends no mistyped command to a model, and words behind -- as they are', async () => {
    home.folder.add({ 'skills/kairos/skills/rust/SKILL.md': '---\ndescription: Rust\n---\nB' });
    const server = await startAnthropicServer({ turns: Array(9).fill({ text: ['answered'] }) });
    const env = { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: 'test-key-0123456789' };
    try {
      const meant = {
        run: 'runs',
        rnus: 'runs',
        docter: 'doctor',
        boot: 'bot',
        version: '--version',
        skills: 'list-skills',
      };
      for (const [typed, wanted] of Object.entries({
        ...meant,
        'rnus show': 'runs',
        'instal ./x': 'install',
        'pln show': 'plan',
        pln: 'pin or telos plan',
      })) {
        const { code, stderr } = await home.run(typed.split(' '), { env });
        assert.equal(code, 2, typed);
        assert.ok(stderr.includes(`Did you mean: telos ${wanted}?`), stderr);
      }
      const ofOthers = {
        'remove kairos': 'uninstall kairos',
        'rm kairos': 'uninstall kairos',
        'add github:owner/repo': 'install github:owner/repo',
        'login openai': 'key openai',
        'list agents': 'agents',
        'skills list': 'list-skills',
        'plugin install npm:x': 'install npm:x',
        'skill new me haiku': 'skill add me haiku',
        'mcp test clock': 'mcp list --start',
        'mcp start': 'mcp list --start',
        'mcp remove kairos clock': 'mcp --help',
        'mcp enable kairos clock now': 'mcp on kairos clock now',
        'plan list': 'plan show',
        'plan delete shop': 'plan remove shop',
        'policy show': 'policy list',
        'runs list': 'runs',
        'runs rm 3f': 'runs delete 3f',
        'schedule stop daily': 'schedule pause daily',
        'agents remove kairos': 'uninstall kairos',
        'upgrade kairos': 'update kairos',
      };
      for (const [typed, wanted] of Object.entries(ofOthers)) {
        const { code, stderr } = await home.run(typed.split(' '), { env });
        assert.equal(code, 2, typed);
        assert.ok(stderr.includes(`Did you mean: telos ${wanted}?`), `${typed}: ${stderr}`);
      }
      assert.equal(server.requests.length, 0);
      const requests = [
        'remove the comments in main.ts',
        'plan my week',
        'add tests',
        'list all of my tasks',
      ];
      for (const words of requests) {
        const { stderr } = await home.run(words.split(' '), { env });
        assert.doesNotMatch(stderr, /Did you mean/, words);
      }
      for (const quoted of ['remove duplicates', 'upgrade dependencies', 'delete logs'])
        assert.doesNotMatch((await home.run([quoted], { env })).stderr, /Did you mean/, quoted);
      server.requests.length = 0;
      const help = await home.run(['help'], { env });
      assert.deepEqual([help.code, help.stdout], [0, (await home.run(['--help'])).stdout]);
      assert.match((await home.run(['help', 'runs'], { env })).stdout, /^Usage: telos runs/);
      assert.equal(server.requests.length, 0);
      assert.match((await home.run(['rust'], { env })).stdout, /answered/);
      const literal = await home.run(['--agent', 'kairos', '--', 'run', 'rust'], { env });
      assert.deepEqual([literal.code, literal.stdout], [0, 'answered\n']);
      assert.match(JSON.stringify(server.requests.at(-1)), /run rust/);
    } finally {
      await server.close();
    }
  });
});
