import assert from 'node:assert/strict';
import { send, take, waitingIds } from '../../src/plans/inbox.ts';
import { Journal } from '../../src/plans/journal.ts';
import { PlanFolder } from '../../src/plans/planFolder.ts';
import { PlanRunner } from '../../src/plans/planRunner.ts';
import { Projection } from '../../src/plans/projection.ts';
import { nextStories } from '../../src/plans/scheduler.ts';
import { NoRoom } from '../../src/plans/slots.ts';
import type { StorySlots } from '../../src/plans/storySlots.ts';
import type { SteerCommand } from '../../src/protocol/plan.ts';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

describe('the runner of a plan', () => {
  let root: TempFolder;
  let journal: Journal;
  let folder: PlanFolder;
  beforeEach(async () => {
    root = tempFolder();
    folder = await PlanFolder.create(root.path, 'bakery', 'g');
    for (const id of ['US-001', 'US-002'])
      await folder.write(`prds/${id}.md`, `---\nid: ${id}\n---\n- [ ] 1. a\n`);
    journal = await Journal.open(folder.journal);
  });
  afterEach(async () => {
    await journal.close();
    root.remove();
  });

  it('begins no story once more whose attempt ends while it looks at the plan', async () => {
    const projection = new Projection(folder, journal);
    const begun: string[] = [];
    let endAttempt = (): void => undefined;
    const runner = new PlanRunner(
      {
        journal,
        next: nextStories,
        inbox: async () => [],
        overBudget: async () => undefined,
        finalChecks: async () => [],
        split: async () => undefined,
        lost: new AbortController().signal,
        project: async () => {
          const { state } = await projection.project();
          // The state is what it was before.
          endAttempt();
          await new Promise(setImmediate);
          await new Promise(resolve => setTimeout(resolve, 20));
          return state;
        },
        slots: slotsOf(async ({ story: { story }, attempt }) => {
          const of = { story: story.id, attempt };
          begun.push(`${story.id}.a${attempt}`);
          await journal.append({
            type: 'attempt_started',
            ...of,
            item: 1,
            slot: 1,
            parent: 'p',
            role: 'coder',
          });
          await new Promise<void>(done => {
            endAttempt = done;
          });
          await journal.append({ type: 'story_passed', ...of, items: [1], commit: 'c' });
          await journal.append({ type: 'attempt_ended', ...of, status: 'approved', details: '' });
        }),
      },
      { slots: 1 },
    );
    assert.deepEqual(await runner.run(new AbortController().signal), { phase: 'done' });
    assert.deepEqual(begun, ['US-001.a1', 'US-002.a1']);
  });

  it('goes on with fewer stories at a time where the disk has no room for one more worktree', async () => {
    const begun: string[] = [];
    for (const id of ['US-001', 'US-002'])
      await folder.write(`prds/${id}.md`, `---\nid: ${id}\ntouches: [src/${id}.js]\n---\n- [ ] 1. a\n`);
    const projection = new Projection(folder, journal);
    let endFirst = (): void => undefined;
    const runner = new PlanRunner(
      {
        journal,
        next: nextStories,
        inbox: async () => [],
        overBudget: async () => undefined,
        finalChecks: async () => [],
        split: async () => undefined,
        lost: new AbortController().signal,
        project: async () => (await projection.project()).state,
        slots: slotsOf(async ({ story: { story }, slot }) => {
          begun.push(`${story.id} in ${slot}`);
          if (slot > 0) {
            endFirst();
            throw new NoRoom(slot + 1, new Error('No space left on device'));
          }
          if (begun.length === 1)
            await new Promise<void>(done => {
              endFirst = done;
            });
          await journal.append({ type: 'story_passed', story: story.id, items: [1], commit: 'c' });
        }),
      },
      { slots: 2 },
    );
    assert.deepEqual(await runner.run(new AbortController().signal), { phase: 'done' });
    assert.deepEqual(begun, ['US-001 in 0', 'US-002 in 1', 'US-002 in 0']);
  });

  it('works up to a story, and on what that was split into, and is then paused', async () => {
    const begun: string[] = [];
    await folder.write('prds/US-002a.md', '---\nid: US-002a\n---\n- [ ] 1. a\n');
    await folder.write('prds/US-003.md', '---\nid: US-003\n---\n- [ ] 1. a\n');
    const projection = new Projection(folder, journal);
    const runner = new PlanRunner(
      {
        journal,
        next: nextStories,
        inbox: async () => [],
        overBudget: async () => undefined,
        finalChecks: async () => [],
        split: async () => undefined,
        lost: new AbortController().signal,
        project: async () => (await projection.project()).state,
        slots: slotsOf(async ({ story: { story } }) => {
          begun.push(story.id);
          await journal.append({ type: 'story_passed', story: story.id, items: [1], commit: 'c' });
        }),
      },
      { slots: 1, until: 'US-002' },
    );
    const why = 'Everything up to US-002 is done, as you wanted.';
    assert.deepEqual(await runner.run(new AbortController().signal), { phase: 'paused', why });
    assert.deepEqual(begun, ['US-001', 'US-002', 'US-002a']);
  });

  it('takes nothing from a story that has passed, and leaves out what was meant for an earlier run', async () => {
    for (const story of ['US-001', 'US-002'])
      await journal.append({ type: 'story_passed', story, items: [1], commit: `c-${story}` });
    const orders: readonly SteerCommand[] = [
      { kind: 'pause' },
      { kind: 'stop', when: 'now' },
      { kind: 'skip', story: 'US-001' },
      { kind: 'accept', story: 'US-001' },
      { kind: 'split', story: 'US-002' },
      { kind: 'answer', id: '1', text: 'yes' },
      { kind: 'budget', add: { maxCost: 1 } },
    ];
    for (const order of orders) await send(folder, order, 'other');
    const earlier = new Set(waitingIds(folder));
    const projection = new Projection(folder, journal);
    const runner = new PlanRunner(
      {
        journal,
        next: nextStories,
        inbox: async () =>
          (await take(folder, () => false)).map(sent => ({ ...sent, isEarlier: earlier.has(sent.id) })),
        overBudget: async () => undefined,
        finalChecks: async () => [],
        split: async () => assert.fail('It is not split.'),
        lost: new AbortController().signal,
        project: async () => (await projection.project()).state,
        slots: slotsOf(async () => assert.fail('Nothing is to be done.')),
      },
      { slots: 1 },
    );
    assert.deepEqual(await runner.run(new AbortController().signal), { phase: 'done' });
    const { state } = await projection.project();
    assert.deepEqual(
      state.stories.map(({ status, commit, isToSplit }) => [status, commit, isToSplit]),
      [
        ['passed', 'c-US-001', undefined],
        ['passed', 'c-US-002', undefined],
      ],
    );
    assert.deepEqual([state.isHeld, state.answers.size, state.added.maxCost], [false, 0, 1]);
    assert.deepEqual(
      journal.lines.flatMap(line => (line.type === 'steered' ? [line.ignored] : [])),
      [
        ...['The plan is not running.', 'The plan is not running.'],
        ...['US-001 has passed already.', 'US-001 has passed already.', 'US-002 has passed already.'],
        ...['There is no open question 1.', undefined],
      ],
    );
    assert.deepEqual(waitingIds(folder), []);
  });

  it('goes on when the wait for a provider is over, also where the clock was set back meanwhile', async () => {
    const projection = new Projection(folder, journal);
    const { now } = Date;
    let begun = 0;
    const runner = new PlanRunner(
      {
        journal,
        next: nextStories,
        inbox: async () => [],
        overBudget: async () => undefined,
        finalChecks: async () => [],
        split: async () => undefined,
        lost: new AbortController().signal,
        project: async () => (await projection.project()).state,
        slots: slotsOf(async ({ story: { story }, onWait }) => {
          if (begun++ === 0) onWait?.(50, 'The provider is busy.');
          Date.now = () => now() - 3_600_000;
          await journal.append({ type: 'story_passed', story: story.id, items: [1], commit: 'c' });
        }),
      },
      { slots: 1 },
    );
    try {
      assert.deepEqual(await runner.run(new AbortController().signal), { phase: 'done' });
    } finally {
      Date.now = now;
    }
    assert.equal(begun, 2);
  });

  it('ends with a defect of an attempt, whenever that comes, and counts the attempt', async () => {
    for (const [failsAfter, projectMs] of [
      [60, 0],
      [60, 40],
      [0, 40],
    ] as const) {
      const projection = new Projection(folder, journal);
      const begun: string[] = [];
      const runner = new PlanRunner(
        {
          journal,
          next: nextStories,
          inbox: async () => [],
          overBudget: async () => undefined,
          finalChecks: async () => [],
          split: async () => undefined,
          lost: new AbortController().signal,
          project: async () => {
            await new Promise(resolve => setTimeout(resolve, projectMs));
            return (await projection.project()).state;
          },
          slots: slotsOf(async ({ story: { story }, attempt }) => {
            begun.push(story.id);
            const start = { item: 1, slot: 1, parent: 'p', role: 'coder' };
            await journal.append({ type: 'attempt_started', story: story.id, attempt, ...start });
            await defect(failsAfter);
          }),
        },
        { slots: 1 },
      );
      const end = await runner.run(new AbortController().signal);
      assert.deepEqual(end, { phase: 'failed', why: 'EMFILE: too many open files' });
      assert.deepEqual(begun, ['US-001']);
      const { open, lastStatus } = (await projection.project()).state.story('US-001') ?? {};
      assert.deepEqual([open, lastStatus], [undefined, 'error']);
    }
    assert.equal((await new Projection(folder, journal).project()).state.story('US-001')?.attempts, 3);
  });
});

/** An attempt that fails by a defect, such as too many open files, at some time. */
const defect = async (afterMs: number): Promise<never> => {
  await new Promise(resolve => setTimeout(resolve, afterMs));
  throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
};

const slotsOf = (run: StorySlots['run']): StorySlots => ({
  canHold: true,
  run,
  room: chosen => chosen,
  close: async () => undefined,
});
