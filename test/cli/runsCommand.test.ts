import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RunHistory } from '../../src/engine/records/runHistory.ts';
import type { Spending } from '../../src/engine/records/spending.ts';
import { writeRun } from '../engine/records/storedRuns.ts';
import { type FakeServer, startAnthropicServer } from '../fakes/anthropicServer.ts';
import { type CliHome, cliHome } from './cliProcess.ts';

const skills = {
  'skills/kairos/agent.toml': 'name = "kairos"\ndescription = "plans"\nworking_dir = "."\n',
  'skills/kairos/skills/kickoff/SKILL.md': '---\ndescription: Morning plan\n---\nWrite the plan to today.md.',
};

describe('telos runs', function () {
  this.timeout(30_000);
  let home: CliHome;
  let server: FakeServer | undefined;

  beforeEach(() => {
    home = cliHome(skills);
  });
  afterEach(async () => {
    await server?.close();
    server = undefined;
    home.remove();
  });

  it('lists, shows, names, exports, replays and deletes a run that was made', async () => {
    const write = { name: 'write_file', input: { path: 'today.md', content: '# Today\n' } };
    const key = 'test-key-0123456789';
    server = await startAnthropicServer({
      turns: [{ text: ['I plan ', 'it.'], toolCalls: [write] }, { text: [`All done with ${key}`] }],
    });
    const env = { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: key };
    assert.equal((await home.run(['run', 'daily', 'kickoff'], { env })).code, 0);
    const [name = ''] = readdirSync(join(home.dataDir, 'runs'));
    const file = join(home.dataDir, 'runs', name);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.ok(!readFileSync(file, 'utf8').includes(key));
    const id = name.slice(0, 8);

    const list = await home.run(['runs']);
    assert.match(list.stdout, new RegExp(`${id} +kickoff +completed +\\$0\\.\\d+ +run daily kickoff`));
    assert.equal((await home.run(['runs', 'rename', id, 'My', 'plan'])).code, 0);
    const [listed] = (await home.run(['runs', '--json'])).stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line));
    assert.equal(listed.title, 'My plan');
    assert.equal(listed.door, 'cli');

    const shown = await home.run(['runs', 'show']);
    assert.match(shown.stdout, /^My plan\nSkill: kairos:kickoff\n/);
    assert.match(
      shown.stdout,
      /> run daily kickoff\n\n· Works in: this folder\n\nI plan it\.\n\n→ write_file today\.md\n/,
    );
    assert.match(shown.stdout, /All done with \[redacted\]/);

    await server.close();
    server = undefined;
    const { mtimeMs } = statSync(join(home.workDir, 'today.md'));
    const replay = await home.run(['runs', 'replay', id]);
    assert.equal(replay.code, 0);
    assert.match(replay.stderr, /This is a replay of a run.*: nothing runs\./);
    assert.match(replay.stdout, /I plan it\.\n\nAll done/);
    assert.equal(statSync(join(home.workDir, 'today.md')).mtimeMs, mtimeMs, 'no tool runs');

    const exported = await home.run(['runs', 'export', id, '--format', 'jsonl', '--output', 'plan.jsonl']);
    assert.equal(exported.code, 0);
    assert.match(readFileSync(join(home.workDir, 'plan.jsonl'), 'utf8'), /^\{"type":"run",/);
    const again = await home.run(['runs', 'export', id, '--output', 'plan.jsonl']);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /already exists\. Name another file, or use --force to replace it\./);
    assert.equal((await home.run(['runs', 'export', id, '--output', 'plan.jsonl', '--force'])).code, 0);
    assert.match(readFileSync(join(home.workDir, 'plan.jsonl'), 'utf8'), /^# My plan/);
    const folder = await home.run(['runs', 'export', id, '--output', '.', '--force']);
    assert.deepEqual([folder.code, folder.stderr], [1, `${home.workDir} is a folder. Name a file.\n`]);
    assert.match((await home.run(['runs', 'export'])).stdout, /^# My plan\n\n## run daily kickoff\n/);

    const changes = join(home.dataDir, 'changes', name.replace('.jsonl', ''));
    assert.ok(existsSync(changes), 'the file that it wrote can be undone');
    assert.equal((await home.run(['runs', 'delete', id])).code, 1);
    assert.ok(existsSync(file), 'nobody was asked');
    assert.equal((await home.run(['runs', 'delete', id, '--yes'])).code, 0);
    assert.ok(!existsSync(file));
    assert.ok(!existsSync(changes));
    const { total } = JSON.parse((await home.run(['cost', '--json'])).stdout) as Spending;
    assert.equal(total.runs, 1, 'the log still counts what it cost');
    assert.match((await home.run(['runs'])).stderr, /No runs yet/);
  });

  it('keeps a readable run when its process is killed in the middle, and calls it interrupted', async () => {
    server = await startAnthropicServer({
      turns: [
        { text: ['Half ', 'a ', 'plan '], toolCalls: [{ name: 'read_file', input: { path: 'a.md' } }] },
        { stallMs: 20_000 },
      ],
    });
    const env = { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: 'test-key-0123456789' };
    const cli = home.start(['run', 'daily', 'kickoff'], { env });
    await cli.says('a.md');
    const history = new RunHistory(home.dataDir);
    const runs = async () => (await history.list())[0];
    while (!(await runs())?.rounds) await new Promise(resolve => setTimeout(resolve, 20));
    assert.equal((await runs())?.outcome, 'running');
    cli.child.kill('SIGKILL');
    await cli.result;
    assert.match((await home.run(['runs'])).stdout, /kickoff +interrupted/);
    const { stdout, code } = await home.run(['runs', 'show']);
    assert.equal(code, 0);
    assert.match(stdout, /Outcome: interrupted/);
    assert.match(stdout, /Half a plan/);
    assert.match(stdout, /→ read_file a\.md/);
  });

  it('finds words, and says when an id means none or several', async () => {
    writeRun(home.dataDir, { runId: 'abc1', request: 'sort mail', startedAt: '2026-01-01T00:00:00.000Z' });
    writeRun(home.dataDir, {
      runId: 'abc2',
      answer: 'A \x1b[2J needle.',
      startedAt: '2026-01-02T00:00:00.000Z',
    });
    const found = await home.run(['runs', '--search', 'needle']);
    assert.match(found.stdout, /abc2/);
    assert.doesNotMatch(found.stdout, /abc1/);
    assert.match((await home.run(['runs', 'show', 'abc'])).stderr, /2 runs begin with 'abc'/);
    assert.match((await home.run(['runs', 'show', 'x'])).stderr, /Run 'x' not found/);
    assert.match((await home.run(['runs', 'show'])).stdout, /A \\x1b\[2J needle\./);
    assert.equal((await home.run(['runs', '--limit', '0'])).code, 2);
    assert.equal((await home.run(['runs', 'export', 'abc1', '--format', 'pdf'])).code, 2);
    assert.match(
      (await home.run(['--help'])).stdout,
      /runs show\|export\|replay\|rename\|delete +list, read, export/,
    );
  });

  it('does not say that nothing ran where the files of runs cannot be read', async () => {
    const file = join(home.dataDir, 'runs', 'abc1.jsonl');
    for (const make of [() => mkdirSync(file, { recursive: true }), () => writeFileSync(file, 'cut {')]) {
      rmSync(file, { recursive: true, force: true });
      make();
      for (const args of [['runs'], ['runs', '--json'], ['runs', 'show'], ['today']]) {
        const { code, stdout, stderr } = await home.run(args);
        assert.match(stderr, /abc1\.jsonl is not the file of a run/, args.join(' '));
        assert.doesNotMatch(`${stdout}${stderr}`, /No runs yet|Nothing ran/);
        assert.equal(code, args[0] === 'today' ? 0 : 1);
      }
    }
    writeRun(home.dataDir, { runId: 'abc2', request: 'sort mail' });
    const some = await home.run(['runs']);
    assert.deepEqual([some.code, /sort mail/.test(some.stdout)], [1, true]);
    assert.equal((await home.run(['runs', 'show', 'abc2'])).code, 0);
    rmSync(file);
    assert.equal((await home.run(['runs'])).code, 0);
  });

  it('escapes what steers a terminal in an export to one, and writes a file as it is', async () => {
    const answer = 'A \u009b2J \u0090q \u202e \u001b[2J needle “é”.';
    writeRun(home.dataDir, { runId: 'abc1', answer });
    const terminal = `--import data:text/javascript,${encodeURIComponent('process.stdout.isTTY=true')}`;
    const shown = await home.runProcess(['runs', 'export', '--format', 'jsonl'], {
      env: { NODE_OPTIONS: terminal },
    });
    assert.doesNotMatch(shown.stdout, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    assert.match(shown.stdout, /A \\u009b2J \\u0090q \\u202e \\u001b\[2J needle “é”\./);
    const piped = (await home.run(['runs', 'export', '--format', 'jsonl'])).stdout;
    assert.ok(piped.includes('A \u009b2J \u0090q \u202e \\u001b[2J needle “é”.'), 'a pipe gets it as it is');
    const parsed = [shown.stdout, piped].map(text =>
      text
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line)),
    );
    assert.deepEqual(parsed[0], parsed[1]);
  });
});
