/** What a plan does with a story that does not get through: advice, a stronger model, a limit of its own, smaller stories. */
import assert from 'node:assert/strict';
import { once as eventOnce } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { findBox } from '../../src/engine/box/findBox.ts';
import { eventually } from '../eventually.ts';
import { skipBecause } from '../skipBecause.ts';
import {
  agreeable,
  approves,
  calls,
  denies,
  once,
  type PlanWorld,
  passed,
  planWorld,
  type StepModel,
  type StoryText,
  statuses,
  usualChecks,
  writes,
} from './planWorld.ts';

const one: StoryText = { id: 'US-001', title: 'Hours', touches: ['src/hours.js'] };

describe('a story that does not get through', function () {
  this.timeout(120_000);
  let world: PlanWorld | undefined;
  afterEach(() => world?.close().then(() => (world = undefined)));

  const open = async (stories: readonly StoryText[], model: StepModel): Promise<PlanWorld> => {
    world = await planWorld(stories, model);
    return world;
  };
  const steps = ({ journal }: PlanWorld): string[] =>
    journal().flatMap(line => (line.type === 'step_started' ? [String(line['key'])] : []));
  const part = (title: string, file: string, more: object = {}) =>
    calls('submit_story', {
      title,
      criteria: [`${file} is there`],
      touches: [file],
      checks: [
        ...Object.entries(usualChecks).map(([name, command]) => ({ name, command })),
        { name: 'own', command: 'touch /tmp/not-accepted' },
      ],
      ...more,
    }).toolCalls ?? [];

  it('is tried another way after three denials: with advice, by a stronger model, and the project learns why', async () => {
    const here = await open([one], {
      coder: (turn, attempt) =>
        turn > 0
          ? { text: ['Done.'] }
          : {
              toolCalls: [
                ...(writes({ 'src/hours.js': `${attempt}\n` }).toolCalls ?? []),
                { name: 'learn', input: { note: `Fact number ${attempt} about this project.` } },
              ],
            },
      reviewer: (turn, attempt) =>
        turn > 0
          ? {}
          : attempt > 3
            ? approves()
            : denies(['No Sundays', 'No dates', 'No zone'][attempt - 1] ?? ''),
      orchestrator: once(calls('delegate', { role: 'marketing', instructions: 'Begin with the calendar.' })),
    });
    here.set({ escalateModel: 'claude-opus-4-1' });
    const { code, stderr } = await here.plan('run', 'site');
    assert.equal(code, 0, stderr);
    assert.deepEqual(
      steps(here).filter(key => !key.endsWith('reviewer')),
      [
        'US-001.a1.coder',
        'US-001.a2.coder',
        'US-001.a3.coder',
        'US-001.a4.orchestrator',
        'US-001.a4.marketing',
      ],
    );
    const asked = JSON.stringify(here.requestsOf('US-001', 'orchestrator')[0]?.body);
    assert.match(asked, /No Sundays[\s\S]*No dates[\s\S]*No zone/);
    assert.match(asked, /answerQuestion/);
    assert.doesNotMatch(asked, /write_file/);
    const work = here.requestsOf('US-001', 'coder').filter(({ body }) => body.messages.length === 1);
    assert.match(JSON.stringify(work.at(-1)?.body), /Begin with the calendar/);
    assert.deepEqual(
      work.map(({ body }) => body.model === 'claude-opus-4-1'),
      [false, false, false, true],
    );
    const notes = here.git('show', 'telos/site:AGENTS.md');
    for (const text of ['No Sundays', 'No dates', 'No zone', 'Fact number 1', 'Fact number 4'])
      assert.ok(notes.includes(text), `${text} in ${notes}`);
  });

  it('starts over when it waits after three denials or has passed, once the user says what is to be different', async () => {
    const reasons: string[] = [];
    const here = await open([one], {
      coder: (turn, attempt, request) => {
        if (turn === 0) reasons.push(JSON.stringify(request.body.messages[0]));
        return turn > 0 ? { text: ['Done.'] } : writes({ 'src/hours.js': `${attempt}\n` });
      },
      reviewer: (turn, attempt) => (turn > 0 ? {} : attempt > 3 ? approves() : denies('It is wrong.')),
    });
    const stuck = await here.plan('run', 'site', '--unattended');
    assert.equal(stuck.code, 3, stuck.stderr);
    await here.plan('redo', 'US-001', '--why', 'Sundays are closed');
    const { code, stderr } = await here.plan('run', 'site', '--unattended');
    assert.equal(code, 0, stderr);
    assert.match(reasons[3] ?? '', /The person says[^#]*Sundays are closed/);
    const vain = await here.plan('redo', 'US-001');
    assert.equal(vain.code, 1);
    assert.match(vain.stderr, /US-001 has passed\. Say what is to be different/);
    await here.plan('redo', 'US-001', '--why', 'Add the holidays');
    const again = await here.plan('run', 'site', '--unattended');
    assert.equal(again.code, 0, again.stderr);
    assert.match(reasons[4] ?? '', /Add the holidays/);
    assert.equal(here.git('show', 'telos/site:src/hours.js'), '5\n');
  });

  it('waits at once for the user where its check needs a service that the sandbox hides, and passes once that is let out', async function () {
    if (!(await findBox({ env: { PATH: process.env['PATH'] ?? '' } })).works)
      return skipBecause(this, 'no sandbox works here');
    const service = createServer(socket => socket.end()).listen(0, '127.0.0.1');
    try {
      await eventOnce(service, 'listening');
      const { port } = service.address() as AddressInfo;
      const command = `test -f src/hours.js && bash -c ': < /dev/tcp/127.0.0.1/${port}'`;
      const here = await open([{ ...one, checks: { service: command } }], {
        ...agreeable,
        coder: once(writes({ 'src/hours.js': '7\n' })),
      });
      Object.assign(here.home.env, { TELOS_SANDBOX: 'auto' });
      const first = await here.plan('run', 'site', '--unattended');
      assert.equal(first.code, 3, first.stderr);
      assert.match(first.stderr, /cannot pass in the sandbox, which has no way to the service on localhost:/);
      assert.deepEqual(statuses(here), ['denied']);
      const file = join(here.repo, '.telos/plans/site/prds/01-story.md');
      writeFileSync(
        file,
        readFileSync(file, 'utf8').replace('{name: service,', '{name: service, outside: true,'),
      );
      await here.plan('approve', 'site', '--card', '--yes');
      await here.plan(
        'answer',
        /telos plan answer (\S+)/.exec(first.stderr)?.[1] ?? '',
        'It may run outside',
      );
      const second = await here.plan('run', 'site', '--unattended');
      assert.equal(second.code, 0, second.stderr);
      assert.deepEqual(passed(here), ['US-001']);
    } finally {
      service.close();
    }
  });

  it('waits for the person when it has cost what a story may, while others go on', async () => {
    const dear = { ...writes({ 'src/hours.js': '7\n' }), usage: { output_tokens: 20_000 } };
    const here = await open([one, { id: 'US-002', touches: ['src/a.js'] }], {
      ...agreeable,
      'US-001 coder': (turn, attempt) =>
        turn === 0
          ? { ...dear, ...writes({ 'src/hours.js': `${attempt}` }), usage: dear.usage }
          : { text: ['.'] },
      'US-002 coder': once(writes({ 'src/a.js': '1\n' })),
    });
    here.set({ storyMaxCost: 0.05 });
    const first = await here.plan('run', 'site');
    assert.equal(first.code, 3, first.stderr);
    assert.match(first.stderr, /US-001 has cost \$0\.\d+ of the \$0\.05 that a story may cost/);
    assert.deepEqual(passed(here), ['US-002']);
    const id = /telos plan answer (\S+)/.exec(first.stderr)?.[1] ?? '';
    here.set({ storyMaxCost: 1 });
    await here.plan('answer', id, 'yes');
    const second = await here.plan('run', 'site');
    assert.equal(second.code, 0, second.stderr);
    assert.deepEqual(passed(here), ['US-001', 'US-002']);
  });

  it('has its checked work reviewed, not built again, when its limit or that of the provider is met in the review', async () => {
    const limited = { status: 429, headers: { 'retry-after': '300' } };
    const here = await open([one, { id: 'US-002', touches: ['src/a.js'] }], {
      'US-001 coder': turn =>
        turn === 0
          ? writes({ 'src/hours.js': '7\n' })
          : { text: ['Done.'], usage: { output_tokens: 20_000 } },
      'US-001 reviewer': once(approves()),
      'US-002 coder': once(writes({ 'src/a.js': '1\n' })),
      'US-002 reviewer': (turn, attempt) =>
        attempt === 1 ? limited : turn === 0 ? approves() : { text: ['Done.'] },
    });
    here.set({ storyMaxCost: 0.05 });
    const first = here.call('run', 'site');
    await eventually(() => assert.ok(here.journal().some(({ type }) => type === 'waiting')), 60_000);
    await here.plan('stop', 'site', '--now');
    const { stderr } = await first.result;
    const id = /telos plan answer (\S+)/.exec(stderr)?.[1] ?? '';
    here.set({ storyMaxCost: 1 });
    await here.plan('answer', id, 'yes');
    const second = await here.plan('run', 'site');
    assert.equal(second.code, 0, second.stderr);
    assert.deepEqual(passed(here), ['US-001', 'US-002']);
    assert.deepEqual(
      steps(here).filter(key => key.endsWith('coder')),
      ['US-001.a1.coder', 'US-002.a1.coder'],
    );
  });

  it('is split while the plan runs, with accepted checks alone, and others wait for all of its parts', async () => {
    const here = await open([one, { id: 'US-002', dependsOn: ['US-001'], touches: ['src/b.js'] }], {
      ...agreeable,
      'US-001 coder': turn =>
        turn < 2 ? { ...calls('list_directory', { path: '.' }), stallMs: 3_000 } : { text: ['Too much.'] },
      'US-001 split': once({
        toolCalls: [
          ...part('Weekdays', 'src/week.js'),
          ...part('Sundays', 'src/sunday.js', { depends_on: ['US-001a', 'US-007'] }),
        ],
      }),
      'US-001a coder': once(writes({ 'src/week.js': '1\n' })),
      'US-001b coder': once(writes({ 'src/sunday.js': '2\n' })),
      'US-002 coder': once(writes({ 'src/b.js': '3\n' })),
    });
    const running = here.call('run', 'site', '--unattended');
    await eventually(() => assert.ok(here.requestsOf('US-001', 'coder').length > 0), 60_000);
    assert.equal((await here.plan('split', 'site', '--story', 'US-001')).code, 0);
    const { code, stderr } = await running.result;
    assert.equal(code, 0, stderr);
    assert.deepEqual(passed(here), ['US-001a', 'US-001b', 'US-002']);
    const ids = here.git(
      'log',
      '--reverse',
      '--format=%(trailers:key=Telos-Story,valueonly)',
      'main..telos/site',
    );
    assert.deepEqual(ids.split(/\n+/).filter(Boolean), ['US-001a', 'US-001b', 'US-002']);
    assert.doesNotMatch(here.file('prds/01b-sundays.md'), /not-accepted|US-007/);
    assert.match((await here.plan('show', 'site')).stdout, /split into US-001a, US-001b/);
    assert.doesNotMatch(here.file('prd.json'), /"id": "US-001"/);
    const again = await here.plan('split', 'site', '--story', 'US-001');
    assert.equal(again.code, 1);
    assert.match(again.stderr, /US-001 is split already, into US-001a, US-001b/);
  });
});
