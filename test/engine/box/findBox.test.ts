/** Which box works here, and what is said where none does. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, readFileSync, rmSync, utimesSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { findBox, installCommand, reasonOf } from '../../../src/engine/box/findBox.ts';
import { filterFor } from '../../../src/engine/box/systemCalls.ts';
import { skipBecause } from '../../skipBecause.ts';
import { temporaryRun } from '../tools/temporaryRun.ts';

describe('findBox', () => {
  it('starts no program that a run could have put there', async () => {
    const run = temporaryRun();
    const planted = run.put('work/bin/bwrap', '#!/bin/sh\nexit 0\n');
    chmodSync(planted, 0o755);
    const env = {
      ...run.context.env,
      PATH: [join(run.work, 'bin'), run.context.env['PATH']].join(delimiter),
    };
    const found = await findBox({ ...run.context, env });
    assert.ok(!found.works || found.program !== planted);
    const only = await findBox({ ...run.context, env: { PATH: join(run.work, 'bin') } });
    assert.equal(only.works, process.platform === 'darwin');
    run.remove();
  });

  it('says why a program that is there does not start, and never throws', async function () {
    if (process.platform !== 'linux') return skipBecause(this, 'only on Linux');
    const run = temporaryRun();
    const broken = run.put('outside/bwrap', '#!/bin/sh\necho "bwrap: No permissions" >&2\nexit 1\n');
    chmodSync(broken, 0o755);
    const found = await findBox({ env: { PATH: run.outside } });
    assert.ok(!found.works);
    assert.match(found.why, /No permissions|AppArmor|kernel/);
    run.remove();
  });

  it('is known to the next process, until the program is another or the box could not be made', function () {
    if (process.platform !== 'linux') return skipBecause(this, 'only on Linux');
    const run = temporaryRun();
    const program = run.put('outside/bwrap', `#!/bin/sh\necho start >> ${join(run.outside, 'starts')}\n`);
    chmodSync(program, 0o755);
    const dataDir = join(run.outside, 'data');
    const inNewProcess = (call: string): unknown => {
      const code = `import { findBox, forgetBox } from ${JSON.stringify(import.meta.resolve('../../../src/engine/box/findBox.ts'))};
        console.log(JSON.stringify(await ${call} ?? null));`;
      return JSON.parse(
        execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' }),
      );
    };
    const find = () =>
      inNewProcess(`findBox(${JSON.stringify({ env: { PATH: run.outside } })}, ${JSON.stringify(dataDir)})`);
    const starts = () => readFileSync(join(run.outside, 'starts'), 'utf8').split('\n').length - 1;
    const changedAt = (time: number) => utimesSync(program, time, time);
    changedAt(1_700_000_000);
    find();
    const alone = starts();
    // Perl may be installed at any time, and is found at once.
    find();
    assert.equal(starts(), 2 * alone);
    rmSync(join(run.outside, 'starts'));
    chmodSync(run.put('outside/perl', '#!/bin/sh\nexit 1\n'), 0o755);
    const found = find();
    const first = starts();
    assert.ok(first > 0);
    assert.deepEqual(find(), found);
    assert.equal(starts(), first);
    const inWork = { env: { PATH: run.outside }, workingDir: run.outside };
    const ofRuns = inNewProcess(`findBox(${JSON.stringify(inWork)}, ${JSON.stringify(dataDir)})`);
    assert.equal((ofRuns as { works: boolean }).works, false);
    changedAt(1_700_000_001);
    find();
    assert.equal(starts(), 2 * first);
    inNewProcess(`forgetBox(${JSON.stringify(dataDir)})`);
    find();
    assert.equal(starts(), 3 * first);
    run.remove();
  });

  it('names the command or the profile that mends it', () => {
    const reason = (switches: Record<string, string>, there: string[] = []) =>
      reasonOf(
        'bwrap: setting up uid map: Permission denied',
        '/usr/bin/bwrap',
        path => switches[path.replace('/proc/sys/', '')] ?? '',
        path => there.includes(path),
      );
    const apparmor = reason({ 'kernel/apparmor_restrict_unprivileged_userns': '1\n' });
    assert.match(apparmor.why, /AppArmor/);
    assert.match(
      apparmor.mend ?? '',
      /profile bwrap \/usr\/bin\/bwrap flags=\(unconfined\) \{\n {2}userns,\n\}/,
    );
    assert.match(apparmor.mend ?? '', /sudo apparmor_parser -r \/etc\/apparmor.d\/bwrap/);
    assert.match(
      reason({ 'kernel/unprivileged_userns_clone': '0' }).mend ?? '',
      /unprivileged_userns_clone=1/,
    );
    assert.match(reason({ 'user/max_user_namespaces': '0' }).mend ?? '', /max_user_namespaces=15000/);
    assert.match(reason({}, ['/.dockerenv']).mend ?? '', /--security-opt seccomp=unconfined/);
    assert.deepEqual(reason({}), {
      why: 'bubblewrap could not be started: bwrap: setting up uid map: Permission denied.',
    });
    const installs = ['ID=ubuntu\nID_LIKE=debian', 'ID="rocky"\nID_LIKE="rhel fedora"', 'ID=arch', ''].map(
      installCommand,
    );
    assert.deepEqual(installs, [
      'sudo apt install bubblewrap',
      'sudo dnf install bubblewrap',
      'sudo pacman -S bubblewrap',
      'sudo apt install bubblewrap',
    ]);
  });
});

/** Runs the filter as the kernel does. */
function answerOf(
  filter: Buffer,
  call: { number: number; processor: number; first?: number; second?: number },
): number {
  const data = new Map([
    [0, call.number],
    [4, call.processor],
    [16, call.first ?? 0],
    [24, call.second ?? 0],
  ]);
  let loaded = 0;
  for (let at = 0; at < filter.length; at += 8) {
    const [code, value] = [filter.readUInt16LE(at), filter.readUInt32LE(at + 4)];
    if (code === 0x06) return value;
    if (code === 0x20) loaded = data.get(value)!;
    else {
      const holds =
        code === 0x15 ? loaded === value : code === 0x35 ? loaded >= value : (loaded & value) !== 0;
      at += 8 * filter.readUInt8(at + (holds ? 2 : 3));
    }
  }
  throw new Error('The filter gives no answer.');
}

describe('the filter of system calls', () => {
  const failed = (error: number): number => 0x50000 | error;
  const allowed = 0x7fff0000;
  const x64 = { processor: 0xc000003e };

  it('refuses keys, other namespaces, typing into a terminal, and sockets that leave the network', () => {
    const filter = filterFor('x64')!;
    const calls: readonly [string, Parameters<typeof answerOf>[1], number][] = [
      ['read', { ...x64, number: 0 }, allowed],
      ['execve', { ...x64, number: 59 }, allowed],
      ['keyctl', { ...x64, number: 250 }, failed(1)],
      ['add_key', { ...x64, number: 248 }, failed(1)],
      ['setns', { ...x64, number: 308 }, failed(1)],
      ['io_uring_setup', { ...x64, number: 425 }, failed(38)],
      ['clone3', { ...x64, number: 435 }, failed(38)],
      ['a fork', { ...x64, number: 56, first: 0x1200011 }, allowed],
      ['a new user', { ...x64, number: 56, first: 0x10000011 }, failed(1)],
      ['unshare', { ...x64, number: 272, first: 0x10000000 }, failed(1)],
      ['a Unix socket', { ...x64, number: 41, first: 1 }, allowed],
      ['IPv6', { ...x64, number: 41, first: 10 }, allowed],
      ['netlink', { ...x64, number: 41, first: 16 }, allowed],
      ['the host of the machine', { ...x64, number: 41, first: 40 }, failed(97)],
      ['the size of a terminal', { ...x64, number: 16, second: 0x5413 }, allowed],
      ['TIOCSTI', { ...x64, number: 16, second: 0x5412 }, failed(1)],
      ['the other table', { ...x64, number: 0x40000000 + 250 }, failed(38)],
      ['a program of 32 bits', { processor: 0x40000003, number: 1 }, failed(38)],
    ];
    for (const [name, call, answer] of calls) assert.equal(answerOf(filter, call), answer, name);
  });

  it('knows the numbers of ARM, and no others', () => {
    const arm = { processor: 0xc00000b7 };
    assert.equal(answerOf(filterFor('arm64')!, { ...arm, number: 219 }), failed(1));
    assert.equal(answerOf(filterFor('arm64')!, { ...arm, number: 250 }), allowed);
    assert.equal(answerOf(filterFor('arm64')!, { ...arm, number: 198, first: 40 }), failed(97));
    assert.equal(filterFor('riscv64'), undefined);
  });
});
