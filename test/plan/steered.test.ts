/** Plans that a person steers while they run, or that a budget or a provider holds up. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { loadConfig } from '../../src/engine/config.ts';
import { Plan } from '../../src/library/library.ts';
import { eventually, gate } from '../eventually.ts';
import {
  agreeable,
  once,
  type PlanWorld,
  passed,
  planWorld,
  type StepModel,
  type StoryText,
  statuses,
  writes,
} from './planWorld.ts';

const one: StoryText = { id: 'US-001', title: 'Hours', touches: ['src/hours.js'] };

describe('a plan that runs', function () {
  this.timeout(120_000);
  let world: PlanWorld | undefined;
  afterEach(() => world?.close().then(() => (world = undefined)));

  const open = async (stories: readonly StoryText[], model: StepModel): Promise<PlanWorld> => {
    world = await planWorld(stories, model);
    return world;
  };

  it('lets one runner work, and has the second watch', async () => {
    const { opened, open: letGo } = gate();
    const here = await open([one], {
      ...agreeable,
      coder: turn =>
        turn === 0
          ? writes({ 'src/hours.js': '7\n' })
          : { text: ['Done.'], hold: { behind: 'Done.', until: opened } },
    });
    const first = here.start('run', 'site', '--unattended');
    await eventually(() => assert.ok(here.requestsOf('US-001', 'coder').length > 0), 60_000);
    const second = here.start('run', 'site');
    await second.says('already running (pid');
    letGo();
    assert.equal((await first.result).code, 0);
    assert.equal((await second.result).code, 0);
  });

  it('pauses between two rounds from another terminal, hears what it is told, and goes on', async () => {
    let isTold = false;
    const here = await open([one], {
      ...agreeable,
      coder: (turn, _attempt, request) => {
        isTold ||= JSON.stringify(request.body.messages).includes('use sqlite');
        if (isTold)
          return turn > 50
            ? { text: ['Done.'] }
            : turn % 2 === 0
              ? writes({ 'src/hours.js': 'sqlite\n' })
              : { text: ['Done.'] };
        return { toolCalls: [{ name: 'list_directory', input: { path: '.' } }], stallMs: 200 };
      },
    });
    const running = here.start('run', 'site');
    await eventually(() => assert.ok(here.requestsOf('US-001', 'coder').length > 1), 60_000);
    await here.plan('pause', 'site');
    await eventually(() => assert.ok(here.journal().some(({ phase }) => phase === 'paused')), 30_000);
    const asked = here.requestsOf('US-001', 'coder').length;
    await wait(1500);
    assert.equal(here.requestsOf('US-001', 'coder').length, asked);
    await here.plan('tell', 'US-001', 'use', 'sqlite');
    await here.plan('resume', 'site');
    const { code, stderr } = await running.result;
    assert.equal(code, 0, stderr);
    assert.equal(here.git('show', 'telos/site:src/hours.js'), 'sqlite\n');
  });

  it('pauses at its budget, goes on with more of it, and adds up over the restart', async () => {
    const here = await open([one, { id: 'US-002', touches: ['src/a.js'] }], {
      ...agreeable,
      'US-001 coder': once({ ...writes({ 'src/hours.js': '7\n' }), usage: { output_tokens: 20_000 } }),
      'US-002 coder': once(writes({ 'src/a.js': '1\n' })),
    });
    const first = await here.plan('run', 'site', '--max-cost', '0.01');
    assert.equal(first.code, 4, first.stderr);
    const before = costIn((await here.plan('status', 'site')).stdout);
    assert.ok(before >= 0.01);
    assert.match(first.stderr, /telos plan budget site --add/);
    await here.plan('budget', 'site', '--add', '1');
    const second = await here.plan('run', 'site', '--max-cost', '0.01');
    assert.equal(second.code, 0, second.stderr);
    assert.deepEqual(passed(here), ['US-001', 'US-002']);
    assert.ok(costIn((await here.plan('status', 'site')).stdout) > before);
  });

  it('stops at once while a model still answers, and goes on later', async () => {
    let isSlow = true;
    const here = await open([one], {
      ...agreeable,
      coder: (turn, ...rest) =>
        isSlow
          ? { text: ['Wait.'], stallMs: 90_000 }
          : once(writes({ 'src/hours.js': '7\n' }))(turn, ...rest),
    });
    const running = here.call('run', 'site');
    await eventually(() => assert.ok(here.requestsOf('US-001', 'coder').length > 0), 60_000);
    await here.plan('stop', 'site', '--now');
    const ended = await Promise.race([running.result, wait(60_000)]);
    assert.equal(ended?.code, 1, ended?.stderr ?? 'it waits for the model');
    assert.deepEqual(statuses(here), ['interrupted']);
    assert.match((await here.plan('status', 'site')).stdout, /^site: stopped/m);
    isSlow = false;
    const again = await here.plan('run', 'site');
    assert.equal(again.code, 0, again.stderr);
  });

  it('ends at a refused key after one request, and charges no attempt', async () => {
    const here = await open([one], { coder: () => ({ status: 401 }) });
    const { code, stderr } = await here.plan('run', 'site');
    assert.equal(code, 1);
    assert.match(stderr, /refused the key/);
    assert.equal(here.server.requests.length, 1);
    assert.deepEqual(
      statuses(here).filter(status => status === 'denied'),
      [],
    );
  });

  it('ends with a program that leaves it, and goes on later', async () => {
    const { opened, open: letGo } = gate();
    const here = await open([one], {
      ...agreeable,
      coder: (turn, attempt) => {
        if (turn > 0) return { text: ['Done.'] };
        if (attempt > 1) return writes({ 'src/hours.js': '7\n' });
        return { text: ['Hm.'], hold: { behind: 'Hm.', until: opened } };
      },
    });
    const config = loadConfig({
      env: { ...here.home.env, ...here.env },
      home: here.home.folder.path,
      cwd: here.repo,
    });
    const lines = Plan.open(join(here.repo, '.telos/plans/site'), { config }).run();
    const read = (async () => {
      for await (const _ of { [Symbol.asyncIterator]: () => ({ next: () => lines.next() }) });
    })();
    await eventually(() => assert.ok(here.requestsOf('US-001', 'coder').length > 0), 60_000);
    await lines.return({ phase: 'stopped' } as never);
    await read;
    letGo();
    assert.equal((await here.plan('status', 'site')).stdout.includes('running (pid'), false);
    const again = await here.plan('run', 'site', '--unattended');
    assert.equal(again.code, 0, again.stderr);
  });

  it('waits as long as a provider says, asks nothing meanwhile, and goes on by itself', async () => {
    const times: number[] = [];
    const here = await open([one], {
      ...agreeable,
      coder: turn => {
        times.push(Date.now());
        if (times.length === 1) return { status: 429, headers: { 'retry-after': '6' } };
        return turn === 0 ? writes({ 'src/hours.js': '7\n' }) : { text: ['Done.'] };
      },
    });
    const running = here.call('run', 'site', '--unattended');
    await eventually(() => assert.ok(here.journal().some(({ type }) => type === 'waiting')), 60_000);
    const { stdout } = await here.plan('status', 'site');
    assert.match(stdout, /^site: waiting until .*accepts no more requests for now/m);
    const { code, stderr } = await running.result;
    assert.equal(code, 0, stderr);
    assert.match(stderr, /Waiting until/);
    const [limited = 0, next = 0] = times;
    assert.ok(next - limited >= 6_000, `asked again after ${next - limited} ms`);
    assert.deepEqual(statuses(here), ['approved']);
  });
});

/** What a plan has cost, as its first line says. */
const costIn = (text: string): number => Number(/^site: .*\$(\d+(?:\.\d+)?)/m.exec(text)?.[1]);
