import assert from 'node:assert/strict';
import { appendFileSync, cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  type FleetHome,
  type FleetWorld,
  model,
  notes,
  openFleet,
  recordings,
  resultFiles,
} from './fleetWorld.ts';

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
    const local = await owner.runProcess(
      ['eval', 'notes', ...live, '--output', join(owner.folder.path, 'local')],
      {
        env: key,
      },
    );
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

  it('plays recordings without a key, and refuses one that is another there', async () => {
    const key = await world.serve(model);
    const owner = world.home();
    const recorded = await owner.runProcess(['eval', 'notes', '--record', ...live.slice(1)], { env: key });
    assert.equal(recorded.code, 0, recorded.stderr);
    const asked = world.requests();
    const at = (home: FleetHome, path: string): string => join(home.folder.path, path);
    const local = await owner.runProcess(['eval', 'notes', '--output', at(owner, 'local')]);
    assert.equal(local.code, 0, local.stderr);
    const there = world.home();
    cpSync(at(owner, recordings), at(there, recordings), { recursive: true });
    await there.trust();
    const worker = await there.worker();
    const { code, stdout, stderr } = await owner.suite(['--output', at(owner, 'far')]).result;
    assert.equal(code, 0, stdout + stderr);
    assert.deepEqual(resultFiles(at(owner, 'far')), resultFiles(at(owner, 'local')));
    assert.equal(world.requests(), asked);
    worker.child.kill('SIGTERM');
    await worker.result;
    const [name = ''] = readdirSync(at(there, recordings));
    appendFileSync(at(there, `${recordings}/${name}`), '\n');
    await there.trust();
    await there.worker();
    const other = await owner.suite([]).result;
    assert.equal(other.code, 1);
    assert.match(other.stdout + other.stderr, /does not have this recording of its eval 1 here\./);
  });
});
