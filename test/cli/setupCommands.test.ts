import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { agentHome } from '../../src/engine/files/agentHome.ts';
import { pluginFolders } from '../../src/engine/mcp/pluginServers.ts';
import { treeOf } from '../engine/skills/treeOf.ts';
import { type CliHome, cliHome, program } from './cliProcess.ts';

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
    assert.equal(dryRun.stdout, 'Would run daily-plan (kairos): named in your request\n');
    const again = await home.run(['skill', 'add', 'kairos', 'daily-plan']);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /already/);
  });

  it('writes down where a skill from elsewhere works, and leaves that to the person from then on', async () => {
    home.folder.add({
      'src/todo/SKILL.md': '---\ndescription: d\n---\nGo.\n',
      'config/agents.toml': '# mine\n[agents.other]\nworking_dir = "~/other"\n',
    });
    const install = (...more: string[]) => home.run(['install', join(home.folder.path, 'src/todo'), ...more]);
    const written = () =>
      /\[agents\.todo\]\nworking_dir = "(.*)"\n$/.exec(readFileSync(configFile(), 'utf8'))?.[1];
    assert.equal((await install()).code, 0);
    assert.equal(written(), '.');
    assert.equal((await install('--vault')).code, 0);
    assert.match(written() ?? '', /telos\/todo$/);
    assert.equal((await install()).code, 0);
    assert.match(written() ?? '', /telos\/todo$/);
    assert.equal((await install('--here', '--vault')).code, 2);
    assert.equal((await home.run(['uninstall', 'todo', '--yes'])).code, 0);
    assert.equal(
      readFileSync(configFile(), 'utf8').trim(),
      '# mine\n[agents.other]\nworking_dir = "~/other"',
    );
    home.folder.add({ 'src/todo/agent.toml': '' });
    assert.equal((await install()).code, 0);
    assert.equal(written(), undefined);
  });

  it('lists and finds the skills of the project, before those of the person', async () => {
    const skill = (text: string) => `---\ndescription: ${text}\n---\nGo.\n`;
    home.folder.add({
      'skills/tea/skills/tea/SKILL.md': skill('of the person'),
      'repo/.git/HEAD': '',
      'repo/.agents/skills/tea/SKILL.md': skill('of the project'),
      'repo/sub/x': '',
    });
    symlinkSync(home.folder.path, join(home.folder.path, 'repo/.claude'));
    const cwd = join(home.folder.path, 'repo/sub');
    const { stdout } = await home.run(['--dry-run', '/tea', '--cwd', cwd]);
    assert.equal(stdout, 'Would run tea (repo): requested as /tea\n');
    assert.match((await home.run(['agents', '--cwd', cwd])).stdout, /^repo +project +1 /m);
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
    assert.deepEqual([installed.code, installed.stdout], [0, "Installed agent 'gmail' with 1 skill\n"]);
    assert.ok(existsSync(join(home.skillsDir, 'gmail/skills/check/SKILL.md')));
    const removed = await home.run(['uninstall', 'gmail', '--yes']);
    assert.deepEqual([removed.code, removed.stdout], [0, "Uninstalled agent 'gmail'\n"]);
    assert.ok(!existsSync(join(home.skillsDir, 'gmail')));
  });

  it('says what the servers of a plugin have stored, and leaves it', async () => {
    home.folder.add(pack);
    await home.run(['install', '../src']);
    const { data } = pluginFolders(join(home.skillsDir, 'gmail'), home.dataDir);
    mkdirSync(data, { recursive: true });
    writeFileSync(join(data, 'notes.db'), 'mine');
    const { stderr } = await home.run(['uninstall', 'gmail', '--yes']);
    assert.ok(stderr.includes(`Data that its servers stored stays in ${data}`), stderr);
    assert.ok(existsSync(join(data, 'notes.db')));
  });

  it('says what the commands of an agent have stored in the sandbox, and leaves it', async () => {
    home.folder.add(pack);
    await home.run(['install', '../src']);
    const stored = join(agentHome(home.dataDir, { packDir: join(home.skillsDir, 'gmail') }), 'home');
    mkdirSync(stored, { recursive: true });
    writeFileSync(join(stored, 'tasks.db'), 'mine');
    const { stderr } = await home.run(['uninstall', 'gmail', '--yes']);
    assert.ok(
      stderr.includes(`Data that its commands stored in the sandbox stays in ${dirname(stored)}`),
      stderr,
    );
    assert.ok(existsSync(join(stored, 'tasks.db')));
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

  describe('over an agent that is there', () => {
    const agent = (path = ''): string => join(home.skillsDir, 'gmail', path);
    beforeEach(() => {
      home.folder.add({
        ...pack,
        'skills/gmail/notes.md': 'years of work',
        'skills/gmail/skills/check/SKILL.md': '---\ndescription: Mine\n---\nM',
        'skills/gmail/.git/HEAD': 'x',
      });
      mkdirSync(agent('empty'));
      symlinkSync('/etc/passwd', agent('link'));
      chmodSync(agent('notes.md'), 0o600);
    });

    /** As on a terminal: the answer is typed when the question is there. */
    async function typing(answer: string, args: readonly string[]): Promise<{ code: number; said: string }> {
      const terminal = 'data:text/javascript,process.stdin.isTTY=process.stderr.isTTY=true';
      const child = spawn(process.execPath, ['--import', terminal, program(), ...args], {
        cwd: home.workDir,
        env: home.env,
      });
      let said = '';
      let isAnswered = false;
      child.stderr.setEncoding('utf8').on('data', async (piece: string) => {
        said += piece;
        if (isAnswered || !said.includes('[y/N]')) return;
        isAnswered = true;
        // Whoever answers has read the question first.
        await delay(500);
        child.stdin.end(`${answer}\n`);
      });
      return new Promise(resolve => child.once('close', code => resolve({ code: code ?? -1, said })));
    }

    it('replaces nothing in a pipe, and says whose it is, what goes and what to type', async () => {
      const before = treeOf(home.skillsDir);
      for (const more of [[], ['--yes']]) {
        const { code, stdout, stderr } = await home.run(['install', '../src', ...more]);
        assert.deepEqual([code, stdout], [1, ''], stderr);
        assert.match(stderr, /Agent gmail already exists: .*skills\/gmail\n/);
        assert.match(stderr, /It was made by hand/);
        assert.match(stderr, /Removed:\n {2}\.git\/\n {2}empty\/.*\n {2}link\n {2}notes\.md\n/);
        assert.match(stderr, /Changed:\n {2}skills\/check\/SKILL\.md\n/);
        assert.match(stderr, /telos install \.\.\/src --yes --as gmail/);
        assert.equal(treeOf(home.skillsDir), before);
      }
    });

    it('replaces it where a yes names it, and undo brings it back to the byte', async () => {
      const before = treeOf(agent());
      const { code, stdout, stderr } = await home.run(['install', '../src', '--yes', '--as', 'gmail']);
      assert.deepEqual([code, stdout], [0, "Installed agent 'gmail' with 1 skill\n"]);
      assert.match(stderr, /is kept for 30 days.*telos undo [\da-f]{8}/);
      assert.deepEqual(readdirSync(agent()), ['agent.toml', 'skills']);
      const listed = await home.run(['undo', '--list']);
      assert.match(listed.stdout, /The install of agent 'gmail' from .*src\n/);
      const shown = await home.run(['undo', '--show']);
      assert.match(shown.stdout, /A notes\.md\n/);
      assert.equal((await home.run(['undo'])).code, 1);
      assert.equal((await home.run(['undo', '--yes'])).code, 0);
      assert.equal(treeOf(agent()), before);
      const again = await home.run(['undo', '--yes']);
      assert.deepEqual([again.code, /is undone already/.test(again.stderr)], [0, true]);
    });

    it('takes --yes for the folder that the agent came from, not for another one', async () => {
      await home.run(['install', '../src', '--yes', '--as', 'gmail']);
      home.folder.add({ 'src/new.txt': 'x', 'other/gmail/skills/check/SKILL.md': 'other' });
      assert.equal((await home.run(['install', '../src'])).code, 1);
      assert.equal((await home.run(['install', '../src', '--yes'])).code, 0);
      const other = await home.run(['install', '../other/gmail', '--yes']);
      assert.equal(other.code, 1);
      assert.match(
        other.stderr,
        /It was installed from .*src on .*\nThe new one comes from .*other\/gmail\n/,
      );
      assert.equal((await home.run(['install', '../other/gmail', '--as', 'gmail 2'])).code, 0);
      assert.ok(existsSync(agent('new.txt')));
      assert.ok(existsSync(join(home.skillsDir, 'gmail 2/skills/check/SKILL.md')));
    });

    it('asks on a terminal, and does as is answered', async () => {
      const before = treeOf(agent());
      const refused = await typing('n', ['install', '../src']);
      assert.deepEqual([refused.code, treeOf(agent())], [1, before], refused.said);
      const agreed = await typing('y', ['install', '../src', '--yes']);
      assert.equal(agreed.code, 0, agreed.said);
      assert.ok(!existsSync(agent('notes.md')));
      const undone = await typing('y', ['undo']);
      assert.equal(undone.code, 0, undone.said);
      assert.equal(treeOf(agent()), before);
    });

    it('says of an agent whose entry was edited meanwhile that its folder alone is as before', async () => {
      const toml = 'config/agents.toml';
      home.folder.add({
        [toml]: '[agents.old]\nmode = "installed"\n',
        'data/agents/old/skills/s/SKILL.md': '---\nname: s\ndescription: D\n---\nB\n',
      });
      assert.equal((await home.run(['uninstall', 'old', '--yes'])).code, 0);
      home.folder.add({ [toml]: '# edited\n' });
      const { stderr } = await home.run(['undo', '--yes']);
      assert.match(
        stderr,
        /Undone\. The folder of agent 'old' is as it was before\.\n.*entry was not put back/,
      );
    });

    it('keeps what an uninstall removes, and an edited agent from being undone unasked', async () => {
      const before = treeOf(agent());
      await home.run(['uninstall', 'gmail', '--yes']);
      assert.ok(!existsSync(agent()));
      await home.run(['undo', '--yes']);
      assert.equal(treeOf(agent()), before);
      await home.run(['install', '../src', '--yes', '--as', 'gmail']);
      home.folder.add({ 'skills/gmail/since.md': 'work' });
      const refused = await home.run(['undo', '--yes']);
      assert.equal(refused.code, 1);
      assert.match(
        refused.stderr,
        /It has been edited since then:\n {2}A since\.md\nNothing was undone. --force/,
      );
      assert.equal((await home.run(['undo', '--yes', '--force'])).code, 0);
      assert.equal(treeOf(agent()), before);
      assert.equal((await home.run(['undo', '--yes'])).code, 0);
      assert.equal(readFileSync(agent('since.md'), 'utf8'), 'work');
    });
  });
});
