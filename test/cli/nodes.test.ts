/** The npm package under each Node that it promises to run on, and under older ones. They come from npm. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';
import { packTelos } from './packedTelos.ts';

const run = promisify(execFile);

describe('the npm package on other machines', function () {
  this.timeout(300_000);
  let folder: TempFolder;
  let tarball: string;

  before(async () => {
    folder = tempFolder();
    ({ tarball } = await packTelos(folder.path));
  });
  after(() => folder.remove());

  /** Returns the variables of a machine that has this Node alone. */
  async function machineWith(major: number): Promise<{ home: string; env: Record<string, string> }> {
    const at = `node-${major}`;
    folder.add({ [`${at}/package.json`]: '{}', [`${at}/home/tmp/.keep`]: '' });
    const cwd = join(folder.path, at);
    const name = `node-${process.platform}-${process.arch}`;
    await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', `${name}@${major}`], { cwd });
    const bin = join(cwd, 'node_modules', name, 'bin');
    assert.ok(existsSync(join(bin, 'node')));
    const home = join(cwd, 'home');
    const path = `${join(home, 'prefix/bin')}:${bin}:${process.env['PATH']}`;
    return { home, env: { PATH: path, HOME: home, TMPDIR: join(home, 'tmp') } };
  }

  for (const major of [20, 22, 24]) {
    it(`installs and plays the demo on Node ${major}`, async () => {
      const { home, env } = await machineWith(major);
      const { stdout: version } = await run('node', ['--version'], { env });
      assert.match(version, new RegExp(`^v${major}\\.`));
      const prefix = join(home, 'prefix');
      const given = ['install', '--global', '--offline', '--no-audit', '--no-fund', '--prefix', prefix];
      const installed = await run('npm', [...given, tarball], { env, cwd: home });
      assert.doesNotMatch(installed.stderr, /EBADENGINE/);
      const { stdout, stderr } = await run('telos', ['demo'], { env, cwd: home });
      assert.match(stdout, /Your plan is in `today\.md`/);
      const plan = /The plan is (.*)\n/.exec(stderr)?.[1] ?? '';
      assert.match(readFileSync(plan, 'utf8'), /^# Today/);
    });
  }

  for (const major of [12, 16, 18]) {
    it(`says in one sentence that Node ${major} is too old`, async () => {
      const { home, env } = await machineWith(major);
      await run('tar', ['-xzf', tarball, '-C', home]);
      const { engines } = JSON.parse(readFileSync(join(home, 'package/package.json'), 'utf8'));
      const least = engines.node.replace('>=', '');
      const sentence = new RegExp(
        `^Telos needs Node ${least} or later, and this is Node ${major}\\.[\\d.]+ .*\n$`,
      );
      for (const program of ['cli.js', 'agent.js']) {
        const asked = run('node', [join(home, 'package/dist', program), 'demo'], { env, cwd: home });
        await assert.rejects(asked, (error: { code: number; stdout: string; stderr: string }) => {
          assert.deepEqual([error.code, error.stdout], [1, '']);
          assert.match(error.stderr, sentence);
          return true;
        });
      }
    });
  }
});
