/** Calls of git get no variable of git's own, end with all that they have started, and are told apart from those that were ended. */
import assert from 'node:assert/strict';
import { chmodSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { rowOf } from '../../../src/engine/files/liveProcess.ts';
import {
  gitEnvironment,
  gitSettings,
  readsAlone,
  runGit,
  serverEnvironment,
} from '../../../src/engine/tools/gitStart.ts';
import { eventually } from '../../eventually.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';
import { skipBecause } from '../../skipBecause.ts';

const person = {
  PATH: '/usr/bin:/bin',
  GIT_DIR: '/elsewhere',
  GIT_CONFIG_COUNT: '1',
  git_trace: '1',
  GIT_SSH_COMMAND: 'ssh -i key',
  GIT_SSL_CAINFO: '/ca.pem',
  LC_ALL: 'de_DE',
};

describe('a call of git', () => {
  let folder: TempFolder;
  beforeEach(() => {
    folder = tempFolder();
  });
  afterEach(() => folder.remove());

  /** Runs a shell script in git's place. */
  function run(script: string, more: { input?: string; signal?: AbortSignal; mostOutput?: number } = {}) {
    folder.add({ program: `#!/bin/sh\n${script}\n` });
    const program = join(folder.path, 'program');
    chmodSync(program, 0o700);
    return runGit(program, ['one', 'two'], { cwd: folder.path, env: gitEnvironment(person), ...more });
  }

  it('has no variable of git’s own but those that it needs', () => {
    const names = (env: object): string[] => Object.keys(env).filter(name => /^git_/i.test(name));
    assert.deepEqual(names(gitEnvironment(person)), ['GIT_TERMINAL_PROMPT', 'GIT_OPTIONAL_LOCKS']);
    assert.equal(gitEnvironment(person)['LC_ALL'], 'C');
    assert.equal(gitEnvironment(person, readsAlone)['GIT_ALLOW_PROTOCOL'], 'none');
  });

  it('reaches servers in the way of the person, and asks no one', () => {
    const env = serverEnvironment(person, { GIT_LFS_SKIP_PUSH: '1' });
    assert.deepEqual([env['GIT_SSH_COMMAND'], env['GIT_SSL_CAINFO']], ['ssh -i key', '/ca.pem']);
    assert.deepEqual([env['GIT_DIR'], env['GIT_ASKPASS'], env['GIT_LFS_SKIP_PUSH']], [undefined, '', '1']);
    assert.equal(serverEnvironment({})['GIT_SSH_COMMAND'], 'ssh -oBatchMode=yes');
  });

  it('runs no hook and tidies nothing up, whatever else is set', () => {
    const options = gitSettings('core.pager=cat').join(' ');
    for (const setting of ['core.hooksPath=/dev/null', 'core.fsmonitor=false', 'gc.auto=0', 'core.pager=cat'])
      assert.ok(options.includes(`-c ${setting}`), setting);
  });

  it('gives its code, what it printed, and the end of what it said', async function () {
    if (process.platform === 'win32') return skipBecause(this, 'not on Windows');
    const { code, stdout, stderr } = await run('cat; echo "$*" >&2; exit 3', { input: 'words' });
    assert.deepEqual([code, stdout.toString(), stderr], [3, 'words', 'one two\n']);
  });

  it('is ended with what it has started, on abort and for too much output', async function () {
    if (process.platform === 'win32') return skipBecause(this, 'not on Windows');
    const controller = new AbortController();
    const child = (): string => readFileSync(join(folder.path, 'child'), 'utf8');
    const ended = run('sleep 600 & echo $! > child; wait', { signal: controller.signal });
    await eventually(() => assert.match(child(), /^\d+\n/));
    controller.abort();
    assert.equal((await ended).code, null);
    await eventually(() => assert.equal(rowOf(Number(child())), undefined));
    assert.equal((await run('yes', { mostOutput: 10_000 })).code, null);
    assert.equal((await run('sleep 600', { signal: controller.signal })).code, null);
  });

  it('rejects where there is no such program', async () => {
    const missing = runGit(join(folder.path, 'none'), [], { cwd: folder.path, env: {} });
    await assert.rejects(missing, { code: 'ENOENT' });
  });
});
