/** Stories that are built at the same time, each on its own: what happens when the second of them meets the first. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { OngoingCli, RunningCli } from '../cli/cliProcess.ts';
import { eventually, gate } from '../eventually.ts';
import type { AnthropicTurn } from '../fakes/anthropicServer.ts';
import {
  agreeable,
  nodeTests,
  once,
  type PlanWorld,
  passed,
  planWorld,
  type StepAnswers,
  type StoryText,
  statuses,
  writes,
} from './planWorld.ts';

const two: readonly StoryText[] = [
  { id: 'US-001', touches: ['src/a.js', 'test/a.test.js'] },
  { id: 'US-002', touches: ['src/b.js', 'test/b.test.js'] },
];

describe('two stories of a plan at the same time', function () {
  this.timeout(120_000);
  let world: PlanWorld | undefined;
  afterEach(() => world?.close().then(() => (world = undefined)));

  /** Has the second story begin on the base, and end its first attempt when the first story has passed. */
  async function started(
    first: StepAnswers,
    second: StepAnswers,
    stories = two,
    begin: (here: PlanWorld, ...args: readonly string[]) => OngoingCli = (here, ...args) =>
      here.call(...args),
  ): Promise<Started> {
    const { opened, open: letGo } = gate();
    const slow: StepAnswers = (turn, attempt, request) => {
      const answer = second(turn, attempt, request);
      return turn === 1 && attempt === 1
        ? { text: ['Done.'], hold: { behind: 'Done.', until: opened } }
        : answer;
    };
    const here = await planWorld(stories, { ...agreeable, 'US-001 coder': first, 'US-002 coder': slow });
    world = here;
    const running = begin(here, 'run', 'site', '--parallel', '2', '--unattended');
    await eventually(() => assert.deepEqual(passed(here), ['US-001']), 60_000);
    letGo();
    return { here, running };
  }
  const attemptsAt = ({ journal }: PlanWorld, story: string): number =>
    journal().filter(line => line.type === 'attempt_started' && line['story'] === story).length;

  it('has both pass that change the same lines, after one conflict, and builds the first once', async () => {
    const readme = (line: string): AnthropicTurn => writes({ 'README.md': `# Bakery\n\n${line}\n` });
    const { here, running } = await started(once(readme('one')), (turn, attempt) =>
      turn > 0 ? { text: ['Done.'] } : readme(attempt === 1 ? 'two' : 'one and two'),
    );
    const { code, stderr } = await running.result;
    assert.equal(code, 0, stderr);
    assert.deepEqual(passed(here), ['US-001', 'US-002']);
    assert.equal(here.git('show', 'telos/site:README.md'), '# Bakery\n\none and two\n');
    assert.deepEqual(
      statuses(here).filter(status => status === 'conflict'),
      ['conflict'],
    );
    assert.equal(attemptsAt(here, 'US-001'), 1);
  });

  it('denies the second of two that are each fine alone and red together, on the tree with both', async () => {
    const test = (other: string) =>
      `import { existsSync } from 'node:fs';\nimport { test } from 'node:test';\ntest('is alone', () => { if (existsSync('src/${other}.js')) throw new Error('not alone'); });\n`;
    const { here, running } = await started(
      once(writes({ 'src/a.js': '1\n', 'test/a.test.js': test('b') })),
      once(writes({ 'src/b.js': '1\n', 'test/b.test.js': test('a') })),
      two.map(story => ({ ...story, checks: nodeTests })),
    );
    await running.result;
    assert.deepEqual(passed(here), ['US-001']);
    const [fine, red] = here
      .journal()
      .filter(({ type, story }) => type === 'check_ended' && story === 'US-002');
    assert.deepEqual([fine?.['exitCode'], red?.['exitCode']], [0, 1]);
    assert.notEqual(fine?.['tree'], red?.['tree']);
    assert.equal(attemptsAt(here, 'US-001'), 1);
  });

  /**
   * Has the second and the third story begin on the base and end when the first has passed, each with a check that takes its time where
   * the files of the first two are. Returns when both are being checked with the work of all before them.
   */
  async function lined(end: 'passes' | 'fails'): Promise<Started & { decide(): void }> {
    const decided = '"$HOME/decided"';
    const waits = `while ! test -e ${decided}; do sleep 0.1; done; ${end === 'passes' ? 'true' : 'false'}`;
    const check = `! test -e src/a.js || ! test -e src/b.js || { ${waits}; }`;
    const gates = { b: gate(), c: gate() };
    const builds =
      (name: string, until?: Promise<void>): StepAnswers =>
      (turn, attempt) =>
        turn === 0
          ? writes({ [`src/${name}.js`]: `${attempt}\n` })
          : { text: ['Done.'], ...(until && attempt === 1 && { hold: { behind: 'Done.', until } }) };
    const three = ['a', 'b', 'c'].map((name, index) => ({
      id: `US-00${index + 1}`,
      touches: [`src/${name}.js`],
      checks: { together: check },
    }));
    const here = await planWorld(three, {
      ...agreeable,
      'US-001 coder': builds('a'),
      'US-002 coder': builds('b', gates.b.opened),
      'US-003 coder': builds('c', gates.c.opened),
    });
    world = here;
    const running = here.call('run', 'site', '--parallel', '3', '--unattended');
    await eventually(() => assert.deepEqual(passed(here), ['US-001']), 60_000);
    const root = join(here.home.folder.path, 'cache/telos/worktrees');
    const has = (slot: number, ...names: readonly string[]): void =>
      assert.ok(
        readdirSync(root).some(repo =>
          names.every(name => existsSync(join(root, repo, `site/slot-${slot}/src/${name}.js`))),
        ),
      );
    gates.b.open();
    await eventually(() => has(2, 'a', 'b'), 60_000);
    gates.c.open();
    await eventually(() => has(3, 'a', 'b', 'c'), 60_000);
    return { here, running, decide: () => here.home.folder.add({ decided: '' }) };
  }
  const checksOf = ({ journal }: PlanWorld, story: string): unknown[] =>
    journal().flatMap(line => (line.type === 'check_ended' && line['story'] === story ? [line['tree']] : []));

  it('checks the third with the second before that has passed, and not once more behind it', async () => {
    const { here, running, decide } = await lined('passes');
    decide();
    const { code, stderr } = await running.result;
    assert.equal(code, 0, stderr);
    assert.deepEqual(passed(here), ['US-001', 'US-002', 'US-003']);
    const [, together, ...more] = checksOf(here, 'US-003');
    assert.deepEqual(more, []);
    assert.equal(here.git('rev-parse', 'telos/site^{tree}').trim(), together);
  });

  it('has the third pass that was checked with the second, when the second does not', async () => {
    const { here, running, decide } = await lined('fails');
    decide();
    await running.result;
    assert.deepEqual(passed(here), ['US-001', 'US-003']);
    assert.equal(attemptsAt(here, 'US-003'), 1);
    assert.equal(here.git('rev-parse', 'telos/site^{tree}').trim(), checksOf(here, 'US-003').at(-1));
    assert.equal(here.git('ls-tree', '--name-only', 'telos/site', 'src/b.js'), '');
  });

  it('asks no model again when its runner is killed while the second is put on top of the first', async () => {
    const isQuick = 'checks-are-quick';
    const check = `test ! -e src/a.js || test ! -e src/b.js || test -e "$HOME/${isQuick}" || sleep 60`;
    let runner: RunningCli | undefined;
    const { here, running } = await started(
      once(writes({ 'src/a.js': '1\n' })),
      once(writes({ 'src/b.js': '1\n' })),
      two.map(story => ({ ...story, checks: { together: check } })),
      (world, ...args) => (runner = world.start(...args)),
    );
    const isApproved = (): boolean =>
      here.journal().some(({ type, story }) => type === 'verdict' && story === 'US-002');
    await eventually(() => assert.ok(isApproved()), 60_000);
    await wait(500);
    runner?.child.kill('SIGKILL');
    await running.result;
    assert.deepEqual(passed(here), ['US-001']);
    const asked = here.server.requests.length;
    here.home.folder.add({ [isQuick]: '' });
    const { code, stderr } = await here.plan('run', 'site', '--parallel', '2', '--unattended');
    assert.equal(code, 0, stderr);
    assert.equal(here.server.requests.length, asked);
    const ids = here.git('log', '--format=%(trailers:key=Telos-Story,valueonly)', 'main..telos/site');
    assert.deepEqual(ids.split(/\n+/).filter(Boolean).sort(), ['US-001', 'US-002']);
  });
});

interface Started {
  here: PlanWorld;
  running: OngoingCli;
}
