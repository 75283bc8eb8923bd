/** A small part of what `npm run faults` measures, for every change. */
import assert from 'node:assert/strict';
import { lineOf } from '../harness/report.ts';
import { resultOf } from './figure.ts';
import { measurements } from './measurements.ts';

describe('under faults and load', () => {
  for (const { name, measure, hasQuick } of measurements) {
    if (!hasQuick) continue;
    it(`the figures of ${name} are met, as far as they can be measured here`, async () => {
      const figures = await measure('quick');
      assert.ok(figures.length > 0);
      const missed = figures.filter(({ met }) => met === false).map(figure => lineOf(resultOf(figure, name)));
      assert.deepEqual(missed, []);
    });
  }
});
