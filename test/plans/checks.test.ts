import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findBox } from '../../src/engine/box/findBox.ts';
import { loadConfig } from '../../src/engine/config.ts';
import { denyAll } from '../../src/engine/human.ts';
import { rememberWorkFolder } from '../../src/engine/skills/workFolders.ts';
import { Telos } from '../../src/engine/telos.ts';
import { findProgram } from '../../src/engine/tools/programPath.ts';
import { LookedCheckBox } from '../../src/plans/checkLook.ts';
import {
  CheckBox,
  type CheckPlace,
  runCheck,
  runChecks,
  setupPlace,
  suspicionOf,
} from '../../src/plans/checks.ts';
import { needOf, sandboxTrouble } from '../../src/plans/checkTrouble.ts';
import { Plan } from '../../src/plans/plan.ts';
import type { CheckResult, PlanCheck } from '../../src/protocol/plan.ts';
import { PlanRepo } from '../fakes/planRepo.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

describe('checks', () => {
  let folder: TempFolder;
  let place: CheckPlace;
  const config = {
    env: {
      PATH: process.env['PATH'] ?? '',
      ANTHROPIC_API_KEY: 'secret-key-0123456789',
      TELOS_HOME_TOKEN: 'x',
    },
    home: '/',
  };
  beforeEach(() => {
    folder = tempFolder({ 'slot/a.txt': 'hello' });
    const outputFile = ({ name }: PlanCheck) => join(folder.path, 'out', `${name}.txt`);
    place = { dir: join(folder.path, 'slot'), env: { TELOS_SLOT: '2' }, outputFile };
  });
  afterEach(() => folder.remove());

  const run = (command: string, more: Partial<PlanCheck> = {}, signal = new AbortController().signal) =>
    runCheck({ name: 'one', command, ...more }, place, config, signal);
  const kept = () => readFileSync(join(folder.path, 'out/one.txt'), 'utf8');

  it('runs in the slot, without keys, and keeps what it prints', async () => {
    const { exitCode, output, name, ms } = await run('cat a.txt; echo "$TELOS_SLOT"; echo oops >&2; env');
    assert.equal(exitCode, 0);
    assert.equal(name, 'one');
    assert.ok(ms >= 0);
    assert.match(output, /^hello2\n/);
    assert.match(output, /oops/);
    assert.doesNotMatch(output, /secret-key|TELOS_HOME_TOKEN/);
    assert.equal(kept().trimEnd(), output);
  });

  it('shows a boxed check the copies that the work tree got, and none of its other secrets', async () => {
    folder.add({ 'slot/.env': 'COPIED', 'slot/.npmrc': 'OTHER', 'repo/node_modules/a.js': 'LINKED' });
    symlinkSync(join(folder.path, 'repo/node_modules'), join(folder.path, 'slot/node_modules'));
    const own = {
      ...config,
      home: folder.path,
      dataDir: join(folder.path, 'data'),
      configDir: join(folder.path, 'config'),
    };
    const files = { copied: ['.env'], linked: ['node_modules'] };
    const box = new CheckBox({ ...own, sandbox: 'auto' }, place.dir, files);
    const line = 'cat .env node_modules/a.js; cat .npmrc; touch ../made';
    const check = { name: 'one', command: line };
    const { output } = await runCheck(check, { ...place, box }, own, new AbortController().signal);
    assert.match(output, /^COPIEDLINKED/);
    assert.equal(/OTHER/.test(output), !box.isUsed);
    assert.equal(existsSync(join(folder.path, 'made')), !box.isUsed);
    assert.equal(box.isUsed, (await findBox({ env: own.env })).works);
    const outside = { ...place, box, outside: new Set([line]) };
    assert.match((await runCheck(check, outside, own, new AbortController().signal)).output, /OTHER/);
  });

  it('tries a check outside once where it fails inside, if the user lets it out and does not want a box for each', async () => {
    folder.add({ 'data.env': 'x' });
    const own = {
      ...config,
      home: folder.path,
      dataDir: join(folder.path, 'data'),
      configDir: join(folder.path, 'c'),
    };
    const { works } = await findBox({ env: own.env });
    const command = `echo run >> ${join(folder.path, 'made')}; test -f ${join(folder.path, 'data.env')}`;
    const { signal } = new AbortController();
    const end = async (outside: boolean, sandbox: 'auto' | 'required' = 'auto') => {
      rmSync(join(folder.path, 'made'), { force: true });
      const box = new CheckBox({ ...own, sandbox }, place.dir);
      const check = { name: 'one', command, ...(outside && { outside }) };
      const { exitCode } = await runCheck(check, { ...place, box }, { ...own, sandbox }, signal);
      return [exitCode === 0, existsSync(join(folder.path, 'made'))];
    };
    assert.deepEqual(await end(true), [true, true]);
    assert.deepEqual(await end(false), [!works, !works]);
    if (works) assert.deepEqual(await end(true, 'required'), [false, false]);
  });

  it('names what a check lacked of this machine: a service that listens, a file elsewhere, the network', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const there = join(folder.path, 'there.txt');
    folder.add({ 'there.txt': 'x' });
    const seen = async (output: string, command = 'x') => {
      const found = await sandboxTrouble(
        { name: 'one', command },
        { name: 'one', exitCode: 1, ms: 1, output },
        place.dir,
      );
      return found && needOf(found);
    };
    const refused = 'ConnectionRefusedError: [Errno 111] Connection refused';
    assert.equal(await seen(refused, `connect(('127.0.0.1',${port}))`), `the service on localhost:${port}`);
    assert.equal(await seen(`connect ECONNREFUSED 127.0.0.1:${port}`), `the service on localhost:${port}`);
    server.close();
    await once(server, 'close');
    assert.equal(await seen(`connect ECONNREFUSED 127.0.0.1:${port}`), undefined);
    assert.equal(
      await seen(`cat: ${there}: No such file or directory`),
      `${there}, which lies outside of the project`,
    );
    assert.equal(await seen(`cat: ${there}.not: No such file or directory`), undefined);
    assert.equal(await seen(`cat: ${place.dir}/a.txt: No such file or directory`), undefined);
    assert.equal(await seen("/usr/bin/env: 'tsx': No such file or directory"), undefined);
    assert.equal(await seen('getaddrinfo EAI_AGAIN api.example.com'), 'the network (api.example.com)');
    assert.equal(await seen('AssertionError: 1 !== 2'), undefined);
  });

  describe('with a folder on the PATH in which another agent has worked', () => {
    const signal = new AbortController().signal;
    const planted = (): string =>
      existsSync(join(folder.path, 'started')) ? readFileSync(join(folder.path, 'started'), 'utf8') : '';
    /** Puts programs there that note in a file that they were started. */
    const worked = (...names: readonly string[]) => {
      const home = join(folder.path, 'home');
      const own = loadConfig({
        env: { PATH: [join(folder.path, 'work/bin'), config.env.PATH].join(delimiter), HOME: home },
        home,
        cwd: join(folder.path, 'slot'),
      });
      for (const name of names) {
        folder.add({
          [`work/bin/${name}`]: `#!/bin/sh\necho ${name} >> '${join(folder.path, 'started')}'\necho planted\n`,
        });
        chmodSync(join(folder.path, 'work/bin', name), 0o755);
      }
      rememberWorkFolder(own, join(folder.path, 'work'), 'other');
      return own;
    };

    it('uses none of its programs for a check, in the box or out of it', async () => {
      const own = worked('lint');
      const check = { name: 'one', command: 'lint' };
      for (const box of [undefined, new CheckBox({ ...own, sandbox: 'auto' }, place.dir)]) {
        const { exitCode, output } = await runCheck(check, { ...place, ...(box && { box }) }, own, signal);
        assert.equal(exitCode, 127, output);
        assert.match(output, /lint in .*work\/bin was not used, because runs can change what is in .*work\b/);
      }
      assert.equal(planted(), '');
    });

    it('does not take its bwrap for the box, nor its git for the look afterwards', async () => {
      const own = worked('bwrap', 'perl', 'git');
      // Git looks only at a folder that is not small.
      for (let at = 0; at < 1100; at++) folder.add({ [`slot/many/${at}`]: '' });
      const box = new LookedCheckBox({ ...own, sandbox: 'auto' }, place.dir);
      await box.works();
      const { output } = await runCheck(
        { name: 'one', command: 'echo ran; touch made' },
        { ...place, box },
        own,
        signal,
      );
      assert.match(output, /^ran\b/);
      assert.equal(existsSync(join(place.dir, 'made')), true);
      assert.equal(planted(), '');
      execFileSync(join(folder.path, 'work/bin/git'));
      assert.notEqual(planted(), '');
    });
  });

  it('runs the checks of a plan by hand in a box, or not at all, where the person wants one for each', async () => {
    const line = 'cat "$HOME/key.txt"; echo {} > .envrc; echo made > made.txt';
    const repo = await PlanRepo.make([{ checks: [{ name: 'one', command: line }] }]);
    writeFileSync(join(repo.config.home, 'key.txt'), 'hunter2');
    const has = (name: string): boolean => existsSync(join(repo.repo, name));
    const check = async (env: Record<string, string>, sandbox: 'auto' | 'required') => {
      const own = { ...repo.config, env: { ...repo.config.env, ...env }, sandbox };
      const plan = new Plan(repo.folder, { runs: Telos.open(own), human: denyAll, by: 'cli' });
      await plan.acceptCard(await plan.card());
      return (await plan.check('US-001', new AbortController().signal))[0];
    };
    try {
      const bin = tempFolder({ '.keep': '' });
      for (const name of ['sh', 'cat', 'git'])
        symlinkSync(findProgram(name, { env: config.env })!, join(bin.path, name));
      const refused = await check({ PATH: bin.path }, 'required');
      bin.remove();
      assert.equal(refused?.exitCode, null);
      const why = /Commands run in a sandbox only \(telos\.sandbox is required\), and none works here: /;
      assert.match(refused?.output ?? '', why);
      assert.equal(has('made.txt'), false);
      if ((await findBox({ env: config.env })).works) {
        const boxed = await check({}, 'required');
        assert.doesNotMatch(boxed?.output ?? '', /hunter2/);
        assert.match(boxed?.output ?? '', /\.envrc was not kept/);
        assert.deepEqual([boxed?.exitCode, has('made.txt'), has('.envrc')], [0, true, false]);
      }
      assert.match((await check({}, 'auto'))?.output ?? '', /hunter2/, 'by hand, as the person');
    } finally {
      await repo.remove();
    }
  });

  it('says how it failed', async () => {
    assert.equal((await run('echo no; exit 3')).exitCode, 3);
    const missing = await run('no-such-program-here');
    assert.equal(missing.exitCode, 127);
    assert.match(missing.output, /no-such-program-here/);
    assert.notEqual((await run('kill -9 $$')).exitCode, 0);
    assert.equal((await run('  ')).exitCode, null);
  });

  it('ends a check that takes too long, with everything that it started', async () => {
    const { exitCode, output } = await run('(sleep 60; echo late >> after.txt) & echo begun; sleep 60', {
      timeoutS: 0.5,
    });
    assert.equal(exitCode, null);
    assert.match(output, /begun\n\[timed out after 0\.5 s/);
  });

  it('keeps the end of an output of 5 MB with the result, and all of it in the file', async () => {
    const { exitCode, output } = await run("head -c 5000000 /dev/zero | tr '\\0' x; echo; echo THE END");
    assert.equal(exitCode, 0);
    assert.ok(output.length <= 8 * 1024 + 10);
    assert.match(output, /^\[…\]\n/);
    assert.match(output, /THE END$/);
    assert.equal(kept().length, 5_000_000 + '\nTHE END\n'.length);
  });

  it('ends a check that prints without end, and keeps no more than 64 MiB of it in the file', async () => {
    const { exitCode, output } = await run('yes');
    assert.equal(exitCode, null);
    assert.match(output, /y\n\[?.*printed more than/);
    const { size } = statSync(join(folder.path, 'out/one.txt'));
    assert.ok(size > 60 * 1024 * 1024 && size <= 64 * 1024 * 1024, `${size} bytes`);
  }).timeout(60_000);

  it('sets up a work tree in the box only where the person wants one for each command', () => {
    const boxed = { ...place, box: {} as NonNullable<CheckPlace['box']> };
    const isBoxed = (sandbox: 'required' | 'auto', from: CheckPlace) =>
      'box' in setupPlace(from, { ...config, sandbox } as never);
    assert.deepEqual(
      [isBoxed('required', boxed), isBoxed('auto', boxed), isBoxed('required', place)],
      [true, false, false],
    );
  });

  it('leaves nothing running when it is cancelled', async () => {
    const control = new AbortController();
    const running = run('echo $$ > pid.txt; sleep 60', {}, control.signal);
    const pid = async (): Promise<number> => {
      for (;;) {
        const text = (() => {
          try {
            return readFileSync(join(place.dir, 'pid.txt'), 'utf8').trim();
          } catch {
            return '';
          }
        })();
        if (text) return Number(text);
        await delay(20);
      }
    };
    const started = await pid();
    control.abort(new Error('stopped by the test'));
    await assert.rejects(running, /stopped by the test/);
    assert.throws(() => process.kill(started, 0), /ESRCH/);
  });

  it('stops at the first that fails, and tells each as it ends', async () => {
    const told: string[] = [];
    const checks = ['true', 'false', 'true'].map((command, at) => ({ name: `c${at}`, command }));
    const results = await runChecks(checks, place, config, new AbortController().signal, async ({ name }) => {
      told.push(name);
    });
    assert.deepEqual(told, ['c0', 'c1']);
    assert.deepEqual(
      results.map(({ exitCode }) => exitCode),
      [0, 1],
    );
  });

  it('runs a check that fails once more on the same files, and calls it flaky if it passes then', async () => {
    let resets = 0;
    const again = async (): Promise<void> => void resets++;
    const flaky = { name: 'flaky', command: 'test -f ../second || { touch ../second; echo late; exit 1; }' };
    const checks = [flaky, { name: 'red', command: 'echo red; exit 1' }];
    const { signal } = new AbortController();
    const [first, second] = await runChecks(checks, place, config, signal, async () => undefined, { again });
    assert.deepEqual([first?.exitCode, first?.flaky?.trim()], [0, 'late']);
    assert.deepEqual([second?.exitCode, second?.flaky, resets], [1, undefined, 2]);
  });

  it('does not take the absence of tests for success', async () => {
    const result = (output: string): CheckResult => ({ name: 'a', exitCode: 0, ms: 1, output });
    for (const output of [
      'No tests found, exiting with code 0',
      'No test files found',
      '# tests 0\n# pass 0',
      'ℹ tests 0\nℹ pass 0',
      '0 passing (1ms)',
      'Tests:       0 total',
      'running 0 tests\n\ntest result: ok. 0 passed; 0 failed',
      'collected 0 items',
      '?   	example.com/a	[no test files]',
      'npm error Missing script: "test"',
      'Ran 0 tests in 0.000s',
    ])
      assert.ok(suspicionOf(result(output), undefined), output);
    for (const output of [
      '# tests 4\n# pass 4\n# fail 0',
      'ℹ tests 12\nℹ suites 0\nℹ fail 0',
      '7 passing (1ms)\n0 failing',
      'Tests:       3 passed, 3 total',
      'running 2 tests\ntest result: ok. 2 passed; 0 failed\nrunning 0 tests\ntest result: ok. 0 passed',
      '===== 5 passed in 0.1s =====',
      '?   	example.com/a	[no test files]\nok  	example.com/b	0.3s',
      'Tests  0 failed | 3 passed (3)',
      '',
      'Checked 12 files. No problems.',
      'found 0 vulnerabilities',
    ])
      assert.equal(suspicionOf(result(output), undefined), undefined, output);
    assert.match(suspicionOf(result(''), result('12 files are fine')) ?? '', /printed nothing/);
    assert.equal(suspicionOf(result(''), result('')), undefined);
    assert.match(suspicionOf(result('ok'), result('ℹ tests 12')) ?? '', /names no test that ran/);
    assert.equal(suspicionOf(result('ℹ tests 9'), result('ℹ tests 12')), undefined);
    const [told] = await runChecks(
      [{ name: 'a', command: 'echo "0 passing"' }],
      place,
      config,
      new AbortController().signal,
      async () => undefined,
    );
    assert.match(told?.suspicious ?? '', /0 passing/);
  });
});
