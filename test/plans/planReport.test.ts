import assert from 'node:assert/strict';
import { reportOf } from '../../src/plans/planReport.ts';
import { foldPlan } from '../../src/plans/planState.ts';
import type { JournalLine, PlanEvent, Story } from '../../src/protocol/plan.ts';

const story: Story = {
  id: 'US-001',
  title: 'Rolls',
  prd: 'prds/01.md',
  role: 'coder',
  dependsOn: [],
  touches: [],
  checks: [{ name: 'unit', command: 'npm test' }],
  items: [{ number: 1, text: 'A discount', ticked: false }],
};

const inStory = { story: 'US-001' } as const;
const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
const attempt = (number: number): PlanEvent[] => [
  {
    type: 'attempt_started',
    ...inStory,
    item: 1,
    attempt: number,
    slot: 1,
    parent: 'p',
    role: 'coder',
  },
  { type: 'step_started', ...inStory, key: `${number}.coder`, step: 'coder', runId: `r${number}` },
  {
    type: 'step_ended',
    ...inStory,
    key: `${number}.coder`,
    step: 'coder',
    runId: `r${number}`,
    outcome: 'completed',
    usage: { ...usage, cost: 0.25 },
  },
];
const checked = (number: number, tree: string, exitCode: number, output: string): PlanEvent => ({
  type: 'check_ended',
  ...inStory,
  attempt: number,
  tree,
  name: 'unit',
  exitCode,
  ms: 7,
  output,
});

const events: PlanEvent[] = [
  { type: 'plan_created', name: 'bakery', goal: 'A bakery' },
  ...attempt(1),
  checked(1, 't1', 1, 'red'),
  { type: 'attempt_ended', ...inStory, attempt: 1, status: 'denied', details: 'unit fails' },
  ...attempt(2),
  checked(2, 't2', 0, 'green'),
  checked(2, 'merged', 0, 'green on the merged tree'),
  {
    type: 'verdict',
    ...inStory,
    attempt: 2,
    tree: 't2',
    approved: true,
    text: 'fine',
    items: [1],
  },
  { type: 'story_passed', ...inStory, items: [1], commit: 'c1', attempt: 2 },
  { type: 'attempt_ended', ...inStory, attempt: 2, status: 'approved', details: '' },
  { type: 'finished', how: 'merge', commit: 'c1' },
];

const report = (detailed?: string, more: readonly PlanEvent[] = []) => {
  const lines: JournalLine[] = [...events, ...more].map((event, at) => ({
    seq: at + 1,
    ts: new Date(at * 1000).toISOString(),
    ...event,
  }));
  return reportOf(lines, foldPlan(lines, [story]), detailed);
};

describe('the report of a plan', () => {
  it('has each attempt with its checks, its verdict, its cost and its runs', () => {
    const [only] = report('US-001').stories;
    assert.deepEqual(only?.commits, ['c1']);
    assert.equal(only?.cost, 0.5);
    assert.deepEqual(only?.items, [{ number: 1, text: 'A discount', closed: 'passed' }]);
    const [first, second] = only?.attempts ?? [];
    assert.deepEqual([first?.status, first?.details, first?.cost], ['denied', 'unit fails', 0.25]);
    assert.deepEqual(first?.steps, [{ step: 'coder', runId: 'r1' }]);
    assert.deepEqual(second?.verdict, { approved: true, text: 'fine' });
    assert.deepEqual(second?.checks, [
      { name: 'unit', command: 'npm test', exitCode: 0, ms: 7, output: 'green on the merged tree' },
    ]);
  });

  it('says which worker had an attempt last', () => {
    const given = (worker: string): PlanEvent => ({
      type: 'job_given',
      ...inStory,
      attempt: 2,
      job: 'j',
      worker,
    });
    const [only] = report(undefined, [given('blue-1'), given('green-2')]).stories;
    assert.deepEqual(
      only?.attempts.map(({ worker }) => worker),
      [undefined, 'green-2'],
    );
  });

  it('leaves what checks printed out of a report of all stories', () => {
    const outputs = report().stories.flatMap(one => one.attempts.flatMap(({ checks }) => checks));
    assert.deepEqual([...new Set(outputs.map(({ output }) => output))], ['']);
  });

  it('says how the plan was ended, until it is worked on again', () => {
    assert.deepEqual(report().finished, { how: 'merge', commit: 'c1' });
    const again: PlanEvent = {
      type: 'runner_started',
      base: 'b',
      branch: 'telos/bakery',
      slots: 1,
      limits: {},
      pid: 1,
    };
    assert.equal(report(undefined, [again]).finished, undefined);
    assert.equal(report(undefined, [again, { type: 'finished', how: 'keep' }]).workedMs, 0);
  });
});
