import assert from 'node:assert/strict';
import { type DaySpending, describeDay, formatCost, formatDuration } from '../../src/protocol/usage.ts';

const nothing: DaySpending = { cost: 0, unknownRuns: 0, tokens: 0, minutes: 0, limits: {} };

describe('describeDay', () => {
  it('says nothing where there is nothing to say', () => {
    assert.deepEqual(describeDay(nothing), []);
  });

  it('never leaves out of a sum what is not known', () => {
    assert.deepEqual(describeDay({ ...nothing, cost: 0.12, unknownRuns: 2 }), [
      'today $0.1200 and 2 runs of unknown cost',
    ]);
    assert.deepEqual(describeDay({ ...nothing, unknownRuns: 1 }), ['today 1 run of unknown cost']);
  });

  it('says what is left of each limit, and never less than nothing', () => {
    const limits = { cost: 5, tokens: 1_000, minutes: 30 };
    assert.deepEqual(describeDay({ ...nothing, cost: 1.5, tokens: 3_000, minutes: 28.96, limits }), [
      'today $1.50',
      '$3.50, 0 tokens, 1 minute left today',
    ]);
  });
});

describe('formatCost', () => {
  it('keeps the digits that matter', () => {
    assert.deepEqual([0, 0.00001, 0.0004, 12.345].map(formatCost), [
      '$0.00',
      'under $0.0001',
      '$0.0004',
      '$12.35',
    ]);
  });
});

describe('formatDuration', () => {
  it('says seconds and minutes', () => {
    assert.deepEqual([400, 2000, 9_960, 59_400, 65_000, 120_000].map(formatDuration), [
      '0.4 s',
      '2 s',
      '10 s',
      '59 s',
      '1 min 5 s',
      '2 min',
    ]);
  });
});
