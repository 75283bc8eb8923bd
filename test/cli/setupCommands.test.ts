import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CliHome, cliHome } from './cliProcess.ts';

describe('telos init and skill add', function () {
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
    assert.equal(listed.stdout, 'Skill       Description\ndaily-plan  Use this when I ask for daily plan.\n');
    const dryRun = await home.run(['--dry-run', 'my', 'daily', 'plan']);
    assert.equal(dryRun.stdout, 'Would run daily-plan of kairos: its name is in your request\n');
    const again = await home.run(['skill', 'add', 'kairos', 'daily-plan']);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /not overwriting/);
  });

  it('refuses names that lead elsewhere, and touches nothing', async () => {
    for (const name of ['..', '../x', '/abs', '', '.git', 'a/b', 'x'.repeat(65), 'a\x1b']) {
      const { code, stdout, stderr } = await home.run(['skill', 'add', name, 'plan']);
      assert.deepEqual([code, stdout], [2, ''], name);
      assert.doesNotMatch(stderr, /\x1b/);
    }
    assert.ok(!existsSync(home.skillsDir));
  });
});
