import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CliHome, cliHome } from './cliProcess.ts';

describe('telos init, skill add, install, uninstall', function () {
  this.timeout(30_000);
  let home: CliHome;
  const configFile = () => join(home.folder.path, 'config/agents.toml');

  beforeEach(() => {
    home = cliHome();
  });
  afterEach(() => home.remove());

  it('creates the skills folder and a configuration that changes nothing yet', async () => {
    const { code, stdout } = await home.run(['init']);
    assert.equal(code, 0);
    assert.ok(stdout.includes(`Created ${configFile()}`), stdout);
    assert.ok(existsSync(home.skillsDir));
    assert.deepEqual(readdirSync(join(home.folder.path, 'config')), ['agents.toml']);
    for (const line of readFileSync(configFile(), 'utf8').split('\n')) assert.match(line, /^(#.*)?$/);
  });

  it('leaves a configuration alone that is there', async () => {
    home.folder.add({ 'config/agents.toml': '# mine\n' });
    const { code, stdout } = await home.run(['init']);
    assert.equal(code, 0);
    assert.match(stdout, /not overwriting/);
    assert.equal(readFileSync(configFile(), 'utf8'), '# mine\n');
  });

  it('writes a skill that can be listed and found at once, and never over another', async () => {
    const added = await home.run(['skill', 'add', 'kairos', 'daily-plan']);
    assert.deepEqual([added.code, added.stderr], [0, '']);
    const listed = await home.run(['list-skills']);
    assert.equal(
      listed.stdout,
      'Skill       Description\ndaily-plan  Use when the user wants ... (one sentence, in the words they would use)\n',
    );
    const dryRun = await home.run(['--dry-run', 'my', 'daily', 'plan']);
    assert.equal(dryRun.stdout, 'Would run daily-plan of kairos: its name is in your request\n');
    const again = await home.run(['skill', 'add', 'kairos', 'daily-plan']);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /already/);
  });

  it('refuses names that lead elsewhere, and touches nothing', async () => {
    for (const name of ['..', '../x', '/abs', '', '.git', 'a/b', 'x'.repeat(65), 'a\x1b']) {
      const { code, stdout, stderr } = await home.run(['skill', 'add', name, 'plan']);
      assert.deepEqual([code, stdout], [1, ''], name);
      assert.doesNotMatch(stderr, /\x1b/);
    }
    assert.ok(!existsSync(home.skillsDir));
  });

  const pack = {
    'src/agent.toml': 'name = "gmail"\n',
    'src/skills/check/SKILL.md': '---\ndescription: D\n---\nB',
  };

  it('says what an installed pack without a skill needs, and installs nothing for an empty name', async () => {
    home.folder.add({ 'src/agent.toml': 'name = "bare"\n', 'src/skills/.keep': '' });
    const { code, stdout, stderr } = await home.run(['install', '../src']);
    assert.deepEqual([code, stdout], [0, "Installed agent 'bare' with 0 skills\n"]);
    assert.match(stderr, /telos skill add bare/);
    assert.equal((await home.run(['install', ''])).code, 2);
  });

  it('installs a pack from a folder relative to the call, and uninstalls it with --yes', async () => {
    home.folder.add(pack);
    const installed = await home.run(['install', '../src']);
    assert.deepEqual([installed.code, installed.stdout], [0, "Installed agent 'gmail' with 1 skills\n"]);
    assert.ok(existsSync(join(home.skillsDir, 'gmail/skills/check/SKILL.md')));
    const removed = await home.run(['uninstall', 'gmail', '--yes']);
    assert.deepEqual([removed.code, removed.stdout], [0, "Uninstalled agent 'gmail'\n"]);
    assert.ok(!existsSync(join(home.skillsDir, 'gmail')));
  });

  it('uninstalls nothing when nobody can be asked, and nothing that is not there', async () => {
    home.folder.add(pack);
    await home.run(['install', '../src']);
    const unasked = await home.run(['uninstall', 'gmail']);
    assert.equal(unasked.code, 1);
    assert.match(unasked.stderr, /--yes/);
    for (const name of ['nope', '', '..', '.']) {
      const { code, stderr } = await home.run(['uninstall', name, '--yes']);
      assert.equal(code, 1, name);
      assert.ok(stderr.length > 0);
    }
    assert.ok(existsSync(join(home.skillsDir, 'gmail/skills/check/SKILL.md')));
  });

  it('says why a folder cannot be installed', async () => {
    const { code, stdout, stderr } = await home.run(['install', 'nowhere']);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /nowhere/);
  });
});
