import assert from 'node:assert/strict';
import { appendFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../src/engine/config.ts';
import { discoverAgents } from '../../src/engine/skills/discover.ts';
import { skillDigest } from '../../src/engine/skills/skillDigest.ts';
import { readEvals } from '../../src/evals/evalFile.ts';
import { evalDigest, packDigest } from '../../src/fleet/evalOrder.ts';
import { suiteKeys } from '../../src/fleet/sealed.ts';
import { eventually } from '../eventually.ts';
import { type FleetHome, type FleetWorld, model, notes, openFleet, workerName } from './fleetWorld.ts';

const models = ['--models', 'openrouter:maker/model'];
const live = ['--live', '--runs', '1', '--yes', '--judge', 'none', '--baseline', 'none', ...models];

describe('a worker believes nobody', function () {
  this.timeout(120_000);
  let world: FleetWorld;
  let key: Record<string, string>;
  before(async () => {
    world = await openFleet();
  });
  beforeEach(async () => {
    key = await world.serve(model);
  });
  afterEach(() => world.clear());
  after(() => world.close());

  /** Runs the suite of a person without a key, and returns all that was said. */
  async function said(expected: number): Promise<string> {
    const { code, stdout, stderr } = await world.home().suite(live).result;
    assert.equal(code, expected, stdout + stderr);
    return stdout + stderr;
  }

  async function refuses(worker: FleetHome, sentence: RegExp, env = key): Promise<void> {
    const running = await worker.worker([], env);
    assert.match(await said(1), sentence);
    assert.equal(world.requests(), 0);
    running.child.kill('SIGTERM');
    const { code, stderr } = await running.result;
    assert.equal(code, 0);
    assert.match(stderr, sentence);
  }

  it('does not run a skill that is not installed there', () =>
    refuses(world.home({}), /The skill notes \(notes\) is not installed here\./));

  it('does not run a skill that its owner has not accepted', () =>
    refuses(world.home(), /The owner of this worker has not accepted the agent notes\./));

  it('does not run a skill that is another one there', async () => {
    const home = world.home();
    appendFileSync(join(home.folder.path, 'skills/notes/SKILL.md'), 'And be brief.\n');
    await home.trust();
    await refuses(home, /The skill notes \(notes\) has other files here\. Install the same version/);
  });

  it('does not run what has changed since its owner accepted it', async () => {
    const home = world.home();
    await home.trust();
    appendFileSync(join(home.folder.path, 'skills/notes/evals/files/more.md'), 'More\n');
    await refuses(home, /The files of the agent notes have changed since the owner of this worker/);
  });

  it('does not run an eval that is another one there', async () => {
    const home = world.home({ ...notes(), 'skills/notes/evals/files/notes.md': 'Buy bread\n' });
    await home.trust();
    await refuses(home, /The skill notes \(notes\) has no eval 1 here, or another one\./);
  });

  it('needs a key of its own', async () => {
    const home = world.home();
    await home.trust();
    await refuses(home, /The provider openrouter has no key\./, {});
  });

  it('keeps the budget of its own day', async () => {
    const home = world.home();
    await home.trust();
    await refuses(home, /TELOS_MAX_COST_PER_DAY|budget of the day|of a day|per day/, {
      ...key,
      TELOS_MAX_COST_PER_DAY: '0',
    });
  });

  it('runs a pack that its owner has installed from the lock', async () => {
    const [source, home] = [world.home(), world.home({})];
    const installed = await home.runProcess(['install', join(source.folder.path, 'skills/notes'), '--yes']);
    assert.equal(installed.code, 0, installed.stderr);
    await home.worker([], key);
    assert.match(await said(0), /openrouter|maker\/model/);
  });

  it('lets others do what one refuses', async () => {
    const [without, accepting] = [world.home({}), world.home(notes(4))];
    await accepting.trust();
    await without.worker([], key);
    await accepting.worker([], key);
    const { code, stderr } = await world.home(notes(4)).suite(live).result;
    assert.equal(code, 0, stderr);
    assert.equal(stderr.match(/refuses: The skill notes \(notes\) is not installed here/g)?.length, 1);
    assert.equal(stderr.match(/passed on /g)?.length, 4);
  });

  it('runs nothing of a row that was put into the database by hand', async () => {
    const home = world.home({
      ...notes(),
      'skills/other/SKILL.md': '---\nname: other\ndescription: Nobody accepted it\n---\nWrite a file.\n',
      'skills/other/evals/evals.json': JSON.stringify({ evals: [{ id: 1, prompt: 'Write a file' }] }),
    });
    await home.trust();
    const running = await home.worker([], key);
    const worker = await workerName(world);
    const config = loadConfig({ env: { ...home.env }, cwd: home.workDir } as never);
    const agent = discoverAgents(config).find(({ name }) => name === 'notes');
    const skill = agent?.skills[0];
    assert.ok(agent && skill);
    const [each] = readEvals(skill.dir) ?? [];
    assert.ok(each);
    const order = {
      format: 'telos-eval-order',
      agent: 'notes',
      skill: 'notes',
      eval: '1',
      run: 1,
      skillDigest: await skillDigest(skill.dir),
      packDigest: await packDigest(agent),
      evalDigest: await evalDigest(each),
      configuration: 'with_skill',
      model: 'openrouter:maker/model',
      replyTo: suiteKeys().publicKey,
    };
    const [other] = discoverAgents(config).filter(({ name }) => name === 'other');
    const [its] = readEvals(other?.skills[0]?.dir ?? '') ?? [];
    assert.ok(other && its);
    const unaccepted = {
      ...order,
      agent: 'other',
      skill: 'other',
      evalDigest: await evalDigest(its),
      skillDigest: await skillDigest(other.skills[0]?.dir ?? ''),
    };
    const mark = join(home.folder.path, 'forged');
    const forged = [
      unaccepted,
      { ...order, skill: 'other', agent: 'other' },
      { ...order, skill: '../../other', agent: home.folder.path },
      { ...order, skill: join(home.folder.path, 'skills/other') },
      { ...order, skillDigest: '0'.repeat(64) },
      { ...order, packDigest: '0'.repeat(64) },
      { ...order, evalDigest: '0'.repeat(64) },
      { ...order, eval: '2' },
      { ...order, configuration: 'as_root' },
      { ...order, recording: '0'.repeat(64) },
      { ...order, model: 'replay:recording' },
      { ...order, model: `nowhere:${mark}` },
      { ...order, maxCost: 'none' },
      { ...order, replyTo: 'nobody' },
      { ...order, format: 'telos-command', command: `touch ${mark}`, checks: [{ command: ['touch', mark] }] },
      { command: `touch ${mark}`, cwd: '/', path: '/etc/passwd' },
      [order],
      `touch ${mark}`,
      null,
    ];
    const keys: string[] = [];
    for (const one of forged) keys.push(await world.forge(worker, JSON.stringify([one])));
    for (const text of ['', '{}', '"x"', 'null', '[', 'x'.repeat(1_000_000), '[[[['.repeat(10_000)])
      keys.push(await world.forge(worker, text));
    const command = JSON.stringify([`touch ${mark}`]);
    keys.push(await world.forge(worker, undefined));
    for (const workflow of ['telos.command', 'constructor', '__proto__', 'DBOS.send', ''])
      keys.push(await world.forge(worker, command, { workflow }));
    // Whoever gave one does not wait for it.
    await eventually(async () => {
      const open = await world.postgres.query(
        "select workflow_uuid, status from dbos.workflow_status where workflow_uuid = any($1) and status in ('ENQUEUED', 'PENDING')",
        [keys],
      );
      assert.deepEqual(open, []);
    });
    const answers = await world.postgres.query(
      'select output from dbos.workflow_output where workflow_uuid = any($1) and output is not null',
      [keys],
    );
    assert.ok(answers.length >= forged.length, `${answers.length} were answered`);
    assert.ok(answers.some(({ output }) => String(output).includes('has not accepted the agent other')));
    for (const { output } of answers) assert.match(String(output), /^\{"refused":"[^"]+"\}$/);
    assert.equal(world.requests(), 0);
    assert.equal(existsSync(mark), false);
    // The worker is as it was.
    await running.says('of a kind that no worker does');
    await running.says('A job could not be read from the database.');
    await said(0);
  });
});
