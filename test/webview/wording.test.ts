import assert from 'node:assert/strict';
import type { RunEvent } from '../../src/protocol/run.ts';
import type { EndItem } from '../../webview/runItems.ts';
import { emptyChat, reduceAll } from '../../webview/state.ts';
import {
  describeActivity,
  describeChanges,
  describeFigures,
  describeLines,
  describeRecording,
  describeRetry,
  describeRound,
  describeScores,
  summarizeCall,
} from '../../webview/wording.ts';

describe('wording', () => {
  it('sums a call up by its path or command', () => {
    const sum = (input: Record<string, unknown>) =>
      summarizeCall({ id: '1', name: 't', input }, '/home/me/kairos');
    assert.equal(sum({ content: 'long text', path: '/home/me/kairos/day.md' }), 'day.md');
    assert.equal(sum({ path: '/home/me/kairosx/day.md' }), '/home/me/kairosx/day.md');
    assert.equal(sum({ command: 'npm test\nrm -rf /' }), 'npm test');
    assert.equal(sum({ city: 'Paris' }), 'Paris');
    assert.equal(sum({ limit: 3, deep: true }), 'limit, deep');
    assert.equal(sum({ command: 'echo \u202Etxt' }), 'echo <U+202E>txt');
    assert.equal(sum({ query: 'x'.repeat(500) }).length, 200);
  });

  it('says the figures behind a choice where there are some', () => {
    const runnerUp = { agent: 'kairos', skill: 'weekly' };
    assert.equal(describeScores({ rule: 'name', matched: 'kickoff' }), '');
    assert.equal(describeScores({ rule: 'model', runnerUp }), 'then weekly');
    assert.equal(
      describeScores({ rule: 'index', score: 0.4142, runnerUp: { ...runnerUp, score: 0.3 } }),
      'score 0.41, then weekly with 0.30',
    );
  });

  it('says a wait and that it is over', () => {
    const retry = {
      kind: 'retry',
      provider: 'anthropic',
      attempt: 1,
      waitMs: 2000,
      why: 'overloaded',
      over: false,
    } as const;
    assert.equal(describeRetry(retry), 'Waiting 2 s for Anthropic: overloaded');
    assert.equal(
      describeRetry({ ...retry, attempt: 3, over: true }),
      'Waited 2 s for Anthropic (try 3): overloaded',
    );
  });

  it("says that a recording is one, with a date that does not depend on the reader's clock", () => {
    assert.equal(
      describeRecording({ model: 'claude-haiku-4-5', recordedAt: '2026-03-01T23:30:00Z' }),
      'This is a recording of claude-haiku-4-5 from 1 March 2026, not a live model. Its tools run for real.',
    );
    assert.match(describeRecording({ model: 'm', recordedAt: 'nonsense' }), /an unknown date/);
  });

  it('says how many lines of a file changed, for eye and ear, where they are counted', () => {
    const lines = describeLines({ added: 1, removed: 1_200 });
    assert.deepEqual(lines, { short: ['+1', '−1,200'], long: '1 line added, 1,200 removed' });
    assert.deepEqual(describeLines(undefined), { short: [], long: '' });
    assert.deepEqual([describeChanges(1), describeChanges(3)], ['1 file changed', '3 files changed']);
  });

  it('names only figures that are known', () => {
    const end: EndItem = {
      kind: 'end',
      runId: 'r1',
      outcome: 'completed',
      text: '',
      changedFiles: [],
      rounds: 1,
      toolCalls: 2,
      durationMs: 12_300,
    };
    assert.deepEqual(describeFigures(end), ['12 s', '1 step', '2 tool calls']);
    const usage = { inputTokens: 4000, outputTokens: 512, cacheReadTokens: 300, cacheWriteTokens: 0 };
    assert.deepEqual(describeFigures({ ...end, usage: { ...usage, cost: 0.0123 } }).slice(3), [
      '4,300 tokens in, 512 out',
      '$0.0123',
    ]);
    assert.equal(describeFigures({ ...end, usage: { ...usage, cost: 'unknown' } }).at(-1), 'cost unknown');
  });

  it('says what a run is doing until its text comes', () => {
    const activity = (...events: RunEvent[]) => describeActivity(reduceAll(emptyChat, events).runs[0]!);
    const start: RunEvent = { type: 'run_start', runId: 'r', text: 'x', startedAt: '' };
    const routed: RunEvent = {
      type: 'routed',
      agent: 'a',
      skill: 's',
      description: '',
      reason: { rule: 'name' },
      provider: 'anthropic',
      model: 'm-1',
      workingDir: '/w',
      hasMcp: false,
    };
    const tool: RunEvent = { type: 'tool_start', call: { id: 't', name: 'read_file', input: {} } };
    assert.equal(activity(start), 'Choosing a skill');
    assert.equal(activity(start, routed), 'Waiting for m-1');
    assert.equal(activity(start, routed, tool), undefined);
    assert.equal(activity(start, routed, { type: 'text', text: 'Hi' }), undefined);
  });
});

describe('describeRound', () => {
  const usage = { inputTokens: 1_200, outputTokens: 80, cacheReadTokens: 0, cacheWriteTokens: 0 };

  it('says what a round used, and what is not known of it', () => {
    assert.equal(
      describeRound({ round: 2, usage: { ...usage, cost: 0.0012 } }),
      'Step 2: 1,200 tokens in, 80 out · $0.0012',
    );
    assert.match(describeRound({ round: 1, usage: { ...usage, cost: 'unknown' } }), /cost unknown$/);
    assert.match(describeRound({ round: 0, usage: { ...usage, cost: 0 } }), /^Choice of the skill: 1,200/);
  });
});
