import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, gate } from '../eventually.ts';
import type { StepModel } from '../plan/planWorld.ts';
import { builders, type FleetPlan, itBuilds, manyStories, planFleetOfTests } from './planFleet.ts';

describe('a plan on workers in a bad hour', function () {
  this.timeout(240_000);
  const here = planFleetOfTests();

  const { stories } = manyStories(2);
  const ids = stories.map(({ id }) => id);
  /** The second story comes after the first. */
  const inTurn = stories.map((story, index) => ({ ...story, ...(index > 0 && { dependsOn: ['US-001'] }) }));

  /** A model whose coder of that story waits at its first round. */
  function holding(story: string) {
    const [asked, held] = [gate(), gate()];
    const model: StepModel = {
      ...builders,
      [`${story} coder`]: (turn, attempt, request) => {
        const answer = builders['coder']?.(turn, attempt, request) ?? {};
        if (turn > 0) return answer;
        asked.open();
        return { ...answer, hold: { behind: '', until: held.opened } };
      },
    };
    return { model, asked: asked.opened, release: held.open };
  }

  const nameOf = ({ url }: FleetPlan): string => /([\w-]+)\.git$/.exec(url)?.[1] ?? '';

  itBuilds('goes on when its database and its remote were both put back to an earlier state', async () => {
    const { model, asked, release } = holding('US-002');
    await here.world.serve(model);
    const plan = await here.world.person(inTurn);
    await here.world.worker(plan);
    const { postgres } = here.world.fleet;
    await postgres.stop();
    postgres.save();
    await postgres.start();
    const run = plan.run();
    await asked;
    const remote = (...args: string[]): string => here.world.daemon.git(nameOf(plan), ...args);
    const passed = plan.git('rev-parse', 'telos/site');
    await eventually(() => assert.equal(remote('rev-parse', 'refs/heads/telos/site'), passed), 60_000);
    await postgres.stop();
    postgres.restore();
    await postgres.start();
    remote('update-ref', 'refs/heads/telos/site', plan.git('rev-parse', 'main'));
    release();
    const { code, stdout, stderr } = await run.result;
    const said = stdout + stderr;
    assert.equal(code, 0, said);
    assert.deepEqual(plan.passed().sort(), ids);
    assert.match(
      said,
      /US-002 interrupted: The worker \S+ lost it with the database before its work was kept\./,
    );
    assert.match(said, /The remote \S+ had an earlier state of telos\/site\. It gets the present one\./);
    assert.equal(remote('rev-parse', 'refs/heads/telos/site'), plan.git('rev-parse', 'telos/site'));
  });

  itBuilds('is run by one runner alone, in one clone', async () => {
    const { model, asked, release } = holding('US-001');
    await here.world.serve(model);
    const plan = await here.world.person(inTurn);
    await here.world.worker(plan);
    const run = plan.run();
    await asked;
    const second = plan.run();
    await second.says('site is already running (pid ');
    second.child.kill('SIGINT');
    await second.result;
    release();
    assert.equal((await run.result).code, 0);
    const clone = join(plan.home.workDir, 'other');
    plan.git('clone', '-q', '--branch', 'main', plan.repo, clone);
    execFileSync('git', ['remote', 'set-url', 'origin', plan.url], { cwd: clone });
    const from = join(plan.repo, '.telos/plans/site');
    const to = join(clone, '.telos/plans/site');
    mkdirSync(to, { recursive: true });
    for (const file of ['plan.json', 'prds']) cpSync(join(from, file), join(to, file), { recursive: true });
    const other = (...args: string[]) =>
      plan.home.runProcess(['plan', ...args, '--cwd', clone], {
        env: { TELOS_DATABASE_URL: here.world.fleet.postgres.url },
        program: here.world.fleet.program,
      });
    const card = await other('approve', 'site', '--card', '--yes');
    assert.equal(card.code, 0, card.stderr);
    const before = here.world.daemon.git(nameOf(plan), 'rev-parse', 'refs/heads/telos/site');
    const { code, stderr } = await other('run', 'site', '--unattended', '--workers');
    assert.notEqual(code, 0);
    assert.match(
      stderr,
      /telos\/site has commits on \S+ that are not in it here: another clone works on this plan/,
    );
    assert.equal(here.world.daemon.git(nameOf(plan), 'rev-parse', 'refs/heads/telos/site'), before);
  });

  itBuilds('has what one worker cannot do done by another', async () => {
    await here.world.serve(builders);
    const plan = await here.world.person(inTurn);
    const accepting = async (env: Record<string, string | undefined>) => {
      const home = here.world.fleet.home({});
      const { program } = here.world.fleet;
      const { code, stderr } = await home.runProcess(['worker', 'accept', plan.digest, '--yes'], { program });
      assert.equal(code, 0, stderr);
      return home.worker(['--repository', plan.url], env);
    };
    await accepting({ TELOS_PROVIDER: 'anthropic' });
    const small = join(here.world.fleet.home({}).folder.path, 'small');
    const isSmall = mountsSmall(small);
    try {
      const key = { TELOS_PROVIDER: 'anthropic', ANTHROPIC_API_KEY: 'key-of-the-worker-0123456789' };
      if (isSmall) await accepting({ ...key, XDG_CACHE_HOME: small });
      const first = await plan.run().result;
      assert.equal(first.code, 1, first.stdout + first.stderr);
      assert.match(first.stderr, /No worker takes US-001\. .*: The provider anthropic has no key\./);
      if (isSmall) assert.match(first.stderr, /: The disk of the worker is full\./);
      await here.world.worker(plan);
      const { code, stdout, stderr } = await plan.run().result;
      assert.equal(code, 0, stdout + stderr);
      assert.deepEqual(plan.passed().sort(), ids);
    } finally {
      if (isSmall) execFileSync('umount', ['-l', small]);
    }
  });
});

/** Makes a disk of 64 KB there. Returns false where only root can. */
function mountsSmall(folder: string): boolean {
  mkdirSync(folder);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder], { stdio: 'ignore' });
    writeFileSync(join(folder, 'fills'), Buffer.alloc(60 * 1024));
    return true;
  } catch {
    return false;
  }
}
