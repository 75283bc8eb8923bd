import assert from 'node:assert/strict';
import type { CliResult } from '../cli/cliProcess.ts';
import { eventually, gate } from '../eventually.ts';
import { type FleetHome, type FleetWorld, model, notes, openFleet, workerName } from './fleetWorld.ts';

const models = ['--models', 'openrouter:maker/model'];
const live = ['--live', '--runs', '1', '--yes', '--judge', 'none', '--baseline', 'none', ...models];

describe('a person who looks after workers', function () {
  this.timeout(120_000);
  let world: FleetWorld;
  before(async () => {
    world = await openFleet();
  });
  afterEach(() => world.clear());
  after(() => world.close());

  async function trusting(count = 1): Promise<FleetHome> {
    const home = world.home(notes(count));
    await home.trust();
    return home;
  }

  const fleet = (...args: string[]): Promise<CliResult> =>
    world.home({}).runProcess(['fleet', ...args], {
      env: { TELOS_DATABASE_URL: world.postgres.url },
      program: world.program,
    });

  const rowsLike = (prefix: string): Promise<Record<string, unknown>[]> =>
    world.postgres.query(
      `select workflow_uuid from dbos.workflow_status where workflow_uuid like '${prefix}%'`,
    );

  it('ends one worker, which finishes what it runs and hands back the rest', async () => {
    const asked = gate();
    const held = gate();
    const key = await world.serve(request => {
      asked.open();
      return { ...model(request), hold: { behind: '', until: held.opened } };
    });
    const [one, two, person] = [await trusting(3), await trusting(3), await trusting(3)];
    const first = await one.worker(['--label', 'old'], key);
    const suite = person.suite(live);
    await asked.opened;
    await eventually(async () => assert.match((await fleet('status')).stdout, /^old-.* 1 queued, /m));
    const draining = fleet('drain', 'old');
    await first.says('Ending, as was asked for over the database.');
    await two.worker(['--label', 'new'], key);
    held.open();
    const { code, stdout, stderr } = await draining;
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^The worker old-[\da-f]{6} has ended\.$/m);
    const ended = await first.result;
    assert.equal(ended.code, 0, ended.stderr);
    assert.match(ended.stderr, /has ended: 1 done, 0 refused, [12] handed back/);
    const done = await suite.result;
    assert.equal(done.code, 0, done.stderr);
    assert.equal(done.stderr.match(/passed on /g)?.length, 3, done.stderr);
    assert.deepEqual(await rowsLike('telos-drain-'), []);
  });

  it('ends all workers, and removes the entry of one that was killed', async () => {
    const [one, two] = [await world.home({}).worker(), await world.home({}).worker()];
    one.child.kill('SIGKILL');
    await one.result;
    const { code, stdout, stderr } = await fleet('drain', '--all');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /has ended\./);
    assert.match(stdout, /was gone already, and its entry is removed\./);
    assert.equal((await two.result).code, 0);
    assert.equal((await fleet('status')).stdout, 'No worker is running.\n');
  });

  it('hears what is missing where nothing is named, or what is not there', async () => {
    await world.home({}).worker();
    const cases: [string[], RegExp][] = [
      [['drain'], /^Name a worker or a label, or use --all\./],
      [['drain', 'nobody'], /^There is no worker nobody\./],
      [['retry'], /^Name runs, or use --failed for all\./],
      [['retry', 'no\u001b[2Jthing'], /^No run no\S*thing has failed\./],
    ];
    for (const [args, sentence] of cases) {
      const { code, stderr } = await fleet(...args);
      assert.equal(code, 2, stderr);
      assert.match(stderr, sentence);
      assert.ok(!stderr.includes('\u001b[2J'));
    }
    assert.equal((await fleet('retry', '--failed')).stdout, 'No run has failed.\n');
  });

  it('has refused runs made again once the reason is gone', async () => {
    const key = await world.serve(model);
    const [home, person] = [world.home(notes(2)), await trusting(2)];
    await home.worker([], key);
    const suite = person.suite([...live, '--wait']);
    const reason = /has not accepted the agent notes\.$/m;
    const lines = await eventually(async () => {
      const { stdout } = await fleet('status');
      assert.equal(stdout.match(/^failed /gm)?.length, 2, stdout);
      assert.match(stdout, /^suite .*, 0 waiting, 0 given to workers, 0 done, 2 failed$/m);
      return stdout;
    });
    assert.match(lines, reason);
    assert.match(lines, /^failed [\da-f]{12}-0: notes 1 with_skill maker\/model, on \S+: /m);
    const name = /^failed (\S+):/m.exec(lines)?.[1] ?? '';
    // Given again before anything was mended, it is refused again.
    assert.equal((await fleet('retry', name)).stdout, 'Queued again: 1 run.\n');
    await eventually(async () => assert.deepEqual(await rowsLike('telos-retry-'), []));
    await eventually(async () => assert.equal((await rowsLike('telos-failed-')).length, 2));
    assert.equal(world.requests(), 0);
    await home.trust();
    assert.equal((await fleet('retry', '--failed')).stdout, 'Queued again: 2 runs.\n');
    const { code, stderr } = await suite.result;
    assert.equal(code, 0, stderr);
    assert.equal(stderr.match(/passed on /g)?.length, 2, stderr);
    for (const kind of ['failed', 'retry', 'run', 'suite'])
      assert.deepEqual(await rowsLike(`telos-${kind}-`), []);
  });

  it('starts nothing by a wish that was put into the database by hand', async () => {
    const home = await trusting();
    const running = await home.worker([], await world.serve(model));
    const name = await workerName(world);
    for (const id of [`telos-retry-${name}`, 'telos-retry-x', 'telos-drain-x', 'telos-failed-x'])
      await world.postgres.query(
        `insert into dbos.workflow_status (workflow_uuid, status, name, class_name, config_name, queue_name, application_version, application_name, created_at, updated_at, priority, recovery_attempts, serialization)
         values ($1, 'ENQUEUED', 'telos.presence', '', '', 'telos-presence', 'presence', 'telos', 1, 1, 0, 0, 'telos-json')`,
        [id],
      );
    const { code, stdout } = await fleet('status');
    assert.equal(code, 0);
    assert.match(stdout, /^failed x: , on :$/m);
    await new Promise(resolve => setTimeout(resolve, 2_500));
    assert.equal(running.child.exitCode, null);
    assert.equal(world.requests(), 0);
  });
});
