import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from '../../src/engine/tools/programPath.ts';
import { acceptWorkerCard } from '../../src/fleet/stories/workerCards.ts';
import type { RunningCli } from '../cli/cliProcess.ts';
import { eventually } from '../eventually.ts';
import { tempFolder } from '../fakes/tempFolder.ts';
import { type FleetHome, workerName } from './fleetWorld.ts';
import { type Entry, type ForgedOrder, forgeOrder } from './forgedOrder.ts';
import { builders, type FleetPlan, itBuilds, manyStories, planFleetOfTests } from './planFleet.ts';

describe('a worker believes no plan', function () {
  this.timeout(180_000);
  const here = planFleetOfTests();
  beforeEach(() => here.world.serve(builders));

  const { stories } = manyStories(1);
  const key = { TELOS_PROVIDER: 'anthropic', ANTHROPIC_API_KEY: 'key-of-the-worker-0123456789' };

  async function refuses(plan: FleetPlan, sentence: RegExp): Promise<void> {
    const { code, stdout, stderr } = await plan.run().result;
    assert.equal(code, 1, stdout + stderr);
    assert.match(stderr, sentence);
    assert.equal(here.world.requests(), 0);
    assert.deepEqual(plan.passed(), []);
  }

  /** A worker of an owner who has accepted nothing. */
  async function stranger(...args: readonly string[]): Promise<{ home: FleetHome; running: RunningCli }> {
    const home = here.world.fleet.home({});
    return { home, running: await home.worker(args, key) };
  }

  it('works for no repository that its owner has not allowed', async () => {
    const plan = await here.world.person(stories);
    await stranger();
    await refuses(
      plan,
      /No worker takes US-001\. \S+: This worker does no stories: its owner has allowed no repository\./,
    );
    await here.world.fleet.clear();
  });

  it('names the repository that is not allowed', async () => {
    const plan = await here.world.person(stories);
    await stranger('--repository', plan.url.replace('bakery', 'other'));
    await refuses(plan, /has not allowed the repository git:\/\/127\.0\.0\.1:\d+\/bakery-\d+\.git\./);
    await here.world.fleet.clear();
  });

  it('runs no command of a card that its owner has not accepted, and shows it', async () => {
    const plan = await here.world.person(stories);
    const { home, running } = await stranger('--repository', plan.url);
    await refuses(
      plan,
      new RegExp(`has not accepted the card ${plan.digest.slice(0, 12)} of the plan site\\.`),
    );
    await running.says(`telos worker accept ${plan.digest}`);
    const shown = await home.runProcess(['worker', 'accept']);
    assert.match(shown.stderr, /Plan site of git:\/\/[\s\S]*check there: grep -q done US-001\/work\.txt/);
    assert.equal((await home.runProcess(['worker', 'accept', plan.digest])).code, 3);
    assert.equal((await home.runProcess(['worker', 'accept', plan.digest, '--yes'])).code, 0);
    assert.match((await home.runProcess(['worker', 'accept'])).stderr, /No card of a plan waits\./);
    await here.world.fleet.clear();
  });

  it('does no story where no box works, and says to its owner what mends that', async () => {
    const plan = await here.world.person(stories);
    const home = here.world.fleet.home({ 'programs/empty': '' });
    const programs = join(home.folder.path, 'programs');
    for (const name of ['git', 'sh']) {
      const program = findProgram(name, { env: { PATH: process.env['PATH'] ?? '' } });
      if (program !== undefined) symlinkSync(program, join(programs, name));
    }
    assert.equal((await home.runProcess(['worker', 'accept', plan.digest, '--yes'])).code, 0);
    const running = await home.worker(['--repository', plan.url], { ...key, PATH: programs });
    await refuses(
      plan,
      /No worker takes US-001\. .*since no sandbox for commands works there: bubblewrap is not/,
    );
    await running.says('none works here: bubblewrap is not installed. To fix it: ');
    await here.world.fleet.clear();
  });

  it('does another check only after another yes', async () => {
    const plan = await here.world.person(stories);
    await here.world.worker(plan);
    writeFileSync(
      join(plan.repo, '.telos/plans/site/prds/US-001.md'),
      plan.file('prds/US-001.md').replace('grep -q done', 'cat'),
    );
    assert.equal((await plan.plan('approve', 'site', '--card', '--yes').result).code, 0);
    await refuses(plan, /The owner of this worker has not approved the permissions/);
  });

  interface Forged {
    files?: readonly Entry[];
    /** What is put into the file of the order. */
    more?: Record<string, unknown>;
    /** Returns what is in the database in place of the order. */
    change?: (forged: ForgedOrder) => Record<string, unknown>;
    /** The owner has not accepted its card. */
    isNew?: boolean;
  }

  const plain: Entry[] = [['100644', 'README.md', '# Bakery\n']];
  let names = 0;

  /** Has a worker that has accepted the cards of forged orders get them, and returns its answers. */
  async function answersTo(orders: readonly Forged[]): Promise<string[]> {
    const home = here.world.fleet.home({});
    const forged = orders.map(
      ({ files = plain, more = {}, change = ({ order }) => order, isNew = false }) => {
        const name = `forged-${++names}`;
        const url = here.world.daemon.repository(name);
        const made = forgeOrder(here.world, name, url, files, more);
        return { url, digest: made.digest, isNew, row: change(made) };
      },
    );
    for (const { digest, isNew } of forged)
      if (!isNew) await acceptWorkerCard({ dataDir: home.dataDir }, digest);
    const [first, ...others] = forged;
    const more = others.flatMap(({ url }) => ['--repository', url]);
    await here.world.worker(first as unknown as FleetPlan, ['--slots', '3', ...more], home);
    const worker = await workerName(here.world.fleet);
    const keys: string[] = [];
    for (const { row } of forged)
      keys.push(await here.world.fleet.forge(worker, JSON.stringify([row]), { workflow: 'telos.story' }));
    return eventually(async () => {
      const rows = await here.world.fleet.postgres.query(
        'select workflow_uuid as key, output from dbos.workflow_output where workflow_uuid = any($1)',
        [keys],
      );
      const outputs = new Map(rows.map(({ key, output }) => [key, String(output)]));
      return keys.map((key, index) => {
        const output = outputs.get(key);
        assert.ok(output, `order ${index} was not answered`);
        return output;
      });
    }, 120_000);
  }

  itBuilds('does an order that is in order', async () => {
    const [answer = ''] = await answersTo([{}]);
    assert.match(answer, /^\{"sealed":/);
    assert.equal(here.world.requests(), 6);
  });

  it('does nothing for an order that lies', async () => {
    const unknown = /not one that this version of Telos knows/;
    const card = [
      JSON.stringify(['branch', 'telos/site']),
      JSON.stringify(['check', 'there', null, 'test -f US-001/work.txt']),
    ];
    const lies: [RegExp, Forged][] = [
      [unknown, { change: ({ order }) => ({ ...order, plan: '../../etc' }) }],
      [unknown, { change: ({ order }) => ({ ...order, story: '--upload-pack=touch x' }) }],
      [unknown, { change: ({ order }) => ({ ...order, commit: 'HEAD' }) }],
      [
        /has not allowed the repository ext::/,
        { change: ({ order }) => ({ ...order, repository: 'ext::sh -c touch% x' }) },
      ],
      [
        /has another order for US-001 than the database/,
        { change: ({ order }) => ({ ...order, commit: '0'.repeat(40) }) },
      ],
      [/git fetch failed with the remote/, { change: ({ order }) => ({ ...order, number: 7 }) }],
      [
        /has not approved the permissions/,
        { isNew: true, more: { card: [...new Array(3).fill('check x: y'), ...card] } },
      ],
      [
        /needs what the permissions of its plan do not name: setup: touch x/,
        { more: { settings: { setup: ['touch x'] }, card } },
      ],
      [/cannot be used: it is not what an order is/, { more: { prd: { path: '../../../x.md', text: '' } } }],
      [/cannot be used: it is not what an order is/, { more: { parent: 'HEAD' } }],
      [
        /cannot be used: its story is US-002/,
        { more: { prd: { path: 'prds/x.md', text: '---\nid: US-002\n---\n# x\n' } } },
      ],
      [/is not for its attempt 1/, { more: { journal: [] } }],
    ];
    const answers = await answersTo(lies.map(([, lie]) => lie));
    for (const [index, [sentence]] of lies.entries()) {
      assert.match(answers[index] ?? '', /^\{"refused":/);
      assert.match(answers[index] ?? '', sentence);
    }
    assert.equal(here.world.requests(), 0);
  });

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
    const answers = await answersTo(trees.map(([, files]) => ({ files })));
    assert.equal(existsSync(mark), false);
    assert.deepEqual(readdirSync(join(outside, 'target')), []);
    for (const [index, [what]] of trees.entries()) {
      const answer = answers[index] ?? '';
      assert.match(answer, /^\{"(?:sealed|refused)":/, what);
      if (/\.git$|leads out/.test(what))
        assert.match(answer, /refused":"git fetch failed with the remote/, what);
    }
    folder.remove();
  });
});
