import assert from 'node:assert/strict';
import { foldPlan } from '../../src/plans/planState.ts';
import { inOrder, openItems } from '../../src/plans/storyState.ts';
import type { AttemptStatus, JournalLine, PlanEvent, Story } from '../../src/protocol/plan.ts';

function story(id: string, more: Partial<Story> = {}): Story {
  const items = [1, 2].map(number => ({ number, text: `item ${number}`, ticked: false }));
  const prd = `prds/${id.slice(-2)}.md`;
  return { id, title: id, prd, role: 'coder', dependsOn: [], touches: [], checks: [], items, ...more };
}

function linesOf(events: readonly PlanEvent[], at = (index: number) => index * 1000): JournalLine[] {
  return events.map((event, index) => ({ seq: index + 1, ts: new Date(at(index)).toISOString(), ...event }));
}

const fold = (events: readonly PlanEvent[], stories: readonly Story[] = [story('US-01')]) =>
  foldPlan(linesOf(events), stories);

const started = (attempt = 1, id = 'US-01'): PlanEvent => ({
  type: 'attempt_started',
  story: id,
  item: 1,
  attempt,
  slot: 1,
  parent: 'p',
  role: 'coder',
});
const ended = (status: AttemptStatus, attempt = 1, details = ''): PlanEvent => ({
  type: 'attempt_ended',
  story: 'US-01',
  attempt,
  status,
  details,
});
const worked: PlanEvent = {
  type: 'step_ended',
  key: 'US-01.a1.coder',
  step: 'coder',
  story: 'US-01',
  runId: 'r',
  outcome: 'completed',
  usage: { inputTokens: 5, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, cost: 0.5 },
};
const snapshot: PlanEvent = {
  type: 'snapshot',
  story: 'US-01',
  attempt: 1,
  commit: 'w',
  tree: 't',
  files: 1,
  added: 1,
  removed: 0,
};
const checked = (exitCode: number, tree = 't'): PlanEvent => ({
  type: 'check_ended',
  story: 'US-01',
  attempt: 1,
  tree,
  name: 'unit',
  exitCode,
  ms: 1,
  output: '',
});
const approved: PlanEvent = {
  type: 'verdict',
  story: 'US-01',
  attempt: 1,
  tree: 't',
  approved: true,
  text: 'fine',
  items: [1, 2],
};
const passed = (items: number[], part?: true): PlanEvent => ({
  type: 'story_passed',
  story: 'US-01',
  items,
  commit: 'c',
  attempt: 1,
  ...(part && { part }),
});

describe('the state of a plan', () => {
  it('follows a story from ready to passed', () => {
    const steps: [PlanEvent, string][] = [
      [started(), 'working'],
      [worked, 'snapshot'],
      [snapshot, 'checking'],
      [checked(0), 'reviewing'],
      [approved, 'committing'],
      [checked(0, 'merged'), 'integrating'],
      [passed([1, 2]), 'passed'],
      [ended('approved'), 'passed'],
    ];
    const seen = steps.map(
      (_, index) => fold(steps.slice(0, index + 1).map(([event]) => event)).story('US-01')?.status,
    );
    assert.deepEqual(
      seen,
      steps.map(([, status]) => status),
    );
    assert.equal(fold([]).story('US-01')?.status, 'ready');
    const state = fold(steps.map(([event]) => event));
    assert.deepEqual(
      [state.next, state.usage?.cost, state.steps.get('US-01.a1.coder')?.runId],
      [undefined, 0.5, 'r'],
    );
  });

  it('charges what the story did, and nothing that happened to it', () => {
    const free: AttemptStatus[] = [
      'interrupted',
      'error',
      'cancelled',
      'conflict',
      'approved',
      'approved-partial',
    ];
    const paid: AttemptStatus[] = ['denied', 'no-verdict', 'timeout', 'no-change'];
    for (const status of [...free, ...paid]) {
      const state = fold([started(), ended(status)]).story('US-01');
      assert.equal(state?.charged, paid.includes(status) ? 1 : 0, status);
      assert.equal(state?.open, undefined);
    }
  });

  it('counts denials in a row: an approval of a part ends them, a timeout does not', () => {
    const outcome = (...statuses: AttemptStatus[]) =>
      fold(
        statuses.flatMap((status, index) => [
          started(index + 1),
          ended(status, index + 1, `why ${index + 1}`),
        ]),
      );
    assert.equal(outcome('denied', 'denied', 'approved-partial', 'denied').story('US-01')?.streak, 1);
    const state = outcome('denied', 'timeout', 'denied').story('US-01');
    assert.deepEqual([state?.streak, state?.lastDenial], [2, 'why 3']);
    assert.equal(outcome('no-change', 'no-change').story('US-01')?.status, 'needs_you');
    assert.equal(outcome('no-change', 'interrupted', 'no-change').story('US-01')?.status, 'needs_you');
    const twice = [started(1), ended('no-change', 1), started(2), ended('no-change', 2)];
    const told = (story?: string): PlanEvent => ({
      type: 'steered',
      command: { kind: 'tell', text: 'Use sqlite.', ...(story !== undefined && { story }) },
      by: 'cli',
    });
    assert.equal(fold([...twice, told('US-02')]).story('US-01')?.status, 'needs_you');
    assert.equal(fold([...twice, told('US-01')]).story('US-01')?.status, 'ready');
    assert.equal(fold([...twice, told()]).story('US-01')?.status, 'ready');
    assert.equal(outcome('no-change', 'denied', 'no-change').story('US-01')?.status, 'ready');
  });

  it('passes only when every box is closed, and is accepted when a person closed the last one', () => {
    const part = fold([started(), passed([1], true), ended('approved-partial')]).story('US-01')!;
    assert.deepEqual([part.status, openItems(part).map(({ number }) => number)], ['ready', [2]]);
    const accept: PlanEvent = { type: 'story_accepted', story: 'US-01', items: [2], why: '', by: 'file' };
    assert.equal(fold([passed([1], true), accept]).story('US-01')?.status, 'accepted');
    assert.equal(fold([accept, passed([1])]).story('US-01')?.status, 'passed');
    const three = story('US-01', { items: [...story('x').items, { number: 3, text: 'new', ticked: false }] });
    assert.equal(fold([passed([1, 2])], [three]).story('US-01')?.status, 'ready');
    assert.equal(fold([passed([])], [story('US-01', { items: [] })]).story('US-01')?.status, 'passed');
    assert.equal(fold([], [story('US-01', { items: [] })]).story('US-01')?.status, 'ready');
  });

  it('brings back what was reopened, and forgets what counted against it', () => {
    const events = [started(), ended('denied'), passed([1, 2])];
    const box = fold([
      ...events,
      { type: 'story_reopened', story: 'US-01', items: [2], why: 'x', by: 'file' },
    ]);
    assert.deepEqual([...(box.story('US-01')?.passed ?? [])], [1]);
    const whole = fold([
      ...events,
      { type: 'story_reopened', story: 'US-01', why: 'the commit is gone', by: 'engine' },
    ]);
    const state = whole.story('US-01')!;
    assert.deepEqual(
      [state.status, state.commit, state.charged, state.passed.size, state.why],
      ['ready', undefined, 0, 0, 'the commit is gone'],
    );
  });

  it('waits for what a story depends on, and for the person', () => {
    const stories = [story('US-02', { dependsOn: ['US-01'] }), story('US-01')];
    assert.deepEqual(
      fold([], stories).stories.map(({ status }) => status),
      ['ready', 'blocked'],
    );
    assert.equal(fold([passed([1, 2])], stories).story('US-02')?.status, 'ready');
    const skip: PlanEvent = { type: 'story_skipped', story: 'US-01', why: '', by: 'cli' };
    assert.equal(fold([skip], stories).story('US-02')?.status, 'blocked');
    const ask: PlanEvent = { type: 'question_parked', question: { id: 'q', story: 'US-01', text: 'Which?' } };
    const answer: PlanEvent = { type: 'question_answered', id: 'q', text: 'both', by: 'cli' };
    assert.equal(fold([ask]).story('US-01')?.status, 'needs_you');
    assert.equal(fold([ask, ask]).questions.length, 1);
    const state = fold([ask, answer]);
    assert.deepEqual([state.story('US-01')?.status, state.answers.get('q')], ['ready', 'both']);
  });

  it('orders stories by what they need, then by file, then as a person said', () => {
    const stories = [story('US-03'), story('US-01', { dependsOn: ['US-03', 'US-99'] }), story('US-02')];
    const ids = (list: readonly Story[]) => list.map(({ id }) => id.slice(-1)).join('');
    assert.equal(ids(inOrder(stories)), '231');
    assert.equal(ids(inOrder(stories, ['US-03', 'US-02'])), '312');
    const circle = [story('US-01', { dependsOn: ['US-02'] }), story('US-02', { dependsOn: ['US-01'] })];
    assert.equal(ids(inOrder(circle)), '12');
    const reorder: PlanEvent = {
      type: 'steered',
      command: { kind: 'reorder', story: 'US-03', before: 'US-02' },
      by: 'cli',
      id: 'i',
    };
    const state = fold([reorder], stories);
    assert.equal(ids(state.stories.map(({ story: one }) => one)), '312');
    assert.ok(state.steered.has('i'));
  });

  it('adds up limits, time and the last choices over restarts, also when the clock goes back', () => {
    const start: PlanEvent = {
      type: 'runner_started',
      base: 'b',
      branch: 'telos/x',
      slots: 1,
      limits: {},
      pid: 1,
    };
    const budget: PlanEvent = {
      type: 'steered',
      command: { kind: 'budget', add: { maxCost: 2 } },
      by: 'cli',
    };
    const at = [0, 60, 100_000, 100_030, 50_000, 100_040];
    const lines = linesOf([start, budget, start, budget, worked, worked], index => (at[index] ?? 0) * 1000);
    const state = foldPlan(lines, [story('US-01')]);
    assert.deepEqual([state.added, state.workedMs, state.usage?.inputTokens], [{ maxCost: 4 }, 100_000, 10]);
  });

  it('counts no time in which nothing worked: a pause, a wait, sleep of the machine, and what follows a kill', () => {
    const start: PlanEvent = {
      type: 'runner_started',
      base: 'b',
      branch: 'telos/x',
      slots: 1,
      limits: {},
      pid: 1,
    };
    const [paused, running, waiting]: PlanEvent[] = [
      { type: 'phase', phase: 'paused' },
      { type: 'phase', phase: 'running' },
      { type: 'waiting', until: '2026-01-01T00:00:00Z', why: 'w' },
    ];
    const away: PlanEvent = { type: 'away', ms: 1_000_000 };
    const recovered: PlanEvent = { type: 'recovered', what: ['x'] };
    const seconds = (...rows: readonly [PlanEvent, at: number][]): number =>
      foldPlan(
        linesOf(
          rows.map(([event]) => event),
          index => (rows[index]?.[1] ?? 0) * 1_000,
        ),
        [story('US-01')],
      ).workedMs / 1_000;
    assert.equal(seconds([start, 0], [paused!, 60], [running!, 9_000], [worked, 9_030]), 90);
    assert.equal(seconds([start, 0], [waiting!, 60], [running!, 9_000], [worked, 9_030]), 90);
    assert.equal(seconds([start, 0], [worked, 60], [away, 1_090], [worked, 1_100]), 100);
    // The next runner begins with what it puts right.
    assert.equal(seconds([start, 0], [away, 1_090], [recovered, 1_091], [start, 1_095], [worked, 1_100]), 96);
  });

  it('says what the plan does', () => {
    const phases: [PlanEvent, string][] = [
      [{ type: 'plan_created', name: 'x', goal: 'g' }, 'interviewing'],
      [{ type: 'interview_round', questions: ['a'], ready: false, forced: false }, 'interviewing'],
      [{ type: 'interview_round', questions: [], ready: true, forced: false }, 'planning'],
      [{ type: 'plan_written', digest: 'd' }, 'plan_review'],
      [{ type: 'plan_reviewed', decision: 'changes', comments: [], by: 'cli' }, 'planning'],
      [{ type: 'plan_written', digest: 'e' }, 'plan_review'],
      [{ type: 'plan_reviewed', decision: 'approved', comments: [], by: 'cli' }, 'splitting'],
      [{ type: 'stories_written', stories: ['US-01'] }, 'stories_review'],
      [{ type: 'card_accepted', digest: 'd', by: 'cli' }, 'ready'],
      [{ type: 'waiting', until: '2026-01-01T00:00:00Z', why: 'the limit' }, 'waiting'],
      [{ type: 'phase', phase: 'running' }, 'running'],
    ];
    for (const [index, [, phase]] of phases.entries())
      assert.equal(fold(phases.slice(0, index + 1).map(([event]) => event)).phase, phase);
    assert.equal(fold(phases.slice(0, 10).map(([event]) => event)).waitingUntil, '2026-01-01T00:00:00Z');
    assert.equal(fold(phases.map(([event]) => event)).waitingUntil, undefined);
  });
});
