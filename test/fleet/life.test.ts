import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { preparationLock } from '../../src/fleet/dbos.ts';
import { program } from '../cli/cliProcess.ts';
import { eventually, gate } from '../eventually.ts';
import { skipBecause } from '../skipBecause.ts';
import {
  type FleetHome,
  type FleetWorld,
  model,
  notes,
  openFleet,
  resultFiles,
  workerName,
} from './fleetWorld.ts';

const models = ['--models', 'openrouter:maker/model'];
const live = ['--live', '--runs', '1', '--yes', '--judge', 'none', '--baseline', 'none', ...models];

describe('workers come and go', function () {
  this.timeout(180_000);
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

  /** Asserts that each of the evals was counted once, and passed. */
  function assertWhole(home: FleetHome, count: number): void {
    const [file] = Object.entries(resultFiles(join(home.folder.path, 'far'))).filter(([path]) =>
      path.endsWith('telos.json'),
    );
    const { runs } = JSON.parse(file?.[1] ?? '{}') as { runs: { eval: number; passed: boolean }[] };
    assert.deepEqual(
      runs.map(({ eval: id, passed }) => [id, passed]),
      Array.from({ length: count }, (_, index) => [index + 1, true]),
    );
  }

  const far = (home: FleetHome): string[] => [...live, '--output', join(home.folder.path, 'far')];

  it('start together on an empty database', async () => {
    await world.postgres.query('drop schema if exists dbos cascade');
    const workers = await Promise.all([1, 2, 3].map(() => world.home({}).worker()));
    for (const worker of workers) worker.child.kill('SIGTERM');
    for (const worker of workers) assert.equal((await worker.result).code, 0);
  });

  it('wait for one that prepares the database', async () => {
    await world.postgres.query('drop schema if exists dbos cascade');
    const other = await world.postgres.hold(`select pg_advisory_lock(${preparationLock})`);
    const more = { env: { TELOS_DATABASE_URL: world.postgres.url }, program: world.program };
    const worker = world.home({}).start(['worker'], more);
    await worker.says('Another worker is preparing the database');
    const prepared = `select 1 from information_schema.schemata where schema_name = 'dbos'`;
    assert.deepEqual(await world.postgres.query(prepared), []);
    await other.end();
    await worker.says('takes jobs');
    assert.equal((await world.postgres.query(prepared)).length, 1);
    worker.child.kill('SIGTERM');
    assert.equal((await worker.result).code, 0);
  });

  it('ends with what it runs on SIGTERM, and hands back the rest', async () => {
    const asked = gate();
    const held = gate();
    const key = await world.serve(request => {
      asked.open();
      return { ...model(request), hold: { behind: '', until: held.opened } };
    });
    const [one, two, person] = [await trusting(3), await trusting(3), await trusting(3)];
    const first = await one.worker([], key);
    const suite = person.suite(far(person));
    await asked.opened;
    // One runs, and one more is on its way.
    first.child.kill('SIGTERM');
    await first.says('ending');
    await two.worker([], key);
    held.open();
    const ended = await first.result;
    assert.equal(ended.code, 0, ended.stderr);
    assert.match(ended.stderr, /has ended: 1 done, 0 refused, [12] handed back/);
    assert.match(ended.stdout, /healthy: .*\n[\s\S]*ending: /);
    const { code, stderr } = await suite.result;
    assert.equal(code, 0, stderr);
    assertWhole(person, 3);
  });

  it('loses and doubles nothing when workers are killed', async () => {
    const asked = gate();
    const never = gate();
    let isFirst = true;
    const key = await world.serve(request => {
      const holds = isFirst;
      isFirst = false;
      asked.open();
      return { ...model(request), ...(holds && { hold: { behind: '', until: never.opened } }) };
    });
    const [one, two, person] = [await trusting(6), await trusting(6), await trusting(6)];
    const first = await one.worker([], key);
    const suite = person.suite(far(person));
    await asked.opened;
    first.child.kill('SIGKILL');
    await two.worker([], key);
    const { code, stderr } = await suite.result;
    never.open();
    assert.equal(code, 0, stderr);
    assert.match(stderr, /The worker \S+ is silent\. Its runs go to others\./);
    assertWhole(person, 6);
  });

  it('goes on when the database was away', async () => {
    const key = await world.serve(model);
    const [one, person] = [await trusting(30), await trusting(30)];
    const worker = await one.worker([], key);
    const suite = person.suite(far(person));
    await suite.says('passed on');
    await world.postgres.stop();
    await Promise.all(
      [worker, suite].map(one => one.says('does not answer. Everything waits until it does.')),
    );
    await world.postgres.start();
    const { code, stderr } = await suite.result;
    assert.equal(code, 0, stderr);
    assertWhole(person, 30);
    worker.child.kill('SIGTERM');
    const said = stderr + (await worker.result).stderr;
    assert.equal(said.match(/answers again/g)?.length, 2, said);
    assert.ok(!said.includes(world.postgres.password));
  });

  it('says in one sentence why a database cannot be used, and never its password', async () => {
    const home = world.home();
    const { url, password } = world.postgres;
    const cases: [string | undefined, RegExp][] = [
      [undefined, /^No database is named\. Give it as postgres:\/\//],
      ['mysql://telos:secret-word@127.0.0.1/x', /^The database address is not a PostgreSQL URL\./],
      ['secret-word', /^The database address is not a PostgreSQL URL\./],
      [url.replace(/:\d+\//, ':1/'), /^The database 127\.0\.0\.1:1\/fleet cannot be reached\./],
      [
        url.replace('127.0.0.1', 'no-such-host.invalid'),
        /no-such-host\.invalid:\d+\/fleet cannot be reached\./,
      ],
      [url.replace(password, 'secret-word'), /^The database \S+ refuses this user or password\.$/m],
    ];
    for (const [address, sentence] of cases)
      for (const args of [['worker'], ['fleet', 'status'], ['eval', 'notes', '--workers']]) {
        const { code, stdout, stderr } = await home.runProcess(args, {
          env: { TELOS_DATABASE_URL: address },
          program: world.program,
        });
        assert.equal(code, 2, `${args[0]} ${address}: ${stdout}${stderr}`);
        assert.match(stderr, sentence);
        assert.equal(stderr.trim().split('\n').length, 1, stderr);
        assert.ok(![password, 'secret-word'].some(secret => stderr.includes(secret)), stderr);
      }
    const typed = url.replace(/fleet$/, 'fleeet');
    for (const args of [['worker'], ['fleet', 'status'], ['eval', 'notes', '--workers']]) {
      const { code, stderr } = await home.runProcess(args, {
        env: { TELOS_DATABASE_URL: typed },
        program: world.program,
      });
      assert.equal(code, 2, stderr);
      assert.match(stderr, /fleeet does not exist\. Check its name, or have it created\.$/m);
    }
    // A worker would have made one.
    assert.deepEqual(
      await world.postgres.query("select datname from pg_database where datname = 'fleeet'"),
      [],
    );
    const fresh = url.replace(/fleet$/, 'postgres');
    const { code, stderr } = await home.runProcess(['eval', 'notes', '--workers', fresh], {
      program: world.program,
    });
    assert.equal(code, 2);
    assert.match(stderr, /is not prepared: no worker has been started on it yet\./);
  });

  it('gives and takes nothing across versions, and says so on both sides', async () => {
    const key = await world.serve(model);
    const [one, person] = [await trusting(1), await trusting(1)];
    const worker = await one.worker([], key, world.otherVersion('99.0.0'));
    const suite = person.suite(far(person));
    await suite.says('has Telos 99.0.0, not');
    await worker.says('Runs wait for Telos ');
    const name = await workerName(world);
    await world.forge(name, '[{}]');
    await worker.says('A job is for telos ');
    assert.equal(world.requests(), 0);
    await trusting(1).then(home => home.worker([], key));
    assert.equal((await suite.result).code, 0);
    assertWhole(person, 1);
  });

  it('leaves no word of a run and no key in the database, even when a suite is killed', async () => {
    const asked = gate();
    const killed = gate();
    const key = await world.serve(request => {
      asked.open();
      return { ...model(request), hold: { behind: '', until: killed.opened } };
    });
    const [one, person] = [await trusting(2), await trusting(2)];
    await one.worker([], key);
    const suite = person.suite(far(person));
    await asked.opened;
    suite.child.kill('SIGKILL');
    await suite.result;
    killed.open();
    const dump = await eventually(async () => {
      const tables = ['workflow_status', 'workflow_input', 'workflow_output', 'operation_outputs', 'queues'];
      const rows = await Promise.all(tables.map(name => world.postgres.query(`select * from dbos.${name}`)));
      const all = JSON.stringify(rows);
      assert.match(all, /sealed/);
      return all;
    });
    for (const word of [
      'milk',
      'Summary',
      'Sum up',
      key['OPENROUTER_API_KEY'] ?? '',
      world.postgres.password,
    ])
      assert.ok(!dump.includes(word), `the database has ${word}`);
  });

  it('takes back what it has given when it is stopped', async () => {
    const asked = gate();
    const held = gate();
    const key = await world.serve(request => {
      asked.open();
      return { ...model(request), hold: { behind: '', until: held.opened } };
    });
    const [one, person] = [await trusting(4), await trusting(4)];
    const worker = await one.worker([], key);
    const suite = person.suite(far(person));
    await asked.opened;
    suite.child.kill('SIGINT');
    assert.equal((await suite.result).code, 130);
    const left = await world.postgres.query(
      "select workflow_uuid from dbos.workflow_status where workflow_uuid not like 'telos-worker-%'",
    );
    assert.deepEqual(left, []);
    held.open();
    worker.child.kill('SIGTERM');
    assert.match((await worker.result).stderr, /has ended: [01] done, 0 refused, 0 handed back/);
  });

  it('says what workers cannot do for a suite', async () => {
    const { code, stderr } = await world.home().suite(['--record', '--yes', ...models]).result;
    assert.equal(code, 2);
    assert.match(
      stderr,
      /^--record keeps recordings, which workers do not send back\. Use --live with --workers\./,
    );
    const unnamed = await world.home().suite(['--live', '--yes']).result;
    assert.equal(unnamed.code, 2);
    assert.match(unnamed.stderr, /^Name the models as provider:model, with --models and --judge/);
  });

  it('lists workers and suites', async () => {
    const key = await world.serve(model);
    const [one, person] = [await trusting(1), await trusting(1)];
    await one.worker(['--slots', '3', '--label', 'big'], key);
    const suite = person.suite([...far(person), '--label', 'other']);
    await suite.says('No worker with the label other takes runs at the moment. They wait for one.');
    const { code, stdout } = await person.runProcess(['fleet', 'status'], {
      env: { TELOS_DATABASE_URL: world.postgres.url },
      program: world.program,
    });
    assert.equal(code, 0);
    assert.match(
      stdout,
      /^big-[\da-f]{6} \(big\): Telos \S+, 0 of 3 slots busy, 0 queued, 0 done, 0 refused$/m,
    );
    assert.match(stdout, /^suite [\da-f]{12}: Telos \S+, 1 waiting, 0 given to workers, 0 done, 0 failed$/m);
    suite.child.kill('SIGINT');
    assert.equal((await suite.result).code, 130);
  });

  it('shows the address of its database to no other program', async function () {
    if (process.platform !== 'linux') skipBecause(this, 'only on Linux');
    const home = world.home({});
    const [named, given] = [
      await home.worker(),
      await home.worker(['--database', world.postgres.url], { TELOS_DATABASE_URL: undefined }),
    ];
    for (const { child } of [named, given])
      for (const file of ['environ', 'cmdline']) {
        const seen = readFileSync(`/proc/${child.pid}/${file}`, 'latin1');
        assert.ok(!seen.includes(world.postgres.password), `${file} has the password`);
      }
  });

  it('says what to install where the package is missing', async () => {
    const { code, stderr } = await world.home().runProcess(['worker', '--database', world.postgres.url], {
      program: program(),
    });
    assert.equal(code, 2);
    assert.match(
      stderr,
      /^Workers need a package that is not installed\. Install it with: npm install --prefix "\S+" @dbos-inc\/dbos-sdk@/,
    );
    assert.equal(stderr.trim().split('\n').length, 1);
  });
});
