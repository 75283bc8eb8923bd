import assert from 'node:assert/strict';
import { estimateCost } from '../../../src/engine/workflow/estimate.ts';

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
