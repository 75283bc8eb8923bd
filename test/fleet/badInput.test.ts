import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { eventually, gate } from '../eventually.ts';
import { skipBecause } from '../skipBecause.ts';
import { cutAfter } from './cutAfter.ts';
import { type FleetHome, type FleetWorld, model, notes, openFleet } from './fleetWorld.ts';
import { type Postgres, startPostgres } from './postgres.ts';

const models = ['--models', 'openrouter:maker/model'];
const live = ['--live', '--runs', '1', '--yes', '--judge', 'none', '--baseline', 'none', ...models];

describe('workers in a bad hour', function () {
  this.timeout(240_000);
  let world: FleetWorld;
  before(async () => {
    world = await openFleet();
  });
  afterEach(() => world.clear());
  after(() => world.close());

  async function trusting(count: number): Promise<FleetHome> {
    const home = world.home(notes(count));
    await home.trust();
    return home;
  }

  /** Asserts that each eval was counted once. */
  function assertOnce(stderr: string, count: number): void {
    const passed = [...stderr.matchAll(/^\d+: notes (\d+) with_skill .* passed on /gm)].map(([, id]) =>
      Number(id),
    );
    assert.deepEqual(
      passed.sort((a, b) => a - b),
      Array.from({ length: count }, (_, index) => index + 1),
      stderr,
    );
  }

  it('wait for a database that answers slowly', async () => {
    const key = await world.serve(model);
    const [one, person] = [await trusting(8), await trusting(8)];
    await one.worker([], key);
    const suite = person.suite(live);
    await suite.says('passed on');
    const family = execFileSync('pgrep', ['-P', String(world.postgres.pid())], { encoding: 'utf8' });
    const all = [world.postgres.pid(), ...family.trim().split('\n').map(Number)];
    for (const pid of all) process.kill(pid, 'SIGSTOP');
    await suite.says('does not answer. Everything waits until it does.');
    for (const pid of all) process.kill(pid, 'SIGCONT');
    const { code, stderr } = await suite.result;
    assert.equal(code, 0, stderr);
    assert.match(stderr, /answers again\./);
    assertOnce(stderr, 8);
  });

  it('go on when the database ends a connection between two statements', async () => {
    const key = await world.serve(model);
    const [one, person] = [await trusting(2), await trusting(2)];
    // As a worker makes its queue again, within a transaction.
    const cutting = await cutAfter(world.postgres.url, 'SELECT name FROM "dbos".queues');
    try {
      const worker = await one.worker([], { ...key, TELOS_DATABASE_URL: cutting.url });
      cutting.begin();
      await eventually(() => assert.equal(cutting.cuts(), 1), 30_000);
      const { code, stderr } = await person.suite(live).result;
      assert.equal(code, 0, stderr);
      assertOnce(stderr, 2);
      assert.equal(worker.child.exitCode, null);
    } finally {
      await cutting.close();
    }
  });

  it('say that a database has no connection left', async () => {
    const few = ['max_connections=4', 'max_wal_senders=0', 'superuser_reserved_connections=0'];
    const small = await startPostgres(few.flatMap(flag => ['-c', flag]));
    try {
      // The connection that has made the database may still be ending.
      for (let refusals = 0; refusals < 5; ) {
        try {
          await small.hold('select 1');
        } catch (error) {
          assert.match(String(error), /too many clients/);
          refusals++;
          await wait(100);
        }
      }
      const more = { env: { TELOS_DATABASE_URL: small.url }, program: world.program };
      const { code, stderr } = await world.home({}).runProcess(['worker'], more);
      assert.equal(code, 2, stderr);
      assert.match(
        stderr,
        /^The database \S+ accepts no connection\. .* connections are in use: raise its max_connections/,
      );
      const status = world.home({}).start(['fleet', 'status'], more);
      await status.says('does not answer. Everything waits until it does.');
      status.child.kill('SIGKILL');
      await status.result;
    } finally {
      await small.remove();
    }
  });

  it('say that the disk of the database is full, and go on when it has room', async function () {
    // The engine waits up to a minute between two tries, and tries again and again.
    if (process.env['TELOS_NIGHTLY'] === undefined) skipBecause(this, 'it takes minutes, and runs at night');
    this.timeout(900_000);
    const key = await world.serve(model);
    const [one, person] = [await trusting(20), await trusting(20)];
    const folder = join(one.folder.path, 'small');
    mkdirSync(folder);
    // Only root can make a disk this small.
    if (!mounts(folder, '16m')) skipBecause(this, 'only root can make a disk');
    const { postgres } = world;
    try {
      const worker = await one.worker([], key);
      giveTo(postgres, folder);
      await postgres.query(`create tablespace small location '${folder}'`);
      const move = (to: string, from: string): Promise<unknown> =>
        Promise.all(
          ['table', 'index'].map(kind =>
            postgres.query(`alter ${kind} all in tablespace ${from} set tablespace ${to}`),
          ),
        );
      await move('small', 'pg_default');
      const filler = join(folder, 'fills');
      assert.throws(() => writeFileSync(filler, Buffer.alloc(16 * 1024 ** 2)), /ENOSPC/);
      const suite = person.suite(live);
      await worker.says('is full. Everything waits.');
      rmSync(filler);
      const { code, stderr } = await suite.result;
      assert.equal(code, 0, stderr);
      assertOnce(stderr, 20);
      await move('pg_default', 'small');
      await postgres.query('drop tablespace small');
    } finally {
      execFileSync('umount', ['-l', folder]);
    }
  });

  it('give again what a restored database has forgotten, and count nothing twice', async () => {
    const held = gate();
    let asked = 0;
    const key = await world.serve(request => {
      // Three requests a run: the third run is held.
      const isHeld = ++asked > 6 && asked <= 8;
      return { ...model(request), ...(isHeld && { hold: { behind: '', until: held.opened } }) };
    });
    const [one, person] = [await trusting(6), await trusting(6)];
    await one.worker([], key);
    // Yesterday: only the worker was there.
    await world.postgres.stop();
    world.postgres.save();
    await world.postgres.start();
    const suite = person.suite([...live, '--output', join(person.folder.path, 'far')]);
    await eventually(() => assert.ok(asked > 6), 60_000);
    await world.postgres.stop();
    world.postgres.restore();
    await world.postgres.start();
    held.open();
    const { code, stderr } = await suite.result;
    assert.equal(code, 0, stderr);
    assert.match(stderr, /The database has lost (?:a run|\d runs) that w\w+ given\. They are given again\./);
    assertOnce(stderr, 6);
  });

  it('do not mind a clock that is wrong', async () => {
    const key = await world.serve(model);
    const person = await trusting(6);
    for (const days of [-2, 2]) {
      const home = await trusting(6);
      const file = join(home.folder.path, 'clock.mjs');
      writeFileSync(
        file,
        `const now = Date.now; const by = ${days * 86_400_000};
         globalThis.Date = class extends Date { constructor(...given) { given.length ? super(...given) : super(now() + by); } static now() { return now() + by; } };`,
      );
      await home.worker(['--label', `days${days}`], { ...key, NODE_OPTIONS: `--import ${file}` });
    }
    const { code, stderr } = await person.suite(live).result;
    assert.equal(code, 0, stderr);
    assertOnce(stderr, 6);
    assert.equal(new Set(stderr.match(/ on days-?2/g)).size, 2, stderr);
  });

  it('say that the disk of the results, or of a worker, is full', async function () {
    const key = await world.serve(model);
    const [one, person] = [await trusting(4), await trusting(4)];
    const [results, temporary] = [join(person.folder.path, 'far'), join(one.folder.path, 'tmp')];
    const unmount = [results, temporary].filter(folder => {
      mkdirSync(folder);
      return mounts(folder);
    });
    // Only root can make a disk this small.
    if (unmount.length < 2) skipBecause(this, 'only root can make a disk');
    try {
      const worker = await one.worker([], key);
      writeFileSync(join(results, 'fills'), Buffer.alloc(60 * 1024));
      const full = await person.suite([...live, '--output', results]).result;
      assert.notEqual(full.code, 0);
      assert.match(full.stderr, /no space left|is full|ENOSPC/i);
      assert.doesNotMatch(full.stderr, /^\s+at /m);
      worker.child.kill('SIGTERM');
      await worker.result;
      writeFileSync(join(temporary, 'fills'), Buffer.alloc(64 * 1024 - 4096));
      await one.worker([], { ...key, TMPDIR: temporary });
      const other = await person.suite(live).result;
      assert.equal(other.code, 1, other.stderr);
      assert.match(
        other.stdout + other.stderr,
        /No worker takes it\. \S+: |could not be written: no space left on device/,
      );
      assert.ok(!existsSync(join(results, 'nothing')) && readFileSync(join(results, 'fills')).length > 0);
    } finally {
      for (const folder of unmount) execFileSync('umount', ['-l', folder]);
    }
  });
});

/** Lets the server, which is another user's where root runs it, write there. */
function giveTo(postgres: Postgres, folder: string): void {
  const { uid, gid } = statSync(`/proc/${postgres.pid()}`);
  chownSync(folder, uid, gid);
  for (let above = dirname(folder); above !== tmpdir() && above !== '/'; above = dirname(above))
    chmodSync(above, 0o755);
}

function mounts(folder: string, size = '64k'): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
