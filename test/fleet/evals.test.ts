import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type FleetHome, type FleetWorld, model, notes, openFleet, resultFiles } from './fleetWorld.ts';

const live = ['--live', '--runs', '2', '--yes', '--judge', 'none', '--models', 'openrouter:maker/model'];

describe('telos eval with workers', function () {
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

  it('gives the result files of local runs, but for time and worker', async () => {
    const key = await world.serve(model);
    const owner = world.home(notes(3));
    const local = await owner.run(['eval', 'notes', ...live, '--output', join(owner.folder.path, 'local')], {
      env: key,
    });
    assert.equal(local.code, 0, local.stderr);
    const [one, two] = [await trusting(3), await trusting(3)];
    const workers = [await one.worker(['--slots', '2'], key), await two.worker([], key)];
    // The key is with the workers alone.
    const suite = owner.suite([...live, '--output', join(owner.folder.path, 'far')]);
    const { code, stdout, stderr } = await suite.result;
    assert.equal(code, 0, stdout + stderr);
    const [there, here] = ['far', 'local'].map(name => resultFiles(join(owner.folder.path, name)));
    assert.ok(Object.keys(here ?? {}).length > 20);
    assert.deepEqual(there, here);
    const timeless = (text: string): string => text.replace(/ +[\d.]+ s\n/g, '\n').replace(/^ +\/.*\n/gm, '');
    assert.equal(timeless(stdout), timeless(local.stdout));
    assert.equal(new Set(stderr.match(/ on \S+/g)).size, 2, stderr);
    for (const worker of workers) worker.child.kill('SIGTERM');
    for (const worker of workers) {
      const ended = await worker.result;
      assert.equal(ended.code, 0, ended.stderr);
      assert.match(ended.stderr, /has ended: \d+ done, 0 refused, 0 handed back\./);
    }
    // Nothing is left in the database: no run, no worker, no suite.
    assert.deepEqual(await world.postgres.query('select workflow_uuid from dbos.workflow_status'), []);
    assert.deepEqual(await world.postgres.query('select name from dbos.queues'), []);
  });
});
