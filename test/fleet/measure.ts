/** Prints what workers bring: runs on one and on three, and jobs that do nothing. `node test/fleet/measure.ts [runs] [ms a round]`, after a build; measurePlan.ts has the same for a plan. */
import { setTimeout as delay } from 'node:timers/promises';
import { databaseAddress } from '../../src/fleet/databaseAddress.ts';
import { FleetDatabase } from '../../src/fleet/fleetDatabase.ts';
import { versionKey } from '../../src/fleet/presence.ts';
import { packageVersion } from '../cli/cliProcess.ts';
import { type FleetWorld, model, notes, openFleet } from './fleetWorld.ts';

const models = ['--models', 'openrouter:maker/model'];
const live = ['--live', '--runs', '1', '--yes', '--judge', 'none', '--baseline', 'none', ...models];
const count = Number(process.argv[2] ?? 1_000);
/** How long a round of the model takes, in milliseconds. */
const roundMs = Number(process.argv[3] ?? 200);

const world = await openFleet();
try {
  console.log(`jobs that do nothing: ${await empty(world)} a second on three workers with 10 slots each`);
  const before = await work(world);
  const one = await suite(world, 1);
  const after = await work(world);
  console.log(`${count} runs of 3 rounds of ${roundMs} ms: one worker ${one.toFixed(1)} s`);
  const each = (name: keyof Work): string => ((after[name] - before[name]) / count).toFixed(1);
  console.log(
    `a run costs the database ${each('rows')} rows written, ${each('commits')} transactions, ${each('kilobytes')} KB`,
  );
  const three = await suite(world, 3);
  console.log(`three workers ${three.toFixed(1)} s (${(three / one).toFixed(2)} of one)`);
} finally {
  await world.close();
}

async function suite(fleet: FleetWorld, workers: number): Promise<number> {
  const key = await fleet.serve(request => ({ ...model(request), stallMs: roundMs }));
  for (let index = 0; index < workers; index++) {
    const home = fleet.home(notes(count));
    await home.trust();
    await home.worker([], key);
  }
  const start = performance.now();
  const { code, stderr } = await fleet.home(notes(count)).suite(live).result;
  const seconds = (performance.now() - start) / 1_000;
  const passed = stderr.match(/passed on /g)?.length;
  if (code !== 0 || passed !== count)
    throw new Error(`${passed} passed, exit ${code}: ${stderr.slice(0, 500)}`);
  await fleet.clear();
  return seconds;
}

interface Work {
  /** Written, changed and removed. */
  rows: number;
  commits: number;
  /** Of its log. */
  kilobytes: number;
}

/** Returns what the database has done so far. */
async function work({ postgres }: FleetWorld): Promise<Work> {
  // What a session has done is counted when it has been quiet for a moment.
  await delay(1_500);
  const [row = {}] = await postgres.query(
    `select (select sum(n_tup_ins + n_tup_upd + n_tup_del) from pg_stat_user_tables) as rows,
            (select xact_commit from pg_stat_database where datname = current_database()) as commits,
            pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') / 1024 as kilobytes`,
  );
  const { rows, commits, kilobytes } = row;
  return { rows: Number(rows), commits: Number(commits), kilobytes: Number(kilobytes) };
}

/** Returns how many orders are given and answered in a second. They are refused at once. */
async function empty(fleet: FleetWorld): Promise<number> {
  const [jobs, version] = [1_500, versionKey(packageVersion())];
  for (let index = 0; index < 3; index++) await fleet.home().worker(['--slots', '10']);
  const stop = new AbortController();
  const database = await FleetDatabase.open(databaseAddress(fleet.postgres.url), console.log, stop.signal);
  const workers = (await database.present('worker')).map(({ id }) => id);
  const start = performance.now();
  const keys = Array.from({ length: jobs }, (_, index) => `empty-${index}`);
  await Promise.all(keys.map((key, index) => database.send(key, workers[index % 3] ?? '', version, {})));
  while ((await database.ended(keys)).length < jobs) await delay(50);
  const seconds = (performance.now() - start) / 1_000;
  await database.close();
  await fleet.clear();
  return Math.round(jobs / seconds);
}
