import assert from 'node:assert/strict';
import { loadConfig } from '../../src/engine/config.ts';
import { keyName, rateOf } from '../../src/fleet/turns.ts';
import { type FleetHome, type FleetWorld, model, notes, openFleet } from './fleetWorld.ts';

const models = ['--models', 'openrouter:maker/model'];
const live = ['--live', '--runs', '1', '--yes', '--judge', 'none', '--baseline', 'none', ...models];

describe('requests of all workers with a key', function () {
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

  it('stay within the rate that is set, over all workers', async () => {
    const at: number[] = [];
    const key = await world.serve(request => {
      at.push(performance.now());
      return model(request);
    });
    for (let index = 0; index < 3; index++)
      await (await trusting(12)).worker(['--slots', '4', '--requests', 'openrouter=240'], key);
    const turns = world.postgres.query;
    const { code, stderr } = await world.home(notes(12)).suite(live).result;
    assert.equal(code, 0, stderr);
    assert.equal(stderr.match(/passed on /g)?.length, 12, stderr);
    const rows = await turns(
      "select started_at_epoch_ms as at, queue_name from dbos.workflow_status where workflow_uuid like 'telos-turn-%'",
    );
    // As many turns as requests, none more than 20 in 5 seconds, by the clock of the database.
    assert.equal(at.length, 36);
    assert.equal(rows.length, 36);
    const begun = rows.map(row => Number(row['at'])).sort((a, b) => a - b);
    for (const [index, start] of begun.entries()) {
      const next = begun[index + 20];
      if (next !== undefined) assert.ok(next - start >= 5_000, `21 in ${next - start} ms`);
    }
    const fullest = Math.max(
      ...at.map(start => at.filter(one => one >= start && one < start + 5_000).length),
    );
    console.log(`      ${fullest} requests at most in 5 s at the provider, 20 turns`);
    const [{ queue_name: queue } = {}] = rows;
    const { env } = world.home({});
    assert.equal(
      queue,
      `telos-turns-${keyName(loadConfig({ env: { ...env, ...key } } as never), 'openrouter')}`,
    );
    assert.ok(!String(queue).includes(key['OPENROUTER_API_KEY'] ?? ''));
  });

  it('rest together when the provider asks for it, and fail no run', async () => {
    let refused = 0;
    const at: number[] = [];
    const key = await world.serve(request => {
      // More often than one run would try.
      if (refused < 14) {
        refused++;
        return { status: 429, headers: { 'retry-after': '1' } };
      }
      at.push(performance.now());
      return model(request);
    });
    for (let index = 0; index < 2; index++) await (await trusting(4)).worker([], key);
    const { code, stderr } = await world.home(notes(4)).suite(live).result;
    assert.equal(code, 0, stderr);
    assert.equal(stderr.match(/passed on /g)?.length, 4, stderr);
    assert.equal(refused, 14);
  });

  it('end a run at once where the money at the provider is spent', async () => {
    const key = await world.serve(() => ({
      status: 429,
      errorBody: { error: { message: 'insufficient_quota', code: 'insufficient_quota' } },
    }));
    await (await trusting(1)).worker([], key);
    const { code, stderr, stdout } = await world.home(notes(1)).suite(live).result;
    assert.equal(code, 1);
    assert.match(stdout + stderr, /spending limit at \S+ is reached/);
    assert.equal(world.requests(), 1);
  });

  it('never exceed a limit in any minute, whatever it is', () => {
    for (const requests of [1, 5, 11, 12, 13, 60, 97, 1_000, 999_999]) {
      const { limitPerPeriod, periodSec } = rateOf(requests);
      assert.ok(limitPerPeriod >= 1 && periodSec > 0);
      assert.ok((60 / periodSec) * limitPerPeriod <= requests + 1e-6, `${requests}`);
    }
  });

  it('have a limit only for a provider that there is', async () => {
    for (const [given, sentence] of [
      ['nowhere=5', /there is no provider nowhere/],
      ['openrouter', /It takes a provider and how many requests a minute/],
      ['openrouter=0', /It takes a provider and how many requests a minute/],
    ] as const) {
      const { code, stderr } = await world.home({}).runProcess(['worker', '--requests', given], {
        env: { TELOS_DATABASE_URL: world.postgres.url },
        program: world.program,
      });
      assert.equal(code, 2);
      assert.match(stderr, sentence);
    }
  });
});
