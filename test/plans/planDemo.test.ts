/** The demo's project without git or Node. How its plan is played is shown in `test/plan/journey.test.ts` and in a real VS Code. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDemoProject, makeDemoProject } from '../../src/plans/planDemo.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const files = fileURLToPath(new URL('../../media/plan-demo', import.meta.url));

describe('the project of the sample plan', () => {
  let folder: TempFolder;
  let before: string | undefined;
  const here = process.cwd();
  beforeEach(() => {
    folder = tempFolder({ 'bin/.keep': '', 'tmp/.keep': '' });
    before = process.env['TMPDIR'];
    process.env['TMPDIR'] = join(folder.path, 'tmp');
    // The Node that runs this test lies in the project, where programs are not found by name.
    process.chdir(join(folder.path, 'tmp'));
  });
  afterEach(() => {
    process.chdir(here);
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
    folder.remove();
  });

  const make = (): Promise<string> => makeDemoProject(files, { PATH: join(folder.path, 'bin') });
  const add = (name: string): void =>
    symlinkSync(
      name === 'node'
        ? process.execPath
        : execFileSync('/bin/sh', ['-c', `command -v ${name}`])
            .toString()
            .trim(),
      join(folder.path, 'bin', name),
    );
  const left = (): string[] => readdirSync(join(folder.path, 'tmp')).filter(name => name !== '.keep');

  it('says which of git and Node is missing or too old, and leaves nothing behind', async () => {
    await assert.rejects(
      make(),
      /needs git 2\.38 or later, which was not found\. Install it, then try again\./,
    );
    add('git');
    await assert.rejects(make(), /needs node 20\.0 or later/);
    folder.add({ 'bin/node': '#!/bin/sh\necho v18.20.1\n' });
    chmodSync(join(folder.path, 'bin/node'), 0o755);
    await assert.rejects(make(), /needs node 20\.0 or later/);
    assert.deepEqual(left(), []);
  });

  it('starts no git or Node of the project of the call', async () => {
    for (const name of ['git', 'node']) {
      folder.add({ [`bin/${name}`]: `#!/bin/sh\necho planted >> ${folder.path}/proof\necho v99.0.0\n` });
      chmodSync(join(folder.path, 'bin', name), 0o755);
    }
    process.chdir(folder.path);
    await assert.rejects(make(), /needs git 2\.38 or later, which was not found/);
    assert.equal(existsSync(join(folder.path, 'proof')), false);
  });

  it('is a repository with one commit, in a folder of its own', async () => {
    add('git');
    add('node');
    const repo = await make();
    assert.equal(left().length, 1);
    assert.ok(isDemoProject(repo) && !isDemoProject(folder.path));
    const git = (...args: readonly string[]): string =>
      execFileSync('git', args, { cwd: repo, encoding: 'utf8' });
    assert.equal(git('rev-list', '--count', 'HEAD').trim(), '1');
    assert.equal(git('status', '--porcelain'), '');
  });
});
