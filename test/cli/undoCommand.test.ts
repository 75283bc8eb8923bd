/** `telos undo` after a real run, as a person would call it. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startAnthropicServer } from '../fakes/anthropicServer.ts';
import type { FakeServer } from '../fakes/loopback.ts';
import { type CliHome, cliHome } from './cliProcess.ts';

describe('telos undo', function () {
  this.timeout(30_000);
  let home: CliHome;
  let model: FakeServer;

  beforeEach(async () => {
    model = await startAnthropicServer({
      turns: [
        {
          toolCalls: [
            { name: 'write_file', input: { path: 'plan.md', content: 'one\nTWO\nthree' } },
            { name: 'write_file', input: { path: 'new/deep.md', content: 'made\n' } },
          ],
        },
        { text: ['Done.'] },
      ],
    });
    home = cliHome({
      'skills/kairos/agent.toml': '',
      'skills/kairos/skills/kickoff/SKILL.md': '---\ndescription: M\n---\nB',
      'root/kairos/plan.md': 'one\ntwo\nthree\n',
    });
    Object.assign(home.env, {
      TELOS_WORKING_ROOT: join(home.folder.path, 'root'),
      ANTHROPIC_BASE_URL: model.url,
      ANTHROPIC_API_KEY: 'key-for-a-test',
    });
    const { code, stderr } = await home.run(['--yes', 'run kickoff']);
    assert.equal(code, 0, stderr);
    assert.equal(readFileSync(plan(), 'utf8'), 'one\nTWO\nthree');
  });
  afterEach(async () => {
    home.remove();
    await model.close();
  });

  const plan = (): string => join(home.folder.path, 'root/kairos/plan.md');
  const made = (): string => join(home.folder.path, 'root/kairos/new');

  it('shows what a run changed, brings it back to the byte, and then says so', async () => {
    const shown = await home.run(['undo', '--show']);
    assert.match(shown.stdout, /-two\n-three\n\+TWO\n\+three\n\\ No newline at end of file\n/);
    assert.match(shown.stdout, /--- \/dev\/null\n\+\+\+ .*new\/deep\.md\n@@ -0,0 \+1,1 @@\n\+made\n/);
    const asked = await home.run(['undo']);
    assert.deepEqual([asked.code, existsSync(made())], [1, true]);
    assert.match(asked.stderr, /M .*plan\.md\n {2}A .*deep\.md\nNothing was undone\. Use --yes/);
    const undone = await home.run(['undo', '--yes']);
    assert.deepEqual(
      [undone.code, undone.stderr.includes('Undone: 2 files restored')],
      [0, true],
      undone.stderr,
    );
    assert.deepEqual([readFileSync(plan(), 'utf8'), existsSync(made())], ['one\ntwo\nthree\n', false]);
    assert.match((await home.run(['undo', '--yes'])).stderr, /is undone already/);
  });

  it('undoes nothing where a file was edited since, or the others alone when told to', async () => {
    writeFileSync(plan(), 'mine');
    const refused = await home.run(['undo', '--yes']);
    assert.deepEqual([refused.code, existsSync(made())], [1, true]);
    assert.match(refused.stderr, /plan\.md {2}\(edited since then\)[\s\S]*Nothing was undone: files/);
    assert.equal((await home.run(['undo', '--yes', '--others'])).code, 1);
    assert.deepEqual([readFileSync(plan(), 'utf8'), existsSync(made())], ['mine', false]);
    assert.match((await home.run(['undo', 'none'])).stderr, /No changes are stored for the run 'none'/);
  });

  it('passes over a run that changed nothing in the end, and lists runs with what was asked', async () => {
    const again = await startAnthropicServer({
      turns: [
        { toolCalls: [{ name: 'write_file', input: { path: 'plan.md', content: 'one\nTWO\nthree' } }] },
        { text: ['Done.'] },
      ],
    });
    try {
      const { code } = await home.run(['--yes', 'run kickoff again'], {
        env: { ANTHROPIC_BASE_URL: again.url },
      });
      assert.equal(code, 0);
    } finally {
      await again.close();
    }
    assert.match(
      (await home.run(['undo', '--list'])).stdout,
      /A run: 1 file, “run kickoff again”\n.*A run: 2 files, “run kickoff”\n/,
    );
    const undone = await home.run(['undo', '--yes']);
    assert.equal(undone.code, 0, undone.stderr);
    assert.match(undone.stderr, /Undone: 2 files restored/);
    assert.equal(readFileSync(plan(), 'utf8'), 'one\ntwo\nthree\n');
  });

  it('says so where nothing is left to be undone', async () => {
    writeFileSync(plan(), 'one\ntwo\nthree\n');
    rmSync(join(home.folder.path, 'root/kairos/new/deep.md'));
    const { code, stderr } = await home.run(['undo']);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /nothing to undo/);
  });
});
