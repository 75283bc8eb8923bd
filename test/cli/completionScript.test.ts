import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type CliHome, cliHome } from './cliProcess.ts';

describe('telos completion', function () {
  this.timeout(30_000);
  let home: CliHome;

  beforeEach(() => {
    home = cliHome({ 'skills/kairos/skills/kickoff/SKILL.md': '---\ndescription: M\n---\nB' });
  });
  afterEach(() => home.remove());

  it('completes commands, options and agents in a real bash', async () => {
    const { code, stdout } = await home.run(['completion', 'bash']);
    assert.equal(code, 0);
    const complete = (...words: string[]): string[] => {
      const script = `telos() { printf 'Agent  Skills\\nkairos  1\\nwe ird  1\\n$(echo>hacked)  1\\n\\140echo>hacked\\140  1\\n'; }
${stdout}
COMP_WORDS=(${words.map(word => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _telos; echo "\${COMPREPLY[@]}"`;
      return spawnSync('bash', ['-c', script], { encoding: 'utf8', cwd: home.folder.path })
        .stdout.trim()
        .split(' ');
    };
    assert.deepEqual(complete('telos', 'list'), ['list-skills']);
    assert.deepEqual(complete('telos', '--dr'), ['--dry-run']);
    assert.deepEqual(complete('telos', 'runs', 's'), ['show']);
    assert.deepEqual(complete('telos', 'runs', 're'), ['replay', 'rename']);
    assert.deepEqual(complete('telos', '--agent', 'k'), ['kairos']);
    assert.deepEqual(complete('telos', 'uninstall', 'k'), ['kairos']);
    assert.deepEqual(complete('telos', 'uninstall', ''), ['kairos']);
    assert.deepEqual(complete('telos', 'uninstall', '--y'), ['--yes']);
    assert.deepEqual(complete('telos', 'ask', '--js'), ['--json']);
    assert.deepEqual(complete('telos', 'install', 'sk'), ['skills']);
    for (const option of ['--model', '--provider', '--max-cost', '--days', '--limit', '--search', '--mode'])
      assert.deepEqual(complete('telos', option, ''), [''], `a word behind ${option} is the person's own`);
    assert.deepEqual(complete('telos', 'completion', ''), ['bash', 'zsh', 'fish']);
    for (const name of ['cost', 'doctor', 'lint', 'trust', 'policy', 'undo'])
      assert.deepEqual(complete('telos', name), [name]);
    assert.ok(!existsSync(join(home.folder.path, 'hacked')), 'an agent’s name is never carried out');
  });

  it('speaks for zsh and fish too, and refuses other shells', async () => {
    assert.match((await home.run(['completion', 'zsh'])).stdout, /bashcompinit/);
    const fish = (await home.run(['completion', 'fish'])).stdout;
    assert.match(fish, /^complete -c telos -n __fish_use_subcommand -l model -x$/m);
    assert.match(fish, /^complete -c telos -n __fish_use_subcommand -a list-skills -d 'list the skills'$/m);
    assert.equal((await home.run(['completion', 'tcsh'])).code, 2);
  });
});
