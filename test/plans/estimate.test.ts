import assert from 'node:assert/strict';
import { estimateCost, estimateLeft } from '../../src/plans/estimate.ts';
import { foldPlan } from '../../src/plans/planState.ts';
import type { JournalLine, Story } from '../../src/protocol/plan.ts';

describe('estimateCost', () => {
  const request = { transcriptLength: 4000, elements: 20, maxIterations: 10 };

  it('grows with the model, the iterations and the stories', () => {
    assert.deepEqual(estimateCost({ ...request, model: 'opus' }), {
      low: 0.89,
      typical: 1.37,
      high: 1.91,
      stories: 2,
    });
    const long = estimateCost({ ...request, model: 'claude-opus-5-5', maxIterations: 30 });
    assert.ok(long.typical > 3 * 1.37);
    const cheap = estimateCost({ ...request, model: 'haiku' });
    assert.ok(cheap.high < 0.89);
    assert.equal(estimateCost({ ...request, model: 'else', stories: 4, elements: 0 }).stories, 4);
  });

  it('expects one story at least, and is ordered', () => {
    const { low, typical, high, stories } = estimateCost({ ...request, elements: 0, model: 'gpt' });
    assert.equal(stories, 1);
    assert.ok(low <= typical && typical <= high);
  });
});

describe('estimateLeft', () => {
  const stories = [1, 2, 3, 4, 5].map(
    (number): Story => ({
      ...{
        id: `US-00${number}`,
        title: '',
        prd: `prds/${number}.md`,
        role: 'coder',
        dependsOn: [],
        touches: [],
      },
      checks: [],
      items: [{ number: 1, text: 'one', ticked: false }],
    }),
  );
  const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
  const paid = (costs: readonly number[]) =>
    foldPlan(
      costs.flatMap((cost, at): JournalLine[] => {
        const story = `US-00${at + 1}`;
        const line = { seq: at + 1, ts: '2026-01-01T00:00:00Z', story };
        return [
          {
            ...line,
            type: 'step_ended',
            key: story,
            step: 'coder',
            runId: 'r',
            outcome: 'completed',
            usage: { ...usage, cost },
          },
          { ...line, type: 'story_passed', items: [1], commit: 'c' },
        ];
      }),
      stories,
    );

  it('goes by the class of the model first, and by what the stories have cost from the third on', () => {
    assert.equal(estimateLeft(paid([]), 4000, 'claude-haiku-4-5')?.stories, 5);
    assert.equal(estimateLeft(paid([1, 1]), 4000, 'claude-haiku-4-5')?.stories, 3);
    assert.deepEqual(estimateLeft(paid([1, 2, 3]), 4000, undefined), {
      low: 2.37,
      typical: 4,
      high: 5.63,
      stories: 2,
    });
  });

  it('says nothing of a model whose price is not known, and when nothing is left', () => {
    assert.equal(estimateLeft(paid([]), 4000, 'llama'), undefined);
    assert.equal(estimateLeft(paid([1, 1, 1, 1, 1]), 4000, 'opus'), undefined);
  });
});
