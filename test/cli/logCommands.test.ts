import assert from 'node:assert/strict';
import { appendFileSync } from 'node:fs';
import { appendRecord, logPath, type SkillEndRecord } from '../../src/engine/records/logFile.ts';
import type { Spending } from '../../src/engine/records/spending.ts';
import { type CliHome, cliHome } from './cliProcess.ts';

describe('telos cost', function () {
  this.timeout(30_000);
  let home: CliHome;
  beforeEach(() => {
    home = cliHome();
  });
  afterEach(() => home.remove());

  function ran(agent: string, cost: SkillEndRecord['cost']): void {
    const run_id = `${agent}-${cost}`;
    const ts = new Date().toISOString();
    const file = logPath(home.dataDir);
    const ref = { agent, skill: 'kickoff' };
    appendRecord(file, {
      ts,
      event: 'skill_start',
      provider: 'p',
      model: 'm',
      has_mcp: false,
      run_id,
      ...ref,
    });
    appendRecord(file, {
      ts,
      event: 'skill_end',
      duration_s: 1,
      rounds: 1,
      tool_calls: 0,
      error: null,
      messages: [],
      run_id,
      ...ref,
      outcome: 'completed',
      input_tokens: 1000,
      output_tokens: 20,
      cache_read_tokens: 300,
      cache_write_tokens: 1,
      cost,
    });
  }

  it('says how much of the log it could not read, and counts the rest', async () => {
    ran('kairos', 0.5);
    appendFileSync(logPath(home.dataDir), 'no record\n');
    const one = await home.run(['cost', '--json']);
    assert.equal(one.stderr, 'One line of the log cannot be read and was skipped.\n');
    assert.equal((JSON.parse(one.stdout) as Spending).total.runs, 1);
    appendFileSync(logPath(home.dataDir), '{"half":');
    assert.match(
      (await home.run(['cost'])).stderr,
      /^2 lines of the log cannot be read and were skipped\.$/m,
    );
  });

  it('shows four tables, and says what it does not know', async () => {
    ran('kairos', 0.5);
    ran('kairos', 'unknown');
    ran('gmail', 0.25);
    const { code, stdout, stderr } = await home.run(['cost']);
    assert.equal(code, 0);
    const [days = '', ...others] = stdout.split('\n\n');
    assert.match(
      days,
      /^Day +Runs +In +Cached +Out +Cost\n\d{4}-\d\d-\d\d +3 +3000 +903 +60 +\$0\.7500 \+ 1 unknown$/,
    );
    assert.deepEqual(others, [
      'Agent   Runs  In    Cached  Out  Cost\nkairos  2     2000  602     40   $0.5000 + 1 unknown\ngmail   1     1000  301     20   $0.2500',
      'Skill           Runs  In    Cached  Out  Cost\nkairos:kickoff  2     2000  602     40   $0.5000 + 1 unknown\ngmail:kickoff   1     1000  301     20   $0.2500',
      'Model  Runs  In    Cached  Out  Cost\np m    3     3000  903     60   $0.7500 + 1 unknown\nTotal  3     3000  903     60   $0.7500 + 1 unknown\n',
    ]);
    assert.match(stderr, /^What one run cost is not known/);
  });

  it('gives the sums as JSON, and takes whole days alone', async () => {
    ran('kairos', 'unknown');
    const { stdout } = await home.run(['cost', '--json', '--days', '1']);
    const { total, byAgent } = JSON.parse(stdout) as Spending;
    assert.deepEqual([total.cost, total.knownCost, byAgent[0]?.name], ['unknown', 0, 'kairos']);
    for (const days of ['0', '1.5', 'x']) assert.equal((await home.run(['cost', '--days', days])).code, 2);
  });

  it('says that there were no runs', async () => {
    const { code, stdout, stderr } = await home.run(['cost', '--days', '7']);
    assert.deepEqual([code, stdout], [0, '']);
    assert.match(stderr, /^No runs from \d{4}-\d\d-\d\d to /);
  });

  it('counts what an older version has written, and what a hand has spoilt', async () => {
    const day = new Date().toISOString();
    const lines = [
      `{"ts":"${day}","event":"skill_end","duration_s":1.5,"rounds":2,"tool_calls":1,"error":null,"messages":[{"role":"user","content":"Old words"}]}`,
      `{"ts":"nonsense","event":"skill_end","messages":"no","run_id":5,"duration_s":"x","cost":"a lot","agent":7,"outcome":{}}`,
    ];
    ran('kairos', 0.5);
    appendFileSync(logPath(home.dataDir), `${lines.join('\n')}\n`);
    assert.equal((await home.run(['cost'])).code, 0);
  });
});

describe('telos runs --follow', function () {
  this.timeout(30_000);
  let home: CliHome;
  beforeEach(() => {
    home = cliHome();
  });
  afterEach(() => home.remove());

  /** Starts to follow the log, writes a line again and again until it is seen, and presses Ctrl-C. */
  async function followed(
    options: readonly string[],
    seen: string,
  ): Promise<{ code: number | null; stdout: string }> {
    const file = logPath(home.dataDir);
    const run = { run_id: 'dddddddd-4', agent: 'kairos', skill: 'kickoff' };
    const before = {
      ts: new Date().toISOString(),
      event: 'tool_call',
      tool: 'read_file',
      is_error: false,
    } as const;
    appendRecord(file, { ...before, call_id: '1', run_id: 'bbbbbbbb-2' });
    const cli = home.start(['runs', '--follow', ...options]);
    // When exactly the watching begins cannot be known from outside.
    const writing = setInterval(() => {
      appendRecord(file, { ...before, tool: 'a\x1b[2Jb', call_id: '1', run_id: run.run_id });
    }, 50);
    try {
      await cli.says(seen);
    } finally {
      clearInterval(writing);
    }
    cli.child.kill('SIGINT');
    return cli.result;
  }

  it('prints what is written from now on, until Ctrl-C, filtered for the terminal', async () => {
    const { code, stdout } = await followed([], 'dddddddd → a\\x1b[2Jb');
    assert.equal(code, 0);
    assert.doesNotMatch(stdout, /bbbbbbbb/);
  });

  it('prints the records themselves as JSON', async () => {
    const { stdout } = await followed(['--json'], '"run_id":"dddddddd-4"');
    assert.equal(JSON.parse(stdout.split('\n')[0] ?? '').tool, 'a\x1b[2Jb');
  });
});
