/** Plans that are done: what they are told then, and what becomes of them. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { send } from '../../src/plans/inbox.ts';
import { cliHome } from '../cli/cliProcess.ts';
import { agreeable, once, type PlanWorld, planWorld, type StepModel, writes } from './planWorld.ts';

const one = { id: 'US-001', title: 'Hours', touches: ['src/hours.js'] };
const builds: StepModel = { ...agreeable, coder: once(writes({ 'src/hours.js': '7\n' })) };

describe('a plan that is done', function () {
  this.timeout(120_000);
  let world: PlanWorld | undefined;
  afterEach(() => world?.close().then(() => (world = undefined)));

  const done = async (): Promise<PlanWorld> => {
    world = await planWorld([one], builds);
    const { code, stderr } = await world.plan('run', 'site', '--unattended');
    assert.equal(code, 0, stderr);
    return world;
  };
  const inbox = (here: PlanWorld): string => join(here.repo, '.telos/plans/site/inbox');
  const shown = async (here: PlanWorld): Promise<string> => (await here.plan('show', 'site')).stdout;

  it('takes no order that it cannot carry out, and keeps those that wait', async () => {
    const here = await done();
    const refused: readonly (readonly [string[], RegExp])[] = [
      [['pause', 'site'], /^The plan is not running\.$/m],
      [['resume', 'site'], /^The plan is not running\.\nNext: telos plan finish site --merge$/m],
      [['stop', 'site'], /^The plan is not running\.$/m],
      [['skip', 'US-001'], /US-001 has passed already\./],
      [['accept', 'US-001'], /US-001 has passed already\./],
      [['answer', '1', 'yes'], /There is no open question 1\./],
    ];
    for (const [order, words] of refused) {
      const { code, stderr } = await here.plan(...order);
      assert.equal(code, 1, order.join(' '));
      assert.match(stderr, words);
    }
    mkdirSync(inbox(here), { recursive: true });
    assert.deepEqual(readdirSync(inbox(here)), []);
    const waits = await here.plan('budget', 'site', '--add', '1');
    assert.equal(waits.code, 0);
    assert.match(waits.stderr, /telos plan run site/);
    assert.equal(readdirSync(inbox(here)).length, 1);
  });

  it('keeps its stories and is not held when it runs with orders that were late', async () => {
    const here = await done();
    const tip = here.git('rev-parse', 'telos/site');
    for (const command of [
      { kind: 'pause' },
      { kind: 'stop', when: 'now' },
      { kind: 'skip', story: 'US-001' },
      { kind: 'accept', story: 'US-001' },
    ] as const)
      await send(here.folder(), command, 'other');
    const { code, stderr } = await here.plan('run', 'site', '--unattended');
    assert.equal(code, 0, stderr);
    assert.match(stderr, /Ignored: pause\. The plan is not running\./);
    assert.equal(here.git('rev-parse', 'telos/site'), tip);
    assert.match(await shown(here), new RegExp(`US-001 +passed .*${tip.slice(0, 8)}`));
    assert.deepEqual(readdirSync(inbox(here)), []);
  });

  it('says that it was merged, names no further step, and is merged once', async () => {
    const here = await done();
    assert.match(await shown(here), /Next: telos plan finish site --merge/);
    assert.match((await here.plan('finish', 'site', '--merge')).stderr, /Merged into main/);
    const after = await shown(here);
    assert.match(after, /^site: done, merged into main, 1 of 1 stories passed/m);
    assert.doesNotMatch(after, /Next:/);
    const head = here.git('rev-parse', 'HEAD');
    for (const how of ['--merge', '--squash']) {
      const again = await here.plan('finish', 'site', how);
      assert.equal(again.code, 1);
      assert.match(again.stderr, /was merged into main already\./);
    }
    assert.equal(here.git('rev-parse', 'HEAD'), head);
    const watched = await here.plan('watch', 'site');
    assert.equal(watched.code, 0);
    assert.match(watched.stderr, /nothing to watch/);
  });

  it('is squashed once', async () => {
    const here = await done();
    await here.plan('finish', 'site', '--squash');
    assert.match(await shown(here), /done, merged into main as one commit,/);
    const again = await here.plan('finish', 'site', '--squash');
    assert.match(again.stderr, /was merged into main already\./);
  });

  it('says that it was discarded', async () => {
    const here = await done();
    await here.plan('finish', 'site', '--drop', '--yes');
    const after = await shown(here);
    assert.match(after, /^site: discarded, 1 of 1 stories passed/m);
    assert.doesNotMatch(after, /Next:/);
    const again = await here.plan('finish', 'site', '--drop', '--yes');
    assert.match(again.stderr, /was discarded already\./);
  });
});

describe('a plan that is brought to its end', function () {
  this.timeout(120_000);
  let world: PlanWorld | undefined;
  afterEach(() => world?.close().then(() => (world = undefined)));

  const two = [one, { id: 'US-002', title: 'Prices', touches: ['src/prices.js'] }];
  const done = async (...options: string[]): Promise<PlanWorld> => {
    world = await planWorld(two, {
      ...agreeable,
      'US-001 coder': once(writes({ 'src/hours.js': '7\n' })),
      'US-002 coder': once(writes({ 'src/prices.js': '8\n' })),
    });
    const { code, stderr } = await world.plan('run', 'site', '--unattended', ...options);
    assert.equal(code, 0, stderr);
    return world;
  };
  const refs = (here: PlanWorld): string => here.git('for-each-ref', '--format=%(refname)', 'refs/telos');
  const worktrees = (here: PlanWorld): number => here.git('worktree', 'list').trim().split('\n').length;

  for (const how of ['--merge', '--squash', '--drop'])
    it(`keeps neither worktrees nor refs of its attempts: ${how}`, async () => {
      const here = await done('--parallel', '2');
      assert.match(refs(here), /refs\/telos\/site\/US-001\/a1/);
      const { code, stderr } = await here.plan('finish', 'site', how, '--yes');
      assert.equal(code, 0, stderr);
      assert.deepEqual([refs(here), worktrees(here)], ['', 1]);
    });

  it('is cleaned but for its report, and removed whole', async () => {
    const here = await done();
    const early = await here.plan('clean', 'site');
    assert.equal(early.code, 1);
    assert.match(early.stderr, /is not finished/);
    assert.match((await here.plan('clean')).stderr, /No plan here is finished/);
    const away = await here.plan('check', 'US-001');
    assert.match(
      away.stderr,
      /ran in your checkout\. .* telos\/site until you merge it: telos plan finish site --merge/,
    );
    await here.plan('finish', 'site', '--keep');
    const cleaned = await here.plan('clean');
    assert.equal(cleaned.code, 0, cleaned.stderr);
    assert.deepEqual([refs(here), worktrees(here)], ['', 1]);
    assert.equal(existsSync(join(here.repo, '.telos/plans/site/checks')), false);
    assert.match(await here.plan('show', 'site').then(({ stdout }) => stdout), /2 of 2 stories passed/);
    assert.equal((await here.plan('remove', 'site')).code, 1);
    const removed = await here.plan('remove', 'site', '--yes');
    assert.equal(removed.code, 0, removed.stderr);
    assert.match(removed.stderr, /Its branch telos\/site stays/);
    assert.equal(existsSync(join(here.repo, '.telos/plans/site')), false);
    assert.match((await here.plan('show')).stderr, /no plans here yet/);
  });

  it('is signed where the user signs, and not merged where that fails; hooks that do not run are named', async () => {
    const here = await done();
    const signer = (text: string): void => {
      const path = join(here.home.folder.path, 'signer');
      writeFileSync(path, `#!/bin/sh\n${text}\n`);
      chmodSync(path, 0o755);
      here.git('config', 'gpg.program', path);
    };
    here.git('config', 'commit.gpgsign', 'true');
    here.git('config', 'user.name', 'Ada');
    here.git('config', 'user.email', 'ada@example.com');
    mkdirSync(join(here.repo, '.git/hooks'), { recursive: true });
    writeFileSync(join(here.repo, '.git/hooks/pre-commit'), '#!/bin/sh\nexit 1\n');
    chmodSync(join(here.repo, '.git/hooks/pre-commit'), 0o755);
    const { stdout } = await here.plan('doctor');
    assert.match(stdout, /Note: Hooks of the repository \(pre-commit\) run neither/);
    assert.match(stdout, /Note: Your git signs commits/);
    signer('echo "no secret key" >&2; exit 2');
    const head = here.git('rev-parse', 'HEAD');
    const failed = await here.plan('finish', 'site', '--squash');
    assert.equal(failed.code, 1);
    assert.match(
      failed.stderr,
      /could not be signed: [\s\S]*Nothing was changed\.[\s\S]*git merge telos\/site/,
    );
    assert.equal(here.git('rev-parse', 'HEAD'), head);
    signer('cat >/dev/null; echo "[GNUPG:] SIG_CREATED " >&2; echo a-signature');
    const squashed = await here.plan('finish', 'site', '--squash');
    assert.equal(squashed.code, 0, squashed.stderr);
    assert.match(here.git('cat-file', 'commit', 'HEAD'), /^gpgsig a-signature$/m);
  });

  it('brings back no commit that the user took off their branch meanwhile', async () => {
    const here = await done();
    writeFileSync(join(here.repo, 'README.md'), 'Written anew\n');
    here.git('add', 'README.md');
    here.git('commit', '--quiet', '--amend', '--message', 'Begun anew');
    const head = here.git('rev-parse', 'HEAD');
    const refused = await here.plan('finish', 'site', '--merge');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /main does not have the commit [0-9a-f]{10} that the plan began with\./);
    assert.equal(here.git('rev-parse', 'HEAD'), head);
    const squashed = await here.plan('finish', 'site', '--squash');
    assert.equal(squashed.code, 0, squashed.stderr);
    assert.equal(here.git('rev-parse', 'HEAD^'), head);
    assert.equal(here.git('show', 'HEAD:README.md'), 'Written anew\n');
    assert.equal(here.git('show', 'HEAD:src/prices.js'), '8\n');
  });
});

describe('a plan that has not run', function () {
  this.timeout(120_000);
  let world: PlanWorld | undefined;
  afterEach(() => world?.close().then(() => (world = undefined)));

  it('has no branch to keep', async () => {
    world = await planWorld([one], builds);
    const { code, stderr } = await world.plan('finish', 'site', '--keep');
    assert.equal(code, 1);
    assert.match(stderr, /has no branch yet, so there is none to keep\./);
  });

  it('names the commands for a story that changed nothing, and starts it once it was told more', async () => {
    let isTold = false;
    world = await planWorld([one], {
      ...agreeable,
      coder: (turn, _attempt, request) => {
        isTold ||= JSON.stringify(request.body.messages).includes('use sqlite');
        return turn === 0 && isTold ? writes({ 'src/hours.js': '7\n' }) : { text: ['Done.'] };
      },
    });
    const first = await world.plan('run', 'site');
    assert.equal(first.code, 3, first.stderr);
    const commands =
      /telos plan tell US-001 [\s\S]*telos plan skip US-001\n.*redo US-001\n[\s\S]*plan run site/;
    assert.match(first.stderr, commands);
    assert.match((await world.plan('show', 'site')).stdout, commands);
    await world.plan('tell', 'US-001', 'use', 'sqlite');
    const second = await world.plan('run', 'site');
    assert.equal(second.code, 0, second.stderr);
  });

  it('ends only the view of a watcher', async () => {
    world = await planWorld([one], builds);
    const watching = world.start('watch', 'site');
    await watching.says('ready to run');
    watching.child.kill('SIGINT');
    assert.match((await watching.result).stderr, /This view ends/);
  });

  it('hears at once that it cannot run without git', async () => {
    const home = cliHome();
    try {
      const { stderr } = await home.run(['plan', 'new', 'A site', '--no-more-questions']);
      assert.match(stderr, /The plan cannot run here yet: .*git/);
    } finally {
      home.remove();
    }
  });
});
