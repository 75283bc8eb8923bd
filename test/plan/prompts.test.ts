/** What those who plan, build and review are told: the plan, its other stories, where they are, and how work is done there. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ReceivedRequest } from '../fakes/anthropicServer.ts';
import { agreeable, calls, once, type PlanWorld, passed, planWorld, writes } from './planWorld.ts';

const systemOf = ({ body }: ReceivedRequest): { text: string; cache_control?: object } => body.system[0];
const wordsOf = ({ body }: ReceivedRequest): string => {
  const [{ content }] = body.messages;
  return typeof content === 'string' ? content : content.map(({ text }: { text: string }) => text).join('');
};
const most = 10 * 1024;
const bytesOf = (request: ReceivedRequest): number =>
  Buffer.byteLength(systemOf(request).text) + Buffer.byteLength(wordsOf(request));

describe('what the steps of a plan are told', function () {
  this.timeout(120_000);
  let world: PlanWorld;
  afterEach(() => world.close());

  it('has the plan, the other stories, the place and the rules of the project, at first in a stable part', async () => {
    world = await planWorld(
      [
        { id: 'US-001', title: 'A list of breads', touches: ['src/breads/**'] },
        { id: 'US-002', title: 'A page of cakes', dependsOn: ['US-001'], touches: ['src/b.js'] },
      ],
      {
        ...agreeable,
        'US-001 coder': once(writes({ 'src/breads/a.js': 'a' })),
        'US-002 coder': once(writes({ 'src/b.js': 'b' })),
      },
    );
    const text = '# Plan\n\nNorth Star: breads are kept in sqlite.\n';
    writeFileSync(join(world.repo, '.telos/plans/site/plan.md'), text);
    const interview = 'North Star: A better bakery\n\nQ: Which database?\nA: sqlite, as at the other shop\n';
    writeFileSync(join(world.repo, '.telos/plans/site/interview.md'), interview);
    const rules = {
      'AGENTS.md': 'Names are English.',
      'CLAUDE.md': '@AGENTS.md',
      'CONTRIBUTING.md': 'Lines end in LF.',
      'src/breads/AGENTS.md': 'Breads are frozen objects.',
    };
    mkdirSync(join(world.repo, 'src/breads'), { recursive: true });
    for (const [path, text] of Object.entries(rules)) writeFileSync(join(world.repo, path), text);
    world.git('add', '--all', '--', ...Object.keys(rules));
    world.git('commit', '-qm', 'rules');
    const { code, stderr } = await world.plan('run', 'site', '--unattended');
    assert.equal(code, 0, stderr);
    assert.deepEqual(passed(world), ['US-001', 'US-002']);
    const first = (story: string, role: string): ReceivedRequest => world.requestsOf(story, role)[0]!;
    for (const role of ['coder', 'reviewer']) {
      const [one, two] = [first('US-001', role), first('US-002', role)];
      assert.equal(systemOf(one).text, systemOf(two).text);
      assert.match(systemOf(one).text, /breads are kept in sqlite[\s\S]*A: sqlite, as at the other shop/);
      assert.deepEqual(systemOf(one).cache_control, { type: 'ephemeral' });
      assert.match(wordsOf(one), /US-002 A page of cakes \(another one builds it\)/);
      assert.match(wordsOf(two), /US-001 A list of breads \(done\)/);
      assert.match(
        wordsOf(one),
        /Folder: \S+slot-1\. [\s\S]*System: \w+ \w+\. [\s\S]*Programs there: [\w, ]*node/,
      );
      assert.match(
        wordsOf(one),
        /Names are English\.[\s\S]*Breads are frozen objects\.[\s\S]*Lines end in LF\./,
      );
      assert.doesNotMatch(wordsOf(one), /@AGENTS\.md/);
      assert.doesNotMatch(wordsOf(two), /Breads are frozen/);
      assert.ok(
        bytesOf(one) < most && bytesOf(two) < most,
        `${role}: ${bytesOf(one)}, ${bytesOf(two)} bytes`,
      );
    }
  });

  it('tells those who plan the rules of the project, and lets the splitter say what the whole plan has to pass', async () => {
    const tests = { name: 'tests', command: 'ls package.json' };
    world = await planWorld([], {
      plan: once(calls('submit_plan', { text: '# Plan\n' })),
      split: once({
        toolCalls: [
          { name: 'submit_checks', input: { checks: [tests] } },
          {
            name: 'submit_story',
            input: {
              title: 'One',
              criteria: ['It is there'],
              checks: [{ name: 'port', command: 'ls src', outside: true }],
            },
          },
        ],
      }),
    });
    writeFileSync(join(world.repo, 'CLAUDE.md'), 'Names are English.');
    world.git('add', '--', 'CLAUDE.md');
    world.git('commit', '-qm', 'rules');
    await world.plan('new', 'A better bakery', '--name', 'site', '--no-more-questions');
    await world.plan('write', 'site');
    await world.plan('approve', 'site', '--plan', '--yes');
    const [planner] = world.requestsOf('', 'plan');
    assert.ok(planner);
    assert.match(wordsOf(planner), /Folder: \S+bakery\.[\s\S]*Programs there: /);
    assert.ok(bytesOf(planner) < most, `planner: ${bytesOf(planner)} bytes`);
    const split = await world.plan('split', 'site');
    assert.equal(split.code, 0, split.stderr);
    for (const [story, role] of [
      ['', 'plan'],
      ['US-001', 'split'],
    ] as const)
      assert.match(wordsOf(world.requestsOf(story, role)[0]!), /## CLAUDE\.md\n\nNames are English\./, role);
    assert.deepEqual(JSON.parse(world.file('plan.json')).checks, [tests]);
    const card = await world.plan('approve', 'site', '--card', '--yes');
    assert.match(card.stderr, /tests: ls package\.json {2}\[the whole plan\]/);
    assert.match(card.stderr, /port: ls src {2}\[US-001; may run outside the sandbox\]/);
  });
});
