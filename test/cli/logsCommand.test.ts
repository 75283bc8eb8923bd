import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { appendRecord, logPath, type SkillEndRecord } from '../../src/engine/records/logFile.ts';
import { type CliHome, cliHome } from './cliProcess.ts';

const end = (runId: string, ts: string): SkillEndRecord => ({
  ts,
  event: 'skill_end',
  duration_s: 1.25,
  rounds: 2,
  tool_calls: 1,
  error: null,
  messages: [
    { role: 'user', content: 'Plan.\x1b[2J' },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'Looking.' },
        { type: 'tool_use', id: '1', name: 'read_file', input: { path: 'a.md' } },
      ],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: '1', content: 'gone', is_error: true }] },
    { role: 'assistant', content: [{ type: 'text', text: `Done by ${runId}.` }] },
  ],
  run_id: runId,
  agent: 'kairos',
  skill: 'kickoff',
  outcome: 'completed',
  input_tokens: 1,
  output_tokens: 1,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  cost: 0.0123,
});

const start = (runId: string, ts: string) =>
  ({
    ts,
    event: 'skill_start',
    provider: 'anthropic',
    model: 'm',
    has_mcp: false,
    run_id: runId,
    agent: 'kairos',
    skill: 'kickoff',
  }) as const;

describe('telos logs', function () {
  this.timeout(30_000);
  let home: CliHome;

  beforeEach(() => {
    home = cliHome();
    const yesterday = logPath(home.dataDir, new Date(Date.now() - 24 * 3600 * 1000));
    appendRecord(yesterday, start('aaaaaaaa-1', '2026-01-01T10:00:00.000Z'));
    appendRecord(yesterday, end('aaaaaaaa-1', '2026-01-01T10:00:01.000Z'));
    appendRecord(logPath(home.dataDir), start('bbbbbbbb-2', '2026-01-02T10:00:00.000Z'));
    appendRecord(logPath(home.dataDir), end('bbbbbbbb-2', '2026-01-02T10:00:01.000Z'));
    appendRecord(logPath(home.dataDir), start('cccccccc-3', '2026-01-02T11:00:00.000Z'));
  });
  afterEach(() => home.remove());

  it('lists the runs over the days, the newest first, one that never ended as interrupted', async () => {
    const { code, stdout } = await home.run(['logs']);
    assert.equal(code, 0);
    const [heading, ...rows] = stdout.trimEnd().split('\n');
    assert.match(heading ?? '', /^Time +Run +Agent +Skill +Duration +Cost +Outcome$/);
    assert.equal(rows.length, 3);
    assert.match(rows[0] ?? '', /cccccccc +kairos +kickoff +interrupted$/);
    assert.match(rows[1] ?? '', /bbbbbbbb +kairos +kickoff +1\.3 s +\$0\.0123 +completed$/);
    assert.match(rows[2] ?? '', /aaaaaaaa/);
    const limited = await home.run(['logs', '--limit', '1', '--json']);
    assert.deepEqual(JSON.parse(limited.stdout).id, 'cccccccc-3');
  });

  it('reads what an older version has written, and what a hand has spoilt', async () => {
    const lines = [
      '{"ts":"2026-01-03T10:00:00","event":"skill_start","provider":"anthropic","model":"m","has_mcp":false}',
      '{"ts":"2026-01-03T10:00:01","event":"tool_call","tool":"read_file","is_error":false}',
      '{"ts":"2026-01-03T10:00:02","event":"skill_end","duration_s":1.5,"rounds":2,"tool_calls":1,"error":null,"messages":[{"role":"user","content":"Old words"}]}',
      '{"ts":"nonsense","event":"skill_end","messages":"no","run_id":5,"duration_s":"x","cost":"a lot","agent":7,"outcome":{}}',
      '{"ts":"2026-01-03T11:00:00","event":"skill_end","run_id":"zz","error":"Broke.","messages":[null,{"role":"user","content":[null]},{"role":"assistant","content":[{"type":"tool_result"}]},{"role":"assistant","content":"Whole"}]}',
    ];
    writeFileSync(logPath(home.dataDir), `${lines.join('\n')}\n`);
    const listed = await home.run(['logs']);
    assert.equal(listed.code, 0, listed.stderr);
    assert.match(listed.stdout, /zz +- +- +0\.0 s +failed/);
    const shown = await home.run(['logs', 'show', 'zz']);
    assert.equal(shown.stdout, '[assistant] Whole\n');
    assert.equal(shown.stderr, 'Broke.\n');
    assert.equal((await home.run(['cost'])).code, 0);
  });

  it('tells a run that goes on from one whose process is gone, and shows one that went on over midnight once', async () => {
    const now = new Date();
    const yesterday = logPath(home.dataDir, new Date(now.getTime() - 24 * 3600 * 1000));
    appendRecord(yesterday, start('ffffffff-6', now.toISOString()));
    const ended = spawnSync(process.execPath, ['--version']).pid;
    const today = logPath(home.dataDir);
    appendRecord(today, { ...start('dddddddd-4', now.toISOString()), pid: process.pid });
    appendRecord(today, { ...start('eeeeeeee-5', now.toISOString()), pid: ended });
    appendRecord(today, end('ffffffff-6', now.toISOString()));
    const { stdout } = await home.run(['logs', '--json']);
    const runs = stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line));
    const outcomes = runs.map(run => [run.id[0], run.outcome]);
    assert.deepEqual(outcomes.slice(0, 4), [
      ['f', 'completed'],
      ['e', 'interrupted'],
      ['d', 'running'],
      ['c', 'interrupted'],
    ]);
    assert.equal(outcomes.filter(([id]) => id === 'f').length, 1);
  });

  it('shows the conversation of a run by the beginning of its id, filtered for the terminal', async () => {
    const { code, stdout } = await home.run(['logs', 'show', 'aaaa']);
    assert.equal(code, 0);
    assert.equal(
      stdout,
      [
        '[user] Plan.\\x1b[2J',
        '[assistant] Looking.',
        '→ read_file {"path":"a.md"}',
        '✗ gone',
        '[assistant] Done by aaaaaaaa-1.',
        '',
      ].join('\n'),
    );
    assert.match((await home.run(['logs', 'show'])).stdout, /Done by bbbbbbbb-2/);
    const none = await home.run(['logs', 'show', 'zzz']);
    assert.deepEqual([none.code, none.stdout], [1, '']);
    assert.match(none.stderr, /'zzz'/);
  });

  it('follows what is written, from now on, until Ctrl-C', async () => {
    const cli = home.start(['logs', 'follow']);
    // Written again and again until it is seen: when exactly the watching begins cannot be known from outside.
    const writing = setInterval(() => {
      appendRecord(logPath(home.dataDir), end('dddddddd-4', new Date().toISOString()));
    }, 50);
    try {
      await cli.says('dddddddd completed');
    } finally {
      clearInterval(writing);
    }
    cli.child.kill('SIGINT');
    const { code, stdout } = await cli.result;
    assert.equal(code, 0);
    assert.doesNotMatch(stdout, /bbbbbbbb|cccccccc/);
  });

  it('says where the runs will be when there are none, and exits 2 on a limit that is none', async () => {
    const empty = cliHome();
    try {
      const { code, stderr } = await empty.run(['logs']);
      assert.equal(code, 0);
      assert.ok(stderr.includes(empty.dataDir));
      assert.equal((await empty.run(['logs', '--limit', 'all'])).code, 2);
    } finally {
      empty.remove();
    }
  });
});
