import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { PlanFolder } from '../../src/plans/planFolder.ts';
import { type Runner, readRunner, takeRunner } from '../../src/plans/runnerLock.ts';
import { until } from '../eventually.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const script = join(import.meta.dirname, '../fakes/runnerProcess.ts');

describe("the lock of a plan's runner", () => {
  let temporary: TempFolder;
  let folder: PlanFolder;
  beforeEach(() => {
    temporary = tempFolder();
    folder = new PlanFolder(temporary.path, temporary.path);
  });
  afterEach(() => temporary.remove());

  async function start(): Promise<{ child: ChildProcess; got: { busy?: number; taken?: number } }> {
    const child = spawn(process.execPath, [script, folder.dir, folder.repo], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const [line] = await once(child.stdout!, 'data');
    return { child, got: JSON.parse(String(line)) };
  }
  const locks = (): string[] => readdirSync(folder.dir).filter(name => name.endsWith('.lock'));

  async function taken() {
    const result = await takeRunner(folder, 'cli');
    assert.ok(result.kind === 'taken', JSON.stringify(result));
    return result.lock;
  }

  it('lets one process work, tells others which one, and passes on when it ends', async () => {
    const one = await start();
    const two = await start();
    assert.deepEqual([one.got, two.got], [{ taken: one.child.pid }, { busy: one.child.pid }]);
    assert.equal(readRunner(folder)?.pid, one.child.pid);
    one.child.stdin?.end();
    two.child.stdin?.end();
    await Promise.all([once(one.child, 'exit'), once(two.child, 'exit')]);
    assert.equal(readRunner(folder), undefined);
    const lock = await taken();
    assert.equal(lock.previous, undefined);
    await lock.release();
    assert.equal(locks().length, 1);
  });

  it('is free at once when its process was killed, and names it to the successor', async () => {
    const { child } = await start();
    child.kill('SIGKILL');
    await once(child, 'exit');
    const lock = await taken();
    assert.equal(lock.previous?.pid, child.pid);
    assert.equal(lock.mark, lock.previous?.mark);
    await lock.release();
  });

  it('of many that take over a dead one at once lets one', async () => {
    const { child } = await start();
    child.kill('SIGKILL');
    await once(child, 'exit');
    for (let round = 0; round < 20; round++) {
      const results = await Promise.all(Array.from({ length: 8 }, () => takeRunner(folder, 'cli')));
      const winners = results.flatMap(result => (result.kind === 'taken' ? [result.lock] : []));
      assert.equal(winners.length, 1);
      assert.equal(winners[0]?.isOurs(), true);
      await winners[0]?.release();
    }
    assert.equal(locks().length, 1);
  });

  it('is not won by one who was late: between the look and the file another came, worked and cleaned up', async () => {
    const { child } = await start();
    child.kill('SIGKILL');
    await once(child, 'exit');
    let isLate = true;
    class LateFolder extends PlanFolder {
      override path(...parts: readonly string[]): string {
        if (parts[0] === 'runner.2.lock' && isLate) {
          isLate = false;
          // The second runner has ended, the third works, and the file of the second is gone.
          const own = { ...JSON.parse(readFileSync(super.path('runner.1.lock'), 'utf8')), boot: 'another' };
          writeFileSync(super.path('runner.3.lock'), JSON.stringify(own));
        }
        return super.path(...parts);
      }
    }
    const result = await takeRunner(new LateFolder(folder.dir, folder.repo), 'cli');
    assert.equal(result.kind, 'busy');
    assert.equal(locks().includes('runner.2.lock'), false);
  });

  /** What another machine, or another container, left that writes to the same disk. */
  function foreign(change: Partial<Runner>, secondsAgo: number): void {
    const runner = {
      pid: process.pid,
      boot: 'another',
      namespace: '',
      started: '',
      mark: randomUUID(),
      door: 'cli',
      since: 's',
    };
    const file = folder.path('runner.7.lock');
    writeFileSync(file, JSON.stringify({ ...runner, ...change }));
    const at = new Date(Date.now() - secondsAgo * 1000);
    utimesSync(file, at, at);
  }

  it('of another machine is believed while it beats, also when the clock went back', async () => {
    for (const ago of [0, 5, -3600]) {
      foreign({}, ago);
      assert.equal((await takeRunner(folder, 'cli')).kind, 'busy', `${ago} s`);
    }
    for (const ago of [11, -40 * 24 * 3_600]) {
      for (const name of locks()) rmSync(folder.path(name));
      foreign({}, ago);
      await (await taken()).release();
      assert.deepEqual(locks(), ['runner.8.lock']);
    }
  });

  it('says once for how long nothing worked: after a runner that was killed, and while the machine slept', async () => {
    const hour = 3_600_000;
    // A beat is no absence, and what the test has taken is one at most.
    const assertAnHour = (away: number, since: number): void => {
      assert.ok(away >= hour - 2_000 && away <= hour + (Date.now() - since), `${away} ms`);
    };
    const begun = Date.now();
    foreign({}, hour / 1000);
    const lock = await taken();
    assertAnHour(lock.away(), begun);
    assert.equal(lock.away(), 0);
    await lock.release();
    foreign({ ended: true }, hour / 1000);
    const awake = Date.now();
    const next = await taken();
    assert.equal(next.away(), 0);
    const { now } = Date;
    try {
      Date.now = () => now() + hour;
      assertAnHour(next.away(), awake + hour);
      assert.equal(next.away(), 0);
    } finally {
      Date.now = now;
    }
    await next.release();
  });

  it('is not taken for a process that has the same pid by chance', async () => {
    const lock = await taken();
    const own = JSON.parse(readFileSync(folder.path('runner.1.lock'), 'utf8'));
    await lock.release();
    writeFileSync(folder.path('runner.2.lock'), JSON.stringify({ ...own, started: '1' }));
    if (process.platform === 'linux') await (await taken()).release();
    writeFileSync(folder.path('runner.9.lock'), JSON.stringify(own));
    assert.equal((await takeRunner(folder, 'cli')).kind, 'busy');
    writeFileSync(folder.path('runner.9.lock'), 'not a lock');
    await (await taken()).release();
  });

  it('is taken also where a file that came along has the highest number there is', async () => {
    const forged = (number: string): string => folder.path(`runner.${number}.lock`);
    for (const highest of ['000000007', '999999998', '999999999', '999999999999']) {
      writeFileSync(forged(highest), 'forged');
      for (let time = 0; time < 3; time++) {
        const lock = await taken();
        assert.equal(lock.isOurs(), true, highest);
        assert.equal((await takeRunner(folder, 'cli')).kind, 'busy', highest);
        await lock.release();
      }
    }
  });

  it('is taken also where a link, a folder or a large file has come along under its name', async () => {
    const forged = [
      (file: string) => symlinkSync('nowhere', file),
      (file: string) => symlinkSync('runner.1.lock', file),
      (file: string) => mkdirSync(join(file, 'inner'), { recursive: true }),
      (file: string) => writeFileSync(file, 'x'.repeat(100_000)),
    ];
    const own = await taken();
    for (const [index, make] of forged.entries()) {
      const file = folder.path(`runner.${index + 2}0.lock`);
      make(file);
      assert.equal(readRunner(folder), undefined);
      await (await taken()).release();
      assert.equal(existsSync(file), false);
    }
    await own.release();
  });

  it('is known to be lost when another took it or a person deleted it', async function () {
    this.timeout(15_000);
    const lock = await taken();
    assert.equal(lock.isOurs(), true);
    writeFileSync(folder.path('runner.2.lock'), '{}');
    assert.equal(lock.isOurs(), false);
    await until(() => lock.lost.aborted);
    await lock.release();
    assert.equal(JSON.parse(readFileSync(folder.path('runner.1.lock'), 'utf8')).ended, undefined);
  });
});
