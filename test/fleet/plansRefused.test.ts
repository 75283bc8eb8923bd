import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunningCli } from '../cli/cliProcess.ts';
import { eventually } from '../eventually.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { type FleetHome, workerName } from './fleetWorld.ts';
import { type Entry, type ForgedOrder, forgeOrder } from './forgedOrder.ts';
import { builders, type FleetPlan, manyStories, openPlanFleet, type PlanFleet } from './planFleet.ts';

describe('a worker believes no plan', function () {
  this.timeout(180_000);
  let world: PlanFleet;
  before(async () => {
    world = await openPlanFleet();
  });
  beforeEach(() => world.serve(builders));
  afterEach(() => world.clear());
  after(() => world.close());

  const { stories } = manyStories(1);

  async function refuses(plan: FleetPlan, sentence: RegExp): Promise<void> {
    const { code, stdout, stderr } = await plan.run().result;
    assert.equal(code, 1, stdout + stderr);
    assert.match(stderr, sentence);
    assert.equal(world.requests(), 0);
    assert.deepEqual(plan.passed(), []);
  }

  /** A worker of an owner who has accepted nothing. */
  async function stranger(...args: readonly string[]): Promise<{ home: FleetHome; running: RunningCli }> {
    const home = world.fleet.home({});
    const key = { TELOS_PROVIDER: 'anthropic', ANTHROPIC_API_KEY: 'key-of-the-worker-0123456789' };
    return { home, running: await home.worker(args, key) };
  }

  it('works for no repository that its owner has not allowed', async () => {
    const plan = await world.person(stories);
    await stranger();
    await refuses(
      plan,
      /No worker takes US-001\. \S+: This worker does no stories: its owner has allowed no repository\./,
    );
    await world.fleet.clear();
  });

  it('names the repository that is not allowed', async () => {
    const plan = await world.person(stories);
    await stranger('--repository', plan.url.replace('bakery', 'other'));
    await refuses(plan, /has not allowed the repository git:\/\/127\.0\.0\.1:\d+\/bakery-\d+\.git\./);
    await world.fleet.clear();
  });

  it('runs no command of a card that its owner has not accepted, and shows it', async () => {
    const plan = await world.person(stories);
    const { home, running } = await stranger('--repository', plan.url);
    await refuses(
      plan,
      new RegExp(`has not accepted the card ${plan.digest.slice(0, 12)} of the plan site\\.`),
    );
    await running.says(`telos worker accept ${plan.digest}`);
    const shown = await home.run(['worker', 'accept']);
    assert.match(shown.stderr, /Plan site of git:\/\/[\s\S]*check there: grep -q done US-001\/work\.txt/);
    assert.equal((await home.run(['worker', 'accept', plan.digest])).code, 3);
    assert.equal((await home.run(['worker', 'accept', plan.digest, '--yes'])).code, 0);
    assert.match((await home.run(['worker', 'accept'])).stderr, /No card of a plan waits\./);
    await world.fleet.clear();
  });

  it('does another check only after another yes', async () => {
    const plan = await world.person(stories);
    await world.worker(plan);
    writeFileSync(
      join(plan.repo, '.telos/plans/site/prds/US-001.md'),
      plan.file('prds/US-001.md').replace('grep -q done', 'cat'),
    );
    assert.equal((await plan.plan('approve', 'site', '--card', '--yes').result).code, 0);
    await refuses(plan, /The owner of this worker has not accepted the card/);
  });

  /** Has a worker that has accepted the card of a forged order get it, and returns its answer. */
  async function answerTo(
    files: readonly Entry[],
    more: Record<string, unknown> = {},
    change: (forged: ForgedOrder) => Record<string, unknown> = ({ order }) => order,
  ): Promise<{ answer: string; home: FleetHome }> {
    const name = `forged-${++names}`;
    const url = world.daemon.repository(name);
    const forged = forgeOrder(world, name, url, files, more);
    const home = world.fleet.home({});
    await world.worker({ url, digest: forged.digest } as FleetPlan, [], home);
    const key = await world.fleet.forge(await workerName(world.fleet), JSON.stringify([change(forged)]), {
      workflow: 'telos.story',
    });
    const answer = await eventually(async () => {
      const [row] = await world.fleet.postgres.query(
        'select output from dbos.workflow_output where workflow_uuid = $1',
        [key],
      );
      assert.ok(row, 'it was not answered');
      return String(row['output']);
    }, 60_000);
    return { answer, home };
  }
  let names = 0;

  const plain: Entry[] = [['100644', 'README.md', '# Bakery\n']];

  it('does an order that is in order', async () => {
    const { answer } = await answerTo(plain);
    assert.match(answer, /^\{"sealed":/);
    assert.equal(world.requests(), 6);
  });

  it('does nothing for an order that lies', async () => {
    const lies: [RegExp, Record<string, unknown>, ((forged: ForgedOrder) => Record<string, unknown>)?][] = [
      [/not one that this version of Telos knows/, {}, ({ order }) => ({ ...order, plan: '../../etc' })],
      [
        /not one that this version of Telos knows/,
        {},
        ({ order }) => ({ ...order, story: '--upload-pack=touch x' }),
      ],
      [/not one that this version of Telos knows/, {}, ({ order }) => ({ ...order, commit: 'HEAD' })],
      [
        /has not allowed the repository ext::/,
        {},
        ({ order }) => ({ ...order, repository: 'ext::sh -c touch% x' }),
      ],
      [
        /has another order for US-001 than the database/,
        {},
        ({ order }) => ({ ...order, commit: '0'.repeat(40) }),
      ],
      [/git fetch failed with the remote/, {}, ({ order }) => ({ ...order, number: 7 })],
      [
        /has not accepted the card/,
        {
          card: [
            ...new Array(3).fill('check x: y'),
            'branch: telos/site',
            'check there: test -f US-001/work.txt',
          ],
        },
      ],
      [
        /needs what is not on the card of its plan: setup: touch x/,
        {
          settings: { setup: ['touch x'] },
          card: ['branch: telos/site', 'check there: test -f US-001/work.txt'],
        },
      ],
      [/cannot be used: it is not what an order is/, { prd: { path: '../../../x.md', text: '' } }],
      [/cannot be used: it is not what an order is/, { parent: 'HEAD' }],
      [
        /cannot be used: its story is US-002/,
        { prd: { path: 'prds/x.md', text: '---\nid: US-002\n---\n# x\n' } },
      ],
      [/is not for its attempt 1/, { journal: [] }],
    ];
    for (const [sentence, more, change] of lies) {
      const settled = await settle(more, change);
      assert.match(settled, /^\{"refused":/, settled);
      assert.match(settled, sentence);
      assert.equal(world.requests(), 0);
    }
  });

  /** As `answerTo`, with a card that was accepted only as far as the lie goes. */
  async function settle(
    more: Record<string, unknown>,
    change?: (forged: ForgedOrder) => Record<string, unknown>,
  ): Promise<string> {
    const isOther = /check x: y/.test(JSON.stringify(more));
    const { answer } = isOther ? await unaccepted(more) : await answerTo(plain, more, change);
    await world.fleet.clear();
    await world.clear();
    await world.serve(builders);
    return answer;
  }

  async function unaccepted(more: Record<string, unknown>): Promise<{ answer: string }> {
    const name = `forged-${++names}`;
    const url = world.daemon.repository(name);
    const { order } = forgeOrder(world, name, url, plain, more);
    await stranger('--repository', url);
    const key = await world.fleet.forge(await workerName(world.fleet), JSON.stringify([order]), {
      workflow: 'telos.story',
    });
    const answer = await eventually(async () => {
      const [row] = await world.fleet.postgres.query(
        'select output from dbos.workflow_output where workflow_uuid = $1',
        [key],
      );
      assert.ok(row, 'it was not answered');
      return String(row['output']);
    });
    return { answer };
  }

  it('brings nothing to life that a hostile remote has', async () => {
    const folder = tempFolder();
    const outside = folder.path;
    const mark = join(outside, 'mark');
    mkdirSync(join(outside, 'target'));
    const script = `#!/bin/sh\ntouch ${mark}\n`;
    const trees: [string, Entry[]][] = [
      ['a .git', [...plain, ['100644', '.git/config', `[core]\n\tfsmonitor = "touch ${mark}"\n`]]],
      ['hooks', [...plain, ['100755', 'hooks', script]]],
      ['a link out', [...plain, ['120000', 'US-001', join(outside, 'target')]]],
      [
        'a filter',
        [
          ...plain,
          ['100644', '.gitattributes', '* filter=evil\n*.md filter=lfs\n'],
          ['100644', '.lfsconfig', `[lfs]\n\turl = http://127.0.0.1:9/${mark}\n`],
        ],
      ],
      [
        'a submodule',
        [
          ...plain,
          ['100644', '.gitmodules', `[submodule "x"]\n\tpath = x\n\turl = ext::sh -c touch% ${mark}\n`],
          ['160000', 'x', '1'.repeat(40)],
        ],
      ],
      [
        'a submodule with a name that leads out',
        [...plain, ['100644', '.gitmodules', '[submodule "../../hooks"]\n\tpath = x\n\turl = ./x\n']],
      ],
    ];
    for (const [what, files] of trees) {
      const { answer } = await answerTo(files);
      assert.match(answer, /^\{"(?:sealed|refused)":/, what);
      assert.equal(existsSync(mark), false, what);
      assert.deepEqual(readdirSync(join(outside, 'target')), [], what);
      if (/\.git$|leads out/.test(what))
        assert.match(answer, /refused":"git fetch failed with the remote/, answer);
      await world.clear();
      await world.serve(builders);
    }
    folder.remove();
  });
});
