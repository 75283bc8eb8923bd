import assert from 'node:assert/strict';
import { atMost } from '../../src/engine/cancellation.ts';
import { gate } from '../eventually.ts';

describe('work that waits for its turn', () => {
  it('begins in its order, so many at the same time, also after one has failed', async () => {
    const inTurn = atMost(2);
    const begun: number[] = [];
    const gates = Array.from({ length: 5 }, gate);
    const all = gates.map((one, index) =>
      inTurn(async () => {
        begun.push(index);
        await one.opened;
        if (index === 1) throw new Error('failed');
        return index;
      }),
    );
    const results = Promise.allSettled(all);
    const next = (): Promise<void> => new Promise(resolve => setImmediate(resolve));
    await next();
    assert.deepEqual(begun, [0, 1]);
    gates[1]?.open();
    await next();
    assert.deepEqual(begun, [0, 1, 2]);
    gates[0]?.open();
    gates[2]?.open();
    await next();
    assert.deepEqual(begun, [0, 1, 2, 3, 4]);
    gates[3]?.open();
    gates[4]?.open();
    const ends = (await results).map(end => (end.status === 'fulfilled' ? end.value : String(end.reason)));
    assert.deepEqual(ends, [0, 'Error: failed', 2, 3, 4]);
    assert.equal(await inTurn(async () => 'again'), 'again');
  });
});
