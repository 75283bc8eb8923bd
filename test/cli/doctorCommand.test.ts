import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import type { DoctorReport } from '../../src/protocol/doctorReport.ts';
import { type CliHome, cliHome, program } from './cliProcess.ts';

describe('telos doctor', function () {
  this.timeout(30_000);
  let home: CliHome;
  beforeEach(() => {
    home = cliHome({ 'skills/kairos/skills/kickoff/SKILL.md': '---\ndescription: Morning\u001b[2J\n---\nB' });
  });
  afterEach(() => home.remove());

  it('shows what is in force and where it comes from', async () => {
    const { code, stdout } = await home.run(['--model', 'm-1\u001b[2J', 'doctor']);
    assert.equal(code, 0);
    assert.match(stdout, /model +m-1\\x1b\[2J +flag\n/);
    assert.match(stdout, /skills +\/.*\/skills +ok\n/);
    assert.match(stdout, /Agents: 1, with 1 skill\n/);
    assert.match(stdout, /! No model is set up/);
    assert.match(stdout, /No errors\.\n$/);
  });

  it('calls only limits without a value no limit', async () => {
    const { stdout } = await home.run(['doctor']);
    const unlimited = [...stdout.matchAll(/^ +(\w+) +no limit/gm)].map(([, name = '']) => name);
    assert.ok(unlimited.length > 0 && unlimited.every(name => name.startsWith('max')), unlimited.join());
    assert.match(stdout, /suggestsSkills +on +default/);
  });

  it('prints a report for an issue, without keys and the home folder', async () => {
    const key = 'sk-ant-0123456789abcdef';
    const env = { ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: 'http://127.0.0.1:9' };
    const { stdout } = await home.run(['doctor', '--report'], { env });
    assert.match(stdout, /^Telos \d+\.\d+\.\d+, \w+ \S+, \w+\nNode /);
    assert.match(stdout, / ~\/\S+/);
    assert.ok(home.env['HOME']);
    assert.doesNotMatch(stdout, new RegExp(`${home.env['HOME']}|${key}`));
  });

  it('says what is wanted of the box, and where that was set', async () => {
    const { stdout } = await home.run(['--sandbox', 'off', 'doctor']);
    assert.match(stdout, /sandbox +off +flag\n/);
    assert.match(stdout, /Commands:\n {2}run without a sandbox, as the setting says/);
    assert.equal((await home.run(['--sandbox', 'maybe', 'doctor'])).code, 2);
  });

  it('says in words that the disk is full (where there is /dev/full)', function () {
    if (!existsSync('/dev/full')) this.skip();
    const full = openSync('/dev/full', 'w');
    const stdio: ['ignore', number, 'pipe'] = ['ignore', full, 'pipe'];
    const done = spawnSync(process.execPath, [program(), 'doctor'], {
      env: home.env,
      stdio,
      encoding: 'utf8',
    });
    closeSync(full);
    assert.equal(done.status, 1);
    assert.match(done.stderr, /because it cannot be written: no space left on device\.\n$/);
  });

  it('ends with exit 1 when something is broken, as JSON too', async () => {
    const env = { ANTHROPIC_API_KEY: 'secret-0123456789', ANTHROPIC_BASE_URL: 'http://127.0.0.1:2' };
    const { code, stdout } = await home.run(['doctor', '--json'], { env });
    const { findings, provider } = JSON.parse(stdout) as DoctorReport;
    assert.deepEqual([code, findings[0]?.severity, provider?.name], [1, 'error', 'anthropic']);
    assert.doesNotMatch(stdout, /secret-/);
  });
});
