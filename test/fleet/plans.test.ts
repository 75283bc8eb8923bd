import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually, gate } from '../eventually.ts';
import { once, type StepModel, statuses, writes } from '../plan/planWorld.ts';
import { builders, type FleetPlan, itBuilds, kill, manyStories, planFleetOfTests } from './planFleet.ts';

/** A model whose coders wait at their first round, the first of them or all. */
function holding(which: 'first' | 'all') {
  const [asked, held] = [gate(), gate()];
  let isFirst = true;
  const model: StepModel = {
    ...builders,
    coder: (turn, attempt, request) => {
      const answer = builders['coder']?.(turn, attempt, request) ?? {};
      const holds = turn === 0 && (which === 'all' || isFirst);
      if (turn === 0) isFirst = false;
      if (holds) asked.open();
      return { ...answer, ...(holds && { hold: { behind: '', until: held.opened } }) };
    },
  };
  return { model, asked: asked.opened, release: held.open };
}

describe('a plan on workers', function () {
  this.timeout(180_000);
  const here = planFleetOfTests();

  async function assertDone(plan: FleetPlan, ids: readonly string[], run = plan.run()): Promise<string> {
    const { code, stdout, stderr } = await run.result;
    assert.equal(code, 0, stdout + stderr);
    assert.deepEqual(plan.passed().sort(), [...ids]);
    return stdout + stderr;
  }

  itBuilds('has its stories built with the keys of a worker, and puts them on its branch', async () => {
    const { stories, model } = manyStories(2);
    const requestsOf = await here.world.serve(model);
    const plan = await here.world.person(stories);
    const before = plan.checkout();
    await here.world.worker(plan, ['--label', 'blue', '--requests', 'anthropic=600']);
    const said = await assertDone(plan, ['US-001', 'US-002'], plan.run('--label', 'blue'));
    const turns = await here.world.fleet.postgres.query(
      "select name from dbos.workflow_status where workflow_uuid like 'telos-turn-%'",
    );
    assert.equal(turns.length, here.world.requests());
    assert.match(said, /Pushes to origin \(git:\/\/127\.0\.0\.1:\d+\/bakery-\d+\.git\) what workers need/);
    assert.match(said, /US-001 goes to the worker blue-[\da-f]{6}/);
    assert.equal(plan.checkout(), before);
    assert.equal(requestsOf('US-001', 'coder').length, 4);
    const [, name = ''] = /(bakery-\d+)\.git$/.exec(plan.url) ?? [];
    assert.equal(here.world.daemon.git(name, 'rev-parse', 'telos/site'), plan.git('rev-parse', 'telos/site'));
    const refs = here.world.daemon.git(name, 'for-each-ref', '--format=%(refname)').split('\n');
    assert.deepEqual(
      refs.filter(ref => !ref.startsWith('refs/telos/site/')),
      ['refs/heads/telos/site'],
    );
    assert.ok(!existsSync(join(plan.repo, 'US-001')));
  });

  itBuilds('leaves no source, no word and no secret in the database', async () => {
    const { stories, model } = manyStories(1);
    await here.world.serve(model);
    const plan = await here.world.person(stories);
    await here.world.worker(plan);
    const { postgres } = here.world.fleet;
    const tables = (
      await postgres.query("select table_name from information_schema.tables where table_schema = 'dbos'")
    ).map(row => String(row['table_name']));
    assert.ok(tables.length > 5, tables.join());
    // Many rows are there for a moment only, so the database itself notes each of them.
    await postgres.query('create table public.seen (row text)');
    await postgres.query(
      `create function public.note() returns trigger language plpgsql security definer as
      'begin insert into public.seen values (row_to_json(new)::text); return null; end'`,
    );
    for (const table of tables)
      await postgres.query(
        `create trigger note after insert or update on dbos."${table}" for each row execute function public.note()`,
      );
    const run = plan.run();
    await assertDone(plan, ['US-001'], run);
    const seen = (await postgres.query('select row from public.seen')).map(({ row }) => String(row));
    await postgres.query('drop function public.note() cascade');
    await postgres.query('drop table public.seen');
    const all = seen.join('\n');
    assert.match(all, /telos-story-order/);
    assert.match(all, /telos\.facts/);
    for (const secret of ['US-001 done', 'grep', 'It is there', 'key-of-the-worker', 'work.txt', plan.repo])
      assert.ok(!all.includes(secret), `${secret} is in the database`);
    const longest = Math.max(...seen.map(row => row.length));
    assert.ok(longest < 256 * 1024, `a row has ${longest} characters`);
    const left = await postgres.query("select name from dbos.workflow_status where name = 'telos.story'");
    assert.deepEqual(left, []);
  });

  itBuilds('tells the next attempt why the last one was denied, and keeps its work', async () => {
    const { stories } = manyStories(1);
    const requestsOf = await here.world.serve({
      ...builders,
      'US-001 coder': (turn, attempt) =>
        turn === 0
          ? writes({ 'US-001/work.txt': attempt === 1 ? 'begun\n' : 'done\n' })
          : { text: ['Done.'] },
    });
    const plan = await here.world.person(stories);
    await here.world.worker(plan);
    await assertDone(plan, ['US-001']);
    assert.deepEqual(statuses(plan), ['denied', 'approved']);
    assert.match(plan.file('attempts/US-001.a1.patch'), /\+begun/);
    const second = JSON.stringify(requestsOf('US-001', 'coder').at(-2)?.body);
    assert.match(second, /Why the last attempt did not pass/);
    assert.match(second, /All of it is there[\s\S]*US-001\/work\.txt/);
  });

  itBuilds('has a conflict brought together on a worker', async () => {
    const stories = ['US-001', 'US-002'].map(id => ({
      id,
      touches: [`${id}/**`],
      checks: { [id]: `test -f both.txt && echo ${id}` },
    }));
    const both = once(writes({ 'both.txt': 'one\nand the other\n' }));
    await here.world.serve({
      ...builders,
      'US-001 coder': once(writes({ 'both.txt': 'one\n' })),
      'US-002 coder': (turn, attempt, request) =>
        attempt === 1
          ? once(writes({ 'both.txt': 'the other\n' }))(turn, 1, request)
          : both(turn, 1, request),
    });
    const plan = await here.world.person(stories);
    await here.world.worker(plan);
    await here.world.worker(plan);
    await assertDone(plan, ['US-001', 'US-002']);
    assert.ok(statuses(plan).includes('conflict'), statuses(plan).join());
    assert.doesNotMatch(plan.git('show', 'telos/site:both.txt'), /<<<<|>>>>/);
  });

  itBuilds('finds its jobs again when its runner was killed', async () => {
    const { stories } = manyStories(2);
    const { model, asked, release } = holding('all');
    const requestsOf = await here.world.serve(model);
    const plan = await here.world.person(stories);
    await here.world.worker(plan);
    const first = plan.run();
    await asked;
    await eventually(() => assert.ok(plan.journal().some(({ type }) => type === 'step_started')));
    first.child.kill('SIGKILL');
    await first.result;
    const again = plan.run();
    await again.says('goes on with its job on the worker');
    release();
    await assertDone(plan, ['US-001', 'US-002'], again);
    assert.equal(requestsOf('US-001', 'coder').length, 4);
    const jobs = plan.journal().filter(({ type }) => type === 'job_given');
    assert.equal(jobs.length, 2);
    const steps = plan
      .journal()
      .filter(({ type, key }) => type === 'step_ended' && key === 'US-001.a1.coder');
    assert.equal(steps.length, 1);
  });

  itBuilds('takes nothing from who can write to the database alone', async () => {
    const plan = await here.world.person(manyStories(1).stories);
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    const liar = spawn(
      process.execPath,
      [fileURLToPath(new URL('lyingWorker.ts', import.meta.url)), here.world.fleet.postgres.url, version],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    try {
      await eventually(async () => assert.match(String(liar.stdout.read() ?? ''), /takes jobs/), 30_000);
      const { code, stderr } = await plan.run().result;
      assert.notEqual(code, 0);
      assert.match(stderr, /What the database has of US-001\.a1 was not written for it by a worker\./);
      assert.doesNotMatch(JSON.stringify(plan.journal()), /evil\.test|Approved/);
      assert.deepEqual(plan.passed(), []);
    } finally {
      liar.kill('SIGKILL');
    }
  });

  itBuilds('says on which worker a story is, and takes its jobs back when it is paused', async () => {
    const { stories } = manyStories(1);
    const { model, asked, release } = holding('first');
    await here.world.serve(model);
    const plan = await here.world.person(stories);
    await here.world.worker(plan, ['--label', 'green']);
    const run = plan.run();
    await asked;
    assert.match((await plan.plan('status', 'site').result).stdout, /US-001 +working .*on green-[\da-f]{6}/);
    const { program, postgres } = here.world.fleet;
    // What a runner says of itself is a second old.
    await eventually(async () => {
      const status = await plan.home.runProcess(['fleet', 'status'], {
        env: { TELOS_DATABASE_URL: postgres.url },
        program,
      });
      assert.match(status.stdout, /^plan site-[\da-f]{6}: Telos \S+, 0 waiting, 1 given to workers, 0 done/m);
    }, 30_000);
    assert.equal((await plan.plan('pause', 'site').result).code, 0);
    await eventually(async () =>
      assert.match((await plan.plan('status', 'site').result).stdout, /site: paused/),
    );
    const left = await here.world.fleet.postgres.query(
      "select status from dbos.workflow_status where name = 'telos.story' and status in ('PENDING', 'ENQUEUED')",
    );
    assert.deepEqual(left, []);
    assert.equal((await plan.plan('resume', 'site').result).code, 0);
    release();
    await assertDone(plan, ['US-001'], run);
    assert.deepEqual(statuses(plan), ['interrupted', 'approved']);
  });

  itBuilds('goes on with a raised budget', async () => {
    const { stories, model } = manyStories(2);
    const usage = { input_tokens: 600, output_tokens: 0 };
    const counted = Object.fromEntries(
      Object.entries(model).map(([role, answers]) => [
        role,
        (...given: Parameters<typeof answers>) => ({ ...answers(...given), usage }),
      ]),
    );
    await here.world.serve(counted);
    const plan = await here.world.person(stories);
    await here.world.worker(plan);
    const first = await plan.run('--max-tokens', '2000').result;
    assert.equal(first.code, 4, first.stderr);
    assert.match(first.stderr, /The budget of this plan is used up: \d+ of 2000 tokens/);
    assert.ok(here.world.requests() <= 5, `${here.world.requests()} requests`);
    assert.ok(plan.passed().length < 2);
    await assertDone(plan, ['US-001', 'US-002'], plan.run('--max-tokens', '20000'));
  });

  itBuilds('gives what a worker hands back or leaves to another one', async () => {
    const { stories } = manyStories(2);
    const { model, asked, release } = holding('all');
    await here.world.serve(model);
    const plan = await here.world.person(stories);
    const one = await here.world.worker(plan);
    const run = plan.run();
    await asked;
    const two = await here.world.worker(plan);
    await eventually(() =>
      assert.equal(plan.journal().filter(({ type }) => type === 'step_started').length, 2),
    );
    kill(two.child, 'group');
    one.child.kill('SIGTERM');
    // It waits for so long and no longer: the model has not answered when it ends.
    const ended = await one.result;
    assert.equal(ended.code, 0, ended.stderr);
    assert.match(ended.stderr, /Ending: 1 running, up to 20 s for them\./);
    assert.match(ended.stderr, /1 handed back/);
    release();
    await here.world.worker(plan);
    const said = await assertDone(plan, ['US-001', 'US-002'], run);
    assert.match(said, /interrupted: The worker \S+ handed it back before its work was kept\./);
    assert.match(said, /interrupted: The worker \S+ has gone silent before its work was kept\./);
  });
});
