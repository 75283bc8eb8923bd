/** A small part of what `npm run faults` measures, for every change. At night, what is random runs whole, with another seed each time. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { lineOf } from '../harness/report.ts';
import { resultOf } from './figure.ts';
import { measurements } from './measurements.ts';

const isNight = process.env['TELOS_NIGHTLY'] !== undefined;
const seed = randomInt(1_000_000);

describe('under faults and load', () => {
  for (const { name, measure, hasQuick, isRandom } of measurements) {
    const isWhole = isNight && isRandom;
    if (!hasQuick && !isWhole) continue;
    const title = isWhole
      ? `what is random in ${name} stays within its limits`
      : `the figures of ${name} are met, as far as they can be measured here`;
    it(title, async () => {
      if (isRandom) console.log(`To repeat it: npm run faults -- --only ${name} --seed ${seed}`);
      const figures = await measure(isWhole ? 'whole' : 'quick', { seed });
      assert.ok(figures.length > 0);
      const lines = figures.map(figure => lineOf(resultOf(figure, name)));
      if (isWhole) console.log(lines.join('\n'));
      assert.deepEqual(
        lines.filter((_, at) => figures[at]?.met === false),
        [],
        isRandom ? `seed ${seed}` : undefined,
      );
    });
  }
});
