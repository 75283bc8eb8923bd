/** A plan that runs in a process of its own: it outlives who has started it, and its keys are in no place where others could look. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../src/engine/config.ts';
import type { TelosError } from '../../src/engine/core/errors.ts';
import { type RunOrder, runDetached } from '../../src/plans/detachedRun.ts';
import { program } from '../cli/cliProcess.ts';
import { eventually } from '../eventually.ts';
import { agreeable, once, type PlanWorld, planWorld, writes } from './planWorld.ts';

const key = 'sk-ant-a-key-of-this-test-alone-0123456789';
const runner = (): string => join(dirname(program()), 'runner.js');
const stories = [{ id: 'US-001' }];
const model = { ...agreeable, 'US-001 coder': once(writes({ 'src/part.js': 'export const part = 1;\n' })) };

const orderFor = ({ home, repo, server }: PlanWorld): RunOrder => ({
  config: loadConfig({
    env: { ...home.env, XDG_CACHE_HOME: join(home.folder.path, 'cache'), PATH: process.env['PATH'] },
    cwd: repo,
    provider: 'anthropic',
    variables: { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: key },
  }),
  repo,
  plan: 'site',
  slots: 1,
});

describe('a plan in a process of its own', function () {
  this.timeout(120_000);
  let world: PlanWorld;
  afterEach(() => world.close());

  it('runs to its end when its starter is killed, and shows its key to nobody', async () => {
    world = await planWorld(stories, model);
    const starter = spawn(
      process.execPath,
      [fileURLToPath(new URL('../fakes/detachedStarter.ts', import.meta.url)), runner()],
      { stdio: ['pipe', 'ignore', 'ignore'] },
    );
    starter.stdin.end(JSON.stringify(orderFor(world)));
    const pid = await eventually(() => {
      const started = world.journal().find(({ type }) => type === 'runner_started');
      assert.ok(started);
      return Number(started['pid']);
    }, 60_000);
    starter.kill('SIGKILL');
    assert.doesNotMatch(world.file('journal.jsonl'), /"phase":"done"/);
    if (process.platform === 'linux')
      for (const file of ['cmdline', 'environ'])
        assert.ok(!readFileSync(`/proc/${pid}/${file}`, 'utf8').includes(key), file);
    await eventually(() => assert.match(world.file('journal.jsonl'), /"phase":"done"/), 60_000);
    assert.equal(world.journal().filter(({ type }) => type === 'runner_started').length, 1);
    const [request] = world.requestsOf('US-001', 'coder');
    assert.ok(JSON.stringify(request?.headers).includes(key), 'the model got no key');
    for (const name of readdirSync(join(world.repo, '.telos/plans/site')))
      if (/\.(?:jsonl?|md|txt|lock)$/.test(name)) assert.ok(!world.file(name).includes(key), name);
  });

  it('says what hinders it, without the key', async () => {
    world = await planWorld(stories, model);
    const order = orderFor(world);
    world.set({ setup: ['npm ci'] });
    const end = await runDetached(runner(), order);
    assert.equal(end.kind, 'card');
    // The editor says it in its own language.
    await assert.rejects(runDetached(runner(), { ...order, plan: 'other' }), ({ sentences }: TelosError) => {
      assert.deepEqual(sentences?.[0], { text: "There is no plan '{0}'.", values: ['other'] });
      return true;
    });
    await assert.rejects(runDetached(join(world.repo, 'missing.js'), order), /has ended before its time/);
  });
});
